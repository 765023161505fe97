-- The commands that make an organization's database: its types and tables in schema public, under the application's names.
-- An identity or a default is not repeated there: the cloud computes it.

-- A user-defined type and what it is made of, innermost first.
CREATE OR REPLACE FUNCTION lokadb.types_used() RETURNS TABLE (oid oid, depth int) LANGUAGE sql STABLE SET search_path = '' AS $$
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

-- Extensions that columns, computed columns, checks, indexes and the types' own checks take something from: types,
-- functions, operator classes.
CREATE OR REPLACE FUNCTION lokadb.extensions_used() RETURNS SETOF oid LANGUAGE sql STABLE SET search_path = '' AS $$
  WITH RECURSIVE needs(classid, objid) AS (
    SELECT 'pg_catalog.pg_type'::regclass::oid, oid FROM lokadb.types_used()
    UNION SELECT 'pg_catalog.pg_class'::regclass::oid, i.indexrelid FROM lokadb.tables x JOIN pg_catalog.pg_index i ON i.indrelid = x.local_part
    UNION SELECT 'pg_catalog.pg_constraint'::regclass::oid, c.oid FROM lokadb.tables x JOIN pg_catalog.pg_constraint c ON c.conrelid = x.local_part
    UNION SELECT 'pg_catalog.pg_constraint'::regclass::oid, c.oid FROM lokadb.types_used() u JOIN pg_catalog.pg_constraint c ON c.contypid = u.oid
    UNION SELECT 'pg_catalog.pg_attrdef'::regclass::oid, d.oid FROM lokadb.tables x JOIN pg_catalog.pg_attribute a ON a.attrelid = x.local_part AND a.attgenerated <> ''
      JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum)
  SELECT DISTINCT e.refobjid FROM (SELECT classid, objid FROM needs
      UNION SELECT d.refclassid, d.refobjid FROM needs n JOIN pg_catalog.pg_depend d ON d.classid = n.classid AND d.objid = n.objid AND d.deptype IN ('n', 'a')) x
    JOIN pg_catalog.pg_depend e ON e.classid = x.classid AND e.objid = x.objid AND e.deptype = 'e' AND e.refclassid = 'pg_catalog.pg_extension'::regclass $$;

CREATE OR REPLACE FUNCTION lokadb.type_commands() RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT e.extname, n.nspname FROM lokadb.extensions_used() u JOIN pg_catalog.pg_extension e ON e.oid = u JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace ORDER BY e.oid LOOP
    IF r.nspname NOT IN ('public', 'pg_catalog') THEN RETURN NEXT format('CREATE SCHEMA IF NOT EXISTS %I', r.nspname); END IF;
    RETURN NEXT format('CREATE EXTENSION IF NOT EXISTS %I SCHEMA %I CASCADE', r.extname, r.nspname);
  END LOOP;
  FOR r IN SELECT y.*, n.nspname FROM lokadb.types_used() u JOIN pg_catalog.pg_type y ON y.oid = u.oid JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace
           WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = y.oid AND d.deptype = 'e') ORDER BY u.depth DESC, y.oid LOOP
    IF r.nspname <> 'public' THEN RETURN NEXT format('CREATE SCHEMA IF NOT EXISTS %I', r.nspname); END IF;
    IF r.typtype = 'e' THEN
      RETURN NEXT format('CREATE TYPE %s AS ENUM (%s)', r.oid::regtype, (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) FROM pg_catalog.pg_enum WHERE enumtypid = r.oid));
    ELSIF r.typtype = 'd' THEN
      RETURN NEXT format('CREATE DOMAIN %s AS %s%s%s%s', r.oid::regtype, format_type(r.typbasetype, r.typtypmod),
        (SELECT ' COLLATE ' || r.typcollation::regcollation FROM pg_catalog.pg_type b WHERE b.oid = r.typbasetype AND b.typcollation <> r.typcollation), CASE WHEN r.typnotnull THEN ' NOT NULL' END,
        (SELECT string_agg(format(' CONSTRAINT %I %s', conname, pg_get_constraintdef(k.oid)), '') FROM pg_catalog.pg_constraint k WHERE k.contypid = r.oid AND k.contype = 'c'));
    ELSIF r.typtype = 'c' THEN
      RETURN NEXT format('CREATE TYPE %s AS (%s)', r.oid::regtype, (SELECT string_agg(format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
          CASE WHEN a.attcollation <> b.typcollation THEN ' COLLATE ' || a.attcollation::regcollation END), ', ' ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type b ON b.oid = a.atttypid WHERE a.attrelid = r.typrelid AND a.attnum > 0 AND NOT a.attisdropped));
    ELSIF r.typtype = 'r' THEN
      RETURN NEXT (SELECT format('CREATE TYPE %s AS RANGE (SUBTYPE = %s, MULTIRANGE_TYPE_NAME = %s%s)', r.oid::regtype, rngsubtype::regtype, rngmultitypid::regtype,
        CASE WHEN rngcollation <> 0 THEN ', COLLATION = ' || rngcollation::regcollation END) FROM pg_catalog.pg_range WHERE rngtypid = r.oid);
    END IF;
  END LOOP;
END $f$;

-- Before the rows come: types, tables with their checks, the tenant fixed to the one organization.
CREATE OR REPLACE FUNCTION lokadb.org_tables(p_org text, p_label text) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
DECLARE
  t lokadb.tables;
  v_rel text;
BEGIN
  RETURN QUERY SELECT * FROM lokadb.type_commands();
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
CREATE OR REPLACE FUNCTION lokadb.org_constraints(p_roles text[]) RETURNS SETOF text LANGUAGE plpgsql STABLE SET search_path = '' AS $f$
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
    RETURN QUERY SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', v_rel, r) FROM unnest(p_roles) r;
    RETURN NEXT format('ANALYZE %s', v_rel);
  END LOOP;
  FOR t IN SELECT * FROM lokadb.tables ORDER BY position LOOP
    RETURN QUERY SELECT format('ALTER TABLE public.%I ADD CONSTRAINT %I %s', (SELECT rel FROM lokadb.name_of(t.tbl)), f.conname,
        replace(pg_get_constraintdef(f.oid), format(' REFERENCES %s(', f.refers_to), format(' REFERENCES public.%I(', (SELECT rel FROM lokadb.name_of(f.parent)))))
      FROM lokadb.foreign_keys f WHERE f.tbl = t.local_part AND f.parent IS NOT NULL ORDER BY f.conname;
  END LOOP;
END $f$;
