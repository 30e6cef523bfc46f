-- How far a reconciliation has come, for those who look from another worker or after its
-- own is gone. What it found stands in the log; this may be thrown away.

-- +goose Up

create table reconciliation_progress (
    id         uuid        primary key,
    -- When its worker took the lead: the newest row is the leader's, while there is one.
    taken_at   timestamptz not null default clock_timestamp(),
    -- Empty before the first check.
    check_name text        collate "C" not null default '',
    done       bigint      not null default 0,
    total      bigint      not null default 0,
    at         timestamptz not null default clock_timestamp()
);
grant select, insert, update, delete on reconciliation_progress to sluice_app;
