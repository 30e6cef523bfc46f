-- Tokens that stay held because nobody knows what an attempt used (D2).

-- +goose Up

create table meter_holds (
    request_id uuid        not null,
    attempt    integer     not null,
    tenant     text        collate "C" not null,
    key        text        collate "C" not null,
    model      text        collate "C" not null,
    tokens     bigint      not null,
    placed_at  timestamptz not null,
    primary key (request_id, attempt)
);
-- The oldest are let go first.
create index on meter_holds (placed_at);
create index on meter_holds (tenant);

grant select, insert, update, delete on meter_holds to sluice_app;

insert into projection_tables (name, table_name) values ('meter_holds', 'meter_holds');
