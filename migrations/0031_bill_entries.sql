-- Bills that are corrected and closed: an attempt has a settlement and, where its
-- price was corrected, an entry for each difference (M15). Entries that come after
-- their bill was closed stand in the next one (M14).

-- +goose Up

alter table ledger_attempts
    -- Month of the settlement; period is the bill that the entry stands in.
    add column of_period  text   collate "C" not null default '',
    -- Why it stands in another bill, or empty: late_settlement, price_correction.
    add column reason     text   collate "C" not null default '',
    -- Position of the price correction that made the entry; 0 is the settlement.
    add column correction bigint not null default 0,
    -- Position of the settlement in the log.
    add column position   bigint not null default 0;
alter table ledger_attempts drop constraint ledger_attempts_pkey;
alter table ledger_attempts add primary key (request_id, attempt, correction);

alter table bill_lines
    add column of_period  text   collate "C" not null default '',
    add column reason     text   collate "C" not null default '',
    add column correction bigint not null default 0;

-- The price corrections that the bills hold. A live view takes none in by itself: a
-- rebuild starts with all that there are.
create table bill_corrections (
    position   bigint      primary key,
    deployment text        collate "C" not null,
    from_at    timestamptz not null,
    to_at      timestamptz not null,
    rates      jsonb       not null,
    reason     text        not null
);

-- The bills that are closed.
create table bill_closings (
    tenant              text   collate "C" not null,
    period              text   collate "C" not null,
    -- Last position of the log, and newest price correction, that the bill took in.
    through             bigint not null,
    corrections_through bigint not null,
    lines_digest        text   not null,
    primary key (tenant, period)
);

-- What was used, by day, key and model: a bill's sums cut another way, so that asking
-- does not read a month of the ledger.
create table usage_days (
    tenant                text   collate "C" not null,
    day                   date   not null,
    key                   text   collate "C" not null,
    model                 text   collate "C" not null,
    attempts              bigint not null,
    unknown_attempts      bigint not null,
    input_tokens          bigint not null,
    cached_input_tokens   bigint not null,
    cache_write_5m_tokens bigint not null,
    cache_write_1h_tokens bigint not null,
    output_tokens         bigint not null,
    reasoning_tokens      bigint not null,
    list_nanousd          bigint not null,
    charge_nanousd        bigint not null,
    provider_cost_nanousd bigint not null,
    subsidy_nanousd       bigint not null,
    surcharge_nanousd     bigint not null,
    primary key (tenant, day, key, model)
);

grant select, insert, update, delete on bill_corrections, bill_closings, usage_days to sluice_app;

insert into projection_tables (name, table_name)
values ('bills', 'bill_corrections'), ('bills', 'bill_closings'), ('bills', 'usage_days');
