-- The type of the tenant column, one per cloud database, and the setting that names the organization.
--
-- Every function says its search_path, with pg_temp last: unnamed it would come first for tables and types, and who may
-- make temporary objects could put a type of his own, called text, into a SECURITY DEFINER function.

CREATE OR REPLACE FUNCTION lokadb.tenant_type() RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT value FROM lokadb.settings WHERE name = 'tenant_type' $$;

-- The client's role, also inside SECURITY DEFINER.
CREATE OR REPLACE FUNCTION lokadb.role() RETURNS name LANGUAGE sql STABLE
RETURN coalesce(nullif(current_setting('role'), 'none')::name, session_user);

-- The advisory lock of an organization: shared by its transactions, exclusive for who pauses it. '*': moves.
CREATE OR REPLACE FUNCTION lokadb.pause_key(org text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtextextended('lokadb.organization:' || org, 0);

-- Makes the functions that depend on the type and on the name of the setting: bigint, uuid or text. Only while no table
-- is under LokaDB, since policies and defaults use them. They are written out as they are (STABLE, no subselect), so
-- that partitions are removed when execution starts; their bodies are parsed here, so no search_path of a client matters.
CREATE OR REPLACE FUNCTION lokadb.set_tenant_type(p_type text, p_setting text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  v_setting text := coalesce(p_setting, (SELECT value FROM lokadb.settings WHERE name = 'setting'), 'lokadb.tenant');
  v_to text; v_nobody text; v_lo text; v_hi text;
BEGIN
  IF p_type NOT IN ('bigint', 'uuid', 'text') THEN
    RAISE EXCEPTION 'the type of a tenant column must be bigint, uuid or text, not %', p_type USING ERRCODE = 'LK002';
  END IF;
  IF p_type = lokadb.tenant_type() AND v_setting = (SELECT value FROM lokadb.settings WHERE name = 'setting') THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM lokadb.tables) THEN
    RAISE EXCEPTION 'the tenant columns of this database are of type % (setting %): another needs a database without tables under LokaDB',
      lokadb.tenant_type(), (SELECT value FROM lokadb.settings WHERE name = 'setting') USING ERRCODE = 'LK002';
  END IF;
  IF p_type = 'text' AND getdatabaseencoding() <> 'UTF8' THEN
    RAISE EXCEPTION 'tenants of type text need a database in UTF8, not in %', getdatabaseencoding() USING ERRCODE = 'LK002';
  END IF;
  IF v_setting !~ '^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+$' THEN
    RAISE EXCEPTION 'not the name of a setting of one''s own: %', v_setting USING ERRCODE = 'LK002';
  END IF;
  SELECT x.t, x.n, x.lo, x.hi INTO v_to, v_nobody, v_lo, v_hi FROM (VALUES
    ('bigint', $$CASE WHEN v ~ '^(0|-?[1-9][0-9]{0,18})$' AND v::numeric BETWEEN -9223372036854775808 AND 9223372036854775807
        THEN v::bigint ELSE ('not canonical: ' || v)::bigint END$$,
     '''-9223372036854775808''', '-9223372036854775808', '9223372036854775807'),
    ('uuid', $$CASE WHEN v::uuid::text = v THEN v::uuid ELSE ('not canonical: ' || v)::uuid END$$,
     '''ffffffff-ffff-ffff-ffff-ffffffffffff''', '''00000000-0000-0000-0000-000000000000''::uuid',
     '''ffffffff-ffff-ffff-ffff-ffffffffffff''::uuid'),
    ('text', 'v', 'chr(1114111)', '''''', 'repeat(chr(1114111), 3)')) x(type, t, n, lo, hi)
    WHERE x.type = p_type;
  SET LOCAL client_min_messages = warning;
  DROP FUNCTION IF EXISTS lokadb.to_tenant(text), lokadb.nobody(), lokadb.tenant(), lokadb.tenant_lo(), lokadb.tenant_hi();
  -- Canonical text only; anything else is 22P02.
  EXECUTE format('CREATE FUNCTION lokadb.to_tenant(v text) RETURNS %s LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s', p_type, v_to);
  -- The tenant that no organization has.
  EXECUTE format('CREATE FUNCTION lokadb.nobody() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s', v_nobody);
  EXECUTE format('CREATE FUNCTION lokadb.tenant() RETURNS %s LANGUAGE sql STABLE PARALLEL SAFE RETURN %s', p_type, format(
    'CASE WHEN coalesce(current_setting(%1$L, true), '''') NOT IN ('''', ''*'') THEN lokadb.to_tenant(current_setting(%1$L)) END', v_setting));
  EXECUTE format('CREATE FUNCTION lokadb.tenant_lo() RETURNS %s LANGUAGE sql STABLE PARALLEL SAFE RETURN coalesce(lokadb.tenant(), %s)', p_type, v_lo);
  EXECUTE format('CREATE FUNCTION lokadb.tenant_hi() RETURNS %s LANGUAGE sql STABLE PARALLEL SAFE RETURN coalesce(lokadb.tenant(), %s)', p_type, v_hi);
  GRANT EXECUTE ON FUNCTION lokadb.to_tenant, lokadb.nobody, lokadb.tenant, lokadb.tenant_lo, lokadb.tenant_hi TO PUBLIC;
  INSERT INTO lokadb.settings VALUES ('tenant_type', p_type), ('setting', v_setting)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
END $f$;

-- The organization as it is kept everywhere: canonical text of the tenant's type, 22P02 else, and none of the reserved.
CREATE OR REPLACE FUNCTION lokadb.canonical(p_org text) RETURNS text LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  IF p_org IS NULL OR p_org IN ('', '*', lokadb.nobody()) THEN
    RAISE EXCEPTION 'not an organization: %', coalesce(quote_literal(p_org), 'null') USING ERRCODE = 'invalid_text_representation';
  END IF;
  RETURN lokadb.to_tenant(p_org)::text;
END $f$;
