-- psql's own commands that use the protocol in their special ways.
select 1 as a, 'x'::text as b, now() as c, null as d \gdesc
select n, 'select ' || n || ' as column_' || n from generate_series(1, 3) n \gdesc
select 'select ' || n || ' as made_' || n from generate_series(1, 3) n \gexec
select 42 as answer, 'text' as word \gset
\echo :answer :word
select 1 as x \gset pre_
\echo :pre_x
select 'to a file' \g /dev/null
select 'piped' \g | cat
select 1 as a, 2 as b \gx
select n, n % 2 as odd, n * 10 as v from generate_series(1, 4) n \crosstabview n odd v
\if true
select 'taken';
\else
select 'not taken';
\endif
select :'word' as quoted, :answer as plain;
\d scratch
\dt public.scratch
\df pg_catalog.abs
\dn public
\encoding
\t
select 'tuples only';
\t
\pset expanded auto
select 1;
\echo :ROW_COUNT
