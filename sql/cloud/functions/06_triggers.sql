-- The triggers of LokaDB. Those of refs and parents are written out for each table, since they run for every row; the
-- others are rare enough for one function with arguments. None may be called by an application role: put on a table of
-- his own, it would write refs for anybody.

CREATE OR REPLACE FUNCTION lokadb.make_refs_triggers(p_tbl regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  con name;
  c record;
  r record;
  checks text;
BEGIN
  SELECT * INTO t FROM lokadb.tables WHERE tbl = p_tbl;
  SELECT * INTO c FROM lokadb.name_of(p_tbl);
  SELECT conname INTO con FROM pg_catalog.pg_constraint WHERE conrelid = t.local_part AND contype = 'p';
  -- The parent trigger does not see a parent of the same statement (INSERT of a tree, or in WITH). Its refs come after
  -- the child's if it stands behind it.
  SELECT string_agg(format('
  IF NEW.%1$I IS NOT NULL THEN
    SELECT r.%4$I INTO v_org FROM %8$s r WHERE r.%3$I = NEW.%1$I;
    IF NOT FOUND AND (SELECT relkind FROM pg_catalog.pg_class WHERE oid = TG_RELID) = ''r'' THEN
      PERFORM lokadb.pin_table(%2$L);
      SELECT p.%4$I INTO v_org FROM %2$s p WHERE p.%3$I = NEW.%1$I;
    END IF;
    IF v_org <> NEW.%5$I%7$s THEN PERFORM lokadb.raise_parent(%6$L, %1$L, NEW.%1$I::text); END IF;
  END IF;', x.col, p.local_part, p.key_col, p.tenant_col, t.tenant_col, p_tbl, lokadb.tenant_collation(), p.refs), '') INTO checks
    FROM lokadb.relations x JOIN lokadb.tables p ON p.tbl = x.parent WHERE x.child = p_tbl;
  PERFORM lokadb.make_trigger_function(p_tbl, 'refs_ins', 'SET lock_timeout = ''5s''', format('v_org %s; is_ours boolean;', lokadb.tenant_type()), format($x$
  LOOP
    INSERT INTO %1$s (%2$I, %3$I) VALUES (NEW.%2$I, NEW.%3$I) ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
    SELECT r.%3$I IS NOT DISTINCT FROM NEW.%3$I INTO is_ours FROM %1$s r WHERE r.%2$I = NEW.%2$I FOR KEY SHARE;
    EXIT WHEN is_ours;
    CONTINUE WHEN NOT FOUND;  -- it was taken away before it could be locked
    PERFORM lokadb.raise_duplicate(%4$L, %2$L, NEW.%2$I::text);
  END LOOP;%5$s
  RETURN NULL;$x$, t.refs, t.key_col, t.tenant_col, p_tbl, checks));
  PERFORM lokadb.make_trigger_function(p_tbl, 'refs_del', 'SET lock_timeout = ''5s''', '', format($x$
  DELETE FROM %1$s WHERE %2$I = OLD.%2$I;
  RETURN NULL;$x$, t.refs, t.key_col));
  FOR r IN SELECT x.col, a.attnum, p.* FROM lokadb.relations x JOIN lokadb.tables p ON p.tbl = x.parent
           JOIN pg_catalog.pg_attribute a ON a.attrelid = x.child AND a.attname = x.col WHERE x.child = p_tbl LOOP
    -- Fills the organization in where the application has no such column. A missing parent is the foreign key's to report.
    PERFORM lokadb.make_trigger_function(p_tbl, 'parent_' || r.attnum, '', format('v_org %s;', lokadb.tenant_type()), format($x$
  IF NEW.%1$I IS NULL THEN RETURN NEW; END IF;
  SELECT r.%2$I INTO v_org FROM %3$s r WHERE r.%4$I = NEW.%1$I;
  IF NOT FOUND THEN%7$s RETURN NEW; END IF;
  IF NEW.%5$I IS NULL THEN
    IF EXISTS (SELECT FROM lokadb.organizations o WHERE o.org = v_org::text AND o.server IS NOT NULL) THEN
      RAISE EXCEPTION 'lokadb: the parent belongs to organization %%, which has moved: name the organization', v_org USING ERRCODE = 'feature_not_supported';
    END IF;
    NEW.%5$I := v_org;
  ELSIF NEW.%5$I <> v_org THEN
    PERFORM lokadb.raise_parent(%6$L, %1$L, NEW.%1$I::text);
  END IF;
  RETURN NEW;$x$, r.col, r.tenant_col, r.refs, r.key_col, t.tenant_col, p_tbl, lokadb.missing_parent(p_tbl, r.col)));
  END LOOP;
END $f$;

-- Without a parent there is no organization either, which would be reported first. Not where another relation could
-- still tell it, or where the parent may come later.
CREATE OR REPLACE FUNCTION lokadb.missing_parent(p_tbl regclass, p_col name) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('
    IF NEW.%1$I IS NULL THEN PERFORM lokadb.raise_missing(%2$L, %3$L, %4$L, NEW.%3$I::text); END IF;', t.tenant_col, t.tbl, p_col, f.conname)
  FROM lokadb.tables t JOIN lokadb.foreign_keys f ON f.tbl = t.local_part AND f.col = p_col AND f.parent <> t.tbl AND NOT f.condeferrable
  WHERE t.tbl = p_tbl AND (SELECT count(*) FROM lokadb.relations WHERE child = p_tbl) = 1 $$;

CREATE OR REPLACE FUNCTION lokadb.raise_missing(p_child regclass, p_col name, p_constraint name, p_key text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  c record;
  p record;
BEGIN
  SELECT * INTO c FROM lokadb.name_of(p_child);
  SELECT n.*, t.key_col INTO p FROM lokadb.relations r JOIN lokadb.tables t ON t.tbl = r.parent, lokadb.name_of(r.parent) n WHERE r.child = p_child AND r.col = p_col;
  RAISE EXCEPTION 'insert or update on table "%" violates foreign key constraint "%"', c.rel, p_constraint USING ERRCODE = 'foreign_key_violation',
    SCHEMA = c.nsp, TABLE = c.rel, CONSTRAINT = p_constraint, DETAIL = format('Key (%s)=(%s) is not present in table "%s".', p_col, p_key, p.rel);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.make_trigger_function(p_tbl regclass, p_what text, p_settings text, p_declare text, p_body text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v text := lokadb.trigger_function(p_tbl, p_what);
  who text;
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp %s AS %L',
    v, p_settings, format('DECLARE %s BEGIN %s END', p_declare, p_body));
  EXECUTE format('REVOKE ALL ON FUNCTION %s() FROM PUBLIC', v);
  FOR who IN SELECT DISTINCT lokadb.grantee_name(x.grantee) FROM pg_catalog.pg_proc p, aclexplode(p.proacl) x
             WHERE p.oid = (v || '()')::regprocedure AND x.grantee <> p.proowner LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s() FROM %s', v, who);
  END LOOP;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.trigger_function(p_tbl regclass, p_what text) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('lokadb.%I', lokadb.cut((SELECT rel FROM lokadb.name_of(p_tbl)), 30) || '_' || (SELECT position FROM lokadb.tables WHERE tbl = p_tbl) || '_' || p_what) $$;

-- On the local part when it becomes one, on a foreign part when an organization moves there.
CREATE OR REPLACE FUNCTION lokadb.attach_triggers(p_tbl regclass, p_part regclass, p_is_foreign boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  r record;
BEGIN
  SELECT * INTO t FROM lokadb.tables WHERE tbl = p_tbl;
  EXECUTE format('CREATE TRIGGER lokadb_refs_ins AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s()', p_part, lokadb.trigger_function(p_tbl, 'refs_ins'));
  EXECUTE format('CREATE TRIGGER lokadb_refs_del AFTER DELETE ON %s FOR EACH ROW EXECUTE FUNCTION %s()', p_part, lokadb.trigger_function(p_tbl, 'refs_del'));
  IF NOT p_is_foreign THEN
    EXECUTE format('CREATE TRIGGER lokadb_key_fixed BEFORE UPDATE ON %1$s FOR EACH ROW WHEN (OLD.%2$I IS DISTINCT FROM NEW.%2$I OR OLD.%3$I IS DISTINCT FROM NEW.%3$I) EXECUTE FUNCTION lokadb.key_fixed()',
      p_part, t.key_col, t.tenant_col);
  END IF;
  FOR r IN SELECT x.*, a.attnum FROM lokadb.relations x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.child AND a.attname = x.col WHERE x.child = p_tbl LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT%s ON %s FOR EACH ROW EXECUTE FUNCTION %s()', 'lokadb_parent_' || r.attnum,
      CASE WHEN NOT p_is_foreign THEN format(' OR UPDATE OF %I', r.col) END, p_part, lokadb.trigger_function(p_tbl, 'parent_' || r.attnum));
  END LOOP;
  IF p_is_foreign THEN
    FOR r IN SELECT x.*, a.attnum FROM lokadb.cloud_keys x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.tbl AND a.attname = x.col WHERE x.tbl = p_tbl AND NOT x.is_tenant LOOP
      EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OF %I ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.cloud_key_check(%L, %L, %L, %L, %L)', 'lokadb_fkey_' || r.attnum,
        r.col, p_part, p_tbl::text, r.col, r.name, r.refers_to::text, r.ref_col);
    END LOOP;
    FOR r IN SELECT c.tbl, c.position, f.col, a.attnum FROM lokadb.foreign_keys f JOIN lokadb.tables c ON c.local_part = f.tbl
             JOIN pg_catalog.pg_attribute a ON a.attrelid = f.tbl AND a.attname = f.col WHERE f.parent = p_tbl AND f.confdeltype = 'c' LOOP
      EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.cascade(%L, %L, %L)',
        format('lokadb_cascade_%s_%s', r.position, r.attnum), p_part, (SELECT rel FROM lokadb.name_of(r.tbl)), r.col, t.key_col);
    END LOOP;
  END IF;
END $f$;

-- Before a SECURITY DEFINER function reads a table that others own: held to its name, and not a view or policy that would
-- run their functions with the rights of LokaDB's owner.
CREATE OR REPLACE FUNCTION lokadb.pin_table(p_name text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  EXECUTE format('LOCK TABLE ONLY %s IN ACCESS SHARE MODE', p_name);
  IF (SELECT relkind NOT IN ('r', 'p') OR row_security_active(oid) FROM pg_catalog.pg_class WHERE oid = p_name::regclass) THEN
    RAISE EXCEPTION 'lokadb: % is not the table any more that it was', p_name USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END $f$;

-- A column's value as text, by the type's own output: a cast could be somebody's function.
CREATE OR REPLACE FUNCTION lokadb.field(p_row anyelement, p_col text) RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v text;
BEGIN
  EXECUTE format('SELECT CASE WHEN ($1).%1$I IS NOT NULL THEN format(''%%s'', ($1).%1$I) END', p_col) INTO v USING p_row;
  RETURN v;
END $f$;

-- On a foreign part: ON DELETE CASCADE inside the organization's database would leave the children's refs behind.
-- Arguments: child, its column, key of the parent.
CREATE OR REPLACE FUNCTION lokadb.cascade() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  EXECUTE format('DELETE FROM %I.%I WHERE %I = ($1).%I', TG_TABLE_SCHEMA, TG_ARGV[0], TG_ARGV[1], TG_ARGV[2]) USING OLD;
  RETURN OLD;
END $f$;

-- On the table of organizations: one that has moved cannot be deleted or given another id. Argument: its key.
CREATE OR REPLACE FUNCTION lokadb.organization_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_org text := lokadb.field(OLD, TG_ARGV[0]);
BEGIN
  IF TG_OP = 'UPDATE' AND v_org = lokadb.field(NEW, TG_ARGV[0]) THEN RETURN NEW; END IF;  -- an ORM writes all columns
  IF NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key(v_org)) THEN
    RAISE EXCEPTION 'lokadb: organization % is paused', v_org USING ERRCODE = 'lock_not_available';
  END IF;
  IF EXISTS (SELECT FROM lokadb.organizations o WHERE o.org = v_org AND o.profile <> 'local') THEN
    RAISE EXCEPTION 'lokadb: organization % has a database of its own: bring it home before deleting it or changing its id', v_org
      USING ERRCODE = 'foreign_key_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $f$;

-- A foreign key to a table of the cloud, seen from a foreign part. Arguments: table, column, constraint, referred table and column.
CREATE OR REPLACE FUNCTION lokadb.cloud_key_check() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v text := lokadb.field(NEW, TG_ARGV[1]);
  hit boolean;
  c record;
BEGIN
  IF v IS NULL THEN RETURN NEW; END IF;
  PERFORM lokadb.pin_table(TG_ARGV[3]);
  EXECUTE format('SELECT true FROM %s r WHERE r.%I = ($1).%I FOR KEY SHARE', TG_ARGV[3], TG_ARGV[4], TG_ARGV[1]) INTO hit USING NEW;
  IF hit IS NULL THEN
    SELECT * INTO c FROM lokadb.name_of(TG_ARGV[0]::regclass);
    RAISE EXCEPTION 'insert or update on table "%" violates foreign key constraint "%"', c.rel, TG_ARGV[2] USING ERRCODE = 'foreign_key_violation',
      SCHEMA = c.nsp, TABLE = c.rel, CONSTRAINT = TG_ARGV[2], DETAIL = format('Key (%s)=(%s) is not present in table "%s".', TG_ARGV[1], v, (SELECT rel FROM lokadb.name_of(TG_ARGV[3]::regclass)));
  END IF;
  RETURN NEW;
END $f$;

-- The same key seen from the table of the cloud. Arguments: table, column, constraint, referred column.
CREATE OR REPLACE FUNCTION lokadb.cloud_key_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  part regclass;
  hit boolean;
  c record;
BEGIN
  IF TG_OP = 'UPDATE' AND lokadb.field(OLD, TG_ARGV[3]) = lokadb.field(NEW, TG_ARGV[3]) THEN RETURN NEW; END IF;
  IF NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key('*')) THEN
    RAISE EXCEPTION 'lokadb: an organization is being moved' USING ERRCODE = 'lock_not_available';
  END IF;
  FOR part IN SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhrelid
              WHERE i.inhparent = TG_ARGV[0]::regclass AND p.relkind = 'f' LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = ($1).%I)', part, TG_ARGV[1], TG_ARGV[3]) INTO hit USING OLD;
    IF hit THEN
      SELECT * INTO c FROM lokadb.name_of(TG_ARGV[0]::regclass);
      RAISE EXCEPTION 'update or delete on table "%" violates foreign key constraint "%" on table "%"', TG_TABLE_NAME, TG_ARGV[2], c.rel USING ERRCODE = 'foreign_key_violation',
        SCHEMA = c.nsp, TABLE = c.rel, CONSTRAINT = TG_ARGV[2], DETAIL = format('Key (%s)=(%s) is still referenced from table "%s".', TG_ARGV[3], lokadb.field(OLD, TG_ARGV[3]), c.rel);
    END IF;
  END LOOP;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $f$;
