-- What stands in the way in an organization's database, one sentence each. One query without help from any function of
-- LokaDB, which that database does not have.
--   $1  lokadb.org_plan() of the cloud
--   $2  comments of tables that a former move of the organization left: they go before the move (text[])
--   $3  the label of its tables there
WITH planned AS (
  SELECT t, to_regclass(t) AS there, obj_description(to_regclass(t), 'pg_class') AS label FROM jsonb_array_elements_text($1::jsonb -> 'tables') t),
left_over AS (SELECT there AS oid, t FROM planned WHERE label = ANY ($2::text[])),
me AS (
  SELECT rolsuper, has_database_privilege(current_database(), 'CREATE') AS creates FROM pg_catalog.pg_roles WHERE rolname = current_user),
extension AS (
  SELECT x ->> 'name' AS name, x ->> 'nsp' AS nsp, e.oid, e.extnamespace, (SELECT bool_or(v.trusted) FROM pg_catalog.pg_available_extension_versions v
    WHERE v.name = x ->> 'name') AS trusted
  FROM jsonb_array_elements($1::jsonb -> 'extensions') x LEFT JOIN pg_catalog.pg_extension e ON e.extname = x ->> 'name')
SELECT CASE WHEN label = $3
    THEN format('its table %s is labelled for this organization (%s), but by no move that the cloud knows of: is it in use? If not, drop it', t, label)
  WHEN label LIKE 'lokadb: %'
    THEN format('its table %s is labelled for another organization, or by another cloud (%s): an empty database is needed', t, label)
  ELSE format('it has a table %s already: an empty database is needed', t) END
  FROM planned WHERE there IS NOT NULL AND there NOT IN (SELECT oid FROM left_over)
UNION ALL
SELECT format('it has a type %s already: an empty database is needed', t) FROM planned JOIN pg_catalog.pg_type y ON y.oid = to_regtype(t) WHERE there IS NULL
UNION ALL
SELECT format('it has a relation %s already, which is to be the name of an index: drop or rename it', i) FROM jsonb_array_elements_text($1::jsonb -> 'indexes') i
  WHERE to_regclass(i) IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_index x JOIN left_over l ON l.oid = x.indrelid WHERE x.indexrelid = to_regclass(i))
UNION ALL
SELECT DISTINCT format('%s there reads %s, which a former move left and this one makes anew: drop it first', pg_describe_object('pg_catalog.pg_class'::regclass, w.ev_class, 0), l.t)
  FROM left_over l JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = l.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
  JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND w.ev_class NOT IN (SELECT oid FROM left_over)
UNION ALL
SELECT format('table %s there refers to %s, which a former move left and this one makes anew: drop constraint %I first', k.conrelid::regclass, l.t, k.conname)
  FROM left_over l JOIN pg_catalog.pg_constraint k ON k.confrelid = l.oid AND k.contype = 'f' AND k.conrelid NOT IN (SELECT oid FROM left_over)
UNION ALL
SELECT format('table %s there belongs to %s: this role may not drop what a former move left', l.t, pg_get_userbyid(c.relowner))
  FROM left_over l JOIN pg_catalog.pg_class c ON c.oid = l.oid WHERE NOT pg_has_role(c.relowner, 'USAGE')
UNION ALL
SELECT 'it has a function public.lokadb_key_fixed() already, which is not that of a former move by this role: drop it'
  FROM pg_catalog.pg_proc WHERE oid = to_regprocedure('public.lokadb_key_fixed()') AND (prorettype <> 'trigger'::regtype OR NOT pg_has_role(proowner, 'USAGE'))
UNION ALL
SELECT CASE WHEN oid IS NULL AND trusted IS NULL THEN format('extension %s, which the tables need, is not installed on its server', name)
  WHEN oid IS NULL THEN format('extension %s, which the tables need, is not there, and this role may not create it', name)
  ELSE format('its extension %s is in schema %s, in the cloud it is in %s', name, extnamespace::regnamespace, nsp) END
  FROM extension, me WHERE CASE WHEN oid IS NULL THEN trusted IS NULL OR NOT (rolsuper OR trusted AND creates) ELSE extnamespace::regnamespace::text <> nsp END
UNION ALL
SELECT format('there is no schema %s, and this role may not create it', s) FROM jsonb_array_elements_text($1::jsonb -> 'schemas') s, me
  WHERE to_regnamespace(s) IS NULL AND NOT creates
UNION ALL
SELECT * FROM (
  SELECT format('%s uses the %s %s, which the organization''s database does not have', x ->> 'what', x ->> 'type', x ->> 'called')
  FROM jsonb_array_elements($1::jsonb -> 'objects') x
  WHERE NOT EXISTS (SELECT FROM (
      SELECT 'pg_catalog.pg_proc'::regclass AS classid, oid FROM pg_catalog.pg_proc
      UNION ALL SELECT 'pg_catalog.pg_operator'::regclass, oid FROM pg_catalog.pg_operator
      UNION ALL SELECT 'pg_catalog.pg_opclass'::regclass, oid FROM pg_catalog.pg_opclass
      UNION ALL SELECT 'pg_catalog.pg_collation'::regclass, oid FROM pg_catalog.pg_collation) o, pg_identify_object(o.classid, o.oid, 0) i
    WHERE o.oid >= 16384 AND i.type = x ->> 'type' AND i.identity = x ->> 'identity')
  ORDER BY 1) lacking
