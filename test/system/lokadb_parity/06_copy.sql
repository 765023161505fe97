copy (select id, title, price from documents where id < 30 order by id) to stdout
copy (select id, body, tags, data from documents where id < 30 order by id) to stdout (format csv, header, force_quote *)
copy (select count(*) from messages) to stdout
copy (delete from documents where id = 92 returning id) to stdout
--! quiet all COPY documents TO …
copy documents to stdout
--! quiet all COPY documents TO …
copy documents (id, title) to stdout (format csv)
--! all 0A000 COPY documents FROM …
copy documents (id, organization_id, title) from stdin
< 14001	1	copied
--! all 0A000 COPY documents FROM …
copy documents (organization_id, title) from stdin (format csv)
< 1,copied
create temp table loaded (id bigint, title text)
copy loaded from stdin
< 14001	one
< 14002	\N
< 14003	three
copy loaded from stdin (format csv, null 'none')
< 14004,"four, quoted"
insert into documents (id, organization_id, title) select id, 1, title from loaded where title is not null order by id returning id, title
insert into documents (id, organization_id, title) select id, 1, title from loaded where id = 14002
delete from documents where id in (select id from loaded)
copy loaded from stdin
< not a number	x
drop table loaded
