-- Refs: which organization a key belongs to. Application roles reach them only through these functions.

-- 42P01: a table that is not under LokaDB, or not any more.
CREATE OR REPLACE FUNCTION lokadb.known_table(p_tbl regclass) RETURNS lokadb.tables LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  SELECT * INTO t FROM lokadb.tables x WHERE x.tbl = p_tbl;
  IF NOT FOUND THEN RAISE EXCEPTION 'lokadb: % is not under LokaDB', p_tbl USING ERRCODE = 'undefined_table'; END IF;
  RETURN t;
END $f$;

-- Keys in the type the client declared. Needs any right on the table.
CREATE OR REPLACE FUNCTION lokadb.find_refs(p_tbl regclass, p_keys anyarray) RETURNS TABLE (key text, org text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables := lokadb.known_table(p_tbl);
BEGIN
  PERFORM lokadb.require_any(p_tbl);
  RETURN QUERY EXECUTE format('SELECT %2$I::text, %3$I::text FROM %1$s WHERE %2$I = ANY($1::text[]::%4$s[])',
                              t.refs, t.key_col, t.tenant_col, t.key_type) USING p_keys;
END $f$;

-- What both steps ask for first. The lock is there already after enter; who only claims to have entered does not get
-- past a pause.
CREATE OR REPLACE FUNCTION lokadb.refs_step(p_tbl regclass, p_org text, p_right text) RETURNS lokadb.tables
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  IF current_setting('lokadb.entered', true) IS DISTINCT FROM p_org OR NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key(p_org)) THEN
    RAISE EXCEPTION 'lokadb: organization % was not entered in this transaction', p_org USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  t := lokadb.known_table(p_tbl);
  PERFORM lokadb.require(jsonb_build_object(p_tbl::text, jsonb_build_object(p_right, '[]'::jsonb)));
  RETURN t;
END $f$;

-- After the organization has executed the statement. Entries that are there already are locked as the triggers lock
-- them, so that a repair does not take them away before the commit. 23505 as the cloud path gives; 40P01: gave up.
CREATE OR REPLACE FUNCTION lokadb.put_refs(p_tbl regclass, p_org text, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $f$
DECLARE
  t lokadb.tables := lokadb.refs_step(p_tbl, p_org, 'INSERT');
  n bigint := 0;
  v_new bigint; v_all bigint; v_there bigint;
  bad text;
BEGIN
  EXECUTE format('SELECT count(DISTINCT k::%s) FROM unnest($1) k', t.key_type) INTO v_all USING p_keys;
  LOOP
    EXECUTE format('INSERT INTO %1$s (%3$I, %4$I) SELECT DISTINCT k::%2$s, lokadb.to_tenant($1) FROM unnest($2) k ORDER BY 1 ON CONFLICT DO NOTHING',
                   t.refs, t.key_type, t.key_col, t.tenant_col) USING p_org, p_keys;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    n := n + v_new;
    EXIT WHEN v_new = v_all;
    EXECUTE format('SELECT count(*), min(r.k) FILTER (WHERE r.o) FROM (SELECT %2$I::text AS k, %4$I <> lokadb.to_tenant($1) AS o FROM %1$s WHERE %2$I = ANY ($2::%3$s[]) ORDER BY %2$I FOR KEY SHARE) r',
                   t.refs, t.key_col, t.key_type, t.tenant_col) INTO v_there, bad USING p_org, p_keys;
    IF bad IS NOT NULL THEN PERFORM lokadb.raise_duplicate(p_tbl, t.key_col, bad); END IF;
    EXIT WHEN v_there = v_all;  -- else one was taken away before it could be locked: put it again
  END LOOP;
  RETURN n;
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION 'lokadb: gave up waiting for a key of %', p_tbl USING ERRCODE = 'deadlock_detected',
    DETAIL = 'Two transactions may be waiting for each other in two databases.';
END $f$;

CREATE OR REPLACE FUNCTION lokadb.raise_duplicate(p_tbl regclass, p_col name, p_key text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  c pg_catalog.pg_class;
  con name;
BEGIN
  SELECT * INTO c FROM pg_catalog.pg_class WHERE oid = p_tbl;
  SELECT k.conname INTO con FROM lokadb.tables t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.local_part AND k.contype = 'p' WHERE t.tbl = p_tbl;
  RAISE EXCEPTION 'duplicate key value violates unique constraint "%"', con USING ERRCODE = 'unique_violation',
    SCHEMA = (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = c.relnamespace), TABLE = c.relname, CONSTRAINT = con,
    DETAIL = format('Key (%s)=(%s) already exists.', p_col, p_key);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.del_refs(p_tbl regclass, p_org text, p_keys text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $f$
DECLARE
  t lokadb.tables := lokadb.refs_step(p_tbl, p_org, 'DELETE');
  n bigint;
  m text; d text; con text; tab text; sch text;
BEGIN
  EXECUTE format('DELETE FROM %1$s WHERE %2$I = ANY ($2::%3$s[]) AND %4$I = lokadb.to_tenant($1)',
                 t.refs, t.key_col, t.key_type, t.tenant_col) USING p_org, p_keys;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
EXCEPTION
  WHEN foreign_key_violation THEN  -- a table of the cloud still refers to the key: told of the application's table
    GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, con = CONSTRAINT_NAME, tab = TABLE_NAME, sch = SCHEMA_NAME;
    RAISE EXCEPTION '%', replace(m, '__refs"', '"') USING ERRCODE = 'foreign_key_violation', DETAIL = d, CONSTRAINT = con, TABLE = tab, SCHEMA = sch;
  WHEN lock_not_available THEN
    RAISE EXCEPTION 'lokadb: gave up waiting for a key of %', p_tbl USING ERRCODE = 'deadlock_detected',
      DETAIL = 'Two transactions may be waiting for each other in two databases.';
END $f$;

-- {"public.messages": {"conversation_id": ["…"]}}: says what the parent trigger would say. 23514. Needs any right on
-- the child.
CREATE OR REPLACE FUNCTION lokadb.check_parents(p_org text, p_parents jsonb) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  bad text;
BEGIN
  FOR r IN SELECT x.child, x.col, p.*, ARRAY(SELECT jsonb_array_elements_text(q.value)) AS keys
           FROM jsonb_each(p_parents) j, jsonb_each(j.value) q, lokadb.relations x, lokadb.tables p
           WHERE x.child = j.key::regclass AND x.col = q.key AND p.tbl = x.parent LOOP
    PERFORM lokadb.require_any(r.child);
    EXECUTE format('SELECT %2$I::text FROM %1$s WHERE %2$I = ANY ($2::%3$s[]) AND %4$I <> lokadb.to_tenant($1) LIMIT 1',
                   r.refs, r.key_col, r.key_type, r.tenant_col) INTO bad USING p_org, r.keys;
    IF bad IS NOT NULL THEN PERFORM lokadb.raise_parent(r.child, r.col, bad); END IF;
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.raise_parent(p_child regclass, p_col name, p_key text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  c pg_catalog.pg_class;
BEGIN
  SELECT * INTO c FROM pg_catalog.pg_class WHERE oid = p_child;
  RAISE EXCEPTION 'lokadb: the parent of % (%=%) belongs to another organization', c.relname, p_col, p_key
    USING ERRCODE = 'check_violation', SCHEMA = (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = c.relnamespace),
      TABLE = c.relname, COLUMN = p_col, CONSTRAINT = c.relname || '_' || p_col || '_lokadb_parent';
END $f$;

-- For policies of the local parts, which are used by name for what a root cannot do (ON CONFLICT and GROUP BY on the
-- key): the right on the root, an organization that is named and lives here. What the root does besides, its part does
-- not: policies and rules of the application.
CREATE OR REPLACE FUNCTION lokadb.leaf_guard(root regclass, priv text) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t text := lokadb.tenant()::text;
BEGIN
  IF NOT has_table_privilege(root, priv) AND lokadb.lacks_columns(root, priv) THEN
    RAISE EXCEPTION 'permission denied for table %', root USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF t IS NULL THEN
    RAISE EXCEPTION 'lokadb: name the organization before using a local part directly' USING ERRCODE = 'feature_not_supported';
  END IF;
  IF EXISTS (SELECT FROM lokadb.organizations WHERE org = t AND server IS NOT NULL) THEN
    RAISE EXCEPTION 'lokadb: organization % has moved', t USING ERRCODE = 'feature_not_supported';
  END IF;
  IF EXISTS (SELECT FROM pg_catalog.pg_policy WHERE polrelid = root AND polname <> 'lokadb_tenant')
     OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = root) THEN
    RAISE EXCEPTION 'lokadb: % has policies or rules that its local part has not', root USING ERRCODE = 'feature_not_supported';
  END IF;
  RETURN true;
END $f$;

-- Rights on columns of the local part are those of the root; all are in doubt if one of them has been taken away there.
CREATE OR REPLACE FUNCTION lokadb.lacks_columns(root regclass, priv text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT NOT has_any_column_privilege(root, priv) OR EXISTS (
    SELECT FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partdefid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE p.partrelid = root AND has_column_privilege(p.partdefid, a.attnum, priv) AND NOT has_column_privilege(root, a.attname, priv)) $$;

-- ------------------------------------------------------------------ triggers shared by all tables

CREATE OR REPLACE FUNCTION lokadb.key_fixed() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  RAISE EXCEPTION 'lokadb: the key and the tenant column of %.% cannot be changed', TG_TABLE_SCHEMA, TG_TABLE_NAME
    USING ERRCODE = 'feature_not_supported';
END $f$;

CREATE OR REPLACE FUNCTION lokadb.no_truncate() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  RAISE EXCEPTION 'lokadb: TRUNCATE of %.% would leave its refs behind: use DELETE', TG_TABLE_SCHEMA, TG_TABLE_NAME
    USING ERRCODE = 'feature_not_supported';
END $f$;
