-- Marks of the counters that are read through a trailing window (R1, R2).
--
-- How much a counter had settled when a moment came: what was settled since is a
-- subtraction, so that a check costs two rows however much there was (R5). Like the
-- counters a projection, kept in the append's own transaction; marks that have left
-- every window are swept away.

-- +goose Up

create table budget_marks (
    shard   smallint    not null,
    key     text        collate "C" not null,
    at      timestamptz not null,
    -- What the counter had settled before at.
    settled bigint      not null,
    primary key (shard, key, at)
) with (
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000
);

-- The sweep looks for what is old.
create index on budget_marks using brin (at) with (autosummarize = on);

grant select, insert, update, delete on budget_marks to sluice_app;
