-- The triggers of LokaDB. Those of refs are written out for each table, since they run for every row; the others are
-- rare enough for one function with arguments.

CREATE OR REPLACE FUNCTION lokadb.make_refs_triggers(p_tbl regclass) RETURNS void LANGUAGE plpgsql SET search_path = '' AS $f$
DECLARE
  t lokadb.tables;
  v_name text;
  con name;
  c record;
BEGIN
  SELECT * INTO t FROM lokadb.tables WHERE tbl = p_tbl;
  SELECT * INTO c FROM lokadb.name_of(p_tbl);
  SELECT conname INTO con FROM pg_catalog.pg_constraint WHERE conrelid = t.local_part AND contype = 'p';
  v_name := lokadb.trigger_function(p_tbl, 'refs_ins');
  EXECUTE format($x$CREATE OR REPLACE FUNCTION %1$s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '5s' AS $g$
DECLARE
  is_ours boolean;
BEGIN
  LOOP
    INSERT INTO %2$s (%3$I, %4$I) VALUES (NEW.%3$I, NEW.%4$I) ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
    SELECT r.%4$I IS NOT DISTINCT FROM NEW.%4$I INTO is_ours FROM %2$s r WHERE r.%3$I = NEW.%3$I FOR KEY SHARE;
    EXIT WHEN is_ours;
    CONTINUE WHEN NOT FOUND;  -- it was taken away before it could be locked
    RAISE EXCEPTION 'duplicate key value violates unique constraint %5$s' USING ERRCODE = 'unique_violation',
      SCHEMA = %6$L, TABLE = %7$L, CONSTRAINT = %8$L, DETAIL = format('Key (%9$s)=(%%s) already exists.', NEW.%3$I);
  END LOOP;
  RETURN NULL;
END $g$$x$, v_name, t.refs, t.key_col, t.tenant_col, replace(replace('"' || con || '"', '''', ''''''), '%', '%%'), c.nsp, c.rel, con,
    replace(replace(t.key_col, '''', ''''''), '%', '%%'));
  v_name := lokadb.trigger_function(p_tbl, 'refs_del');
  EXECUTE format($x$CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '5s' AS $g$
BEGIN
  DELETE FROM %s WHERE %I = OLD.%I;
  RETURN NULL;
END $g$$x$, v_name, t.refs, t.key_col, t.key_col);
END $f$;

CREATE OR REPLACE FUNCTION lokadb.trigger_function(p_tbl regclass, p_what text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT format('lokadb.%I', left((SELECT rel FROM lokadb.name_of(p_tbl)), 30) || '_' || (SELECT position FROM lokadb.tables WHERE tbl = p_tbl) || '_' || p_what) $$;

-- On the local part when it becomes one, on a foreign part when an organization moves there.
CREATE OR REPLACE FUNCTION lokadb.attach_triggers(p_tbl regclass, p_part regclass, p_is_foreign boolean) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $f$
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
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT%s ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.parent_check(%L, %L, %L, %L)', 'lokadb_parent_' || r.attnum,
      CASE WHEN NOT p_is_foreign THEN format(' OR UPDATE OF %I', r.col) END, p_part, p_tbl::text, r.col, r.parent::text, t.tenant_col);
  END LOOP;
  IF p_is_foreign THEN
    FOR r IN SELECT x.*, a.attnum FROM lokadb.cloud_keys x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.tbl AND a.attname = x.col WHERE x.tbl = p_tbl AND NOT x.is_tenant LOOP
      EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OF %I ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.cloud_key_check(%L, %L, %L, %L, %L)', 'lokadb_fkey_' || r.attnum,
        r.col, p_part, p_tbl::text, r.col, r.name, r.refers_to::text, r.ref_col);
    END LOOP;
    FOR r IN SELECT c.tbl, f.col FROM lokadb.foreign_keys f JOIN lokadb.tables c ON c.local_part = f.tbl WHERE f.parent = p_tbl AND f.confdeltype = 'c' LOOP
      EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION lokadb.cascade(%L, %L, %L)',
        'lokadb_cascade_' || (SELECT position FROM lokadb.tables WHERE tbl = r.tbl) || '_' || r.col, p_part, (SELECT rel FROM lokadb.name_of(r.tbl)), r.col, t.key_col);
    END LOOP;
  END IF;
END $f$;

-- Arguments: table, column, parent, tenant column. Fills the organization in where the application has no such column.
CREATE OR REPLACE FUNCTION lokadb.parent_check() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $f$
DECLARE
  p lokadb.tables;
  v_key text := to_jsonb(NEW) ->> TG_ARGV[1];
  v_own text := to_jsonb(NEW) ->> TG_ARGV[3];
  v_org text;
BEGIN
  IF v_key IS NULL THEN RETURN NEW; END IF;
  SELECT * INTO p FROM lokadb.tables WHERE tbl = TG_ARGV[2]::regclass;
  EXECUTE format('SELECT %I::text FROM %s WHERE %I = $1::%s', p.tenant_col, p.refs, p.key_col, p.key_type) INTO v_org USING v_key;
  IF v_org IS NULL THEN RETURN NEW; END IF;  -- the foreign key, if there is one, reports a missing parent
  IF v_own IS NULL THEN
    IF EXISTS (SELECT FROM lokadb.organizations o WHERE o.org = v_org AND o.server IS NOT NULL) THEN
      RAISE EXCEPTION 'lokadb: the parent belongs to organization %, which has moved: name the organization', v_org USING ERRCODE = 'feature_not_supported';
    END IF;
    RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[3], v_org));
  ELSIF v_own <> v_org THEN
    PERFORM lokadb.raise_parent(TG_ARGV[0]::regclass, TG_ARGV[1], v_key);
  END IF;
  RETURN NEW;
END $f$;

-- On a foreign part: ON DELETE CASCADE inside the organization's database would leave the children's refs behind.
-- Arguments: child, its column, key of the parent.
CREATE OR REPLACE FUNCTION lokadb.cascade() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $f$
BEGIN
  EXECUTE format('DELETE FROM %I.%I WHERE %I = ($1).%I', TG_TABLE_SCHEMA, TG_ARGV[0], TG_ARGV[1], TG_ARGV[2]) USING OLD;
  RETURN OLD;
END $f$;

-- On the table of organizations: one that has moved cannot be deleted or given another id. Argument: its key.
CREATE OR REPLACE FUNCTION lokadb.organization_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $f$
DECLARE
  v_org text := to_jsonb(OLD) ->> TG_ARGV[0];
BEGIN
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
CREATE OR REPLACE FUNCTION lokadb.cloud_key_check() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $f$
DECLARE
  v text := to_jsonb(NEW) ->> TG_ARGV[1];
  hit boolean;
  c record;
BEGIN
  IF v IS NULL THEN RETURN NEW; END IF;
  EXECUTE format('SELECT true FROM %s r WHERE r.%I = ($1).%I FOR KEY SHARE', TG_ARGV[3]::regclass, TG_ARGV[4], TG_ARGV[1]) INTO hit USING NEW;
  IF hit IS NULL THEN
    SELECT * INTO c FROM lokadb.name_of(TG_ARGV[0]::regclass);
    RAISE EXCEPTION 'insert or update on table "%" violates foreign key constraint "%"', c.rel, TG_ARGV[2] USING ERRCODE = 'foreign_key_violation',
      SCHEMA = c.nsp, TABLE = c.rel, CONSTRAINT = TG_ARGV[2], DETAIL = format('Key (%s)=(%s) is not present in table "%s".', TG_ARGV[1], v, (SELECT rel FROM lokadb.name_of(TG_ARGV[3]::regclass)));
  END IF;
  RETURN NEW;
END $f$;

-- The same key seen from the table of the cloud. Arguments: table, column, constraint, referred column.
CREATE OR REPLACE FUNCTION lokadb.cloud_key_guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $f$
DECLARE
  part regclass;
  hit boolean;
  c record;
BEGIN
  IF TG_OP = 'UPDATE' AND to_jsonb(OLD) -> TG_ARGV[3] = to_jsonb(NEW) -> TG_ARGV[3] THEN RETURN NEW; END IF;
  IF NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key('*')) THEN
    RAISE EXCEPTION 'lokadb: an organization is being moved' USING ERRCODE = 'lock_not_available';
  END IF;
  FOR part IN SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhrelid
              WHERE i.inhparent = TG_ARGV[0]::regclass AND p.relkind = 'f' LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = ($1).%I)', part, TG_ARGV[1], TG_ARGV[3]) INTO hit USING OLD;
    IF hit THEN
      SELECT * INTO c FROM lokadb.name_of(TG_ARGV[0]::regclass);
      RAISE EXCEPTION 'update or delete on table "%" violates foreign key constraint "%" on table "%"', TG_TABLE_NAME, TG_ARGV[2], c.rel USING ERRCODE = 'foreign_key_violation',
        SCHEMA = c.nsp, TABLE = c.rel, CONSTRAINT = TG_ARGV[2], DETAIL = format('Key (%s)=(%s) is still referenced from table "%s".', TG_ARGV[3], to_jsonb(OLD) ->> TG_ARGV[3], c.rel);
    END IF;
  END LOOP;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $f$;
