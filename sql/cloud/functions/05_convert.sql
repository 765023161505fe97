-- How add-table turns an ordinary table into a root (partitioned by organization), its local part (the old table) and
-- its refs. Everything here runs in the one transaction of add_table().

CREATE OR REPLACE FUNCTION lokadb.name_of(p_rel regclass, OUT nsp name, OUT rel name) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = p_rel $$;

-- At most so many bytes, whole characters: names longer than 63 bytes would be cut to be the same.
CREATE OR REPLACE FUNCTION lokadb.cut(p_text text, p_bytes int) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT left(p_text, n) FROM generate_series(length(p_text), 0, -1) n WHERE octet_length(left(p_text, n)) <= p_bytes LIMIT 1 $$;

CREATE OR REPLACE FUNCTION lokadb.is_ours(p_trigger name) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT p_trigger LIKE 'lokadb\_%' $$;

-- Commands that put the application's triggers into the state they are in now (disabled, replica, always). p_where: which.
CREATE OR REPLACE FUNCTION lokadb.trigger_states(p_rel regclass, p_where text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  commands text[];
BEGIN
  EXECUTE format($x$SELECT coalesce(array_agg(format('ALTER TABLE %%s %%s TRIGGER %%I', $1,
      CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END, tgname)), '{}')
    FROM pg_catalog.pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal AND NOT lokadb.is_ours(tgname) AND %s$x$, p_where) INTO commands USING p_rel;
  RETURN commands;
END $f$;

-- Commands that make the application's triggers again, with their states and comments.
CREATE OR REPLACE FUNCTION lokadb.trigger_commands(p_rel regclass, p_where text) RETURNS text[] LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  commands text[];
BEGIN
  EXECUTE format($x$SELECT coalesce(array_agg(c ORDER BY tgname, n), '{}') FROM pg_catalog.pg_trigger, LATERAL (VALUES (1, pg_get_triggerdef(oid)),
      (2, format('COMMENT ON TRIGGER %%I ON %%s IS %%L', tgname, $1, obj_description(oid, 'pg_trigger')))) v(n, c)
    WHERE tgrelid = $1 AND NOT tgisinternal AND NOT lokadb.is_ours(tgname) AND %s$x$, p_where) INTO commands USING p_rel;
  RETURN commands || lokadb.trigger_states(p_rel, p_where);
END $f$;

-- The organization of each row comes from its parents. Triggers of the application do not run for it.
CREATE OR REPLACE FUNCTION lokadb.add_tenant_column(p_tbl regclass, p_tenant name, p_relations jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  states text[] := lokadb.trigger_states(p_tbl, 'true');
  sources text;
  n bigint;
  c text;
BEGIN
  SELECT string_agg(format('(SELECT r.%I FROM %s r WHERE r.%I = c.%I)', p.tenant_col, p.refs, p.key_col, j.key), ', ') INTO sources
    FROM jsonb_each_text(p_relations) j JOIN lokadb.tables p ON p.tbl = j.value::regclass;
  IF sources IS NULL THEN
    PERFORM lokadb.refuse(format('%s has no column %I and no foreign key to a table under LokaDB: add its parent first, or declare the relation with -relation column=parent', p_tbl, p_tenant));
  END IF;
  EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', p_tbl, p_tenant, lokadb.tenant_type());
  EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', p_tbl);
  EXECUTE format('UPDATE %s c SET %I = coalesce(%s)', p_tbl, p_tenant, sources);
  FOREACH c IN ARRAY states LOOP EXECUTE c; END LOOP;
  EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', p_tbl, p_tenant) INTO n;
  IF n > 0 THEN
    PERFORM lokadb.refuse(format('%s rows of %s have no parent, so their organization is not known: give them one or delete them', n, p_tbl));
  END IF;
END $f$;

-- A child row must be of its parent's organization.
CREATE OR REPLACE FUNCTION lokadb.check_rows(p_tbl regclass, p_key name, p_tenant name, p_relations jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  n bigint;
BEGIN
  FOR r IN SELECT j.key, p.tbl, p.refs, p.key_col, p.tenant_col FROM jsonb_each_text(p_relations) j JOIN lokadb.tables p ON p.tbl = j.value::regclass
           UNION ALL SELECT j.key, p_tbl, p_tbl, p_key, p_tenant FROM jsonb_each_text(p_relations) j WHERE j.value::regclass = p_tbl LOOP
    EXECUTE format('SELECT count(*) FROM %s c JOIN %s r ON r.%I = c.%I WHERE r.%I::text <> c.%I::text', p_tbl, r.refs, r.key_col, r.key, r.tenant_col, p_tenant) INTO n;
    IF n > 0 THEN
      PERFORM lokadb.refuse(format('%s rows of %s belong to another organization than the %s they refer to by %I: correct them first', n, p_tbl, r.tbl, r.key));
    END IF;
  END LOOP;
END $f$;

-- Views follow a renamed table by its number: they are made again under the name.
CREATE OR REPLACE FUNCTION lokadb.views_of(p_rel regclass) RETURNS SETOF regclass LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.oid::regclass FROM pg_catalog.pg_class v
  WHERE v.relkind = 'v' AND v.oid IN (SELECT w.ev_class FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid
    WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p_rel) ORDER BY v.oid $$;

-- What makes them, to be read while the table has its name.
CREATE OR REPLACE FUNCTION lokadb.view_commands(p_rel regclass) RETURNS text[] LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(format('CREATE OR REPLACE VIEW %s%s AS %s', c.oid::regclass,
           ' WITH (' || (SELECT string_agg(format('%I = %L', option_name, option_value), ', ') FROM pg_options_to_table(c.reloptions)) || ')',
           rtrim(pg_get_viewdef(c.oid), ';')) ORDER BY c.oid), '{}')
  FROM lokadb.views_of(p_rel) v JOIN pg_catalog.pg_class c ON c.oid = v $$;

CREATE OR REPLACE FUNCTION lokadb.make_views(p_commands text[]) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  c text;
BEGIN
  FOREACH c IN ARRAY p_commands LOOP EXECUTE c; END LOOP;
EXCEPTION
  WHEN grouping_error THEN
    PERFORM lokadb.refuse(format('a view groups by the key and shows more columns, which a partitioned table cannot do (%s): drop it, add the table, and make it again with all of them in GROUP BY', SQLERRM));
  WHEN OTHERS THEN
    PERFORM lokadb.refuse(format('a view cannot be made again (%s): drop it, and make it again afterwards', SQLERRM));
END $f$;

-- Who holds rights on the relation, its owner and default privileges included, holds none any more.
CREATE OR REPLACE FUNCTION lokadb.revoke_all(p_kind text, p_rel regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  who text;
BEGIN
  FOR who IN SELECT DISTINCT lokadb.grantee_name(x.grantee) FROM pg_catalog.pg_class c, aclexplode(c.relacl) x WHERE c.oid = p_rel AND x.grantee <> c.relowner
             UNION SELECT lokadb.grantee_name(x.grantee) FROM pg_catalog.pg_attribute a, aclexplode(a.attacl) x WHERE a.attrelid = p_rel LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', p_kind, p_rel, who);
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.grantee_name(p_role oid) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE p_role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p_role)) END $$;

-- The rights of a table and of its columns, as commands for another one.
CREATE OR REPLACE FUNCTION lokadb.grant_commands(p_from regclass, p_kind text, p_to text) RETURNS text[] LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(format('GRANT %s%s ON %s %s TO %s%s', x.privilege_type, '(' || quote_ident(col) || ')', p_kind, p_to, lokadb.grantee_name(x.grantee),
           CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END)), '{}')
  FROM (SELECT c.relowner, NULL::name AS col, e.* FROM pg_catalog.pg_class c, aclexplode(c.relacl) e WHERE c.oid = p_from
        UNION ALL SELECT c.relowner, a.attname, e.* FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) e
        WHERE c.oid = p_from AND NOT a.attisdropped) x
  WHERE x.grantee <> x.relowner $$;

-- Rights go to the root, which has none but those.
CREATE OR REPLACE FUNCTION lokadb.move_rights(p_local regclass, p_root regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_grants text[] := lokadb.grant_commands(p_local, 'TABLE', p_root::text);
  c text;
BEGIN
  PERFORM lokadb.revoke_all('TABLE', p_root);
  PERFORM lokadb.revoke_all('TABLE', p_local);
  FOREACH c IN ARRAY v_grants LOOP EXECUTE c; END LOOP;
END $f$;

-- What the local part needs to be used by its own name (see lokadb.leaf_guard): those rights of the root that its policies
-- guard, and values for identities, which a part has none of before PostgreSQL 17. Changes nothing that is right already.
CREATE OR REPLACE FUNCTION lokadb.lend_to_local(p_root regclass, p_local regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_wanted text[] := ARRAY(SELECT DISTINCT regexp_replace(g, ' WITH GRANT OPTION$', '') FROM unnest(lokadb.grant_commands(p_root, 'TABLE', p_local::text)) g
    WHERE g ~ '^GRANT (SELECT|INSERT|UPDATE)' ORDER BY 1);
  r record;
  c text;
BEGIN
  IF v_wanted <> ARRAY(SELECT DISTINCT g FROM unnest(lokadb.grant_commands(p_local, 'TABLE', p_local::text)) g ORDER BY 1) THEN
    PERFORM lokadb.revoke_all('TABLE', p_local);
    FOREACH c IN ARRAY v_wanted LOOP EXECUTE c; END LOOP;
  END IF;
  FOR r IN SELECT a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_attribute l ON l.attrelid = p_local AND l.attname = a.attname
           WHERE a.attrelid = p_root AND a.attidentity <> '' AND l.attidentity = '' AND NOT l.atthasdef LOOP
    EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT lokadb.next_identity(%L)', p_local, r.attname, pg_get_serial_sequence(p_root::text, r.attname));
  END LOOP;
END $f$;

-- The next value of a root's identity, as default of its local part. With the rights of LokaDB's owner, since an identity
-- asks for none on its sequence.
CREATE OR REPLACE FUNCTION lokadb.next_identity(p_sequence regclass) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN lokadb.tables t ON t.tbl = d.refobjid
                 WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = p_sequence AND d.refclassid = 'pg_catalog.pg_class'::regclass
                   AND d.deptype = 'i' AND has_any_column_privilege(lokadb.role(), t.tbl, 'INSERT')) THEN
    RAISE EXCEPTION 'permission denied for sequence %', p_sequence USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN nextval(p_sequence);
END $f$;

-- An identity must be declared on the root (parts do not inherit it), a serial's sequence belongs to the root's column. The
-- same way back.
CREATE OR REPLACE FUNCTION lokadb.move_sequences(p_from regclass, p_to regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  v_last bigint; v_called boolean;
  v_comment text;
  v_grants text[];
  c text;
BEGIN
  FOR r IN SELECT a.attname, a.attidentity, s.oid::regclass AS seq, s.oid::regclass::text AS seq_name, q.* FROM pg_catalog.pg_depend d
           JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_catalog.pg_sequence q ON q.seqrelid = s.oid
           JOIN pg_catalog.pg_attribute a ON a.attrelid = p_from AND a.attnum = d.refobjsubid
           WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p_from AND d.deptype IN ('a', 'i') LOOP
    IF r.attidentity = '' THEN
      EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', r.seq, p_to, r.attname);
      CONTINUE;
    END IF;
    EXECUTE format('SELECT last_value, is_called FROM %s', r.seq) INTO v_last, v_called;
    v_comment := obj_description(r.seq, 'pg_class');
    v_grants := lokadb.grant_commands(r.seq, 'SEQUENCE', r.seq_name);
    EXECUTE format('ALTER TABLE %s ALTER %I DROP DEFAULT', p_to, r.attname);  -- the one that was lent
    EXECUTE format('ALTER TABLE %s ALTER %I DROP IDENTITY', p_from, r.attname);
    EXECUTE format('ALTER TABLE %s ALTER %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s)',
      p_to, r.attname, CASE r.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, r.seq_name, r.seqincrement, r.seqmin, r.seqmax, r.seqstart,
      r.seqcache, CASE WHEN r.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END);
    PERFORM setval(r.seq_name::regclass, v_last, v_called);
    PERFORM lokadb.revoke_all('SEQUENCE', r.seq_name::regclass);
    FOREACH c IN ARRAY v_grants LOOP EXECUTE c; END LOOP;
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', r.seq_name, v_comment);
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.action_text(p_del "char", p_upd "char", p_deferrable boolean, p_deferred boolean) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(' ON DELETE ' || w.d, '') || coalesce(' ON UPDATE ' || w.u, '') || CASE WHEN p_deferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN p_deferred THEN ' INITIALLY DEFERRED' ELSE '' END
  FROM (SELECT (CASE p_del WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END) AS d,
               (CASE p_upd WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END) AS u) w $$;

-- The same foreign key on another table.
CREATE OR REPLACE FUNCTION lokadb.point_foreign_key(p_key oid, p_to regclass, p_col name) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  k pg_catalog.pg_constraint;
  col name;
  v_comment text := obj_description(p_key, 'pg_constraint');
BEGIN
  SELECT * INTO k FROM pg_catalog.pg_constraint WHERE oid = p_key;
  SELECT attname INTO col FROM pg_catalog.pg_attribute WHERE attrelid = k.conrelid AND attnum = k.conkey[1];
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname);
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%I) REFERENCES %s (%I)%s%s%s', k.conrelid::regclass, k.conname, col, p_to, p_col,
    CASE k.confmatchtype WHEN 'f' THEN ' MATCH FULL' END, lokadb.action_text(k.confdeltype, k.confupdtype, k.condeferrable, k.condeferred), CASE WHEN NOT k.convalidated THEN ' NOT VALID' END);
  EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, k.conrelid::regclass, v_comment);
END $f$;

-- The triggers of the application for whole statements fire on the relation that is named, so they go to the root.
-- p_commands make them again under its name.
CREATE OR REPLACE FUNCTION lokadb.move_statement_triggers(p_local regclass, p_commands text[]) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t name;
  c text;
BEGIN
  FOR t IN SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = p_local AND NOT tgisinternal AND tgtype & 1 = 0 LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t, p_local);
  END LOOP;
  FOREACH c IN ARRAY p_commands LOOP EXECUTE c; END LOOP;
END $f$;
