-- The gate, which every batch for one organization passes: pause, rights, definitions, keys, generation.

-- The definition of a table as one text. Changes with DDL on the root and with triggers, columns, defaults, policies,
-- rules, checks and foreign keys of the local part, and when a relation of the same name comes or goes; not with ANALYZE,
-- VACUUM or an index. What is new has a higher xmin than what it replaces, so that no change leaves count and sum as they
-- were. And with each new function, operator or cast of the database, which may change what a statement means
-- (lokadb.catalog_shadows): the newest has the highest number, until these begin again.
CREATE OR REPLACE FUNCTION lokadb.fingerprint(p_tbl regclass) RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  -- Two values, not an array of them: with an array PostgreSQL plans anew at each call, which takes five times as long.
  v_local oid := (SELECT x.local_part FROM lokadb.tables x WHERE x.tbl = p_tbl);
  r text;
BEGIN
  SELECT count(*) || ':' || sum(x::text::bigint) || ':' || (SELECT oid FROM pg_catalog.pg_proc ORDER BY oid DESC LIMIT 1)
    || ':' || (SELECT oid FROM pg_catalog.pg_operator ORDER BY oid DESC LIMIT 1)
    || ':' || (SELECT oid FROM pg_catalog.pg_cast ORDER BY oid DESC LIMIT 1) INTO r FROM (
    SELECT xmin x FROM pg_catalog.pg_class WHERE oid = p_tbl
    UNION ALL SELECT xmin FROM pg_catalog.pg_attribute WHERE attrelid IN (p_tbl, v_local) AND attnum > 0
    UNION ALL SELECT xmin FROM pg_catalog.pg_attrdef WHERE adrelid IN (p_tbl, v_local)
    UNION ALL SELECT xmin FROM pg_catalog.pg_trigger WHERE tgrelid IN (p_tbl, v_local)
    UNION ALL SELECT xmin FROM pg_catalog.pg_policy WHERE polrelid IN (p_tbl, v_local)
    UNION ALL SELECT xmin FROM pg_catalog.pg_rewrite WHERE ev_class IN (p_tbl, v_local)
    UNION ALL SELECT xmin FROM pg_catalog.pg_constraint WHERE conrelid IN (p_tbl, v_local) AND contype IN ('c', 'f')
    -- What else has its name, in any schema but those of organizations: it may hide the table from some sessions.
    UNION ALL SELECT o.xmin FROM pg_catalog.pg_class c JOIN pg_catalog.pg_class o ON o.relname = c.relname AND o.oid <> c.oid AND o.relpersistence <> 't'
      JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace AND n.nspname !~ '^lokadb_o' WHERE c.oid = p_tbl) c;
  RETURN r;
END $f$;

-- Rights of the client's role, by PostgreSQL's rules: {"public.documents": {"INSERT": ["title"], "SELECT": []}}; an
-- empty list means any column. 42501. As for a statement of its own, the schema must be open to the role, too.
CREATE OR REPLACE FUNCTION lokadb.require(p jsonb) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  who name := lokadb.role();
BEGIN
  -- Takes and drops a lock: so a REVOKE by others is seen also in the middle of a transaction.
  PERFORM pg_relation_size('lokadb.generation');
  FOR r IN SELECT c.oid::regclass AS tbl, c.relnamespace, q.key AS priv, q.value AS cols
           FROM jsonb_each(p) t JOIN pg_catalog.pg_class c ON c.oid = t.key::regclass, jsonb_each(t.value) q LOOP
    IF NOT has_schema_privilege(who, r.relnamespace, 'USAGE') THEN
      RAISE EXCEPTION 'permission denied for schema %', (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = r.relnamespace)
        USING ERRCODE = 'insufficient_privilege';
    END IF;
    CONTINUE WHEN has_table_privilege(who, r.tbl, r.priv);
    CONTINUE WHEN r.priv <> 'DELETE' AND CASE WHEN r.cols = '[]' THEN has_any_column_privilege(who, r.tbl, r.priv)
      ELSE NOT EXISTS (SELECT FROM jsonb_array_elements_text(r.cols) c WHERE NOT has_column_privilege(who, r.tbl, c, r.priv)) END;
    RAISE EXCEPTION 'permission denied for table %', (SELECT relname FROM pg_catalog.pg_class WHERE oid = r.tbl)
      USING ERRCODE = 'insufficient_privilege';
  END LOOP;
END $f$;

-- Any right at all on the table, for those who ask where its keys belong. 42501.
CREATE OR REPLACE FUNCTION lokadb.require_any(p_tbl regclass) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  IF has_table_privilege(lokadb.role(), p_tbl, 'DELETE') THEN RETURN; END IF;
  IF has_any_column_privilege(lokadb.role(), p_tbl, 'INSERT, UPDATE') THEN RETURN; END IF;
  PERFORM lokadb.require(jsonb_build_object(p_tbl::text, '{"SELECT": []}'::jsonb));
END $f$;

-- Inside a transaction it holds until the end, in autocommit it only answers. 55P03: paused; LK001: the routing is
-- another than the caller knows, with the true one in DETAIL.
CREATE OR REPLACE FUNCTION lokadb.enter(p_org text, p_generation bigint, p_tables jsonb DEFAULT '{}', p_write boolean DEFAULT false,
  p_keys jsonb DEFAULT '{}', p_rights jsonb DEFAULT '{}', OUT profile text, OUT generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s'
SET plan_cache_mode = force_generic_plan AS $f$ -- whatever the client's is: planning takes longer than all else here
DECLARE
  r record;
  bad boolean;
  stale text;
BEGIN
  p_org := lokadb.canonical(p_org);
  IF NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key(p_org)) THEN
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(lokadb.pause_key(p_org));
    EXCEPTION WHEN lock_not_available THEN
      RAISE EXCEPTION 'lokadb: organization % is paused', p_org USING ERRCODE = 'lock_not_available';
    END;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
      RAISE EXCEPTION 'lokadb: organization % was paused while the transaction began', p_org USING ERRCODE = 'serialization_failure';
    END IF;
  END IF;
  PERFORM lokadb.require(p_rights);
  FOR r IN SELECT t.tbl, j.key, j.value FROM jsonb_each_text(p_tables) j LEFT JOIN lokadb.tables t ON t.tbl = to_regclass(j.key) ORDER BY t.tbl LOOP
    IF r.tbl IS NULL THEN
      stale := r.key;
      CONTINUE;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', r.tbl, CASE WHEN p_write THEN 'ROW EXCLUSIVE' ELSE 'ACCESS SHARE' END);
    IF lokadb.fingerprint(r.tbl) IS DISTINCT FROM r.value THEN stale := r.key; END IF;
  END LOOP;
  FOR r IN SELECT t.*, j.key, ARRAY(SELECT jsonb_array_elements_text(j.value)) AS keys FROM jsonb_each(p_keys) j
           LEFT JOIN lokadb.tables t ON t.tbl = to_regclass(j.key) LOOP
    IF r.tbl IS NULL THEN
      stale := r.key;
      CONTINUE;
    END IF;
    PERFORM lokadb.require_any(r.tbl);
    EXECUTE format('SELECT EXISTS (SELECT FROM unnest($1::%s[]) k WHERE NOT EXISTS (SELECT FROM %s r WHERE r.%I = k AND r.%I = lokadb.to_tenant($2)))',
                   r.key_type, r.refs, r.key_col, r.tenant_col) INTO bad USING r.keys, p_org;
    IF bad THEN stale := r.key; END IF;
  END LOOP;
  SELECT o.profile, o.generation INTO profile, generation FROM lokadb.organizations o WHERE o.org = p_org;
  IF NOT FOUND THEN
    profile := 'local';
    generation := 0;
  END IF;
  IF generation IS DISTINCT FROM p_generation OR stale IS NOT NULL THEN
    RAISE EXCEPTION 'lokadb: the routing of organization % changed', p_org USING ERRCODE = 'LK001',
      DETAIL = json_build_object('org', p_org, 'profile', profile, 'generation', generation, 'stale', stale)::text;
  END IF;
  PERFORM set_config('lokadb.entered', p_org, true);
END $f$;

-- For writes without one organization and transactions above READ COMMITTED: a move takes this key, too.
CREATE OR REPLACE FUNCTION lokadb.enter_all() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $f$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(lokadb.pause_key('*'));
EXCEPTION WHEN lock_not_available THEN
  RAISE EXCEPTION 'lokadb: an organization is being moved' USING ERRCODE = 'lock_not_available';
END $f$;
