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
      taken = CASE WHEN v_moved AND server IS NOT NULL THEN taken END,
      server = CASE WHEN v_moved THEN lokadb.part_name(p_org) END, schema = CASE WHEN v_moved THEN schema END, connection = CASE WHEN v_moved THEN connection END
    WHERE org = p_org RETURNING generation INTO g;
  PERFORM lokadb.tell(p_org, 'changed');
  RETURN g;
END $f$;

-- What stands in the way of a move, one sentence each.
CREATE OR REPLACE FUNCTION lokadb.move_problems(p_org text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v record;
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
  RETURN QUERY SELECT format('constraint trigger %I of %s cannot be on a foreign table: make it an ordinary trigger', g.tgname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_trigger g ON g.tgrelid = x.local_part WHERE g.tgconstraint <> 0 AND NOT g.tgisinternal;
  RETURN QUERY SELECT format('column %I of %s is of type %s, which names an object of the cloud: make it text', a.attname, x.tbl, format_type(a.atttypid, a.atttypmod))
    FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part AND a.attnum > 0 AND NOT a.attisdropped
    WHERE a.atttypid IN ('regclass'::regtype, 'regproc'::regtype, 'regprocedure'::regtype, 'regoper'::regtype, 'regoperator'::regtype, 'regtype'::regtype,
      'regrole'::regtype, 'regnamespace'::regtype, 'regconfig'::regtype, 'regdictionary'::regtype, 'regcollation'::regtype);
  FOR v IN SELECT c.conname, x.tbl, x.local_part, x.tenant_col, pg_get_expr(c.conbin, c.conrelid) AS expr FROM lokadb.tables x JOIN pg_catalog.pg_constraint c ON c.conrelid = x.local_part
           WHERE c.contype = 'c' AND NOT c.convalidated LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = lokadb.to_tenant($1) AND NOT (%s))', v.local_part, v.tenant_col, v.expr) INTO hit USING p_org;
    IF hit THEN RETURN NEXT format('rows of %s break the check constraint %I, which is NOT VALID: put them right first', v.tbl, v.conname); END IF;
  END LOOP;
  RETURN QUERY SELECT format('trigger %I of %s uses transition tables, which a table with a foreign part cannot have: drop it, or make it a row trigger', g.tgname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_trigger g ON g.tgrelid IN (x.tbl, x.local_part) WHERE g.tgoldtable IS NOT NULL OR g.tgnewtable IS NOT NULL;
  RETURN QUERY SELECT format('two indexes are called %I, in several schemas: an organization''s database has them all in schema public', c.relname)
    FROM lokadb.tables x JOIN pg_catalog.pg_index i ON i.indrelid = x.local_part JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid GROUP BY c.relname HAVING count(*) > 1;
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
  INSERT INTO lokadb.organizations (org, profile, schema, database_id, connection, step, begun)
    VALUES (p_org, 'moving', lokadb.part_name(p_org), p_database_id, p_connection, 'copy', ARRAY[p_database_id])
    ON CONFLICT (org) DO UPDATE SET profile = 'moving', schema = excluded.schema, database_id = excluded.database_id, connection = excluded.connection,
      step = 'copy', begun = CASE WHEN p_database_id = ANY (organizations.begun) THEN organizations.begun ELSE array_append(organizations.begun, p_database_id) END,
      generation = DEFAULT, changed_at = now() WHERE organizations.server IS NULL;
  IF NOT FOUND THEN PERFORM lokadb.refuse(format('organization %s has a database of its own already: bring it home first (-back)', p_org)); END IF;
  PERFORM lokadb.tell(p_org, 'pausing');
END $f$;

-- At the begin of a swap: the organization is still where the move believes it to be, and is held there.
CREATE OR REPLACE FUNCTION lokadb.pin_move(p_org text, p_database_id text, p_is_away boolean) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  PERFORM FROM lokadb.organizations WHERE org = p_org AND database_id = p_database_id AND (server IS NOT NULL) = p_is_away
    AND (p_is_away OR profile = 'moving') FOR UPDATE;
  IF NOT FOUND THEN PERFORM lokadb.refuse(format('somebody else has moved organization %s meanwhile', p_org)); END IF;
END $f$;

-- Logs in as an application role would have it done: postgres_fdw asks a login of those for a password. The caller rolls
-- the transaction back.
CREATE OR REPLACE FUNCTION lokadb.probe_login(p_host text, p_port text, p_dbname text, p_user text, p_password text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v name := 'lokadb_probe_' || pg_backend_pid();
  me name := current_user;
BEGIN
  EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)', v, p_host, p_port, p_dbname);
  PERFORM lokadb.make_mapping(v, p_user, p_password);
  EXECUTE format('CREATE SCHEMA %I', v);
  EXECUTE format('CREATE FOREIGN TABLE %1$I.probe () SERVER %1$I OPTIONS (schema_name ''pg_catalog'', table_name ''pg_database'')', v);
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = me) THEN  -- whom it would not ask
    EXECUTE format('CREATE ROLE %I', v);
    EXECUTE format('GRANT USAGE ON SCHEMA %1$I TO %1$I; GRANT SELECT ON %1$I.probe TO %1$I', v);
    EXECUTE format('SET LOCAL ROLE %I', v);
  END IF;
  EXECUTE format('SELECT FROM %I.probe LIMIT 0', v);
END $f$;

-- Foreign tables of the organization, not yet parts of anything.
CREATE OR REPLACE FUNCTION lokadb.make_server(p_org text, p_host text, p_port text, p_dbname text, p_user text, p_password text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v name := lokadb.part_name(p_org);
  c record;
BEGIN
  PERFORM lokadb.drop_server(p_org);
  -- A session that waits for a host that says nothing cannot even be cancelled; it must not wait without end.
  EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, fetch_size ''1000'', batch_size ''1000'', application_name %L, '
    'connect_timeout ''10'', keepalives_idle ''10'', keepalives_interval ''5'', keepalives_count ''3'', tcp_user_timeout ''30000'')',
    v, p_host, p_port, p_dbname, 'lokadb fdw ' || p_org);
  PERFORM lokadb.make_mapping(v, p_user, p_password);
  EXECUTE format('CREATE SCHEMA %I', v);
  EXECUTE format('IMPORT FOREIGN SCHEMA public LIMIT TO (%s) FROM SERVER %I INTO %I OPTIONS (import_default ''false'', import_generated ''true'')',
    (SELECT string_agg(quote_ident(n.rel), ', ') FROM lokadb.tables t, lokadb.name_of(t.tbl) n), v, v);
  -- What was checked by the table itself since add-table, its parts must say they check as well.
  FOR c IN SELECT format('ALTER FOREIGN TABLE %I.%I ADD CONSTRAINT %I %s', v, n.rel, k.conname, pg_get_constraintdef(k.oid)) AS command
           FROM lokadb.tables t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.tbl AND k.contype = 'c' AND NOT k.connoinherit, lokadb.name_of(t.tbl) n LOOP
    EXECUTE c.command;
  END LOOP;
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

-- Row triggers of the application fire for the rows of a moved organization, too. Those of the root are there already.
CREATE OR REPLACE FUNCTION lokadb.copy_row_triggers(p_local regclass, p_part regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT replace(pg_get_triggerdef(oid), format(' ON %s ', p_local), format(' ON %s ', p_part)) AS command, tgname, tgenabled FROM pg_catalog.pg_trigger
           WHERE tgrelid = p_local AND NOT tgisinternal AND tgparentid = 0 AND tgtype & 1 = 1 AND tgname NOT LIKE 'lokadb\_%' AND tgenabled <> 'D' LOOP
    EXECUTE r.command;
    IF r.tgenabled <> 'O' THEN EXECUTE format('ALTER FOREIGN TABLE %s ENABLE %s TRIGGER %I', p_part, lokadb.trigger_state(r.tgenabled), r.tgname); END IF;
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.trigger_state(p_enabled "char") RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT CASE p_enabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END $$;

-- A row that changes its place is neither new nor gone: session_replication_role keeps ordinary triggers from seeing it,
-- but not those that are enabled for replicas, or always. Returns what enables them again.
CREATE OR REPLACE FUNCTION lokadb.hush_triggers(p_local regclass) RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  again text[] := '{}';
BEGIN
  FOR r IN SELECT tgname, tgenabled FROM pg_catalog.pg_trigger WHERE tgrelid = p_local AND NOT tgisinternal AND tgenabled IN ('A', 'R') LOOP
    EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', p_local, r.tgname);
    again := again || format('ALTER TABLE %s ENABLE %s TRIGGER %I', p_local, lokadb.trigger_state(r.tgenabled), r.tgname);
  END LOOP;
  RETURN again;
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
  v_again text[];
  v_command text;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position DESC LOOP
    v_where := format(' WHERE %I = lokadb.to_tenant(%L)', t.tenant_col, p_org);
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t.local_part);
    EXECUTE format('SELECT x::text FROM (%s) x', lokadb.checksum_query(t.local_part, t.local_part::text, v_where)) INTO v_sum;
    IF v_sum IS DISTINCT FROM p_sums ->> t.tbl::text THEN
      PERFORM lokadb.refuse(format('rows of %s were changed past the pause while they were copied: let applications use the proxy only, and move again', t.tbl));
    END IF;
    v_again := lokadb.hush_triggers(t.local_part);
    PERFORM set_config('session_replication_role', 'replica', true);  -- no refs triggers: the keys stay
    EXECUTE format('DELETE FROM %s%s', t.local_part, v_where);
    PERFORM set_config('session_replication_role', 'origin', true);
    FOREACH v_command IN ARRAY v_again LOOP EXECUTE v_command; END LOOP;
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
  -- As long as rights are missing there, the return is not taken back.
  UPDATE lokadb.organizations SET step = NULL WHERE org = p_org AND step = 'return' AND taken IS NULL;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.swap_in(p_org text, p_sums jsonb) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v name := lokadb.part_name(p_org);
  v_sum text;
  v_again text[];
  v_command text;
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
    v_again := lokadb.hush_triggers(t.local_part);
    EXECUTE format('INSERT INTO %1$s (%2$s) SELECT %2$s FROM %3$s', t.local_part, lokadb.copy_columns(t.local_part), lokadb.staging(p_org, t.tbl));
    FOREACH v_command IN ARRAY v_again LOOP EXECUTE v_command; END LOOP;
  END LOOP;
  PERFORM set_config('session_replication_role', 'origin', true);
  g := lokadb.set_profile(p_org, 'local');
  PERFORM lokadb.drop_server(p_org);
  RETURN g;
END $f$;

-- Who holds an organization: its open transactions, those that are prepared (no pid), or a pause. For messages and `lokadb orgs`.
CREATE OR REPLACE FUNCTION lokadb.holders(p_org text) RETURNS TABLE (pid int, mode text, granted boolean, who text, since timestamptz, state text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.pid, l.mode, l.granted,
    CASE WHEN p.gid IS NULL THEN format('%s (%s)', a.usename, coalesce(nullif(a.application_name, ''), 'no name'))
      ELSE format('prepared transaction %L of %s', p.gid, p.owner) END,
    coalesce(p.prepared, a.xact_start, a.query_start),
    CASE WHEN p.gid IS NULL THEN a.state ELSE 'until COMMIT PREPARED or ROLLBACK PREPARED' END
  FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a USING (pid)
    LEFT JOIN (pg_catalog.pg_prepared_xacts p JOIN pg_catalog.pg_locks x ON x.pid IS NULL AND x.transactionid = p.transaction)
      ON l.pid IS NULL AND l.virtualtransaction = x.virtualtransaction
  WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = lokadb.pause_key(p_org) AND (a.pid IS NOT NULL OR p.gid IS NOT NULL) $$;
