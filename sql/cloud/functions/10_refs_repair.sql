-- refs-diff and refs-sync: looks for rows without a refs entry and entries without a row, and repairs them. The command
-- line drives it: a look without locks gives candidates, each of which is settled under the pause of its organization.

-- The organizations that have moved, with what leads to their rows. No mapping: the cloud itself cannot get there.
CREATE OR REPLACE VIEW lokadb.moved AS
SELECT o.org, o.profile, o.generation, o.schema, o.database_id, o.connection, EXISTS (SELECT FROM pg_catalog.pg_user_mappings m WHERE m.srvname = o.server) AS has_mapping
FROM lokadb.organizations o WHERE o.server IS NOT NULL;

-- Texts are compared byte by byte, whatever collations the columns have.
CREATE OR REPLACE FUNCTION lokadb.plain_column(p_col name, p_type text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT quote_ident(p_col) || CASE p_type WHEN 'text' THEN '::text COLLATE "C"' ELSE '::' || p_type END $$;

-- Rows without an entry ('missing') and entries without a row ('stale'). p_org null: of all organizations at home.
-- p_keys: a relation with the keys of an organization that only the command line can reach. Transactions in flight show
-- up here, too: these are candidates.
CREATE OR REPLACE FUNCTION lokadb.refs_look(p_tbl regclass, p_org text DEFAULT NULL, p_keys text DEFAULT NULL) RETURNS TABLE (org text, key text, kind text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET row_security = off AS $f$
DECLARE
  t lokadb.tables;
  o lokadb.moved;
  k text; c text; v_refs text; v_rows text;
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  SELECT * INTO o FROM lokadb.moved m WHERE m.org = p_org;
  k := lokadb.plain_column(t.key_col, t.key_type);
  c := lokadb.plain_column(t.tenant_col, lokadb.tenant_type());
  v_refs := format('SELECT %s AS k, %s AS o FROM %s', k, c, t.refs);
  IF p_org IS NULL THEN
    -- One snapshot for all three, so that an organization is either here or there.
    v_refs := v_refs || format(' WHERE %I::text <> ALL (ARRAY(SELECT m.org FROM lokadb.moved m))', t.tenant_col);
    v_rows := format('SELECT %s AS k, %s AS o FROM %s', k, c, t.local_part);
  ELSE
    v_refs := v_refs || format(' WHERE %I = lokadb.to_tenant(%L)', t.tenant_col, p_org);
    v_rows := CASE WHEN o.org IS NULL THEN format('SELECT %s AS k, %s AS o FROM %s WHERE %I = lokadb.to_tenant(%L)', k, c, t.local_part, t.tenant_col, p_org)
      ELSE format('SELECT %s AS k, lokadb.to_tenant(%L) AS o FROM %s', k, p_org, coalesce(p_keys, lokadb.foreign_part(o.schema, p_tbl))) END;
  END IF;
  RETURN QUERY EXECUTE format('SELECT coalesce(r.o, x.o)::text, coalesce(r.k, x.k)::text, CASE WHEN r.k IS NULL THEN ''missing'' ELSE ''stale'' END '
    'FROM (%s) r FULL JOIN (%s) x ON r.k = x.k AND r.o = x.o WHERE r.k IS NULL OR x.k IS NULL ORDER BY 1, 2', v_refs, v_rows);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.foreign_part(p_schema name, p_tbl regclass) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%I.%I', p_schema, (SELECT rel FROM lokadb.name_of(p_tbl))) $$;

-- The command that reads which of these keys the organization has rows of, in which organization. p_org null: any at
-- home. p_here false: to be sent to the organization's database itself. p_hold: and locks them against deletion.
CREATE OR REPLACE FUNCTION lokadb.refs_rows_query(p_tbl regclass, p_org text, p_keys text[], p_here boolean, p_hold boolean) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  o lokadb.moved;
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  SELECT * INTO o FROM lokadb.moved m WHERE m.org = p_org;
  -- The keys are written out, so that postgres_fdw sends them along.
  RETURN format('SELECT %I::text, %I::text FROM %s WHERE %I = ANY (%L::%s[])%s%s', t.key_col, t.tenant_col,
    CASE WHEN NOT p_here THEN lokadb.foreign_part('public', p_tbl) WHEN o.org IS NULL THEN t.local_part::text ELSE lokadb.foreign_part(o.schema, p_tbl) END,
    t.key_col, p_keys, t.key_type, CASE WHEN o.org IS NULL AND p_org IS NOT NULL THEN format(' AND %I = lokadb.to_tenant(%L)', t.tenant_col, p_org) END,
    CASE WHEN p_hold THEN ' FOR KEY SHARE' END);
END $f$;

-- Entries of these keys, locked: whoever puts one of them again holds it, and is waited for.
CREATE OR REPLACE FUNCTION lokadb.refs_hold(p_tbl regclass, p_org text, p_keys text[]) RETURNS SETOF text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  RETURN QUERY EXECUTE format('SELECT %1$I::text FROM %2$s WHERE %1$I = ANY ($1::%3$s[]) AND %4$I = lokadb.to_tenant($2) ORDER BY %1$I FOR UPDATE',
    t.key_col, t.refs, t.key_type, t.tenant_col) USING p_keys, p_org;
END $f$;

-- Takes entries away that refs_hold() has locked. Returns those that a table of the cloud still refers to, and which.
CREATE OR REPLACE FUNCTION lokadb.refs_remove(p_tbl regclass, p_org text, p_keys text[]) RETURNS TABLE (key text, why text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v_delete text;
  v_tab text; v_con text;
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  v_delete := format('DELETE FROM %s WHERE %I = ANY ($1::%s[]) AND %I = lokadb.to_tenant($2)', t.refs, t.key_col, t.key_type, t.tenant_col);
  SET CONSTRAINTS ALL IMMEDIATE;
  BEGIN
    EXECUTE v_delete USING p_keys, p_org;
  EXCEPTION WHEN foreign_key_violation THEN
    FOREACH key IN ARRAY p_keys LOOP
      BEGIN
        EXECUTE v_delete USING ARRAY[key], p_org;
      EXCEPTION WHEN foreign_key_violation THEN
        GET STACKED DIAGNOSTICS v_tab = TABLE_NAME, v_con = CONSTRAINT_NAME;
        why := format('table %I of the cloud still refers to it (%I)', v_tab, v_con);
        RETURN NEXT;
      END;
    END LOOP;
  END;
END $f$;

-- Adds entries. Returns what was not added: keys with the organization that holds them, which is p_org itself if its
-- own transaction came first.
CREATE OR REPLACE FUNCTION lokadb.refs_add(p_tbl regclass, p_org text, p_keys text[]) RETURNS TABLE (key text, holder text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v_added text[];
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  EXECUTE format('WITH a AS (INSERT INTO %1$s (%2$I, %3$I) SELECT k, lokadb.to_tenant($2) FROM unnest($1::%4$s[]) k ORDER BY 1 ON CONFLICT DO NOTHING RETURNING %2$I::text AS k) SELECT array_agg(k) FROM a',
    t.refs, t.key_col, t.tenant_col, t.key_type) INTO v_added USING p_keys, p_org;
  RETURN QUERY EXECUTE format('SELECT k, (SELECT r.%3$I::text FROM %1$s r WHERE r.%2$I = k::%4$s) FROM unnest($1) k WHERE k <> ALL (coalesce($2, ''{}''))',
    t.refs, t.key_col, t.tenant_col, t.key_type) USING p_keys, v_added;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.refs_count(p_tbl regclass, p_org text) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  n bigint;
BEGIN
  EXECUTE (SELECT format('SELECT count(*) FROM %s WHERE %I = lokadb.to_tenant($1)', refs, tenant_col) FROM lokadb.tables WHERE tbl = p_tbl) INTO n USING p_org;
  RETURN n;
END $f$;

-- ------------------------------------------------------------------ sequences of keys

-- Those that the key's default draws from and whose next value is not above all keys. Keys that were lost with a crash of
-- the cloud, or given by hand, would come out of them again.
CREATE OR REPLACE FUNCTION lokadb.sequences_behind(p_tbl regclass) RETURNS TABLE (seq text, last_value bigint, largest bigint, highest bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  r record;
  v_called boolean;
BEGIN
  SELECT * INTO STRICT t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  IF t.key_type NOT IN ('bigint', 'integer') THEN RETURN; END IF;
  EXECUTE format('SELECT max(%I) FROM %s', t.key_col, t.refs) INTO largest;
  FOR r IN SELECT DISTINCT s.* FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_sequence s ON s.seqincrement > 0
           AND (EXISTS (SELECT FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_attrdef'::regclass AND e.objid = d.oid
                  WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND e.refclassid = 'pg_catalog.pg_class'::regclass AND e.refobjid = s.seqrelid)
             OR EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.classid = 'pg_catalog.pg_class'::regclass AND e.objid = s.seqrelid
                  AND e.refclassid = 'pg_catalog.pg_class'::regclass AND e.refobjid = a.attrelid AND e.refobjsubid = a.attnum AND e.deptype = 'i'))
           WHERE a.attrelid = p_tbl AND a.attname = t.key_col LOOP
    EXECUTE format('SELECT last_value, is_called FROM %s', r.seqrelid::regclass) INTO last_value, v_called;
    seq := r.seqrelid::regclass::text;
    highest := r.seqmax;
    IF last_value < largest OR last_value = largest AND NOT v_called THEN RETURN NEXT; END IF;
  END LOOP;
END $f$;

-- Never backwards, whoever draws from it meanwhile: an ALTER that changes nothing locks it until the end of the
-- transaction. Returns what the last value was; null: not behind any more.
CREATE OR REPLACE FUNCTION lokadb.sequence_forward(p_tbl regclass, p_seq text) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
BEGIN
  EXECUTE (SELECT format('ALTER SEQUENCE %s CACHE %s', p_seq, seqcache) FROM pg_catalog.pg_sequence WHERE seqrelid = p_seq::regclass);
  SELECT * INTO r FROM lokadb.sequences_behind(p_tbl) b WHERE b.seq = p_seq;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF r.largest >= r.highest THEN
    PERFORM lokadb.refuse(format('the largest key of %s is %s, above which sequence %s has no value left: correct that key', p_tbl, r.largest, p_seq));
  END IF;
  PERFORM setval(p_seq::regclass, r.largest);
  RETURN r.last_value;
END $f$;
