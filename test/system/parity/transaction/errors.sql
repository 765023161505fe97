-- Errors and their details reach psql unchanged.
\set VERBOSITY verbose
select no_such_column;
select * from no_such_table;
select 1 +;
select 1/0;
select 'x'::int;
select no_such_function(1);
selec 1;
select 'unterminated;
';
select 1 from generate_series(1, 3) n where n = 'two';
insert into no_such_table values (1);
do $$ begin raise exception 'custom % failure', 42 using errcode = 'P1234', detail = 'the detail', hint = 'a hint',
  column = 'col', constraint = 'con', datatype = 'typ', table = 'tab', schema = 'sch'; end $$;
do $$ begin raise notice 'note %', 1; raise warning 'warn'; raise info 'info'; raise exception 'end'; end $$;
do $$ begin assert 1 = 2, 'not so'; end $$;
\set VERBOSITY terse
select 1/0;
\set VERBOSITY sqlstate
select 1/0;
\set VERBOSITY default
\set SHOW_CONTEXT always
do $$ begin perform 1/0; end $$;
do $$ begin raise notice 'with context'; end $$;
select 1; select 1/0; select 'not reached';
select 'next';
\errverbose
\echo :ERROR :SQLSTATE :LAST_ERROR_MESSAGE
\echo :LAST_ERROR_SQLSTATE :ROW_COUNT
set no.such.parameter = 1; show no_such_parameter;
select cast('2023-02-30' as date);
select repeat('e', 5000)::int;
