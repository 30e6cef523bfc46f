-- The credentials of providers and connections that are kept here, sealed.

-- +goose Up

-- One row a secret. The log says which row is the one in use, by its id, and never
-- what is in it; a row can be deleted, which an event cannot.
create table stored_credentials (
    id         uuid primary key,
    -- The stream and the name of what it opens: replacing and deleting find a name's
    -- rows by them.
    stream     text not null,
    name       text not null,
    -- Which master key opens sealed_key; a hash, see adapters/secrets.
    master_key text not null,
    -- The data key under the master key, and the secret under the data key. Each is
    -- AES-256-GCM with its nonce in front.
    sealed_key bytea not null,
    sealed     bytea not null,
    stored_at  timestamptz not null default now()
);
create index on stored_credentials (stream, name);
grant select, insert, update, delete on stored_credentials to sluice_app;
