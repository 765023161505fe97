-- Moving an organization to a database of its own and home again. The command line drives it; everything that must
-- happen at once is one function here.

-- Foreign server and schema of an organization's foreign tables.
CREATE OR REPLACE FUNCTION lokadb.part_name(p_org text) RETURNS name LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT (CASE WHEN p_org ~ '^[a-z0-9-]{1,40}$' THEN 'lokadb_o' || p_org ELSE 'lokadb_x' || md5(p_org) END)::name $$;

-- The columns of a table that are copied: those that are not computed.
CREATE OR REPLACE FUNCTION lokadb.copy_columns(p_rel regclass) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname) FROM pg_catalog.pg_attribute
  WHERE attrelid = p_rel AND attnum > 0 AND NOT attisdropped AND attgenerated = '' $$;

-- Count and checksum of an organization's rows; the same query runs in both databases, under the same settings.
CREATE OR REPLACE FUNCTION lokadb.checksum_query(p_rel regclass, p_from text, p_where text) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT count(*), coalesce(sum(hashtextextended(ROW(%s)::text, 0)::numeric), 0) FROM %s%s', lokadb.copy_columns(p_rel), p_from, p_where) $$;

-- Who listens is the proxies.
CREATE OR REPLACE FUNCTION lokadb.tell(p_org text, p_event text) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_notify('lokadb', jsonb_build_object('org', p_org, 'event', p_event)::text) $$;

-- Another routing: from now on another generation, which is returned.
CREATE OR REPLACE FUNCTION lokadb.set_profile(p_org text, p_profile text) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_moved boolean := p_profile <> 'local';
  g bigint;
BEGIN
  UPDATE lokadb.organizations SET profile = p_profile, generation = DEFAULT, changed_at = now(),
      step = CASE WHEN v_moved AND server IS NOT NULL THEN step END,  -- a return that was cut off remains one
      server = CASE WHEN v_moved THEN lokadb.part_name(p_org) END, schema = CASE WHEN v_moved THEN schema END, connection = CASE WHEN v_moved THEN connection END
    WHERE org = p_org RETURNING generation INTO g;
  PERFORM lokadb.tell(p_org, 'changed');
  RETURN g;
END $f$;

-- What stands in the way of a move, one sentence each.
CREATE OR REPLACE FUNCTION lokadb.move_problems(p_org text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  hit boolean;
  found_rows boolean := false;
BEGIN
  IF NOT EXISTS (SELECT FROM lokadb.tables) THEN
    RETURN NEXT 'no table is under LokaDB: add them with add-table first';
    RETURN;
  END IF;
  RETURN QUERY SELECT format('two tables are called %I, in several schemas: an organization''s database has them all in schema public', rel)
    FROM lokadb.tables x, lokadb.name_of(x.tbl) GROUP BY rel HAVING count(*) > 1;
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = lokadb.to_tenant($1))', t.refs, t.tenant_col) INTO hit USING p_org;
    found_rows := found_rows OR hit;
  END LOOP;
  IF NOT found_rows THEN RETURN NEXT format('organization %s has no row in any table under LokaDB', p_org); END IF;
  IF NOT has_parameter_privilege('session_replication_role', 'SET') THEN
    RETURN NEXT format('%s may not set session_replication_role: a superuser runs GRANT SET ON PARAMETER session_replication_role TO %s', current_user, quote_ident(current_user));
  END IF;
  IF NOT has_foreign_data_wrapper_privilege('postgres_fdw', 'USAGE') THEN
    RETURN NEXT format('%s may not use postgres_fdw: a superuser runs GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO %s', current_user, quote_ident(current_user));
  END IF;
  RETURN QUERY SELECT format('trigger %I of %s uses transition tables, which a table with a foreign part cannot have: drop it, or make it a row trigger', g.tgname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_trigger g ON g.tgrelid IN (x.tbl, x.local_part) WHERE g.tgoldtable IS NOT NULL OR g.tgnewtable IS NOT NULL;
  RETURN QUERY SELECT format('two indexes are called %I, in several schemas: an organization''s database has them all in schema public', c.relname)
    FROM lokadb.tables x JOIN pg_catalog.pg_index i ON i.indrelid = x.local_part JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid GROUP BY c.relname HAVING count(*) > 1;
  RETURN QUERY SELECT DISTINCT format('%s of %s uses the %s, which the organization''s database does not have', u.what, u.tbl, pg_describe_object(u.classid, u.oid, 0))
    FROM lokadb.objects_used u WHERE u.extension IS NULL ORDER BY 1;
  RETURN QUERY SELECT format('column %I of %s is generated and not stored, which postgres_fdw does not know: make it STORED, or drop it', a.attname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part WHERE a.attgenerated = 'v' AND NOT a.attisdropped;
  RETURN QUERY SELECT format('a column is of the type %s, which cannot be made in the organization''s database (%s)', y.name, y.definition)
    FROM lokadb.org_types() y WHERE y.definition !~ '^CREATE ' OR y.definition ~ ', (CANONICAL|SUBTYPE_DIFF) = [^, ]+\.';
END $f$;

-- How many rows will be copied, and about how much room they take there; how much there is cannot be asked by SQL.
CREATE OR REPLACE FUNCTION lokadb.move_size(p_org text, OUT n bigint, OUT bytes bigint) LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v_all bigint; v_own bigint;
BEGIN
  n := 0; bytes := 0;
  FOR t IN SELECT * FROM lokadb.tables LOOP
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE %1$I = lokadb.to_tenant($1)) FROM %2$s WHERE %1$I::text <> ALL (ARRAY(SELECT m.org FROM lokadb.moved m))', t.tenant_col, t.refs)
      INTO v_all, v_own USING p_org;
    n := n + v_own;
    bytes := bytes + coalesce(pg_total_relation_size(t.local_part) * v_own / nullif(v_all, 0), 0);
  END LOOP;
END $f$;

-- The move begins: from now on the journal knows it. A move that was cut off begins again.
CREATE OR REPLACE FUNCTION lokadb.move_begin(p_org text, p_database_id text, p_connection text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  INSERT INTO lokadb.organizations (org, profile, schema, database_id, connection, step)
    VALUES (p_org, 'moving', lokadb.part_name(p_org), p_database_id, p_connection, 'copy')
    ON CONFLICT (org) DO UPDATE SET profile = 'moving', schema = excluded.schema, database_id = excluded.database_id, connection = excluded.connection,
      step = 'copy', generation = DEFAULT, changed_at = now();
  PERFORM lokadb.tell(p_org, 'pausing');
END $f$;

-- Foreign tables of the organization, not yet parts of anything.
CREATE OR REPLACE FUNCTION lokadb.make_server(p_org text, p_host text, p_port text, p_dbname text, p_user text, p_password text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v name := lokadb.part_name(p_org);
BEGIN
  PERFORM lokadb.drop_server(p_org);
  EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, fetch_size ''1000'', batch_size ''1000'', application_name %L)',
    v, p_host, p_port, p_dbname, 'lokadb fdw ' || p_org);
  PERFORM lokadb.make_mapping(v, p_user, p_password);
  EXECUTE format('CREATE SCHEMA %I', v);
  EXECUTE format('IMPORT FOREIGN SCHEMA public LIMIT TO (%s) FROM SERVER %I INTO %I OPTIONS (import_default ''false'', import_generated ''true'')',
    (SELECT string_agg(quote_ident(n.rel), ', ') FROM lokadb.tables t, lokadb.name_of(t.tbl) n), v, v);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.make_mapping(p_server name, p_user text, p_password text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER %I OPTIONS (user %L%s)', p_server, p_user, format(', password %L', p_password));
END $f$;

CREATE OR REPLACE FUNCTION lokadb.drop_server(p_org text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
DECLARE
  v name := lokadb.part_name(p_org);
BEGIN
  EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', v);
  EXECUTE format('DROP SERVER IF EXISTS %I CASCADE', v);
END $f$;

-- Row triggers of the application fire for the rows of a moved organization, too.
CREATE OR REPLACE FUNCTION lokadb.copy_row_triggers(p_local regclass, p_part regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  c text;
BEGIN
  FOR c IN SELECT replace(pg_get_triggerdef(oid), format(' ON %s ', p_local), format(' ON %s ', p_part)) FROM pg_catalog.pg_trigger
           WHERE tgrelid = p_local AND NOT tgisinternal AND tgtype & 1 = 1 AND tgname NOT LIKE 'lokadb\_%' AND tgenabled <> 'D' LOOP
    EXECUTE c;
  END LOOP;
END $f$;

-- The swap, in one transaction with its caller: p_sums are the counts and checksums that were verified; rows that were
-- changed past the pause since then stop it.
CREATE OR REPLACE FUNCTION lokadb.swap_out(p_org text, p_profile text, p_sums jsonb) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v name := lokadb.part_name(p_org);
  v_part regclass;
  v_where text;
  v_sum text;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position DESC LOOP
    v_where := format(' WHERE %I = lokadb.to_tenant(%L)', t.tenant_col, p_org);
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t.local_part);
    EXECUTE format('SELECT x::text FROM (%s) x', lokadb.checksum_query(t.local_part, t.local_part::text, v_where)) INTO v_sum;
    IF v_sum IS DISTINCT FROM p_sums ->> t.tbl::text THEN
      PERFORM lokadb.refuse(format('rows of %s were changed past the pause while they were copied: let applications use the proxy only, and move again', t.tbl));
    END IF;
    PERFORM set_config('session_replication_role', 'replica', true);  -- no refs triggers: the keys stay
    EXECUTE format('DELETE FROM %s%s', t.local_part, v_where);
    PERFORM set_config('session_replication_role', 'origin', true);
  END LOOP;
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    v_part := format('%I.%I', v, (SELECT rel FROM lokadb.name_of(t.tbl)))::regclass;
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%L)', t.tbl, v_part, p_org);
    PERFORM lokadb.attach_triggers(t.tbl, v_part, true);
    PERFORM lokadb.copy_row_triggers(t.local_part, v_part);
  END LOOP;
  RETURN lokadb.set_profile(p_org, p_profile);
END $f$;

-- A move that did not come to its swap is taken back: the rows never left.
CREATE OR REPLACE FUNCTION lokadb.move_undo(p_org text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  IF EXISTS (SELECT FROM lokadb.organizations WHERE org = p_org AND profile = 'moving') THEN
    PERFORM lokadb.drop_server(p_org);
    PERFORM lokadb.set_profile(p_org, 'local');
  ELSE
    UPDATE lokadb.organizations SET step = NULL WHERE org = p_org;
    PERFORM lokadb.tell(p_org, 'changed');
  END IF;
END $f$;

-- Where the rows of an organization that comes home are gathered before the swap.
CREATE OR REPLACE FUNCTION lokadb.make_staging(p_org text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    EXECUTE format('DROP TABLE IF EXISTS %s', lokadb.staging(p_org, t.tbl));
    EXECUTE format('CREATE UNLOGGED TABLE %s (LIKE %s)', lokadb.staging(p_org, t.tbl), t.local_part);
  END LOOP;
  UPDATE lokadb.organizations SET step = 'return' WHERE org = p_org;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.staging(p_org text, p_tbl regclass) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%I.%I', lokadb.part_name(p_org), lokadb.cut(n.rel, 40) || '__back_' || t.position) FROM lokadb.tables t, lokadb.name_of(t.tbl) n WHERE t.tbl = p_tbl $$;

CREATE OR REPLACE FUNCTION lokadb.drop_staging(p_org text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $f$
DECLARE
  t lokadb.tables;
BEGIN
  FOR t IN SELECT * FROM lokadb.tables LOOP EXECUTE format('DROP TABLE IF EXISTS %s', lokadb.staging(p_org, t.tbl)); END LOOP;
  UPDATE lokadb.organizations SET step = NULL WHERE org = p_org AND step = 'return';
END $f$;

CREATE OR REPLACE FUNCTION lokadb.swap_in(p_org text, p_sums jsonb) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v name := lokadb.part_name(p_org);
  v_sum text;
  g bigint;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  PERFORM set_config('session_replication_role', 'replica', true);
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    EXECUTE format('SELECT x::text FROM (%s) x', lokadb.checksum_query(t.local_part, lokadb.staging(p_org, t.tbl), '')) INTO v_sum;
    IF v_sum IS DISTINCT FROM p_sums ->> t.tbl::text THEN
      PERFORM lokadb.refuse(format('the copy of %s is not what was verified: come home again', t.tbl));
    END IF;
    EXECUTE format('ALTER TABLE %s DETACH PARTITION %I.%I', t.tbl, v, (SELECT rel FROM lokadb.name_of(t.tbl)));
    EXECUTE format('INSERT INTO %1$s (%2$s) SELECT %2$s FROM %3$s', t.local_part, lokadb.copy_columns(t.local_part), lokadb.staging(p_org, t.tbl));
  END LOOP;
  PERFORM set_config('session_replication_role', 'origin', true);
  g := lokadb.set_profile(p_org, 'local');
  PERFORM lokadb.drop_server(p_org);
  RETURN g;
END $f$;

-- Who holds an organization: its open transactions, or a pause. For messages and `lokadb orgs`.
CREATE OR REPLACE FUNCTION lokadb.holders(p_org text) RETURNS TABLE (pid int, mode text, granted boolean, who text, since timestamptz, state text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.pid, l.mode, l.granted, format('%s (%s)', a.usename, coalesce(nullif(a.application_name, ''), 'no name')), coalesce(a.xact_start, a.query_start), a.state
  FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = lokadb.pause_key(p_org) $$;
