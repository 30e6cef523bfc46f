-- The searchable list of requests: one row each, from admission on (X2).

-- +goose Up

create table requests (
    id                    uuid        primary key,
    tenant                text        collate "C" not null,
    key                   text        collate "C" not null,
    at                    timestamptz not null,
    state                 text        collate "C" not null,
    requested_model       text        collate "C" not null,
    canonical_model       text        collate "C" not null,
    class                 text        collate "C" not null,
    dialect               text        collate "C" not null,
    stream                boolean     not null,
    snapshot              text        collate "C" not null,
    client_request_id     text        collate "C" not null,
    -- Empty while open.
    outcome               text        collate "C" not null,
    code                  text        collate "C" not null,
    attempts              bigint      not null,
    fallback_depth        bigint      not null,
    provider              text        collate "C" not null,
    masked                boolean     not null,
    basis                 text        collate "C" not null,
    -- Null where nobody reported it: absent is not zero (M4).
    input_tokens          bigint,
    cached_input_tokens   bigint,
    cache_write_5m_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens         bigint,
    reasoning_tokens      bigint,
    list_nanousd          bigint      not null,
    charge_nanousd        bigint      not null,
    provider_cost_nanousd bigint      not null,
    subsidy_nanousd       bigint      not null,
    surcharge_nanousd     bigint      not null,
    duration_ms           bigint,
    ttft_ms               bigint
);

-- Each search walks one of these backwards from its cursor and stops at its limit,
-- without a sort. Only what is asked often has its own: every index is paid for by
-- every request. The others (model, provider, class, cost) filter along the tenant's;
-- the operator's list goes along the primary key, which is in order of time.
create index on requests (tenant, at, id);
create index on requests (tenant, key, at, id);
-- Almost everything is completed; what is not is what people look for. A request
-- that runs is not in it either, or each would be written here and taken out again.
create index on requests (tenant, outcome, at, id) where outcome <> 'completed' and outcome <> '';

grant select, insert, update, delete on requests to sluice_app;

insert into projection_tables (name, table_name) values ('requests', 'requests');
