-- Takes a table out of LokaDB again: the local part becomes what it was before add_table(). Children first, and only
-- while all organizations are at home.

CREATE OR REPLACE FUNCTION lokadb.remove_table(p_table text, p_drop_tenant boolean DEFAULT false) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_root regclass := lokadb.any_table(p_table);
  t lokadb.tables;
  n bigint;
BEGIN
  SELECT * INTO t FROM lokadb.tables WHERE tbl = v_root;
  IF NOT FOUND THEN
    PERFORM lokadb.refuse(format('%s is not under LokaDB: see lokadb tables', v_root));
  END IF;
  PERFORM lokadb.check_all_at_home('and take the table out then');
  PERFORM lokadb.check_removal(t, p_drop_tenant);
  PERFORM lokadb.lock_whole(v_root);
  PERFORM lokadb.revert_table(t, p_drop_tenant);
  EXECUTE format('SELECT count(*) FROM %s', t.local_part) INTO n;
  PERFORM pg_notify('lokadb', jsonb_build_object('table', t.local_part::text, 'event', 'removed')::text);
  RETURN jsonb_build_object('table', t.local_part::text, 'removed', true, 'rows', n, 'tenant', t.tenant_col, 'tenant_dropped', p_drop_tenant);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.check_removal(t lokadb.tables, p_drop_tenant boolean) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v text;
  k lokadb.foreign_keys;
BEGIN
  SELECT string_agg(child::text, ', ' ORDER BY child::text) INTO v FROM lokadb.relations WHERE parent = t.tbl AND child <> t.tbl;
  IF v IS NOT NULL THEN PERFORM lokadb.refuse(format('%s refer to %s: take them out first', v, t.tbl)); END IF;
  IF p_drop_tenant AND NOT t.tenant_added THEN
    PERFORM lokadb.refuse(format('the tenant column %I of %s is the application''s own: leave -drop-tenant out', t.tenant_col, t.tbl));
  END IF;
  PERFORM lokadb.check_owner(t.tbl, 'is changed');
  PERFORM lokadb.check_owner(x, format('reads %s, so it is made again', t.tbl)) FROM lokadb.views_of(t.tbl) x;
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE refers_to IN (t.refs, t.tbl) OR refers_to = t.local_part AND tbl <> t.local_part LOOP
    PERFORM lokadb.check_owner(k.tbl, format('refers to %s by foreign key %I, which is changed', t.tbl, k.conname));
    IF k.refers_to <> t.refs THEN
      PERFORM lokadb.refuse(format('foreign key %I of %s refers to a part of %s, and was made after add-table: drop it, remove the table, and make it again', k.conname, k.tbl, t.tbl));
    END IF;
  END LOOP;
  PERFORM lokadb.check_owner(c.refers_to, format('has a trigger for the foreign key of %s', t.tbl)) FROM lokadb.cloud_keys c
    WHERE c.tbl = t.tbl;
  FOR v IN SELECT lokadb.followers(r) FROM (VALUES (t.tbl), (t.local_part), (t.refs)) x(r) ORDER BY 1 LOOP
    PERFORM lokadb.refuse(format('%s depends on %s: drop it, remove the table, and make it again', v, t.tbl));
  END LOOP;
  FOR v IN SELECT format('policy %I', polname) FROM pg_catalog.pg_policy WHERE polrelid IN (t.tbl, t.local_part)
             AND polname NOT IN ('lokadb_tenant', 'lokadb_s', 'lokadb_i', 'lokadb_u')
           UNION ALL SELECT format('view %s', x) FROM (VALUES (t.local_part), (t.refs)) y(r), lokadb.views_of(r) x
           UNION ALL SELECT format('rule %I', rulename) FROM pg_catalog.pg_rewrite WHERE ev_class IN (t.tbl, t.local_part) LOOP
    PERFORM lokadb.refuse(format('%s was put on %s after add-table: drop it, remove the table, and make it again', v, t.tbl));
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.revert_table(t lokadb.tables, p_drop_tenant boolean) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_name record;
  v_refs_name record;
  v_views text[] := lokadb.view_commands(t.tbl);
  v_triggers text[] := lokadb.trigger_commands(t.tbl, 'tgparentid = 0');
  v_grants text[];
  v_comments text[] := lokadb.comment_commands(t.tbl);
  v_owner text := (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_catalog.pg_class WHERE oid = t.tbl);
  r record;
  c text;
BEGIN
  SELECT * INTO v_name FROM lokadb.name_of(t.tbl);
  SELECT * INTO v_refs_name FROM lokadb.name_of(t.refs);
  v_grants := lokadb.grant_commands(t.tbl, 'TABLE', t.tbl::text);
  PERFORM lokadb.drop_our_triggers(t);
  EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', t.tbl, t.local_part);
  EXECUTE format('ALTER TABLE %s OWNER TO %s', t.local_part, v_owner);
  PERFORM lokadb.move_sequences(t.tbl, t.local_part);
  FOR r IN SELECT polname FROM pg_catalog.pg_policy WHERE polrelid = t.local_part LOOP EXECUTE format('DROP POLICY %I ON %s', r.polname, t.local_part); END LOOP;
  EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t.local_part);
  FOR r IN SELECT oid FROM lokadb.foreign_keys WHERE refers_to = t.refs LOOP PERFORM lokadb.point_foreign_key(r.oid, t.local_part, t.key_col); END LOOP;
  FOR r IN SELECT f.oid, p.refs, p.key_col FROM lokadb.foreign_keys f JOIN lokadb.tables p ON p.tbl = f.parent WHERE f.tbl = t.local_part AND f.parent <> t.tbl LOOP
    PERFORM lokadb.point_foreign_key(r.oid, r.refs, r.key_col);
  END LOOP;
  DELETE FROM lokadb.relations WHERE child = t.tbl;
  DELETE FROM lokadb.tables WHERE tbl = t.tbl;
  -- The root goes by the name that is free now while its views are made again on the table.
  EXECUTE format('DROP TABLE %s', t.refs);
  EXECUTE format('ALTER TABLE %s RENAME TO %I', t.tbl, v_refs_name.rel);
  EXECUTE format('ALTER TABLE %s RENAME TO %I', t.local_part, v_name.rel);
  PERFORM lokadb.make_views(v_views);
  EXECUTE format('DROP TABLE %s', t.tbl);
  PERFORM lokadb.revoke_all('TABLE', t.local_part);
  FOREACH c IN ARRAY v_comments || v_grants || v_triggers LOOP EXECUTE c; END LOOP;
  IF t.tenant_index IS NOT NULL THEN EXECUTE format('DROP INDEX IF EXISTS %I.%I', v_name.nsp, t.tenant_index); END IF;
  IF p_drop_tenant THEN
    EXECUTE format('ALTER TABLE %s DROP COLUMN %I', t.local_part, t.tenant_col);
  ELSIF t.tenant_added THEN  -- the application does not fill it
    EXECUTE format('ALTER TABLE %1$s ALTER %2$I DROP DEFAULT, ALTER %2$I DROP NOT NULL', t.local_part, t.tenant_col);
  ELSIF t.tenant_nullable THEN
    EXECUTE format('ALTER TABLE %s ALTER %I DROP NOT NULL', t.local_part, t.tenant_col);
  END IF;
EXCEPTION
  WHEN dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS c = PG_EXCEPTION_DETAIL;
    PERFORM lokadb.refuse(format('something else stands on %s (%s): drop it, remove the table, and make it again', v_name.rel, c));
END $f$;

-- The triggers of LokaDB for a table, wherever they stand, and their functions.
CREATE OR REPLACE FUNCTION lokadb.drop_our_triggers(t lokadb.tables) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  v_name name;
BEGIN
  FOR r IN SELECT k.*, lokadb.guard_name(k.tbl, k.col, k.refers_to, k.ref_col, k.is_tenant) AS guard FROM lokadb.cloud_keys k WHERE k.tbl = t.tbl
             AND NOT EXISTS (SELECT FROM lokadb.cloud_keys o WHERE k.is_tenant AND o.is_tenant AND o.tbl <> k.tbl AND (o.refers_to, o.ref_col) = (k.refers_to, k.ref_col)) LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS %I ON %s', r.guard, r.refers_to);
  END LOOP;
  FOR r IN SELECT tgname, tgrelid::regclass AS rel FROM pg_catalog.pg_trigger WHERE tgrelid IN (t.tbl, t.local_part) AND NOT tgisinternal AND lokadb.is_ours(tgname) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.rel);
  END LOOP;
  EXECUTE format('DROP FUNCTION %s(), %s()', lokadb.trigger_function(t.tbl, 'refs_ins'), lokadb.trigger_function(t.tbl, 'refs_del'));
  FOR r IN SELECT a.attnum FROM lokadb.relations x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.child AND a.attname = x.col WHERE x.child = t.tbl LOOP
    EXECUTE format('DROP FUNCTION %s()', lokadb.trigger_function(t.tbl, 'parent_' || r.attnum));
  END LOOP;
END $f$;

-- The comments of a table and its columns.
CREATE OR REPLACE FUNCTION lokadb.comment_commands(p_rel regclass) RETURNS text[] LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT array_agg(format('COMMENT ON COLUMN %s.%I IS %L', p_rel, a.attname, col_description(p_rel, a.attnum))) || format('COMMENT ON TABLE %s IS %L', p_rel, obj_description(p_rel, 'pg_class'))
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = p_rel AND a.attnum > 0 AND NOT a.attisdropped $$;
