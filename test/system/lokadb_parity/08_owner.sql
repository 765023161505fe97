--@ postgres
-- As the owner, who is not under row security.
select count(*) from documents where organization_id = 1
--! all 0A000 TRUNCATE documents
truncate documents
--! all 0A000 TRUNCATE documents
truncate table messages, conversations
copy documents (id, organization_id, title) from stdin
< 16001	1	by the owner
< 16002	1	by the owner, too
copy documents (id, organization_id, title) from stdin where id <> 16003
< 16003	1	left out
< 16004	1	let in
copy documents (id, organization_id, title) from stdin
< 16001	1	taken
select id, title from documents where id > 16000 order by id
delete from documents where id > 16000
--! all 42809 COPY documents TO …
copy documents to stdout
copy (select id from documents where organization_id = 1 and id < 20 order by id) to stdout
lock table documents in share mode nowait
analyze documents
--! moved 42809 CREATE UNIQUE INDEX
create unique index on documents (organization_id, id)
--! all 0A000 CREATE INDEX CONCURRENTLY
create index concurrently on documents (title)
create view shown as select id, title from documents where organization_id = 1
select count(*), min(title) from shown
update shown set title = 'through a view' where id = 96
select title from documents where id = 96
drop view shown
create function titled(bigint) returns text language sql as 'select title from documents where id = $1'
select titled(96)
drop function titled(bigint)
create function retitle(bigint, text) returns bigint language plpgsql as $$ declare n bigint; begin update documents set title = $2 where id = $1; get diagnostics n = row_count; return n; end $$
select retitle(96, 'by a function')
select title from documents where id = 96
drop function retitle
create materialized view counted as select count(*) from documents where organization_id = 1
select * from counted
refresh materialized view counted
drop materialized view counted
