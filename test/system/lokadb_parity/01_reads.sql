-- Reads of one table.
select count(*), sum(price), max(title), min(at) from documents
select id, title, words from documents order by id limit 5
select id, title from documents where organization_id = 1 order by id desc limit 3 offset 2
select title from documents where id = 4
select title from documents where id = 5
select title from documents where id in (4, 8, 12, 5) order by id
select title from documents where id = any (array[4, 8, 9]) order by 1
select title from documents where id between 10 and 20 order by id
select title from documents where title like 'doc 1%' order by id
select title from documents where title ~ '^doc [0-9]$' order by id
select title from documents where title similar to 'doc (4|8)' order by id
select title from documents where body is null
select count(*) from documents where body is not distinct from 'üüüü'
select id from documents where state = 'busy' order by id limit 2
select id, state from documents where state > 'calm' order by state, id limit 3
select id from documents where tags @> array['a'] order by id limit 2
select id, tags[3], array_length(tags, 1), tags from documents where id = 8
select id, data ->> 'n', data -> 'n', data #>> '{n}' from documents where data @> '{"n": 20}'
select id from documents where data ? 'n' order by id limit 2
select id, price, round(price), price::int, price::text from documents where id in (4, 8) order by id
select id, at, at::date, extract(hour from at), date_trunc('day', at) from documents where id in (24, 48) order by id
select id, at from documents where at >= '2024-01-02' and at < timestamptz '2024-01-03' order by at
select id, words, words + 1, length(body), octet_length(body) from documents where words > 6 order by id limit 3
select id, upper(title), substr(title, 2, 3), title || '!' from documents where lower(title) = 'doc 4'
select id, coalesce(body, '-'), nullif(title, 'doc 4'), greatest(id, 10) from documents where id in (4, 12) order by id
select id, case when price > 10 then 'dear' when price > 1 then 'fair' else 'cheap' end from documents where id in (4, 40, 400) order by id
select id, row(id, title), documents.title from documents where id = 4
select d from documents d where id = 4
select d.* from documents d where id = 4
select row_to_json(d) from documents d where id = 4
select to_jsonb(d) - 'at' from documents d where id = 4
select distinct state from documents order by state
select distinct on (state) state, id from documents order by state, id desc
select count(distinct state), count(*) filter (where state = 'busy') from documents
select state, count(*), avg(price)::numeric(10, 2) from documents group by state order by state
select state, count(*) from documents group by state having count(*) > 10 order by 1
select organization_id, state, count(*) from documents group by grouping sets ((organization_id), (state), ()) order by 1, 2
select state, words, count(*) from documents group by rollup (state, words) order by 1, 2
select state, words, count(*) from documents group by cube (state, words) order by 1, 2
select string_agg(title, ',' order by id), array_agg(id order by id desc) from documents where id < 20
select bool_and(price > 0), every(price < 100), stddev(price)::numeric(10, 4) from documents
select percentile_cont(0.5) within group (order by price), mode() within group (order by state) from documents
select json_agg(title order by id) from documents where id < 20
--! all 42803 SELECT id, title, count(*) … GROUP BY id
select id, title, count(*) from documents group by id order by id limit 2
select id, title, count(*) from documents group by id, title order by id limit 2
-- Window functions.
select title, row_number() over (order by price desc nulls last, id) from documents order by price desc nulls last, id limit 4
select id, rank() over w, dense_rank() over w, ntile(4) over w from documents window w as (order by words) order by id limit 5
select id, lag(id) over (order by id), lead(id, 2, 0) over (order by id) from documents order by id limit 4
select id, sum(price) over (partition by state order by id rows between 1 preceding and current row) from documents order by id limit 6
select id, first_value(title) over (partition by state order by id), count(*) over (partition by state) from documents order by id limit 3
-- Joins.
select u.email, count(d.id) from users u join documents d on d.organization_id = u.organization_id group by u.email order by 1
select c.subject, m.body from conversations c join messages m on m.conversation_id = c.id where c.subject = 'c4' order by m.id
select c.subject, count(m.id) from conversations c left join messages m on m.conversation_id = c.id and m.id < 50 group by c.id, c.subject order by 1
select count(*) from messages m right join conversations c on c.id = m.conversation_id
select count(*) from messages m full join conversations c on c.id = m.conversation_id and m.id < 50
select count(*) from users cross join conversations
select count(*) from users natural join documents
select count(*) from messages join conversations using (organization_id)
select o.name, count(d.id) from organizations o join documents d on d.organization_id = o.id group by o.name
select o.id, count(d.id) from organizations o left join documents d on d.organization_id = o.id where o.id = 1 group by o.id
select i.id, c.code from invoices i join currencies c on c.code = i.currency order by i.id
select a.id, b.id from documents a join documents b on b.id = a.id + 4 order by a.id limit 3
select d.id, l.body from documents d, lateral (select m.body from messages m where m.id > d.id order by m.id limit 1) l where d.id < 12 order by d.id
select d.id, x from documents d left join lateral unnest(d.tags) x on true where d.id = 4
select d.id, v.n from documents d join (values (4, 'vier'), (8, 'acht'), (9, 'neun')) v (id, n) on v.id = d.id order by 1
select d.id from documents d join generate_series(1, 20) g on g = d.id order by 1
-- Subqueries and sets.
select id from documents where id in (select max(id) from documents)
select id from documents where price > (select avg(price) from documents) order by id limit 2
select id from documents d where exists (select from users u where u.id = d.id) order by id
select id from documents d where not exists (select from users u where u.id = d.id) order by id limit 2
select id from documents where id > all (select id from users) order by id limit 1
select id, (select count(*) from users u where u.id <= d.id) from documents d order by id limit 3
select exists (select from documents where title like 'doc 1%'), (select min(id) from users)
select array(select id from documents order by id limit 3)
select id from documents where id < 10 union select id from users order by 1 limit 3
select id from documents intersect select id from users order by 1
select id from users except all select id from documents order by 1
select 'd' kind, count(*) from documents union all select 'm', count(*) from messages order by 1
select * from (select id, title from documents order by id limit 2) x
table invoices order by id
-- WITH.
with d as (select * from documents where id < 20) select count(*), max(title) from d
with d as materialized (select id from documents) select count(*) from d a join d b using (id)
with recursive r (id, n) as (select min(id), 1 from documents union all select d.id, n + 1 from r join documents d on d.id = r.id + 4 where n < 5) select * from r
-- Functions, dates, settings.
select count(*) from documents where at < now()
select count(*) from documents where at < current_date
select count(*) from documents where organization_id = current_setting('lokadb.tenant')::bigint
select count(*) from documents where md5(title) = md5('doc 4')
select count(*) from documents where date_part('year', at) = 2024
select count(*) from documents where title collate "C" < 'doc 2'
select id from documents tablesample system (100) order by id limit 2
select id from documents order by id fetch first 2 rows with ties
-- Plans are others; that there is one is the same.
--~
explain (costs off) select * from documents where id = 4
--~
explain (costs off) update documents set title = 'x' where id = 4
--~
explain (analyze, costs off, timing off, summary off) select * from documents where id = 4
--~
explain (verbose, format json) select count(*) from messages
