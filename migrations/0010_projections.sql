-- How far each read model has come, and how one is made again beside the live one.

-- +goose Up

-- One row a projection, shard and set of tables. The live set is the one that is
-- read; a rebuild or a verification fills a set of its own, with its own rows here,
-- so that it can be resumed.
create table projection_checkpoints (
    name     text     collate "C" not null,
    target   text     collate "C" not null check (target in ('live', 'rebuild', 'verify')),
    shard    smallint not null,
    -- Version of the fold that made the rows.
    version  integer  not null,
    -- Last position of the shard's log that is in the view.
    position bigint   not null,
    primary key (name, target, shard)
);
grant select, insert, update, delete on projection_checkpoints to sluice_app;

-- Why a live projection does not advance, for everybody to see: the worker that
-- found out is not the one that is asked. Apart from the checkpoint, so that it can
-- be written when the checkpoint's transaction failed.
create table projection_stalls (
    name     text     collate "C" primary key,
    -- Shard and position of the event that cannot be passed; null if it is not about
    -- one event.
    shard    smallint,
    position bigint,
    reason   text        not null,
    since    timestamptz not null default now()
);
grant select, insert, update, delete on projection_stalls to sluice_app;

-- The tables of each projection. Filled by migrations only: the functions below
-- make, switch and drop exactly these, whoever calls them.
create table projection_tables (
    name       text collate "C" not null,
    table_name text collate "C" primary key
);
grant select on projection_tables to sluice_app;

-- A shadow is a schema that holds a second set of a projection's tables under the
-- same names. The fold finds it by search_path, so that one code fills both sets
-- and columns, keys and indexes cannot differ from the live ones.
--
-- Indexes must therefore have their default names: "like" gives those to the copy,
-- and a later migration finds them after a switch.
-- +goose StatementBegin
create function projection_shadow_create(projection text, target text) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
declare
    shadow text := projection || '_' || target;
    live record;
    allowed record;
begin
    if target not in ('rebuild', 'verify')
        or not exists (select from projection_tables where name = projection) then
        raise exception 'no shadow % of projection %', target, projection;
    end if;
    execute format('create schema %I', shadow);
    execute format('grant usage on schema %I to sluice_app', shadow);
    for live in
        select t.table_name, array_to_string(c.reloptions, ', ') as options, c.relacl
        from projection_tables t join pg_class c on c.oid = to_regclass('public.' || quote_ident(t.table_name))
        where t.name = projection
    loop
        execute format('create table %I.%I (like public.%I including all)', shadow, live.table_name, live.table_name);
        -- "like" leaves the table's own storage parameters behind, and its rights, also
        -- those that an operator gave to readers of their own.
        if live.options is not null then
            execute format('alter table %I.%I set (%s)', shadow, live.table_name, live.options);
        end if;
        for allowed in
            select a.privilege_type as what, r.rolname as who
            from aclexplode(live.relacl) a join pg_roles r on r.oid = a.grantee
        loop
            execute format('grant %s on %I.%I to %I', allowed.what, shadow, live.table_name, allowed.who);
        end loop;
    end loop;
end
$$;

-- Puts a rebuilt set in the place of the live one. The caller's transaction makes
-- it one moment, together with the checkpoint. Readers that are inside a statement
-- are waited for, shortly: a query that takes long makes the switch fail and be
-- tried again, not the traffic behind it wait.
create function projection_shadow_switch(projection text) returns void
    language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '2s' as $$
declare
    shadow text := projection || '_rebuild';
    live record;
begin
    for live in select table_name from projection_tables where name = projection loop
        execute format('drop table public.%I', live.table_name);
        execute format('alter table %I.%I set schema public', shadow, live.table_name);
    end loop;
    execute format('drop schema %I', shadow);
end
$$;

create function projection_shadow_drop(projection text, target text) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if target not in ('rebuild', 'verify')
        or not exists (select from projection_tables where name = projection) then
        raise exception 'no shadow % of projection %', target, projection;
    end if;
    execute format('drop schema if exists %I cascade', projection || '_' || target);
end
$$;
-- +goose StatementEnd

revoke execute on function projection_shadow_create(text, text), projection_shadow_switch(text),
    projection_shadow_drop(text, text) from public;
grant execute on function projection_shadow_create(text, text), projection_shadow_switch(text),
    projection_shadow_drop(text, text) to sluice_app;
