-- The routing catalog: everything the proxy must know to decide where a statement goes, as one document. It is asked for
-- when the proxy starts and after each NOTIFY on channel lokadb; that a decision still holds is the gate's to say.
-- Columns are those of the root; keys, triggers and foreign keys those of the local part. Lists are sorted, so that the
-- same state gives the same text.

-- Type oids below 16384 are PostgreSQL's own, the same on every server; the others are explained in "types".
CREATE OR REPLACE FUNCTION lokadb.catalog_columns(p_tbl regclass) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'name', a.attname, 'number', a.attnum, 'type', a.atttypid::bigint, 'type_name', format_type(a.atttypid, NULL), 'modifier', a.atttypmod,
      'not_null', a.attnotnull, 'default', CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END,
      'generated', a.attgenerated <> '', 'identity', a.attidentity <> '', 'always', a.attidentity = 'a',
      'collation', CASE WHEN a.attcollation <> y.typcollation THEN (SELECT collname FROM pg_collation c WHERE c.oid = a.attcollation) END)) ORDER BY a.attnum), '[]')
  FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = p_tbl AND a.attnum > 0 AND NOT a.attisdropped $$;

-- Sets of columns that ON CONFLICT may name: valid unique indexes, not deferrable, without conditions and expressions.
CREATE OR REPLACE FUNCTION lokadb.catalog_unique(p_local regclass) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object('name', c.relname, 'constraint', k.oid IS NOT NULL, 'columns', (
      SELECT jsonb_agg(a.attname ORDER BY n) FROM generate_series(0, i.indnkeyatts - 1) n
      JOIN pg_attribute a ON a.attrelid = p_local AND a.attnum = i.indkey[n])) ORDER BY c.relname), '[]')
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')
  WHERE i.indrelid = p_local AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL $$;

CREATE OR REPLACE FUNCTION lokadb.catalog_table(t lokadb.tables) RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'schema', n.nspname, 'name', c.relname, 'quoted', format('%I.%I', n.nspname, c.relname), 'oid', c.oid::bigint,
    'key', t.key_col, 'key_type', t.key_type, 'tenant', t.tenant_col, 'tenant_added', t.tenant_added,
    'fingerprint', lokadb.fingerprint(t.tbl), 'columns', lokadb.catalog_columns(t.tbl), 'unique', lokadb.catalog_unique(t.local_part),
    'refs', (SELECT format('%I.%I', rn.nspname, r.relname) FROM pg_class r JOIN pg_namespace rn ON rn.oid = r.relnamespace WHERE r.oid = t.refs),
    'local_part', (SELECT jsonb_build_object('schema', rn.nspname, 'name', r.relname, 'quoted', format('%I.%I', rn.nspname, r.relname), 'oid', r.oid::bigint)
      FROM pg_class r JOIN pg_namespace rn ON rn.oid = r.relnamespace WHERE r.oid = t.local_part),
    'parents', (SELECT coalesce(jsonb_agg(jsonb_build_object('column', x.col, 'parent', x.parent::oid::bigint, 'declared', x.declared,
        'on_delete', CASE f.confdeltype WHEN 'a' THEN 'no action' WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' WHEN 'd' THEN 'set default' ELSE '' END) ORDER BY x.col), '[]')
      FROM lokadb.relations x LEFT JOIN lokadb.foreign_keys f ON f.tbl = t.local_part AND f.col = x.col AND f.parent IS NOT DISTINCT FROM x.parent WHERE x.child = t.tbl),
    -- Cloud tables whose foreign key stands on the refs of this one are not among them: they are the refs step's.
    'changes_children', (SELECT coalesce(jsonb_agg(DISTINCT l.tbl::oid::bigint), '[]') FROM lokadb.foreign_keys f JOIN lokadb.tables l ON l.local_part = f.tbl
      WHERE (f.parent = t.tbl OR f.refers_to = t.local_part) AND f.confdeltype NOT IN ('a', 'r')),
    'cloud_keys', (SELECT coalesce(jsonb_agg(jsonb_build_object('column', k.col, 'constraint', k.name, 'refers_to', k.refers_to::text, 'is_tenant', k.is_tenant) ORDER BY k.col), '[]')
      FROM lokadb.cloud_keys k WHERE k.tbl = t.tbl),
    'triggers', (SELECT coalesce(jsonb_agg(jsonb_build_object('name', g.tgname, 'row', g.tgtype & 1 = 1, 'insert', g.tgtype & 4 <> 0, 'delete', g.tgtype & 8 <> 0, 'update', g.tgtype & 16 <> 0) ORDER BY g.tgname, g.tgrelid = t.tbl), '[]')
      FROM pg_trigger g WHERE g.tgrelid IN (t.tbl, t.local_part) AND NOT g.tgisinternal AND g.tgparentid = 0 AND g.tgname NOT LIKE 'lokadb\_%'),
    'policies', (SELECT coalesce(jsonb_agg(p.polname ORDER BY p.polname), '[]') FROM pg_policy p WHERE p.polrelid IN (t.tbl, t.local_part) AND p.polname NOT LIKE 'lokadb\_%'),
    'rules', (SELECT coalesce(jsonb_agg(w.rulename ORDER BY w.rulename), '[]') FROM pg_rewrite w WHERE w.ev_class IN (t.tbl, t.local_part)),
    'collisions', (SELECT coalesce(jsonb_agg(DISTINCT on_.nspname), '[]') FROM pg_class o JOIN pg_namespace on_ ON on_.oid = o.relnamespace
      WHERE o.relname = c.relname AND o.relnamespace <> c.relnamespace AND on_.nspname !~ '^pg_(toast|temp_)' AND on_.nspname !~ '^lokadb_o'))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = t.tbl $$;

-- Functions (or operators) of somebody's own that have the name of one of PostgreSQL's. typed: only for arguments of
-- types of one's own; else a statement that means PostgreSQL's may get the other. A type to which one of PostgreSQL's
-- types turns by itself does not count as one's own, unless PostgreSQL has the name for that type as well.
CREATE OR REPLACE FUNCTION lokadb.catalog_shadows() RETURNS TABLE (is_operator boolean, name name, typed boolean) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH named(is_operator, name, is_ours, arguments) AS (
    SELECT false, p.proname, p.oid < 16384, ARRAY(SELECT unnest(p.proargtypes)) FROM pg_proc p
      WHERE p.oid >= 16384 OR p.pronamespace = 'pg_catalog'::regnamespace
    UNION ALL
    SELECT true, o.oprname, o.oid < 16384, CASE WHEN o.oprleft = 0 THEN ARRAY[o.oprright] ELSE ARRAY[o.oprleft, o.oprright] END FROM pg_operator o),
  theirs AS (SELECT n.* FROM named n WHERE NOT n.is_ours AND EXISTS (SELECT FROM named b WHERE b.is_ours AND b.is_operator = n.is_operator AND b.name = n.name))
  SELECT t.is_operator, t.name, bool_and(EXISTS (
    SELECT FROM unnest(t.arguments) WITH ORDINALITY a(type, position) JOIN pg_type y ON y.oid = a.type
    LEFT JOIN pg_type e ON e.oid = y.typelem AND y.typcategory = 'A'
    WHERE coalesce(e.oid, y.oid) >= 16384 AND coalesce(e.typtype, y.typtype) <> 'd'
      AND NOT EXISTS (SELECT FROM pg_cast k WHERE k.casttarget = y.oid AND k.castcontext = 'i' AND k.castsource < 16384
        AND NOT EXISTS (SELECT FROM named b WHERE b.is_ours AND b.is_operator = t.is_operator AND b.name = t.name AND b.arguments[a.position::int] = k.castsource))))
  FROM theirs t GROUP BY t.is_operator, t.name $$;

-- Views that reach a table under LokaDB; relations of the cloud that do more than keep rows (triggers, rules, policies).
CREATE OR REPLACE FUNCTION lokadb.catalog_others() RETURNS TABLE (schema name, name name, kind text) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE reach(oid) AS (
    SELECT x.oid FROM lokadb.tables t, unnest(ARRAY[t.tbl, t.local_part, t.refs]) x(oid)
    UNION SELECT w.ev_class FROM reach r JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.oid AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite w ON w.oid = d.objid)
  SELECT n.nspname, c.relname, CASE WHEN c.relkind = 'v' AND c.oid IN (SELECT r.oid FROM reach r) THEN 'view' WHEN c.oid IN (SELECT t.local_part FROM lokadb.tables t) THEN 'part'
      WHEN c.oid IN (SELECT t.refs FROM lokadb.tables t) THEN 'refs' ELSE 'active' END
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'lokadb') AND n.nspname !~ '^pg_(toast|temp_)'
    AND n.nspname !~ '^lokadb_o' AND c.oid NOT IN (SELECT t.tbl FROM lokadb.tables t)
    AND (c.oid IN (SELECT r.oid FROM reach r) AND c.relkind = 'v' OR c.oid IN (SELECT unnest(ARRAY[t.local_part, t.refs]) FROM lokadb.tables t)
      OR c.relkind IN ('v', 'f') OR c.relrowsecurity
      OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal)
      OR EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN')) $$;

CREATE OR REPLACE FUNCTION lokadb.catalog_organizations() RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('org', o.org, 'profile', o.profile, 'generation', o.generation, 'server', o.server, 'database_id', o.database_id,
      'host', x.host, 'port', x.port, 'dbname', x.dbname, 'mapped', EXISTS (SELECT FROM pg_user_mappings m WHERE m.srvname = o.server))) ORDER BY o.org), '[]')
  FROM lokadb.organizations o LEFT JOIN LATERAL (
    SELECT max(p.option_value) FILTER (WHERE p.option_name = 'host') AS host, max(p.option_value) FILTER (WHERE p.option_name = 'port') AS port,
           max(p.option_value) FILTER (WHERE p.option_name = 'dbname') AS dbname
    FROM pg_foreign_server s, pg_options_to_table(s.srvoptions) p WHERE s.srvname = o.server) x ON true $$;

CREATE OR REPLACE FUNCTION lokadb.catalog_types() RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('oid', y.oid::bigint, 'schema', n.nspname, 'name', y.typname,
      'kind', CASE WHEN y.typcategory = 'A' AND y.typelem <> 0 THEN 'array' WHEN y.typtype = 'e' THEN 'enum' WHEN y.typtype = 'd' THEN 'domain' WHEN y.typtype = 'c' THEN 'composite'
        WHEN y.typtype IN ('r', 'm') THEN 'range' ELSE 'base' END,
      'element', nullif(y.typelem, 0)::bigint, 'base', nullif(y.typbasetype, 0)::bigint, 'array', nullif(y.typarray, 0)::bigint,
      'extension', (SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_type'::regclass AND d.objid = y.oid AND d.deptype = 'e'))) ORDER BY y.oid), '[]')
  FROM lokadb.types_used() u JOIN pg_type y ON y.oid = u.oid JOIN pg_namespace n ON n.oid = y.typnamespace $$;

CREATE OR REPLACE FUNCTION lokadb.catalog() RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  RETURN jsonb_build_object(
    'format', 1,
    'version', (SELECT max(m.name) FROM lokadb.migrations m),
    'generation', (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM lokadb.generation),
    'server_version', current_setting('server_version_num')::int,
    'encoding', getdatabaseencoding(),
    'tenant_type', lokadb.tenant_type(),
    'nobody', lokadb.nobody(),
    'setting', (SELECT s.value FROM lokadb.settings s WHERE s.name = 'setting'),
    'tables', (SELECT coalesce(jsonb_agg(lokadb.catalog_table(t) ORDER BY t.position), '[]') FROM lokadb.tables t),
    'organizations', lokadb.catalog_organizations(),
    'types', lokadb.catalog_types(),
    'relations', (SELECT coalesce(jsonb_agg(jsonb_build_object('schema', o.schema, 'name', o.name, 'kind', o.kind) ORDER BY o.schema, o.name), '[]') FROM lokadb.catalog_others() o),
    'functions', (SELECT coalesce(jsonb_object_agg(s.name, CASE WHEN s.typed THEN 'typed' ELSE 'any' END), '{}') FROM lokadb.catalog_shadows() s WHERE NOT s.is_operator),
    'operators', (SELECT coalesce(jsonb_object_agg(s.name, CASE WHEN s.typed THEN 'typed' ELSE 'any' END), '{}') FROM lokadb.catalog_shadows() s WHERE s.is_operator),
    -- Between two of PostgreSQL's own types: they change what a statement means.
    'casts', (SELECT coalesce(jsonb_agg(format('%s to %s', k.castsource::regtype, k.casttarget::regtype) ORDER BY k.oid), '[]') FROM pg_cast k
      WHERE k.oid >= 16384 AND k.castsource < 16384 AND k.casttarget < 16384));
END $f$;

-- Who else may read it: the role of the proxy's own connection. NULL: nobody but the owner.
CREATE OR REPLACE FUNCTION lokadb.set_control_user(p_role text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_old text := (SELECT value FROM lokadb.settings WHERE name = 'control_user');
BEGIN
  IF p_role IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = p_role) THEN
    RAISE EXCEPTION 'there is no role %: create it first', quote_ident(p_role) USING ERRCODE = 'LK002';
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = v_old) THEN EXECUTE format('REVOKE EXECUTE ON FUNCTION lokadb.catalog() FROM %I', v_old); END IF;
  DELETE FROM lokadb.settings WHERE name = 'control_user';
  IF p_role IS NULL THEN RETURN; END IF;
  INSERT INTO lokadb.settings VALUES ('control_user', p_role);
  EXECUTE format('GRANT EXECUTE ON FUNCTION lokadb.catalog() TO %I', p_role);
END $f$;
