-- Bills hang off the ledger (M11): one row per settled attempt, and the lines they
-- add up to.

-- +goose Up

-- A settlement counts once, whatever is read twice (I5): the key says so.
create table ledger_attempts (
    request_id            uuid        not null,
    attempt               integer     not null,
    tenant                text        collate "C" not null,
    -- UTC month of the settlement, 2026-11.
    period                text        collate "C" not null,
    -- Line of the bill; a name made from what the line is about.
    line                  text        collate "C" not null,
    at                    timestamptz not null,
    key                   text        collate "C" not null,
    provider              text        collate "C" not null,
    model                 text        collate "C" not null,
    deployment            text        collate "C" not null,
    credential_owner      text        collate "C" not null,
    fallback_kind         text        collate "C" not null,
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
    -- Masked routes stay masked for the tenant that reads its bill (X1).
    masked                boolean     not null,
    primary key (request_id, attempt)
);
-- A line's name is made from its tenant and period, so it finds them alone.
create index on ledger_attempts (line, at, request_id, attempt);

-- The sums, kept beside the ledger so that a bill does not read a month of it.
create table bill_lines (
    tenant                text    collate "C" not null,
    period                text    collate "C" not null,
    line                  text    collate "C" not null,
    model                 text    collate "C" not null,
    deployment            text    collate "C" not null,
    credential_owner      text    collate "C" not null,
    fallback_kind         text    collate "C" not null,
    masked                boolean not null,
    attempts              bigint  not null,
    -- Of these, the ones whose usage nobody knows (D2): counted apart, never as zero.
    unknown_attempts      bigint  not null,
    input_tokens          bigint  not null,
    cached_input_tokens   bigint  not null,
    output_tokens         bigint  not null,
    list_nanousd          bigint  not null,
    charge_nanousd        bigint  not null,
    provider_cost_nanousd bigint  not null,
    subsidy_nanousd       bigint  not null,
    surcharge_nanousd     bigint  not null,
    primary key (tenant, period, line)
);

grant select, insert, update, delete on ledger_attempts, bill_lines to sluice_app;

insert into projection_tables (name, table_name) values ('bills', 'ledger_attempts'), ('bills', 'bill_lines');
