-- Messages that are not rows.
do $$ begin raise notice 'first'; raise notice 'second % of %', 2, 3; end $$;
set client_min_messages = debug1; do $$ begin raise debug 'a debug message'; end $$; reset client_min_messages;
set client_min_messages = error; do $$ begin raise warning 'suppressed'; end $$; reset client_min_messages;
drop table if exists never_there;
drop function if exists never_there(int);
create temp table t (a int primary key); create temp table if not exists t (a int);
do $$ begin for i in 1..20 loop raise notice '%', repeat('n', i * 100); end loop; end $$;
select * from (select 1) x, lateral (select pg_sleep(0)) y;
create function pg_temp.speak(n int) returns int language plpgsql as $$ begin raise notice 'n = %', n; return n * 2; end $$;
select pg_temp.speak(n) from generate_series(1, 3) n;
rollback;
vacuum scratch;
begin; vacuum scratch; rollback;
notify nobody_listens;
\set VERBOSITY verbose
do $$ begin raise notice 'with position' using detail = 'detail', hint = 'hint', errcode = '01P99'; end $$;
