-- What is wrong with the roles in an organization's database (SPEC R1: SELECT, INSERT, UPDATE, DELETE and nothing else), and
-- with the one that asks.
--   $1  roles of the foreign server and of the direct path (text[])
WITH role AS (SELECT DISTINCT w AS wanted, p.* FROM unnest($1::text[]) w LEFT JOIN pg_catalog.pg_roles p ON p.rolname = w),
me AS (SELECT * FROM pg_catalog.pg_roles WHERE rolname = current_user)
SELECT format('there is no role %I, and this role may not create it', wanted) FROM role, me WHERE role.oid IS NULL AND NOT (me.rolsuper OR me.rolcreaterole)
UNION ALL
SELECT format('role %I there has more rights than it may have (%s): take them away, or name another', wanted, concat_ws(', ',
    CASE WHEN rolsuper THEN 'SUPERUSER' END, CASE WHEN rolbypassrls THEN 'BYPASSRLS' END, CASE WHEN rolcreaterole THEN 'CREATEROLE' END,
    CASE WHEN rolcreatedb THEN 'CREATEDB' END, CASE WHEN rolreplication THEN 'REPLICATION' END))
  FROM role WHERE rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication
UNION ALL
SELECT format('role %I there may not log in: ALTER ROLE %1$I LOGIN', wanted) FROM role WHERE NOT rolcanlogin
UNION ALL
SELECT format('role %I there is a member of %s, whose rights it has: REVOKE that', wanted, m.roleid::regrole) FROM role JOIN pg_catalog.pg_auth_members m ON m.member = role.oid
UNION ALL
SELECT format('role %I there may create objects in schema public: REVOKE CREATE ON SCHEMA public FROM PUBLIC, %1$I', wanted) FROM role
  WHERE NOT rolsuper AND has_schema_privilege(role.oid, 'public', 'CREATE')
UNION ALL
SELECT format('role %I there may create schemas: REVOKE CREATE ON DATABASE %I FROM PUBLIC, %1$I', wanted, current_database()) FROM role
  WHERE NOT rolsuper AND has_database_privilege(role.oid, current_database(), 'CREATE')
UNION ALL
SELECT 'this role may not create tables in its schema public' WHERE NOT has_schema_privilege('public', 'CREATE')
