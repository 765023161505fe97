-- add_table: its arguments are those of add-table in lokadb(1). Returns {"table", "added", "rows", "relations"}.
CREATE OR REPLACE FUNCTION lokadb.add_table(p_table text, p_key text DEFAULT NULL, p_tenant text DEFAULT NULL,
  p_relations jsonb DEFAULT '{}', p_accept_unique text[] DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_tbl regclass := lokadb.ordinary_table(p_table);
  v_name record;
  v_key record;
  v_tenant text;
  v_nullable boolean;
  v_type text;
  v_relations jsonb;
  v_root regclass;
  n bigint;
BEGIN
  IF EXISTS (SELECT FROM lokadb.tables WHERE tbl = v_tbl) THEN RETURN lokadb.same_table(v_tbl, p_key, p_tenant, p_relations); END IF;
  PERFORM lokadb.check_all_at_home(format('add %s, and move it again', v_tbl));
  v_tenant := coalesce(p_tenant, (SELECT tenant_col FROM lokadb.tables ORDER BY position LIMIT 1), 'organization_id');
  PERFORM lokadb.check_rights(v_tbl);
  PERFORM lokadb.lock_whole(v_tbl);
  IF octet_length(v_tenant) > 63 THEN PERFORM lokadb.refuse(format('%s is too long for the name of a column', v_tenant)); END IF;
  v_key := lokadb.check_key(v_tbl, p_key);
  IF v_key.key_col = v_tenant THEN
    PERFORM lokadb.refuse(format('%I is the key of %s and cannot be its tenant column as well: name another with -tenant', v_tenant, v_tbl));
  END IF;
  v_type := lokadb.check_tenant(v_tbl, v_tenant);
  IF v_type IS NOT NULL THEN PERFORM lokadb.set_tenant_type(v_type); END IF;
  v_relations := lokadb.find_relations(v_tbl, v_tenant, v_key.key_col, v_key.key_type, p_relations);
  PERFORM lokadb.check_foreign_keys(v_tbl, v_key.key_col, v_tenant);
  PERFORM lokadb.check_unique(v_tbl, v_key.key_col, v_tenant, v_relations, p_accept_unique);
  PERFORM lokadb.check_dependents(v_tbl);
  IF v_type IS NULL THEN PERFORM lokadb.add_tenant_column(v_tbl, v_tenant, v_relations); END IF;
  v_nullable := (SELECT NOT attnotnull FROM pg_catalog.pg_attribute WHERE attrelid = v_tbl AND attname = v_tenant);
  EXECUTE format('ALTER TABLE %s ALTER %I SET NOT NULL', v_tbl, v_tenant);
  PERFORM lokadb.check_rows(v_tbl, v_key.key_col, v_tenant, v_relations);
  SELECT * INTO v_name FROM lokadb.name_of(v_tbl);
  PERFORM lokadb.convert_table(v_tbl, v_key.key_col, v_key.key_type, v_tenant, v_type IS NULL, v_nullable, v_relations);
  v_root := format('%I.%I', v_name.nsp, v_name.rel)::regclass;
  EXECUTE format('SELECT count(*) FROM %s', (SELECT refs FROM lokadb.tables WHERE tbl = v_root)) INTO n;
  PERFORM pg_notify('lokadb', jsonb_build_object('table', v_root::text, 'event', 'added')::text);
  RETURN jsonb_build_object('table', v_root::text, 'added', true, 'rows', n, 'tenant', v_tenant, 'tenant_added', v_type IS NULL,
    'relations', (SELECT coalesce(jsonb_object_agg(col, parent::text), '{}') FROM lokadb.relations WHERE child = v_root));
END $f$;

-- A table that is there already: nothing to do, unless something else is asked for.
CREATE OR REPLACE FUNCTION lokadb.same_table(p_tbl regclass, p_key text, p_tenant text, p_relations jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  SELECT * INTO t FROM lokadb.tables WHERE tbl = p_tbl;
  IF coalesce(p_key, t.key_col) <> t.key_col OR coalesce(p_tenant, t.tenant_col) <> t.tenant_col THEN
    PERFORM lokadb.refuse(format('%s is under LokaDB already, with key %I and tenant column %I', p_tbl, t.key_col, t.tenant_col));
  END IF;
  IF EXISTS (SELECT FROM jsonb_object_keys(p_relations) k WHERE NOT EXISTS (SELECT FROM lokadb.relations r WHERE r.child = p_tbl AND r.col = k)) THEN
    PERFORM lokadb.refuse(format('%s is under LokaDB already, without one of these relations', p_tbl));
  END IF;
  RETURN jsonb_build_object('table', p_tbl::text, 'added', false);
END $f$;

-- Column -> parent, from foreign keys and as declared.
CREATE OR REPLACE FUNCTION lokadb.find_relations(p_tbl regclass, p_tenant name, p_key name, p_key_type text, p_declared jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  found jsonb := (SELECT coalesce(jsonb_object_agg(col, coalesce(parent, refers_to)::text), '{}') FROM lokadb.foreign_keys WHERE tbl = p_tbl AND (parent IS NOT NULL OR refers_to = p_tbl) AND columns = 1 AND col <> p_tenant);
  r record;
  v_parent regclass;
  v_type text;
  v_key text;
BEGIN
  FOR r IN SELECT * FROM jsonb_each_text(p_declared) LOOP
    SELECT format_type(atttypid, NULL) INTO v_type FROM pg_catalog.pg_attribute WHERE attrelid = p_tbl AND attname = r.key AND attnum > 0 AND NOT attisdropped;
    IF v_type IS NULL THEN PERFORM lokadb.refuse(format('-relation %s=%s: %s has no column %I', r.key, r.value, p_tbl, r.key)); END IF;
    v_parent := lokadb.ordinary_table(r.value);
    v_key := CASE v_parent WHEN p_tbl THEN p_key_type ELSE (SELECT key_type FROM lokadb.tables WHERE tbl = v_parent) END;
    IF v_key IS NULL THEN
      PERFORM lokadb.refuse(format('-relation %s=%s: add the parent %s first', r.key, r.value, v_parent));
    ELSIF r.key IN (p_tenant, p_key) THEN
      PERFORM lokadb.refuse(format('-relation %s=%s: the key and the tenant column cannot refer to a parent', r.key, r.value));
    ELSIF v_type <> v_key AND NOT (v_type IN ('integer', 'bigint') AND v_key IN ('integer', 'bigint')) THEN
      PERFORM lokadb.refuse(format('-relation %s=%s: the column is of type %s, the key of the parent of type %s', r.key, r.value, v_type, v_key));
    ELSIF found ->> r.key <> v_parent::text THEN
      PERFORM lokadb.refuse(format('-relation %s=%s: its foreign key refers to %s', r.key, r.value, found ->> r.key));
    END IF;
    found := found || jsonb_build_object(r.key, v_parent::text);
  END LOOP;
  RETURN found;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.convert_table(p_tbl regclass, p_key name, p_key_type text, p_tenant name, p_added boolean, p_nullable boolean, p_relations jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_name record;
  v_root regclass;
  v_refs regclass;
  v_position int := (SELECT coalesce(max(position), 0) + 1 FROM lokadb.tables);
  v_collate text := lokadb.tenant_collation();
  v_views text[] := lokadb.view_commands(p_tbl);
  v_triggers text[] := lokadb.trigger_commands(p_tbl, 'tgtype & 1 = 0');
  v_comment text := obj_description(p_tbl, 'pg_class');
  v_owner text := (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_catalog.pg_class WHERE oid = p_tbl);
  v_index name := lokadb.tenant_index(p_tbl, p_tenant);
  k lokadb.foreign_keys;
BEGIN
  SELECT * INTO v_name FROM lokadb.name_of(p_tbl);
  EXECUTE format('ALTER TABLE %s RENAME TO %I', p_tbl, v_name.rel || '__local');
  EXECUTE format('CREATE TABLE %I.%I (LIKE %s INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING COMMENTS) PARTITION BY LIST (%I%s)', v_name.nsp, v_name.rel, p_tbl, p_tenant, v_collate);
  v_root := format('%I.%I', v_name.nsp, v_name.rel)::regclass;
  EXECUTE format('ALTER TABLE %s OWNER TO %s', v_root, v_owner);
  PERFORM lokadb.move_sequences(p_tbl, v_root);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT', v_root, p_tbl);
  EXECUTE format('COMMENT ON TABLE %s IS %L', v_root, v_comment);
  IF p_added THEN EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT lokadb.tenant()', v_root, p_tenant); END IF;
  PERFORM lokadb.move_rights(p_tbl, v_root);
  PERFORM lokadb.lend_to_local(v_root, p_tbl);
  v_refs := lokadb.make_refs(p_tbl, v_name.nsp, v_name.rel || '__refs', p_key, p_key_type, p_tenant);
  INSERT INTO lokadb.tables (tbl, key_col, key_type, tenant_col, tenant_added, refs, local_part, position, tenant_nullable, tenant_index)
    VALUES (v_root, p_key, p_key_type, p_tenant, p_added, v_refs, p_tbl, v_position, p_nullable, v_index);
  -- Keys to parents go from the refs to the local part, keys of cloud tables from the table to the refs.
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE tbl = p_tbl AND parent IS NOT NULL AND parent <> v_root LOOP
    PERFORM lokadb.point_foreign_key(k.oid, (SELECT local_part FROM lokadb.tables WHERE tbl = k.parent), k.parent_key);
  END LOOP;
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE refers_to = p_tbl AND tbl <> p_tbl LOOP
    EXECUTE format('GRANT REFERENCES ON %s TO %s', v_refs, (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_catalog.pg_class WHERE oid = k.tbl));
    PERFORM lokadb.point_foreign_key(k.oid, v_refs, p_key);
  END LOOP;
  INSERT INTO lokadb.relations SELECT v_root, j.key, j.value::regclass, NOT EXISTS (SELECT FROM lokadb.foreign_keys f WHERE f.tbl = p_tbl AND f.col = j.key)
    FROM jsonb_each_text(p_relations) j;
  PERFORM lokadb.guard_cloud_keys(v_root, p_tbl, p_tenant);
  PERFORM lokadb.make_refs_triggers(v_root);
  PERFORM lokadb.attach_triggers(v_root, p_tbl, false);
  PERFORM lokadb.move_statement_triggers(p_tbl, v_triggers);
  EXECUTE format('CREATE TRIGGER lokadb_no_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION lokadb.no_truncate()', v_root);
  EXECUTE format('CREATE TRIGGER lokadb_no_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION lokadb.no_truncate()', p_tbl);
  PERFORM lokadb.make_policies(v_root, p_tbl, p_tenant, v_collate);
  PERFORM lokadb.make_views(v_views);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.tenant_collation() RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE lokadb.tenant_type() WHEN 'text' THEN ' COLLATE "C"' ELSE '' END $$;

-- The local part is looked at also for organizations that have moved, so it needs an index. Returns the one made; null:
-- the application has one that does.
CREATE OR REPLACE FUNCTION lokadb.tenant_index(p_tbl regclass, p_tenant name) RETURNS name LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  before oid[] := ARRAY(SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = p_tbl);
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = c.relam
             JOIN pg_catalog.pg_attribute a ON a.attrelid = p_tbl AND a.attname = p_tenant AND a.attnum = i.indkey[0]
             WHERE i.indrelid = p_tbl AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
               AND (lokadb.tenant_type() <> 'text' OR i.indcollation[0] = (SELECT oid FROM pg_catalog.pg_collation WHERE collname = 'C' AND collnamespace = 'pg_catalog'::regnamespace))) THEN
    RETURN NULL;
  END IF;
  EXECUTE format('CREATE INDEX ON %s (%I%s)', p_tbl, p_tenant, lokadb.tenant_collation());
  RETURN (SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = p_tbl AND i.indexrelid <> ALL (before));
END $f$;

CREATE OR REPLACE FUNCTION lokadb.column_collation(p_rel regclass, p_col name) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN a.attcollation <> y.typcollation THEN format(' COLLATE %I.%I', n.nspname, c.collname) END
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
  WHERE a.attrelid = p_rel AND a.attname = p_col $$;

-- Owned by whoever owns LokaDB, closed to all others.
CREATE OR REPLACE FUNCTION lokadb.make_refs(p_local regclass, p_nsp name, p_rel name, p_key name, p_key_type text, p_tenant name) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v regclass;
BEGIN
  EXECUTE format('CREATE TABLE %I.%I (%I %s%s PRIMARY KEY, %I %s%s NOT NULL)', p_nsp, p_rel, p_key, p_key_type, lokadb.column_collation(p_local, p_key),
    p_tenant, lokadb.tenant_type(), lokadb.column_collation(p_local, p_tenant));
  v := format('%I.%I', p_nsp, p_rel)::regclass;
  EXECUTE format('COMMENT ON TABLE %s IS ''lokadb: which organization each key belongs to''', v);
  PERFORM lokadb.revoke_all('TABLE', v);
  EXECUTE format('INSERT INTO %s SELECT %I, %I FROM %s', v, p_key, p_tenant, p_local);
  RETURN v;
END $f$;

-- Foreign keys to plain cloud tables are kept by triggers for those organizations that have moved.
CREATE OR REPLACE FUNCTION lokadb.guard_cloud_keys(p_root regclass, p_local regclass, p_tenant name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  k lokadb.foreign_keys;
  v_name text;
BEGIN
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE tbl = p_local AND parent IS NULL LOOP
    INSERT INTO lokadb.cloud_keys VALUES (p_root, k.col, k.conname, k.refers_to, k.ref_col, k.col = p_tenant) ON CONFLICT DO NOTHING;
    v_name := lokadb.guard_name(p_root, k.col, k.refers_to, k.ref_col, k.col = p_tenant);
    IF k.col <> p_tenant THEN
      EXECUTE format('CREATE TRIGGER %I BEFORE DELETE OR UPDATE OF %I ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.cloud_key_guard(%L, %L, %L, %L)', v_name, k.ref_col, k.refers_to,
        p_root::text, k.col, k.conname, k.ref_col);
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = k.refers_to AND tgname = v_name) THEN
      EXECUTE format('CREATE TRIGGER %I BEFORE DELETE OR UPDATE OF %I ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.organization_guard(%L)', v_name, k.ref_col, k.refers_to, k.ref_col);
    END IF;
  END LOOP;
END $f$;

-- The trigger on a cloud table that guards a key: one for each foreign key, one for all tenant columns together.
CREATE OR REPLACE FUNCTION lokadb.guard_name(p_root regclass, p_col name, p_refers_to regclass, p_ref_col name, p_is_tenant boolean) RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN p_is_tenant THEN 'lokadb_guard_' || (SELECT attnum FROM pg_catalog.pg_attribute WHERE attrelid = p_refers_to AND attname = p_ref_col)
    ELSE format('lokadb_fkey_%s_%s', (SELECT position FROM lokadb.tables WHERE tbl = p_root), (SELECT attnum FROM pg_catalog.pg_attribute WHERE attrelid = p_root AND attname = p_col)) END $$;

-- One policy for the root, on functions that are STABLE and written out, so that partitions are removed at the start.
CREATE OR REPLACE FUNCTION lokadb.make_policies(p_root regclass, p_local regclass, p_tenant name, p_collate text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v text := format('%I%s', p_tenant, p_collate);
  r record;
BEGIN
  -- No row is written for what is no organization. Null is for NOT NULL to report.
  EXECUTE format('CREATE POLICY lokadb_tenant ON %1$s USING (%2$s >= lokadb.tenant_lo() AND %2$s <= lokadb.tenant_hi())
    WITH CHECK (%2$s >= lokadb.tenant_lo() AND %2$s <= lokadb.tenant_hi() AND %3$s OR %2$s IS NULL)', p_root, v,
    CASE lokadb.tenant_type() WHEN 'text' THEN format('%s NOT IN ('''', ''*'', lokadb.nobody())', v) ELSE format('%s <> %L::%s', v, lokadb.nobody(), lokadb.tenant_type()) END);
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', p_root);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', p_root);
  -- Not forced: it does not apply to what comes through the root.
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', p_local);
  FOR r IN SELECT * FROM (VALUES ('lokadb_s', 'SELECT', 'USING'), ('lokadb_i', 'INSERT', 'WITH CHECK'), ('lokadb_u', 'UPDATE', 'USING')) x(name, priv, clause) LOOP
    EXECUTE format('CREATE POLICY %I ON %s FOR %s %s (CASE WHEN (SELECT lokadb.leaf_guard(%L, %L)) THEN %s = (SELECT lokadb.tenant()) END)',
      r.name, p_local, r.priv, r.clause, p_root::text, r.priv, v);
  END LOOP;
END $f$;

-- The table of organizations need not be one that could be added.
CREATE OR REPLACE FUNCTION lokadb.any_table(p_table text) RETURNS regclass LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t regclass;
BEGIN
  BEGIN
    t := to_regclass(CASE WHEN array_length(parse_ident(p_table), 1) = 1 THEN 'public.' || p_table ELSE p_table END);
  EXCEPTION WHEN OTHERS THEN
    t := NULL;
  END;
  IF t IS NULL THEN PERFORM lokadb.refuse(format('there is no table %s: name it with its schema, quoted as in SQL', p_table)); END IF;
  RETURN t;
END $f$;

-- The tables that hang on one by foreign keys, parents first; for add-table -all. Those in the way of an order (a circle)
-- come last and are refused one by one.
CREATE OR REPLACE FUNCTION lokadb.tables_below(p_table text) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE application(oid, tbl) AS (
    SELECT c.oid, coalesce(l.tbl, r.tbl, c.oid::regclass) FROM pg_catalog.pg_class c
    LEFT JOIN lokadb.tables l ON l.local_part = c.oid LEFT JOIN lokadb.tables r ON r.refs = c.oid WHERE c.relkind IN ('r', 'p')),
  edge AS (
    SELECT DISTINCT c.tbl AS child, p.tbl AS parent FROM pg_catalog.pg_constraint k JOIN application c ON c.oid = k.conrelid JOIN application p ON p.oid = k.confrelid
    WHERE k.contype = 'f' AND k.conparentid = 0 AND c.tbl <> p.tbl),
  down(t, depth) AS (
    SELECT child, 1 FROM edge WHERE parent = lokadb.any_table(p_table)
    UNION SELECT e.child, d.depth + 1 FROM down d JOIN edge e ON e.parent = d.t WHERE d.depth < 100 AND e.child <> lokadb.any_table(p_table))
  SELECT t::text FROM down GROUP BY t ORDER BY max(depth), t::text $$;
