begin
insert into documents (id, organization_id, title) values (11001, 1, 'kept')
select title from documents where id = 11001
commit
select title from documents where id = 11001
begin
update documents set title = 'gone' where id = 11001
delete from documents where id = 80
rollback
select id, title from documents where id in (11001, 80) order by id
start transaction isolation level repeatable read
select count(*) from documents
insert into documents (id, organization_id, title) values (11002, 1, 'rr')
commit
begin isolation level serializable
select count(*) from documents where id = 11002
update documents set title = 'serializable' where id = 11002 returning title
end
begin read only
select count(*) from documents
insert into documents (id, organization_id, title) values (11003, 1, 'read only')
rollback
-- Savepoints.
begin
insert into documents (id, organization_id, title) values (11010, 1, 'before')
savepoint a
insert into documents (id, organization_id, title) values (11011, 1, 'in a')
savepoint b
update documents set title = 'in b' where id = 11010
rollback to b
select title from documents where id = 11010
release b
rollback to savepoint a
select count(*) from documents where id in (11010, 11011)
insert into documents (id, organization_id, title) values (11011, 1, 'in a again')
release savepoint a
commit
select id, title from documents where id in (11010, 11011) order by id
begin
savepoint s
insert into documents (id, organization_id, title) values (4, 1, 'taken')
select 1
rollback to s
insert into documents (id, organization_id, title) values (11012, 1, 'after an error')
commit
select title from documents where id = 11012
begin
insert into documents (id, organization_id, title) values (11013, 1, 'lost')
insert into documents (id, organization_id, title, price) values (11014, 1, 'wrong', -1)
commit
select count(*) from documents where id in (11013, 11014)
begin
savepoint outer_one
delete from conversations where subject = 'c16'
select count(*) from messages where body = 'm15'
rollback to outer_one
select count(*) from messages where body = 'm15'
commit
-- Locking reads.
begin
select id from documents where id in (84, 88) order by id for update
select id from documents where id = 84 for share
select id from documents where id = 84 for no key update
select id from documents where id = 84 for key share
select d.id from documents d join users u on u.id = d.id where d.id = 40 for update of d
select id from documents order by id limit 2 for update
--~
lock table documents in row exclusive mode
commit
-- Scope of settings and of what is deferred.
begin
set local lokadb.tenant = '1'
select count(*) from users
set constraints all deferred
set constraints all immediate
commit
begin and chain
rollback
commit
rollback
