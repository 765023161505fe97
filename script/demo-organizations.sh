# Second half of script/demo (bash; sourced by it): an application with organizations goes under LokaDB, one organization
# moves to a PostgreSQL of its own and comes home, and the application's statements answer the same all along.
# Uses dir, pg_port and the functions of script/demo.

org_dir=$dir/org
org_port=$(free_port)
cloud="host=127.0.0.1 port=$pg_port user=postgres dbname=shop"
control="host=127.0.0.1 port=$pg_port user=postgres dbname=shop_control"
lokadb() { "$dir/lokadb" "$@"; }
on_cloud() { PGPORT=$pg_port PGDATABASE=shop psql -q "$@"; }

# Four organizations; the second has more than 200000 rows.
make_application() {
  PGPORT=$pg_port PGDATABASE=postgres psql -q -c 'create database shop' -c 'create database shop_control' -c 'create role shop login'
  on_cloud <<'END'
create table organizations (id bigint primary key, name text not null);
create table users (id bigserial primary key, organization_id bigint not null references organizations, email text not null,
  unique (organization_id, email));
create table documents (id bigserial primary key, organization_id bigint not null references organizations, title text not null,
  body text, created_at timestamptz not null default now());
create table conversations (id uuid primary key default gen_random_uuid(), organization_id bigint not null references organizations,
  subject text not null);
create table messages (id bigserial primary key, conversation_id uuid not null references conversations on delete cascade,
  body text not null);
insert into organizations values (1, 'Alder'), (2, 'Birch'), (3, 'Cedar'), (4, 'Elm');
create temp table size as select * from (values (1, 500), (2, 60000), (3, 2000), (4, 10)) v (org, n);
insert into users (organization_id, email) select org, 'user' || g || '@example.org' from size, generate_series(1, n / 10) g;
insert into documents (organization_id, title, body, created_at) select org, 'Report ' || g, repeat('lorem ', g % 20),
  '2024-01-01'::timestamptz + g * interval '1 minute' from size, generate_series(1, n) g;
insert into conversations (organization_id, subject) select org, 'About report ' || g from size, generate_series(1, n / 10) g;
insert into messages (conversation_id, body) select c.id, 'Message ' || g from conversations c, generate_series(1, 25) g;
create index on messages (conversation_id);
grant select, insert, update, delete on all tables in schema public to shop;
grant usage on all sequences in schema public to shop;
analyze;
END
}

# What the application asks, as its own role, for one organization; every answer in one checksum.
ask_application() {
  PGPORT=$pg_port PGDATABASE=shop PGUSER=shop psql -q -At <<END | md5sum
begin;
set local lokadb.tenant = '$1';
select count(*), min(title), max(created_at) from documents;
select id, title from documents where organization_id = $1 order by created_at desc, id limit 20;
select d.title, u.email from documents d join users u using (organization_id) where d.id = (select min(id) from documents) order by 2 limit 5;
select subject, count(*) from conversations c join messages m on m.conversation_id = c.id group by subject order by 1 limit 20;
select sum(hashtext(m::text)::bigint) from messages m;
with changed as (update documents set title = title || ' (read)' where id in (select id from documents order by id limit 3) returning title)
  select * from changed order by 1;
insert into documents (organization_id, title) values ($1, 'New') returning title, body;
rollback;
END
}

say 'an application with four organizations'
install -m 755 build/lokadb "$dir/lokadb"
make_application

say 'its tables go under LokaDB'
lokadb init -db "$cloud"
lokadb init -control-plane "$control"
lokadb add-table -db "$cloud" -all
before=$(ask_application 2)
untouched=$(ask_application 3)

say "a second PostgreSQL, on port $org_port, for organization 2"
mkdir -p "$org_dir"
if [ "$(id -u)" = 0 ]; then chown postgres: "$org_dir"; fi
start_postgres "$org_dir" "$org_port"
as_service_user sed -i '1i host all customers_fdw 127.0.0.1/32 scram-sha-256' "$org_dir/data/pg_hba.conf"
as_service_user "$pg_bin/pg_ctl" -s -D "$org_dir/data" reload
PGPORT=$org_port psql -q -c 'create database birch'
lokadb keygen -key "$dir/key"
head -c 18 /dev/urandom | base64 | lokadb org-credentials -control-plane "$control" -key "$dir/key" -org 2 -kind fdw -user customers_fdw

say 'organization 2 moves there'
lokadb move-org -db "$cloud" -org 2 -to "host=127.0.0.1 port=$org_port user=postgres dbname=birch" -control-plane "$control" -key "$dir/key"
lokadb orgs -db "$cloud"
rows=$(PGPORT=$org_port PGDATABASE=birch psql -At -c 'select (select count(*) from messages) + (select count(*) from documents)')
say "its own database has $rows documents and messages; the cloud has $(on_cloud -At -c 'select count(*) from messages__local where organization_id = 2') of them"
[ "$(ask_application 2)" = "$before" ] || die 'the application sees a difference'
[ "$(ask_application 3)" = "$untouched" ] || die 'another organization sees a difference'
echo 'the application gets the same answers as before'

say 'and home again'
lokadb move-org -db "$cloud" -org 2 -back
[ "$(ask_application 2)" = "$before" ] || die 'the application sees a difference'
echo 'the application gets the same answers as before'
