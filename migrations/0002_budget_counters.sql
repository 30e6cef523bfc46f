-- Budget counters: the one projection kept in the append's own transaction (E5).
--
-- Still a projection: eventstore.RebuildCounters makes them again from the log.

-- +goose Up

create table budget_counters (
    -- Counters belong to the shard whose log they are folded from: a shard is
    -- rebuilt alone, and the shard's head lock orders all writes to its counters.
    shard   smallint not null,
    -- For example org/acme/usd/month/2026-11; the unit is the key's.
    key     text     collate "C" not null,
    -- Reserved and not yet settled.
    held    bigint   not null default 0,
    -- Spent for good.
    settled bigint   not null default 0,
    primary key (shard, key)
) with (
    -- A hot counter is updated once a batch: room on its page keeps the update
    -- within it (HOT), and vacuum comes by row count, not by share of the table.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000
);

-- Counters are not events: the application may change and, on rebuild, replace them.
grant select, insert, update, delete on budget_counters to sluice_app;
