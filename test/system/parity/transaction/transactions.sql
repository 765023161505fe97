-- Transaction blocks: the server is the client's own until the end of each.
truncate scratch;
begin;
insert into scratch values (1, 'one'), (2, 'two');
select * from scratch order by id;
rollback;
select count(*) from scratch;
begin; insert into scratch values (3, 'three'); savepoint s; insert into scratch values (4, 'four'); rollback to s;
insert into scratch values (5, 'five'); release s; commit;
select * from scratch order by id;
begin;
select 1/0;
select 'refused in a failed transaction';
commit;
begin isolation level serializable read only;
show transaction_isolation;
insert into scratch values (6, 'read only');
rollback;
begin; savepoint a; select nonsense; rollback to a; select 'usable again'; commit;
commit;
rollback;
begin; begin; commit;
start transaction; set local work_mem = '7MB'; show work_mem; end;
show work_mem;
begin; create temp table gone (a int) on commit drop; insert into gone values (1); table gone; commit;
\set AUTOCOMMIT off
insert into scratch values (7, 'implicit');
rollback;
insert into scratch values (8, 'implicit');
commit;
\set AUTOCOMMIT on
\set ON_ERROR_ROLLBACK on
begin; select 1/0; select 'rolled back by psql'; commit;
\set ON_ERROR_ROLLBACK off
select * from scratch order by id;
begin; declare c cursor for select generate_series(1, 10); fetch 3 from c; move 2 in c; fetch all from c; close c; commit;
begin and chain;
begin; insert into scratch values (9, 'chain'); commit and chain; select count(*) from scratch; rollback;
truncate scratch;
