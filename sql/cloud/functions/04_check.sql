-- Puts a table under LokaDB. Refusals are LK002 with one sentence that says what to do; nothing has changed then.

CREATE OR REPLACE FUNCTION lokadb.refuse(p_text text) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  RAISE EXCEPTION '%', p_text USING ERRCODE = 'LK002';
END $f$;

-- The relation of that name, which must be an ordinary table.
CREATE OR REPLACE FUNCTION lokadb.ordinary_table(p_table text) RETURNS regclass LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  t regclass;
  c pg_catalog.pg_class;
BEGIN
  BEGIN
    t := to_regclass(CASE WHEN array_length(parse_ident(p_table), 1) = 1 THEN 'public.' || p_table ELSE p_table END);
  EXCEPTION WHEN OTHERS THEN
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
LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
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
END $f$;

-- The type of tenants that the column stands for; null: there is no such column.
CREATE OR REPLACE FUNCTION lokadb.check_tenant(p_tbl regclass, p_col name) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
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
LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  k lokadb.foreign_keys;
BEGIN
  FOR k IN SELECT * FROM lokadb.foreign_keys WHERE tbl = p_tbl LOOP
    IF k.columns > 1 THEN
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
END $f$;

-- Uniqueness over organizations ends with the first move, unless a column tells the organization.
CREATE OR REPLACE FUNCTION lokadb.check_unique(p_tbl regclass, p_key name, p_tenant name, p_relations jsonb, p_accepted text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
           WHERE i.indrelid = p_tbl AND (i.indisunique OR i.indisexclusion) AND NOT i.indisprimary
             AND c.relname::text <> ALL (coalesce(p_accepted, '{}'))
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = p_tbl AND a.attnum = ANY (i.indkey)
                             AND (a.attname IN (p_tenant, p_key) OR p_relations ? a.attname::text)) LOOP
    PERFORM lokadb.refuse(format('unique index %I of %s holds over all organizations, which ends when one moves: add %I to it, or accept that with -accept-unique %s', r.relname, p_tbl, p_tenant, quote_ident(r.relname)));
  END LOOP;
END $f$;

-- What else stands on the table and would silently follow its old rows.
CREATE OR REPLACE FUNCTION lokadb.check_dependents(p_tbl regclass) RETURNS void LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) AS what FROM pg_catalog.pg_depend d
           WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p_tbl AND d.deptype = 'n'
             AND (d.classid = 'pg_catalog.pg_proc'::regclass
               OR d.classid = 'pg_catalog.pg_policy'::regclass AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.oid = d.objid AND p.polrelid = p_tbl)
               OR d.classid = 'pg_catalog.pg_rewrite'::regclass AND EXISTS (
                    SELECT FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class WHERE w.oid = d.objid AND c.relkind = 'm')) LOOP
    PERFORM lokadb.refuse(format('%s depends on %s and would go on with its old rows: drop it, add the table, and make it again', r.what, p_tbl));
  END LOOP;
  IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = p_tbl AND relrowsecurity) THEN
    PERFORM lokadb.refuse(format('%s has row security of its own: drop its policies and disable it, since LokaDB''s policy would be widened by them', p_tbl));
  END IF;
  SELECT n.nspname, c.relname INTO r FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = p_tbl;
  IF EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = r.nspname AND c.relname IN (r.relname || '__local', r.relname || '__refs')) THEN
    PERFORM lokadb.refuse(format('there is a relation %I or %I already: rename it', r.relname || '__local', r.relname || '__refs'));
  END IF;
END $f$;
