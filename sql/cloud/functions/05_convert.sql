-- How add-table turns an ordinary table into a root (partitioned by organization), its local part (the old table) and
-- its refs. Everything here runs in the one transaction of add_table().

CREATE OR REPLACE FUNCTION lokadb.name_of(p_rel regclass, OUT nsp name, OUT rel name) LANGUAGE sql STABLE
AS $$ SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = p_rel $$;

-- The organization of each row comes from its parents. Triggers of the application do not run for it.
CREATE OR REPLACE FUNCTION lokadb.add_tenant_column(p_tbl regclass, p_tenant name, p_relations jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  paused name[] := ARRAY(SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = p_tbl AND NOT tgisinternal AND tgenabled <> 'D');
  sources text;
  n bigint;
  t name;
BEGIN
  SELECT string_agg(format('(SELECT r.%I FROM %s r WHERE r.%I = c.%I)', p.tenant_col, p.refs, p.key_col, j.key), ', ') INTO sources
    FROM jsonb_each_text(p_relations) j JOIN lokadb.tables p ON p.tbl = j.value::regclass;
  IF sources IS NULL THEN
    PERFORM lokadb.refuse(format('%s has no column %I and no foreign key to a table under LokaDB: add its parent first, or declare the relation with -relation column=parent', p_tbl, p_tenant));
  END IF;
  EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', p_tbl, p_tenant, lokadb.tenant_type());
  FOREACH t IN ARRAY paused LOOP EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', p_tbl, t); END LOOP;
  EXECUTE format('UPDATE %s c SET %I = coalesce(%s)', p_tbl, p_tenant, sources);
  FOREACH t IN ARRAY paused LOOP EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', p_tbl, t); END LOOP;
  EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', p_tbl, p_tenant) INTO n;
  IF n > 0 THEN
    PERFORM lokadb.refuse(format('%s rows of %s have no parent, so their organization is not known: give them one or delete them', n, p_tbl));
  END IF;
END $f$;

-- A child row must be of its parent's organization.
CREATE OR REPLACE FUNCTION lokadb.check_rows(p_tbl regclass, p_tenant name, p_relations jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  r record;
  n bigint;
BEGIN
  FOR r IN SELECT j.key, p.* FROM jsonb_each_text(p_relations) j JOIN lokadb.tables p ON p.tbl = j.value::regclass LOOP
    EXECUTE format('SELECT count(*) FROM %s c JOIN %s r ON r.%I = c.%I WHERE r.%I <> c.%I', p_tbl, r.refs, r.key_col, r.key, r.tenant_col, p_tenant) INTO n;
    IF n > 0 THEN
      PERFORM lokadb.refuse(format('%s rows of %s belong to another organization than the %s they refer to by %I: correct them first', n, p_tbl, r.tbl, r.key));
    END IF;
  END LOOP;
END $f$;

-- Views follow a renamed table by its number: they are made again under the name. Returns what makes them.
CREATE OR REPLACE FUNCTION lokadb.view_commands(p_tbl regclass) RETURNS text[] LANGUAGE sql STABLE SET search_path = '' AS $$
  SELECT coalesce(array_agg(format('CREATE OR REPLACE VIEW %s%s AS %s', v.oid::regclass,
           ' WITH (' || array_to_string(v.reloptions, ', ') || ')', rtrim(pg_get_viewdef(v.oid), ';'))), '{}')
  FROM pg_catalog.pg_class v
  WHERE v.relkind = 'v' AND v.oid IN (SELECT w.ev_class FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid
    WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refobjid = p_tbl) $$;

-- Rights go to the root. The local part keeps those that its policies guard.
CREATE OR REPLACE FUNCTION lokadb.move_rights(p_local regclass, p_root regclass) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  r record;
  grantee text;
BEGIN
  FOR r IN SELECT x.*, c.relowner, NULL::name AS col FROM pg_catalog.pg_class c, aclexplode(c.relacl) x WHERE c.oid = p_local
           UNION ALL SELECT x.*, c.relowner, a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) x WHERE c.oid = p_local LOOP
    CONTINUE WHEN r.grantee = r.relowner;
    grantee := CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END;
    EXECUTE format('GRANT %s%s ON %s TO %s%s', r.privilege_type, '(' || quote_ident(r.col) || ')', p_root, grantee, CASE WHEN r.is_grantable THEN ' WITH GRANT OPTION' END);
    IF r.col IS NOT NULL OR r.privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE') THEN
      EXECUTE format('REVOKE %s%s ON %s FROM %s CASCADE', r.privilege_type, '(' || quote_ident(r.col) || ')', p_local, grantee);
    ELSIF r.is_grantable THEN
      EXECUTE format('REVOKE GRANT OPTION FOR %s ON %s FROM %s CASCADE', r.privilege_type, p_local, grantee);
    END IF;
  END LOOP;
END $f$;

-- An identity must be declared on the root (parts do not inherit it), a serial's sequence belongs to the root's column.
CREATE OR REPLACE FUNCTION lokadb.move_sequences(p_local regclass, p_root regclass) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  r record;
  v_last bigint; v_called boolean;
BEGIN
  FOR r IN SELECT a.attname, a.attidentity, s.oid::regclass::text AS seq, s.relacl, q.* FROM pg_catalog.pg_depend d
           JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_catalog.pg_sequence q ON q.seqrelid = s.oid
           JOIN pg_catalog.pg_attribute a ON a.attrelid = p_local AND a.attnum = d.refobjsubid
           WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p_local AND d.deptype IN ('a', 'i') LOOP
    IF r.attidentity = '' THEN
      EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', r.seq, p_root, r.attname);
      CONTINUE;
    END IF;
    EXECUTE format('SELECT last_value, is_called FROM %s', r.seq) INTO v_last, v_called;
    EXECUTE format('ALTER TABLE %s ALTER %I DROP IDENTITY', p_local, r.attname);
    EXECUTE format('ALTER TABLE %s ALTER %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s INCREMENT %s MINVALUE %s MAXVALUE %s START %s CACHE %s%s)',
      p_root, r.attname, CASE r.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, r.seq, r.seqincrement, r.seqmin, r.seqmax, r.seqstart,
      r.seqcache, CASE WHEN r.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END);
    PERFORM setval(pg_get_serial_sequence(p_root::text, r.attname), v_last, v_called);
    PERFORM lokadb.grant_all(pg_get_serial_sequence(p_root::text, r.attname), r.relacl);
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.grant_all(p_sequence text, p_acl aclitem[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM aclexplode(p_acl) LOOP
    EXECUTE format('GRANT %s ON SEQUENCE %s TO %s', r.privilege_type, p_sequence, CASE r.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.grantee)) END);
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.action_text(p_del "char", p_upd "char", p_deferrable boolean, p_deferred boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(' ON DELETE ' || w.d, '') || coalesce(' ON UPDATE ' || w.u, '') || CASE WHEN p_deferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN p_deferred THEN ' INITIALLY DEFERRED' ELSE '' END
  FROM (SELECT (CASE p_del WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END) AS d,
               (CASE p_upd WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END) AS u) w $$;

-- The same foreign key on another table.
CREATE OR REPLACE FUNCTION lokadb.point_foreign_key(p_key oid, p_to regclass, p_col name) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  k pg_catalog.pg_constraint;
  col name;
BEGIN
  SELECT * INTO k FROM pg_catalog.pg_constraint WHERE oid = p_key;
  SELECT attname INTO col FROM pg_catalog.pg_attribute WHERE attrelid = k.conrelid AND attnum = k.conkey[1];
  EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname);
  EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%I) REFERENCES %s (%I)%s%s', k.conrelid::regclass, k.conname, col, p_to, p_col,
    lokadb.action_text(k.confdeltype, k.confupdtype, k.condeferrable, k.condeferred), CASE WHEN NOT k.convalidated THEN ' NOT VALID' END);
END $f$;

-- The triggers of the application for whole statements fire on the relation that is named, so they go to the root.
CREATE OR REPLACE FUNCTION lokadb.move_statement_triggers(p_local regclass, p_commands text[]) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  t name;
  c text;
BEGIN
  FOR t IN SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = p_local AND NOT tgisinternal AND tgtype & 1 = 0 LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t, p_local);
  END LOOP;
  FOREACH c IN ARRAY p_commands LOOP EXECUTE c; END LOOP;
END $f$;
