-- The log: every event there ever was, in one order per shard.
--
-- One row is one append: what one decision had to say, one to many events
-- (fewer rows and index entries, same log). Positions and stream versions count
-- events, so a row that ends at position 12 and holds 3 events covers 10, 11, 12.

-- +goose Up

-- The application's role (E1). Roles belong to the whole cluster, so several
-- databases being migrated at once race for it; "already there" is success.
-- +goose StatementBegin
do $$
begin
    if not exists (select from pg_roles where rolname = 'sluice_app') then
        create role sluice_app nologin;
    end if;
exception
    when duplicate_object or unique_violation then null;
end
$$;
-- +goose StatementEnd

-- Workers log in as the migrating user and drop to sluice_app at once, so that
-- user has to be a member. Two migrations granting at once race as above
-- ("tuple concurrently updated").
-- +goose StatementBegin
do $$
begin
    if not pg_has_role(current_user, 'sluice_app', 'member') then
        execute format('grant sluice_app to %I', current_user);
    end if;
exception
    when unique_violation or internal_error then
        if not pg_has_role(current_user, 'sluice_app', 'member') then
            raise;
        end if;
end
$$;
-- +goose StatementEnd

grant usage on schema public to sluice_app;

-- What was applied, as digests of the migrations' text (O11): a worker compares
-- them with the ones it was built with. Written by the migrate command.
create table schema_digests (
    version     bigint      primary key,
    digest      text        not null,
    migrated_at timestamptz not null default now()
);
grant select on schema_digests to sluice_app;

create table log_events (
    shard       smallint    not null,
    -- Position of the row's LAST event; gapless per shard, in commit order.
    position    bigint      not null,
    -- How many events the body holds.
    events      smallint    not null,
    -- "C" collation: streams are names, compared as bytes.
    stream      text        collate "C" not null,
    -- Stream version of the row's LAST event; gapless per stream.
    version     bigint      not null,
    -- Partition key: a pure function of the stream's name (the time inside a
    -- request's UUIDv7; fixed days for everything else), NOT a clock. All rows of
    -- a stream therefore share one value, and the unique index below, which must
    -- contain the partition key, holds for a stream over all time.
    born        timestamptz not null,
    -- When the batch was written, by the database's clock: one clock for all workers.
    recorded_at timestamptz not null,
    -- {"worker":..,"actor":..,"causation":..,"correlation":..} (E12), as text:
    -- the hash chain covers the stored bytes, and jsonb would rewrite them.
    meta        text        not null,
    -- One line an event: type version observed_unix_micros {json}\n
    body        text        not null,
    constraint log_events_counts check (events > 0 and version >= events and position >= events)
) partition by range (born);

comment on table log_events is
    'One row per append; body holds one line per event: type version observed_unix_micros {json}';

-- A stream's version is decided upon once (E2): two appends on top of the same
-- version cannot both be stored, however many events each holds. (Unique on the
-- last version alone would let a one-event and a two-event append both follow
-- version 3.)
create unique index log_events_decided_once on log_events (born, stream, (version - events));

-- Ordered reads; merged over partitions. Not unique because the parent could not
-- enforce it (no partition key in it): the head lock makes positions, the hash
-- chain proves them.
create index log_events_in_order on log_events (shard, position);

-- Configuration lives alone in one small partition, so that a starting worker
-- reads all of it without touching a request.
create table log_events_config partition of log_events
    for values from ('1970-01-01 00:00:00+00') to ('1970-01-02 00:00:00+00');

-- Circuits, workers, idempotency, conversations, bills, reconciliations.
create table log_events_state partition of log_events
    for values from ('1970-01-02 00:00:00+00') to ('1970-01-03 00:00:00+00');

-- Nothing is ever refused for want of a month: what has no partition lands here.
create table log_events_default partition of log_events default;

-- One row a batch (one transaction of the append lane). The newest row of a shard
-- is the head of its log: rows are only ever added, so reading the head stays one
-- index step even while a long transaction keeps vacuum away. A head row updated
-- in place would grow a version chain that every append has to walk.
create table log_batches (
    shard          smallint    not null,
    first_position bigint      not null,
    last_position  bigint      not null,
    -- Format of the hash input, see eventstore/chain.go.
    hash_format    smallint    not null,
    -- SHA-256 over the previous batch's hash and the stored columns of the rows (E9).
    hash           bytea       not null,
    recorded_at    timestamptz not null,
    primary key (shard, last_position),
    constraint log_batches_counts check (first_position > 0 and last_position >= first_position),
    constraint log_batches_hash check (octet_length(hash) = 32)
);
-- Two batches cannot start at the same place either.
create unique index log_batches_first on log_batches (shard, first_position);

-- Months that were taken out of the log (E7), so that a gap they leave can be told
-- from events that were removed.
create table log_detached (
    partition      text        not null,
    shard          smallint    not null,
    -- The partition's rows lie between these; others may lie between them too.
    first_position bigint      not null,
    last_position  bigint      not null,
    row_count      bigint      not null,
    detached_at    timestamptz not null default now(),
    primary key (partition, shard)
);
grant select on log_detached to sluice_app;

-- Append-only for everybody, the owner included (E1). Row triggers are cloned to
-- every partition, present and future; TRUNCATE has statement triggers only, so
-- each partition gets its own.
-- +goose StatementBegin
create function log_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the log is append-only: % on % refused', tg_op, tg_table_name
        using errcode = 'insufficient_privilege';
end
$$;
-- +goose StatementEnd

create trigger log_events_append_only before update or delete on log_events
    for each row execute function log_refuse_change();
create trigger log_batches_append_only before update or delete on log_batches
    for each row execute function log_refuse_change();
create trigger log_events_no_truncate before truncate on log_events
    for each statement execute function log_refuse_change();
create trigger log_events_no_truncate before truncate on log_events_config
    for each statement execute function log_refuse_change();
create trigger log_events_no_truncate before truncate on log_events_state
    for each statement execute function log_refuse_change();
create trigger log_events_no_truncate before truncate on log_events_default
    for each statement execute function log_refuse_change();
create trigger log_batches_no_truncate before truncate on log_batches
    for each statement execute function log_refuse_change();

grant select, insert on log_events, log_batches to sluice_app;

-- Creates the partition of the month that holds a day, if it is not there. Built
-- beside the log and attached, because CREATE ... PARTITION OF would lock all
-- readers and writers out while it works.
-- +goose StatementBegin
create function log_ensure_partition(day date) returns boolean
    language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '2s' as $$
declare
    lower timestamptz := date_trunc('month', day::timestamp) at time zone 'UTC';
    upper timestamptz := (date_trunc('month', day::timestamp) + interval '1 month') at time zone 'UTC';
    name text := 'log_events_' || to_char(day, 'YYYY_MM');
begin
    -- Workers that start together take turns; the second finds the table there.
    perform pg_advisory_xact_lock(hashtext('log_ensure_partition'));
    if to_regclass(name) is not null then
        return false;
    end if;
    execute format('create table %I (like log_events including defaults including constraints)', name);
    execute format('alter table log_events attach partition %I for values from (%L) to (%L)', name, lower, upper);
    execute format('create trigger log_events_no_truncate before truncate on %I '
        'for each statement execute function log_refuse_change()', name);
    return true;
exception
    when check_violation then
        -- A request born in this month is already in the default partition (a
        -- worker's clock ran ahead, or the months were not made in time). It is
        -- found there as well; the month stays in the default partition.
        raise warning 'month % stays in the default partition: it holds rows of it', name;
        return false;
end
$$;
-- +goose StatementEnd

-- The current month and the two after it. Called at start-up and daily.
-- +goose StatementBegin
create function log_ensure_partitions() returns integer
    language sql security definer set search_path = public, pg_temp as $$
    select count(*)::integer
    from generate_series(0, 2) ahead
    where log_ensure_partition(((now() at time zone 'UTC') + make_interval(months => ahead))::date);
$$;
-- +goose StatementEnd

revoke execute on function log_ensure_partition(date), log_ensure_partitions() from public;
grant execute on function log_ensure_partitions() to sluice_app;

select log_ensure_partitions();
