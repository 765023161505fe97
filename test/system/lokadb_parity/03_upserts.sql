insert into users (organization_id, email) values (1, 'u4@x') on conflict do nothing
insert into users (organization_id, email) values (1, 'fresh@x') on conflict do nothing returning email
insert into documents (id, organization_id, title) values (4, 1, 'again'), (10000, 1, 'once') on conflict do nothing returning id
insert into documents (id, organization_id, title) select id, 1, title from documents where id < 20 on conflict do nothing
--! all 42P10 INSERT … ON CONFLICT (id) …
insert into documents (id, organization_id, title) values (4, 1, 'x') on conflict (id) do nothing
--! all 42P10 INSERT … ON CONFLICT (id) …
insert into documents (id, organization_id, title) values (4, 1, 'x') on conflict (id) do update set title = excluded.title returning title
--! all 42P10 INSERT … ON CONFLICT (id) …
insert into users (id, organization_id, email) values (10001, 1, 'u4@x') on conflict (organization_id, email) do update set email = excluded.email
--! all 42704 INSERT … ON CONFLICT ON CONSTRAINT documents_pkey …
insert into documents (id, organization_id, title) values (4, 1, 'x') on conflict on constraint documents_pkey do nothing
insert into users (organization_id, email) select 1, 'u' || g || '@x' from generate_series(1, 12) g on conflict do nothing
select count(*) from users
