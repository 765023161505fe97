prepare one (bigint) as select id, title from documents where id = $1
execute one (84)
execute one (85)
prepare many (bigint[]) as select count(*) from documents where id = any ($1)
execute many ('{84,88,92,93}')
prepare ins (bigint, text) as insert into documents (id, organization_id, title) values ($1, 1, $2) returning id, title
execute ins (12001, 'prepared')
execute ins (12002, 'prepared again')
execute ins (12002, 'a third time')
prepare upd (text, bigint) as update documents set title = $1 where id = $2 returning title
execute upd ('by execute', 12001)
execute upd ('by execute', 12009)
execute upd (null, 12001)
prepare del (bigint) as delete from documents where id = $1
execute del (12002)
execute del (12002)
prepare untyped as select title || $1 from documents where id = $2
execute untyped ('?', 84)
execute one (84)
execute one (84)
execute one (84)
execute one (84)
execute one (88)
execute one (92)
execute nothing
--~
explain (costs off) execute one (84)
create temp table seen as execute one (84)
select * from seen
deallocate one
execute one (84)
deallocate all
-- Cursors.
begin
declare c cursor for select id, title from documents where id < 130 and id > 80 order by id
fetch 2 from c
fetch next from c
move 1 from c
fetch forward 2 from c
fetch all from c
fetch from c
close c
declare s scroll cursor for select id from documents where id < 130 and id > 80 order by id
fetch last from s
fetch prior from s
fetch first from s
fetch absolute 3 from s
fetch relative -1 from s
fetch backward all from s
close s
declare b binary cursor for select id from documents where id = 84
close b
commit
begin
declare h cursor with hold for select id from users order by id limit 3
commit
fetch 2 from h
fetch 2 from h
close h
fetch 1 from h
begin
declare u cursor for select id from documents where id = 84 for update
fetch u
commit
-- What runs by itself.
do $$ begin perform count(*) from documents; update documents set body = 'by do' where id = 88; end $$
select body from documents where id = 88
do $$ declare r record; n int := 0; begin for r in select id from documents where id < 20 loop n := n + r.id; end loop; raise notice '%', n; end $$
do $$ begin insert into documents (id, organization_id, title) values (4, 1, 'x'); exception when unique_violation then null; end $$
do $$ begin insert into documents (id, organization_id, title) values (4, 1, 'x'); end $$
do $$ declare t text; begin insert into documents (id, organization_id, title) values (12020, 1, 'do') returning title into strict t; if t <> 'do' then raise 'no'; end if; end $$
-- Temporary tables, and into others.
create temp table kept on commit preserve rows as select id, title from documents where id < 20
select count(*) from kept
insert into kept select id, title from documents where id = 84
update kept k set title = d.title || '+' from documents d where d.id = k.id
select * from kept order by id
insert into documents (id, organization_id, title) select 13000 + id, 1, title from kept returning id
select id into temp table others from documents where id > 13000
select count(*) from others
delete from documents where id in (select 13000 + id from kept)
drop table kept, others, seen
create temp view v as select id from documents where id < 20
select count(*) from v
drop view v
