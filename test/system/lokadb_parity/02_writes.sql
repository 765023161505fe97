-- INSERT.
insert into documents (organization_id, title, price) values (1, 'new', 3), (1, 'newer', 4) returning id, organization_id, title, words, state
insert into documents (id, organization_id, title) values (5000, 1, 'with a key') returning id, title, body, state, price, tags, data, words, at is null
insert into documents (organization_id, title, tags, data) values (1, 'types', '{x,y}', '{"a": [1, null]}') returning tags, data -> 'a'
insert into documents (organization_id, title, state, at) values (1, 'default', default, '2025-01-01') returning state, at
insert into documents (organization_id, title, words) values (1, 'computed', default) returning words
insert into documents (organization_id, title) select 1, 'of ' || title from documents where id in (4, 8) order by id returning title
insert into documents (id, organization_id, title) select 6000 + id, 1, title from documents where id <= 12 returning id
insert into documents (id, organization_id, title) select * from unnest(array[7001, 7002], array[1, 1], array['u1', 'u2']) returning id, title
insert into documents (organization_id, title) values (1, (select max(title) from documents where id < 20)) returning title
insert into users (organization_id, email) values (1, 'a@x') returning id, email
insert into users (id, organization_id, email) overriding system value values (9000, 1, 'b@x') returning id
insert into users (organization_id, email) values (1, 'c@x'), (1, 'd@x') returning email
insert into conversations (id, organization_id, subject) values ('00000000-0000-0000-0000-000000000001', 1, 's1') returning id
insert into conversations (organization_id, subject) values (1, 'random key') returning subject, id is not null
insert into messages (organization_id, conversation_id, body) select 1, id, 'hi' from conversations where organization_id = 1 order by subject limit 2 returning body
insert into messages (conversation_id, body, organization_id) values ('00000000-0000-0000-0000-000000000001', 'm1', 1), ('00000000-0000-0000-0000-000000000001', 'm2', 1) returning body
insert into messages (conversation_id, body) values ('00000000-0000-0000-0000-000000000001', 'tenant by default') returning organization_id
insert into invoices (organization_id, currency) values (1, 'USD') returning currency
insert into documents (organization_id, title) values (1, $$dollar 'quoted'$$) returning title
insert into documents as d (organization_id, title) values (1, 'alias') returning d.title, upper(d.title)
-- UPDATE.
update documents set title = title || '!' where id in (4, 8) returning id, title, words
update documents set body = null, price = price + 1 where id = 12
update documents set (title, body) = ('row', 'wise') where id = 16 returning title, body
update documents set (title, body) = (select u.email, 'sub' from users u where u.id = 4) where id = 20 returning title, body
update documents d set title = u.email from users u where u.id = d.id and d.id in (24, 28) returning d.id, d.title, u.email
update documents set state = 'busy' where state = 'calm' and id < 40
update documents set tags = tags || 'z', data = data || '{"m": 1}' where id = 32 returning tags, data
update documents set data = jsonb_set(data, '{n}', '"s"') where id = 36 returning data
update documents set at = at + interval '1 day' where id = 40 returning at
update documents set price = default, state = default where id = 44 returning price, state
update documents set organization_id = 1, body = 'same' where id = 12 returning body
update documents set id = id, title = 'same key' where id = 48 returning id
update documents set title = 'none' where id = 5
update documents set title = 'none' where false
update documents set price = (select count(*) from messages) where id = 52 returning price
update documents set title = 'exists' where id = 56 and exists (select from users where email = 'u4@x') returning title
update messages m set body = c.subject from conversations c where c.id = m.conversation_id and c.subject = 'c8' and m.id < 100
update users set email = 'changed@x' where email = 'u8@x' returning id
update conversations set subject = subject || '?' where id = '00000000-0000-0000-0000-000000000001' returning subject
update invoices set currency = 'USD' where id = 4 returning currency
--! moved 0A000 UPDATE … WHERE CURRENT OF cursor
update documents set title = 'z' where current of nothing
-- DELETE, and what cascades.
delete from messages where id in (select m.id from messages m order by m.id limit 3) returning body
delete from documents where id = 5000 returning id, title
delete from documents where id = 5
delete from documents d using users u where u.id = d.id and u.email = 'u16@x' returning d.id, u.email
delete from documents where title = 'newer'
delete from conversations where subject = 'c12' returning subject
select count(*) from messages
delete from conversations where id in (select conversation_id from messages where body = 'm43')
select count(*) from messages
delete from invoices where currency = 'EUR' returning id
delete from users where email = 'd@x' returning email
-- WITH that writes.
with d as (delete from documents where id = 60 returning id, title) select * from d
with i as (insert into documents (id, organization_id, title) values (8001, 1, 'w1'), (8002, 1, 'w2') returning id) select sum(id) from i
with u as (update documents set title = 'w' where id = 64 returning *) select id, title from u
with n as (select 68 as id) update documents d set title = 'by with' from n where n.id = d.id returning d.title
with n as (select 72 as id) delete from documents d using n where n.id = d.id returning d.id
with n as (select 'from with' as t) insert into documents (organization_id, title) select 1, t from n returning title
with c as (insert into conversations (id, organization_id, subject) values ('00000000-0000-0000-0000-000000000002', 1, 'tree') returning id) insert into messages (organization_id, conversation_id, body) select 1, id, 'leaf' from c returning body
with a as (delete from documents where id = 76 returning id), b as (insert into documents (id, organization_id, title) values (8003, 1, 'swap') returning id) select a.id, b.id from a, b
-- MERGE.
--! moved 0A000 MERGE INTO documents …
merge into documents d using (values (80, 'm')) v (i, t) on d.id = v.i when matched then update set title = v.t
--! moved 0A000 MERGE INTO documents …
merge into documents d using (values (8100, 'm')) v (i, t) on d.id = v.i when not matched then insert (id, organization_id, title) values (v.i, 1, v.t)
--! moved 0A000 MERGE INTO documents …
merge into documents d using (values (80)) v (i) on d.id = v.i when matched then delete
-- What it came to.
select count(*), sum(id), md5(string_agg(title, ',' order by id)) from documents
select count(*), sum(id), md5(string_agg(body, ',' order by id)) from messages
