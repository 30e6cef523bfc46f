-- What webhooks are still to be told, and what they were told (U4).

-- +goose Up

-- The webhooks as the log has defined them up to where it was read, which decides who
-- hears of what: one that is defined behind an event does not hear of it. The address
-- and the secret are not here: the newest of both is used.
create table webhook_endpoints (
    -- Empty for the operator's own.
    tenant   text     collate "C" not null,
    webhook  text     collate "C" not null,
    -- Empty for all.
    events   text[]   not null,
    disabled boolean  not null,
    -- Failures in a row, and until when it is left alone because of them.
    failures integer  not null default 0,
    retry_at timestamptz not null default '-infinity',
    primary key (tenant, webhook)
);
grant select, insert, update, delete on webhook_endpoints to sluice_app;

-- A queue, not a read model: made again from the log it would be sent again. The id is
-- made of the log's position and the webhook, so that it cannot be queued twice.
create table webhook_deliveries (
    id           uuid        primary key,
    tenant       text        collate "C" not null,
    webhook      text        collate "C" not null,
    type         text        not null,
    -- As it is sent and signed: the same bytes every time.
    body         bytea       not null,
    created_at   timestamptz not null,
    -- Given up when it has not been taken by then.
    expires_at   timestamptz not null,
    state        text        not null default 'pending' check (state in ('pending', 'delivered', 'dead')),
    attempts     integer     not null default 0,
    next_at      timestamptz not null,
    -- A worker sends it now, or did when it died.
    leased_until timestamptz not null default '-infinity',
    last_at      timestamptz,
    last_status  integer,
    last_cause   text
);
-- What is due, by webhook; it holds what waits and nothing else.
create index webhook_deliveries_due on webhook_deliveries (tenant, webhook, next_at) where state = 'pending';
create index webhook_deliveries_dead on webhook_deliveries (tenant, webhook) where state = 'dead';
create index webhook_deliveries_newest on webhook_deliveries (tenant, webhook, created_at, id);
grant select, insert, update, delete on webhook_deliveries to sluice_app;

-- What a webhook is told a single time although the log says it often.
create table webhook_once (
    tenant  text collate "C" not null,
    webhook text collate "C" not null,
    name    text collate "C" not null,
    -- When the name may be forgotten.
    until   timestamptz not null,
    primary key (tenant, webhook, name)
);
create index on webhook_once (until);
grant select, insert, update, delete on webhook_once to sluice_app;

-- Read models that were seen not to advance, and whether that was told.
create table webhook_stalls (
    projection text        collate "C" primary key,
    seen_at    timestamptz not null,
    since      timestamptz not null,
    told       boolean     not null default false
);
grant select, insert, update, delete on webhook_stalls to sluice_app;

-- There is no webhook in what the log holds by now, so it need not be read for any.
insert into projection_checkpoints (name, target, shard, version, position)
select 'webhooks', 'live', shard, 1, max(last_position) from log_batches group by shard;
