-- COPY in psql's ways.
truncate scratch;
copy scratch from stdin;
1	one
2	two
3	\N
4	tab\tinside
\.
select * from scratch order by id;
copy scratch to stdout;
copy (select id, note from scratch order by id desc) to stdout with (format csv, header, force_quote *);
copy scratch from stdin with (format csv);
5,"quoted, with comma"
6,"two
lines"
\.
\copy scratch to stdout csv
\copy (select count(*) from scratch) to stdout
copy scratch from stdin;
not a number	x
\.
select count(*) from scratch;
copy scratch from stdin;
7
\.
copy scratch from stdin;
8	too	many
\.
copy no_such_table from stdin;
select 'after a failed copy';
copy scratch (id) from stdin where id > 8;
8
9
\.
select count(*) from scratch;
begin; copy scratch from stdin;
10	in a transaction
\.
select count(*) from scratch; rollback; select count(*) from scratch;
copy (select 1/0) to stdout;
copy (select repeat('w', 10000)) to stdout;
copy (select 1 where false) to stdout;
truncate scratch;
