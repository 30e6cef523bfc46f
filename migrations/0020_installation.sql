-- What makes one installation different from every other.

-- +goose Up

-- The secret behind keyed hashes: idempotency keys and bodies are only ever in the
-- log as such hashes, and without this row nobody can try guesses against them. It
-- is made once, by the database, and is the same for every worker. Two random UUIDs
-- are 244 random bits; the core has no function that gives plain random bytes.
create table installation (
    -- One row.
    only_row boolean primary key default true check (only_row),
    secret   bytea not null
);
insert into installation (secret)
values (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
grant select on installation to sluice_app;
