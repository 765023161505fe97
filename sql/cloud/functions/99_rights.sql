-- What application roles may call; nothing else of the schema is theirs. Said in full, since default privileges may have
-- taken EXECUTE from PUBLIC. Trigger functions need no right.
SELECT lokadb.set_tenant_type(coalesce(lokadb.tenant_type(), 'bigint'));

DO $do$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT format('REVOKE ALL ON %s %s FROM %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass, lokadb.grantee_name(x.grantee)) AS command
           FROM pg_catalog.pg_class c, aclexplode(c.relacl) x WHERE c.relnamespace = 'lokadb'::regnamespace AND c.relkind IN ('r', 'v', 'S') AND x.grantee <> c.relowner
           UNION SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, lokadb.grantee_name(x.grantee))
           FROM pg_catalog.pg_proc p, aclexplode(p.proacl) x WHERE p.pronamespace = 'lokadb'::regnamespace AND x.grantee <> p.proowner LOOP
    EXECUTE r.command;
  END LOOP;
END $do$;

GRANT USAGE ON SCHEMA lokadb TO PUBLIC;
GRANT SELECT (org, server, profile) ON lokadb.organizations TO PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA lokadb FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lokadb.to_tenant, lokadb.tenant, lokadb.tenant_lo, lokadb.tenant_hi, lokadb.nobody, lokadb.role,
  lokadb.require, lokadb.enter, lokadb.enter_all, lokadb.find_refs, lokadb.put_refs, lokadb.del_refs, lokadb.check_parents,
  lokadb.leaf_guard, lokadb.lacks_columns, lokadb.next_identity TO PUBLIC;

SELECT lokadb.set_control_user(s.value) FROM lokadb.settings s JOIN pg_catalog.pg_roles r ON r.rolname = s.value WHERE s.name = 'control_user';
