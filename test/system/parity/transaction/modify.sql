-- Changing data, with every kind of command tag.
truncate scratch;
\unset QUIET
insert into scratch values (1, 'a'), (2, 'b'), (3, 'c');
insert into scratch select n, 'row ' || n from generate_series(4, 20) n returning id;
update scratch set note = upper(note) where id <= 3 returning *;
update scratch set id = id where false;
delete from scratch where id > 15;
delete from scratch where id = 1 returning id, note;
merge into scratch t using (values (2, 'merged'), (99, 'new')) s(id, note) on t.id = s.id
  when matched then update set note = s.note when not matched then insert values (s.id, s.note);
with gone as (delete from scratch where id < 5 returning *) select count(*) from gone;
create table public.parity_made (id serial primary key, v text unique check (v <> 'bad'));
insert into parity_made (v) values ('x') on conflict do nothing;
insert into parity_made (v) values ('x') on conflict (v) do update set v = 'y' returning *;
insert into parity_made (v) values ('bad');
insert into parity_made (v) values ('y');
create view public.parity_view as select v from parity_made; select * from parity_view;
alter table parity_made add column extra int default 7; table parity_made;
create index on parity_made (extra);
comment on table parity_made is 'made here';
explain (costs off) select * from scratch where id = 1;
drop table parity_made;
drop table parity_made cascade;
drop table if exists parity_made;
select count(*) from scratch;
truncate scratch;
