-- The commands that make an organization's database: its types and tables in schema public, under the application's names.
-- An identity or a default is not repeated there: the cloud computes it.

-- A user-defined type and what it is made of, innermost first.
CREATE OR REPLACE FUNCTION lokadb.types_used() RETURNS TABLE (oid oid, depth int) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE used(t, depth) AS (
    SELECT DISTINCT a.atttypid, 1 FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT n.t, u.depth + 1 FROM used u JOIN pg_catalog.pg_type y ON y.oid = u.t, LATERAL (
      SELECT y.typelem AS t WHERE y.typelem <> 0 UNION ALL SELECT y.typbasetype WHERE y.typbasetype <> 0
      UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE y.typtype = 'c' AND a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = y.oid
      UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE r.rngmultitypid = y.oid) n
    WHERE u.depth < 20)
  SELECT t, max(depth) FROM used WHERE t >= 16384 GROUP BY t $$;

-- What makes a type ($1, its name), as one text that is the same in two databases if the types are. The query runs in both.
CREATE OR REPLACE FUNCTION lokadb.type_definition_query() RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $f$ SELECT $q$
  SELECT CASE
    WHEN y.typtype = 'e' THEN format('CREATE TYPE %s AS ENUM (%s)', y.oid::regtype,
      (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) FROM pg_catalog.pg_enum WHERE enumtypid = y.oid))
    WHEN y.typtype = 'd' THEN format('CREATE DOMAIN %s AS %s%s%s%s%s', y.oid::regtype, format_type(y.typbasetype, y.typtypmod),
      (SELECT ' COLLATE ' || y.typcollation::regcollation FROM pg_catalog.pg_type b WHERE b.oid = y.typbasetype AND b.typcollation <> y.typcollation),
      ' DEFAULT ' || y.typdefault, CASE WHEN y.typnotnull THEN ' NOT NULL' END,
      (SELECT string_agg(format(' CONSTRAINT %I %s', conname, pg_get_constraintdef(k.oid)), '' ORDER BY conname) FROM pg_catalog.pg_constraint k
       WHERE k.contypid = y.oid AND k.contype = 'c'))
    WHEN y.typtype = 'c' AND c.relkind = 'c' THEN format('CREATE TYPE %s AS (%s)', y.oid::regtype,
      (SELECT string_agg(format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
         (SELECT ' COLLATE ' || a.attcollation::regcollation FROM pg_catalog.pg_type b WHERE b.oid = a.atttypid AND b.typcollation <> a.attcollation)), ', ' ORDER BY attnum)
       FROM pg_catalog.pg_attribute a WHERE a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped))
    WHEN y.typtype = 'r' THEN (SELECT format('CREATE TYPE %s AS RANGE (SUBTYPE = %s%s%s%s, MULTIRANGE_TYPE_NAME = %s)', y.oid::regtype, r.rngsubtype::regtype,
        (SELECT ', COLLATION = ' || r.rngcollation::regcollation FROM pg_catalog.pg_type b WHERE b.oid = r.rngsubtype AND b.typcollation <> r.rngcollation),
        ', CANONICAL = ' || nullif(r.rngcanonical, 0)::regproc, ', SUBTYPE_DIFF = ' || nullif(r.rngsubdiff, 0)::regproc, r.rngmultitypid::regtype)
      FROM pg_catalog.pg_range r WHERE r.rngtypid = y.oid)
    WHEN c.relkind IS NOT NULL THEN format('row type of %s', c.oid::regclass)
    WHEN y.typtype = 'm' THEN format('multirange of %s', (SELECT r.rngtypid::regtype FROM pg_catalog.pg_range r WHERE r.rngmultitypid = y.oid))
    ELSE format('base type %s', y.oid::regtype) END
  FROM pg_catalog.pg_type y LEFT JOIN pg_catalog.pg_class c ON c.oid = y.typrelid WHERE y.oid = to_regtype($1)
$q$ $f$;

-- The types to be made there, innermost first: of no extension, and those that do not come with another (arrays, multiranges).
CREATE OR REPLACE FUNCTION lokadb.org_types() RETURNS TABLE (name text, nsp name, definition text) LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  FOR name, nsp IN SELECT y.oid::regtype::text, n.nspname FROM lokadb.types_used() u JOIN pg_catalog.pg_type y ON y.oid = u.oid JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace
           WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray = y.oid) AND y.typtype <> 'm' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = y.oid AND d.deptype = 'e') ORDER BY u.depth DESC, y.oid LOOP
    EXECUTE lokadb.type_definition_query() INTO definition USING name;
    RETURN NEXT;
  END LOOP;
END $f$;

-- What definitions of the tables, and the checks of their types, take from outside pg_catalog, types of no extension aside.
CREATE OR REPLACE VIEW lokadb.objects_used AS
SELECT o.what, d.refclassid AS classid, d.refobjid AS oid, e.refobjid AS extension
FROM (
  SELECT 'pg_catalog.pg_constraint'::regclass AS classid, k.oid, 0 AS col, format('constraint %I of %s', k.conname, x.tbl) AS what
    FROM lokadb.tables x JOIN pg_catalog.pg_constraint k ON k.conrelid = x.local_part AND k.contype IN ('c', 'p', 'u', 'x')
  UNION ALL SELECT 'pg_catalog.pg_constraint'::regclass, k.oid, 0, format('constraint %I of type %s', k.conname, u.oid::regtype)
    FROM lokadb.types_used() u JOIN pg_catalog.pg_constraint k ON k.contypid = u.oid
  UNION ALL SELECT 'pg_catalog.pg_class'::regclass, i.indexrelid, 0, format('index %s of %s', i.indexrelid::regclass, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_index i ON i.indrelid = x.local_part
  UNION ALL SELECT 'pg_catalog.pg_class'::regclass, x.local_part, a.attnum, format('column %I of %s', a.attname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part AND a.attnum > 0
  UNION ALL SELECT 'pg_catalog.pg_attrdef'::regclass, f.oid, 0, format('column %I of %s', a.attname, x.tbl)
    FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part AND a.attgenerated <> ''
    JOIN pg_catalog.pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum) o
JOIN pg_catalog.pg_depend d ON d.classid = o.classid AND d.objid = o.oid AND (o.col = 0 OR d.objsubid = o.col) AND d.refobjid >= 16384
LEFT JOIN pg_catalog.pg_depend e ON e.classid = d.refclassid AND e.objid = d.refobjid AND e.deptype = 'e'
WHERE e.refobjid IS NOT NULL
  OR d.refclassid IN ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass, 'pg_catalog.pg_opclass'::regclass, 'pg_catalog.pg_collation'::regclass);

-- In the order they were made here: those that others need come first.
CREATE OR REPLACE FUNCTION lokadb.org_extensions() RETURNS TABLE (name name, nsp text) LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.extname, e.extnamespace::regnamespace::text FROM pg_catalog.pg_extension e
  WHERE e.oid IN (
    SELECT u.extension FROM lokadb.objects_used u
    UNION ALL
    SELECT d.refobjid FROM lokadb.types_used() u JOIN pg_catalog.pg_depend d ON d.objid = u.oid AND d.deptype = 'e' AND d.classid = 'pg_catalog.pg_type'::regclass)
  ORDER BY e.oid $$;

-- All that is to be made there and could be there already; for sql/organization/problems.sql.
CREATE OR REPLACE FUNCTION lokadb.org_plan() RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_build_object(
    'tables', (SELECT jsonb_agg(format('public.%I', n.rel)) FROM lokadb.tables t, lokadb.name_of(t.tbl) n),
    'indexes', (SELECT jsonb_agg(format('public.%I', c.relname)) FROM lokadb.tables t JOIN pg_catalog.pg_index i ON i.indrelid = t.local_part JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid),
    'schemas', (SELECT coalesce(jsonb_agg(DISTINCT x.nsp), '[]') FROM (SELECT quote_ident(nsp) FROM lokadb.org_types() UNION SELECT nsp FROM lokadb.org_extensions()) x(nsp)),
    'extensions', (SELECT coalesce(jsonb_agg(to_jsonb(x)), '[]') FROM lokadb.org_extensions() x),
    'objects', (SELECT coalesce(jsonb_agg(DISTINCT jsonb_build_object('what', u.what, 'type', i.type, 'identity', i.identity,
        'called', CASE u.classid WHEN 'pg_proc'::regclass THEN u.oid::regprocedure::text WHEN 'pg_operator'::regclass THEN u.oid::regoperator::text ELSE i.identity END)), '[]')
      FROM lokadb.objects_used u, pg_identify_object(u.classid, u.oid, 0) i WHERE u.extension IS NULL)) $$;

CREATE OR REPLACE FUNCTION lokadb.org_schemas_and_extensions() RETURNS SETOF text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('CREATE SCHEMA IF NOT EXISTS %s', s) FROM jsonb_array_elements_text(lokadb.org_plan() -> 'schemas') s WHERE s NOT IN ('public', 'pg_catalog')
  UNION ALL SELECT format('CREATE EXTENSION IF NOT EXISTS %I SCHEMA %s CASCADE', name, nsp) FROM lokadb.org_extensions() $$;

-- Before the rows come: tables with their checks, the tenant fixed to the one organization.
CREATE OR REPLACE FUNCTION lokadb.org_tables(p_org text, p_label text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v_rel text;
BEGIN
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    v_rel := format('public.%I', (SELECT rel FROM lokadb.name_of(t.tbl)));
    RETURN NEXT format('CREATE TABLE %s (%s)', v_rel, (
      SELECT string_agg(format('%I %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
          CASE WHEN a.attcollation <> y.typcollation THEN ' COLLATE ' || a.attcollation::regcollation END,
          CASE WHEN a.attgenerated = 's' THEN format(' GENERATED ALWAYS AS (%s) STORED', pg_get_expr(d.adbin, d.adrelid)) END,
          CASE WHEN a.attnotnull THEN ' NOT NULL' END,
          CASE WHEN a.attname = t.tenant_col THEN format(' DEFAULT %L CHECK (%I = %L)', p_org, a.attname, p_org) END), ', ' ORDER BY a.attnum)
      FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type y ON y.oid = a.atttypid LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = t.local_part AND a.attnum > 0 AND NOT a.attisdropped)
      || coalesce((SELECT string_agg(format(', CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)), '') FROM pg_catalog.pg_constraint WHERE conrelid = t.local_part AND contype = 'c' AND convalidated), ''));
    RETURN NEXT format('COMMENT ON TABLE %s IS %L', v_rel, p_label);
  END LOOP;
END $f$;

-- After them: keys, indexes, foreign keys, the trigger that fixes key and tenant, rights.
CREATE OR REPLACE FUNCTION lokadb.org_constraints(p_roles text[]) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  t lokadb.tables;
  v_rel text;
BEGIN
  RETURN NEXT $x$CREATE OR REPLACE FUNCTION public.lokadb_key_fixed() RETURNS trigger LANGUAGE plpgsql AS $g$
BEGIN
  RAISE EXCEPTION 'lokadb: the key and the tenant column of %.% cannot be changed', TG_TABLE_SCHEMA, TG_TABLE_NAME USING ERRCODE = 'feature_not_supported';
END $g$$x$;
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    v_rel := format('public.%I', (SELECT rel FROM lokadb.name_of(t.tbl)));
    RETURN QUERY SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', v_rel, conname, pg_get_constraintdef(oid))
      FROM pg_catalog.pg_constraint WHERE conrelid = t.local_part AND (contype IN ('p', 'u', 'x') OR contype = 'c' AND NOT convalidated) ORDER BY contype, conname;
    RETURN QUERY SELECT replace(pg_get_indexdef(i.indexrelid), format(' ON %s ', t.local_part), format(' ON %s ', v_rel))
      FROM pg_catalog.pg_index i WHERE i.indrelid = t.local_part AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = t.local_part AND k.contype IN ('p', 'u', 'x'));
    RETURN NEXT format('CREATE TRIGGER lokadb_key_fixed BEFORE UPDATE ON %1$s FOR EACH ROW WHEN (OLD.%2$I IS DISTINCT FROM NEW.%2$I OR OLD.%3$I IS DISTINCT FROM NEW.%3$I) EXECUTE FUNCTION public.lokadb_key_fixed()', v_rel, t.key_col, t.tenant_col);
    -- Default privileges may have given more.
    RETURN NEXT format('REVOKE ALL ON %s FROM PUBLIC', v_rel);
    RETURN QUERY SELECT format('REVOKE ALL ON %s FROM %I', v_rel, r) FROM unnest(p_roles) r;
    RETURN QUERY SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', v_rel, r) FROM unnest(p_roles) r;
    RETURN NEXT format('ANALYZE %s', v_rel);
  END LOOP;
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    RETURN QUERY SELECT format('ALTER TABLE public.%I ADD CONSTRAINT %I %s', (SELECT rel FROM lokadb.name_of(t.tbl)), f.conname,
        replace(pg_get_constraintdef(f.oid), format(' REFERENCES %s(', f.refers_to), format(' REFERENCES public.%I(', (SELECT rel FROM lokadb.name_of(f.parent)))))
      FROM lokadb.foreign_keys f WHERE f.tbl = t.local_part AND f.parent IS NOT NULL ORDER BY f.conname;
  END LOOP;
END $f$;
