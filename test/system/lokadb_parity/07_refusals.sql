-- The database says no, alike.
insert into users (organization_id, email) values (1, 'u4@x')
insert into documents (id, organization_id, title) values (4, 1, 'taken')
insert into documents (organization_id, title, price) values (1, 'x', -1)
update documents set price = -1 where id = 4
insert into documents (organization_id, title) values (1, null)
insert into documents (organization_id) values (1)
update documents set title = null where id = 4
insert into invoices (organization_id, currency) values (1, 'XXX')
update invoices set currency = 'XXX' where id = 8
insert into messages (organization_id, conversation_id, body) values (1, gen_random_uuid(), 'no parent')
insert into documents (organization_id, title, state) values (1, 'x', 'angry')
insert into documents (organization_id, title, price) values (1, 'x', 99999999999)
insert into documents (organization_id, title, words) values (1, 'x', 3)
update documents set words = 3 where id = 4
insert into documents (organization_id, title) values (1, 'x', 'y')
insert into documents (organization_id, nothing) values (1, 'x')
select nothing from documents
select * from nothing
select title from documents where id = 'x'
select title::int from documents where id = 4
select 1 / (id - 4) from documents where id = 4
select sum(title) from documents
select id, count(*) from documents
select id from documents where count(*) > 1
select (select id from documents) from users
update documents set title = 'x' where id = (select id from users)
delete from currencies where code = 'USD'
select 1 from documents order by 2
select * from documents d join users u on d.nothing = u.id
create index on documents (title)
alter table documents add column z int
drop table documents
truncate documents
grant select on documents to reader
-- What has no counterpart before add-table.
--! all 0A000 changing a key, or a row's organization
update documents set id = 999999 where id = 4
--! all 0A000 changing a key, or a row's organization
update documents set id = id + 1 where id = 8
--! all 42501 a row for another organization than the one named
insert into documents (id, organization_id, title) values (15001, 2, 'not mine')
--! all 0A000 changing a key, or a row's organization
update documents set organization_id = 2 where id = 4
--! all 23514 a child of another organization's parent
insert into messages (id, organization_id, conversation_id, body) values (99999, 1, md5('2')::uuid, 'x')
--! quiet all SELECT … FROM ONLY documents
select count(*) from only documents
--! quiet all SELECT … FROM ONLY documents
update only documents set title = 'x' where id = 4
