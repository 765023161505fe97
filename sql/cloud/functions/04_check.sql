-- Puts a table under LokaDB. Refusals are LK002 with one sentence that says what to do; nothing has changed then.

CREATE OR REPLACE FUNCTION lokadb.refuse(p_text text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  RAISE EXCEPTION '%', p_text USING ERRCODE = 'LK002';
END $f$;

-- The relation of that name, which must be an ordinary table.
CREATE OR REPLACE FUNCTION lokadb.ordinary_table(p_table text) RETURNS regclass LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t regclass;
  c pg_catalog.pg_class;
BEGIN
  BEGIN
    t := to_regclass(CASE WHEN array_length(parse_ident(p_table), 1) = 1 THEN 'public.' || p_table ELSE p_table END);
  EXCEPTION
    WHEN insufficient_privilege THEN
      PERFORM lokadb.refuse(format('%s is in a schema that %I may not use: grant it USAGE there', p_table, current_user));
    WHEN OTHERS THEN
      t := NULL;
  END;
  IF t IS NULL THEN PERFORM lokadb.refuse(format('there is no table %s: name it with its schema, quoted as in SQL', p_table)); END IF;
  SELECT * INTO c FROM pg_catalog.pg_class WHERE oid = t;
  IF EXISTS (SELECT FROM lokadb.tables x WHERE x.tbl = t) THEN
    RETURN t;
  END IF;
  PERFORM lokadb.refuse(format(m, t)) FROM (VALUES
    (c.relkind IN ('v', 'm'), '%s is a view: add the tables it reads'),
    (c.relkind = 'p', '%s is partitioned: LokaDB partitions by organization itself, so the table must be an ordinary one'),
    (c.relkind = 'f', '%s is a foreign table: only ordinary tables can be added'),
    (c.relkind NOT IN ('r', 'v', 'm', 'p', 'f'), '%s is not a table'),
    (c.relispartition, '%s is a partition: only whole tables can be added'),
    (c.relpersistence = 't', '%s is a temporary table: only lasting tables can be added'),
    (c.relpersistence = 'u', '%s is unlogged, so a crash would empty it and leave its refs: make it LOGGED first'),
    (EXISTS (SELECT FROM lokadb.tables x WHERE x.refs = t), '%s holds the refs of a table: it is LokaDB''s own'),
    (EXISTS (SELECT FROM pg_catalog.pg_depend WHERE classid = 'pg_catalog.pg_class'::regclass AND objid = t AND deptype = 'e'), '%s belongs to an extension: only tables of the application can be added'),
    (EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = t OR inhrelid = t), '%s is part of an inheritance tree: take it out of it first (ALTER TABLE ... NO INHERIT)'),
    (EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = t AND rulename <> '_RETURN'), '%s has rules: replace them by triggers first'),
    (c.relnamespace::regnamespace::text IN ('lokadb', 'pg_catalog', 'information_schema'), '%s belongs to the system'),
    (c.reloftype <> 0, '%s is a typed table: only ordinary tables can be added'),
    (octet_length(c.relname) > 54, 'the name of %s is too long: at most 54 bytes, so that its parts can be named after it')) v(hit, m)
  WHERE v.hit;
  RETURN t;
END $f$;

-- The only column of the primary key, of a type that refs can hold.
CREATE OR REPLACE FUNCTION lokadb.check_key(p_tbl regclass, p_key name, OUT key_col name, OUT key_type text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  k pg_catalog.pg_constraint;
BEGIN
  SELECT * INTO k FROM pg_catalog.pg_constraint WHERE conrelid = p_tbl AND contype = 'p';
  IF NOT FOUND THEN
    PERFORM lokadb.refuse(format('%s has no primary key: give it one of a single column (bigint, int, uuid or text)', p_tbl));
  ELSIF array_length(k.conkey, 1) <> 1 THEN
    PERFORM lokadb.refuse(format('the primary key of %s has several columns: LokaDB needs one of a single column', p_tbl));
  END IF;
  SELECT a.attname, format_type(a.atttypid, NULL) INTO key_col, key_type
    FROM pg_catalog.pg_attribute a WHERE a.attrelid = p_tbl AND a.attnum = k.conkey[1];
  IF p_key IS NOT NULL AND p_key <> key_col THEN
    PERFORM lokadb.refuse(format('the primary key of %s is %I, not %I: name that column', p_tbl, key_col, p_key));
  ELSIF key_type NOT IN ('bigint', 'integer', 'uuid', 'text') THEN
    PERFORM lokadb.refuse(format('the key %I of %s is of type %s: it must be bigint, int, uuid or text', key_col, p_tbl, key_type));
  ELSIF k.condeferrable THEN
    PERFORM lokadb.refuse(format('the primary key of %s is deferrable: make it NOT DEFERRABLE', p_tbl));
  END IF;
  PERFORM lokadb.check_collation(p_tbl, key_col);
END $f$;

-- Refs and partitions compare texts byte by byte, as every deterministic collation does for equality.
CREATE OR REPLACE FUNCTION lokadb.check_collation(p_tbl regclass, p_col name) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
             WHERE a.attrelid = p_tbl AND a.attname = p_col AND NOT c.collisdeterministic) THEN
    PERFORM lokadb.refuse(format('column %I of %s has a collation in which different texts are equal: give it a deterministic one', p_col, p_tbl));
  END IF;
END $f$;

-- The type of tenants that the column stands for; null: there is no such column.
CREATE OR REPLACE FUNCTION lokadb.check_tenant(p_tbl regclass, p_col name) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t text := (SELECT format_type(atttypid, NULL) FROM pg_catalog.pg_attribute WHERE attrelid = p_tbl AND attname = p_col AND attnum > 0 AND NOT attisdropped);
  hit boolean;
BEGIN
  IF t IS NULL THEN RETURN NULL; END IF;
  IF t NOT IN ('bigint', 'integer', 'uuid', 'text') THEN
    PERFORM lokadb.refuse(format('the tenant column %I of %s is of type %s: it must be bigint, int, uuid or text', p_col, p_tbl, t));
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I IS NULL)', p_tbl, p_col) INTO hit;
  IF hit THEN PERFORM lokadb.refuse(format('%s has rows whose %I is null: give each of them an organization', p_tbl, p_col)); END IF;
  PERFORM lokadb.check_collation(p_tbl, p_col);
  IF EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = p_tbl AND attname = p_col AND (attgenerated <> '' OR attidentity <> '')) THEN
    PERFORM lokadb.refuse(format('the tenant column %I of %s is a generated or identity column: it must be an ordinary one', p_col, p_tbl));
  END IF;
  t := CASE t WHEN 'integer' THEN 'bigint' ELSE t END;
  EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I::text IN ('''', ''*'', %L))', p_tbl, p_col,
    CASE t WHEN 'bigint' THEN '-9223372036854775808' WHEN 'uuid' THEN 'ffffffff-ffff-ffff-ffff-ffffffffffff' ELSE chr(1114111) END) INTO hit;
  IF hit THEN PERFORM lokadb.refuse(format('%s has rows whose %I is empty, ''*'' or the reserved last value: these are not organizations', p_tbl, p_col)); END IF;
  RETURN t;
END $f$;

-- Foreign keys of the table with what they refer to. Keys to tables that are under LokaDB already stand on their refs.
CREATE OR REPLACE VIEW lokadb.foreign_keys AS
SELECT k.oid, k.conname, k.conrelid::regclass AS tbl, a.attname AS col, k.confrelid::regclass AS refers_to, f.attname AS ref_col,
       coalesce(t.tbl, r.tbl) AS parent, coalesce(t.key_col, r.key_col) AS parent_key, k.confdeltype, k.confupdtype, k.condeferrable,
       array_length(k.conkey, 1) AS columns
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_catalog.pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[1]
LEFT JOIN lokadb.tables t ON t.refs = k.confrelid
LEFT JOIN lokadb.tables r ON r.local_part = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0;

CREATE OR REPLACE FUNCTION lokadb.check_foreign_keys(p_tbl regclass, p_key name, p_tenant name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  k lokadb.foreign_keys;
BEGIN
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE tbl = p_tbl LOOP
    IF k.columns > 1 AND k.parent IS NOT NULL THEN
      PERFORM lokadb.refuse(format('foreign key %I of %s has several columns: let it refer to the key of %s alone', k.conname, p_tbl, k.parent));
    ELSIF k.columns > 1 THEN
      PERFORM lokadb.refuse(format('foreign key %I of %s has several columns: only keys of one column can be kept for a moved organization', k.conname, p_tbl));
    ELSIF k.parent IS NULL AND k.refers_to <> p_tbl AND k.col <> p_tenant THEN
      IF EXISTS (WITH RECURSIVE up(t) AS (SELECT k.refers_to::oid UNION SELECT c.confrelid FROM up JOIN pg_catalog.pg_constraint c ON c.conrelid = up.t AND c.contype = 'f')
                 SELECT FROM up WHERE up.t = p_tbl) THEN
        PERFORM lokadb.refuse(format('%s and %s refer to each other in a circle (foreign key %I): drop one of the foreign keys and declare it with -relation', p_tbl, k.refers_to, k.conname));
      ELSIF k.confdeltype NOT IN ('a', 'r') OR k.confupdtype NOT IN ('a', 'r') OR k.condeferrable THEN
        PERFORM lokadb.refuse(format('foreign key %I of %s refers to the cloud table %s with CASCADE, SET NULL, SET DEFAULT or DEFERRABLE, which cannot be kept for a moved organization: make it NO ACTION, NOT DEFERRABLE, or add %s first', k.conname, p_tbl, k.refers_to, k.refers_to));
      END IF;
    END IF;
  END LOOP;
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE refers_to = p_tbl AND (columns > 1 OR ref_col <> p_key) LOOP
    PERFORM lokadb.refuse(format('foreign key %I of %s refers to other columns of %s than its key: only the key is unique over all organizations', k.conname, k.tbl, p_tbl));
  END LOOP;
  FOR k IN SELECT f.* FROM lokadb.foreign_keys f JOIN lokadb.tables t ON t.local_part = f.tbl WHERE f.refers_to = p_tbl AND f.tbl <> p_tbl LOOP
    PERFORM lokadb.refuse(format('%s was added before its parent %s: take it out with remove-table, add %s, and add it again',
      (SELECT tbl FROM lokadb.tables WHERE local_part = k.tbl), p_tbl, p_tbl));
  END LOOP;
END $f$;

-- Uniqueness over organizations ends with the first move, unless a column tells the organization.
CREATE OR REPLACE FUNCTION lokadb.check_unique(p_tbl regclass, p_key name, p_tenant name, p_relations jsonb, p_accepted text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
           WHERE i.indrelid = p_tbl AND (i.indisunique OR i.indisexclusion) AND NOT i.indisprimary
             AND c.relname::text <> ALL (coalesce(p_accepted, '{}'))
             AND NOT EXISTS (  -- a column of the index proper, not one that it only carries
               SELECT FROM generate_series(0, i.indnkeyatts - 1) n JOIN pg_catalog.pg_attribute a ON a.attrelid = p_tbl AND a.attnum = i.indkey[n]
               WHERE a.attname IN (p_tenant, p_key) OR p_relations ? a.attname::text AND (a.attnotnull OR NOT i.indnullsnotdistinct)) LOOP
    PERFORM lokadb.refuse(format('unique index %I of %s holds over all organizations, which ends when one moves: add %I to it, or accept that with -accept-unique %s', r.relname, p_tbl, p_tenant, quote_ident(r.relname)));
  END LOOP;
END $f$;

-- What stands on a relation by its number, or on the type of its rows, and cannot be made again by us: functions,
-- policies of other tables, rules, materialized views, columns of the row type, publications.
CREATE OR REPLACE FUNCTION lokadb.followers(p_rel regclass) RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_catalog.pg_depend d
  WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p_rel AND d.deptype = 'n'
    AND (d.classid = 'pg_catalog.pg_proc'::regclass
      OR d.classid = 'pg_catalog.pg_policy'::regclass AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.oid = d.objid
        AND (p.polrelid = p_rel OR p.polrelid = (SELECT local_part FROM lokadb.tables WHERE tbl = p_rel)))
      OR d.classid = 'pg_catalog.pg_rewrite'::regclass AND EXISTS (SELECT FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
        WHERE w.oid = d.objid AND (c.relkind = 'm' OR w.rulename <> '_RETURN')))
  UNION
  SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_catalog.pg_type y
  JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (y.oid, y.typarray) AND d.deptype = 'n'
  WHERE y.typrelid = p_rel AND d.classid <> 'pg_catalog.pg_rewrite'::regclass
  UNION
  SELECT 'publication ' || quote_ident(p.pubname) FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = p_rel $$;

-- What else stands on the table and would silently follow its old rows.
CREATE OR REPLACE FUNCTION lokadb.check_dependents(p_tbl regclass) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
  v text;
BEGIN
  FOR v IN SELECT * FROM lokadb.followers(p_tbl) ORDER BY 1 LOOP
    PERFORM lokadb.refuse(format('%s depends on %s and would go on with its old rows: drop it, add the table, and make it again', v, p_tbl));
  END LOOP;
  IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = p_tbl AND relrowsecurity) OR EXISTS (SELECT FROM pg_catalog.pg_policy WHERE polrelid = p_tbl) THEN
    PERFORM lokadb.refuse(format('%s has row security of its own: drop its policies and disable it, since LokaDB''s policy would be widened by them', p_tbl));
  END IF;
  FOR r IN SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = p_tbl AND NOT tgisinternal LOOP
    IF r.tgname LIKE 'lokadb\_%' THEN
      PERFORM lokadb.refuse(format('trigger %I of %s has a name that LokaDB keeps for its own: rename it', r.tgname, p_tbl));
    END IF;
  END LOOP;
  FOR r IN SELECT tgname FROM pg_catalog.pg_trigger WHERE tgrelid = p_tbl AND tgtype & 1 = 1 AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL) LOOP
    PERFORM lokadb.refuse(format('trigger %I of %s is a row trigger with a transition table, which a part cannot have: make it FOR EACH STATEMENT', r.tgname, p_tbl));
  END LOOP;
  SELECT n.nspname, c.relname INTO r FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = p_tbl;
  FOR v IN SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = r.nspname
           UNION SELECT y.typname FROM pg_catalog.pg_type y JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace WHERE n.nspname = r.nspname LOOP
    IF v IN (r.relname || '__local', r.relname || '__refs') THEN
      PERFORM lokadb.refuse(format('there is a relation or type %I.%I already, a name that LokaDB needs: rename it', r.nspname, v));
    END IF;
  END LOOP;
END $f$;

-- Whether who runs this may do all that it takes. 42501 in the middle would say less.
CREATE OR REPLACE FUNCTION lokadb.check_owner(p_rel regclass, p_why text) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_owner name := (SELECT pg_get_userbyid(relowner) FROM pg_catalog.pg_class WHERE oid = p_rel);
BEGIN
  IF NOT pg_has_role(v_owner, 'USAGE') THEN
    PERFORM lokadb.refuse(format('%s belongs to %I and %s: run this as that role or a superuser, or GRANT %I TO %I', p_rel, v_owner, p_why, v_owner, current_user));
  END IF;
END $f$;

CREATE OR REPLACE FUNCTION lokadb.check_rights(p_tbl regclass) RETURNS void LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  r record;
BEGIN
  PERFORM lokadb.check_owner(p_tbl, 'is changed');
  FOR r IN SELECT DISTINCT role, c.relnamespace::regnamespace AS nsp FROM pg_catalog.pg_class c, LATERAL (VALUES (current_user::name), (pg_get_userbyid(c.relowner))) v(role)
           WHERE c.oid = p_tbl AND NOT has_schema_privilege(role, c.relnamespace, 'CREATE')
             AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) LOOP
    PERFORM lokadb.refuse(format('%I may not create tables beside %s: GRANT CREATE ON SCHEMA %s TO %I', r.role, p_tbl, r.nsp, r.role));
  END LOOP;
  PERFORM lokadb.check_owner(k.tbl, format('refers to %s by foreign key %I, which is changed', p_tbl, k.conname)) FROM lokadb.foreign_keys k WHERE k.refers_to = p_tbl;
  PERFORM lokadb.check_owner(v, format('reads %s, so it is made again', p_tbl)) FROM lokadb.views_of(p_tbl) v;
  FOR r IN SELECT k.refers_to FROM lokadb.foreign_keys k WHERE k.tbl = p_tbl AND k.parent IS NULL AND NOT has_table_privilege(k.refers_to, 'TRIGGER') LOOP
    PERFORM lokadb.refuse(format('%s gets a trigger that guards the foreign key of %s: GRANT TRIGGER ON %s TO %I', r.refers_to, p_tbl, r.refers_to, current_user));
  END LOOP;
END $f$;

-- Whether all organizations are at home; holds off moves, and others who add or remove tables, until the end of the
-- transaction.
CREATE OR REPLACE FUNCTION lokadb.check_all_at_home(p_doing text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $f$
DECLARE
  v text;
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared(lokadb.pause_key('*')) THEN
    PERFORM lokadb.refuse('an organization is being moved: try again when that is done');
  END IF;
  BEGIN
    LOCK TABLE lokadb.tables IN SHARE ROW EXCLUSIVE MODE;
  EXCEPTION WHEN lock_not_available THEN
    PERFORM lokadb.refuse('somebody else adds or removes tables: try again when that is done');
  END;
  FOR v IN SELECT org FROM lokadb.organizations WHERE profile <> 'local' ORDER BY org LOOP
    PERFORM lokadb.refuse(format('organization %s has a database of its own, or is on its way: bring it home first (move-org -back), %s', v, p_doing));
  END LOOP;
END $f$;

-- Waits a bounded time, since everybody else queues behind it.
CREATE OR REPLACE FUNCTION lokadb.lock_whole(p_rel regclass) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $f$
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', p_rel);
EXCEPTION
  WHEN lock_not_available THEN
    PERFORM lokadb.refuse(format('%s is in use and was not free for 5 s: try again when its long transactions have ended', p_rel));
END $f$;
