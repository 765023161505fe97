-- Plain queries, each on its own: any server will do.
select 1 as one, 'two' as two, null as three, 4.0 as four;
select generate_series(1, 5) as n;
select n, n * n as square, repeat('*', n) as stars from generate_series(1, 7) n where n % 2 = 1 order by n desc;
select count(*), sum(n), avg(n)::numeric(10, 3), min(n), max(n) from generate_series(1, 1000) n;
select g % 3 as rest, count(*) from generate_series(1, 10) g group by 1 having count(*) > 3 order by 1;
with recursive f(a, b) as (select 0, 1 union all select b, a + b from f where b < 1000) select a from f;
select n, lag(n) over w, sum(n) over w from generate_series(1, 5) n window w as (order by n);
select a.n, b.n from generate_series(1, 3) a(n) left join generate_series(2, 4) b(n) using (n) order by 1;
select case when n > 2 then 'big' else 'small' end from generate_series(1, 4) n;
select array_agg(n order by n desc), string_agg(n::text, '-' order by n) from generate_series(1, 5) n;
select exists (select 1 where false), (select max(n) from generate_series(1, 3) n);
values (1, 'a'), (2, 'b'), (3, null) order by 1 desc;
select length(repeat('wide', 100000));
select 1 as a union select 1 union all select 2 order by 1;
select;
select 1; select 2; select 3;
select * from generate_series(1, 0);
\pset format unaligned
select 'a|b' as bar, 'line
break' as lines;
\x on
select 1 as one, 'expanded' as two;
\x off
\pset tuples_only on
select 'bare';
\pset tuples_only off
\pset null '<null>'
select null;
