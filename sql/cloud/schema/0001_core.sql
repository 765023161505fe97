-- What is where: organizations, tables under LokaDB and how they refer to each other. Run once, by the owner of the
-- cloud database.
CREATE SEQUENCE lokadb.generation;  -- one for all organizations: a number is never used twice

-- A row comes with the first move of an organization and stays for ever; without one it is local, generation 0.
CREATE TABLE lokadb.organizations (
  org text COLLATE "C" PRIMARY KEY CHECK (org NOT IN ('', '*')),
  profile text NOT NULL CHECK (profile IN ('local', 'moving', 'fdw', 'fdw+direct', 'direct')),
  server name,        -- foreign server; null: at home
  schema name,        -- of its foreign tables
  database_id text,   -- what the label in its database says; at home: said last
  connection text,    -- how the command line reaches it, without secrets
  step text,          -- of a move that is under way; null: none
  generation bigint NOT NULL DEFAULT nextval('lokadb.generation'),
  changed_at timestamptz NOT NULL DEFAULT now());

CREATE TABLE lokadb.tables (
  tbl regclass PRIMARY KEY,
  key_col name NOT NULL,
  key_type text NOT NULL,
  tenant_col name NOT NULL,
  tenant_added boolean NOT NULL,  -- by add-table
  refs regclass NOT NULL,
  local_part regclass NOT NULL,
  position int NOT NULL,          -- parents before children
  tenant_nullable boolean NOT NULL DEFAULT false,  -- before add-table
  tenant_index name);             -- made by add-table, beside the local part; null: there was one

CREATE TABLE lokadb.relations (
  child regclass NOT NULL REFERENCES lokadb.tables ON DELETE CASCADE,
  col name NOT NULL,
  parent regclass NOT NULL REFERENCES lokadb.tables,
  declared boolean NOT NULL,  -- else found from a foreign key
  PRIMARY KEY (child, col));

-- Foreign keys to tables of the cloud that are not under LokaDB.
CREATE TABLE lokadb.cloud_keys (
  tbl regclass NOT NULL REFERENCES lokadb.tables ON DELETE CASCADE,
  col name NOT NULL,
  name name NOT NULL,          -- of the constraint
  refers_to regclass NOT NULL,
  ref_col name NOT NULL,
  is_tenant boolean NOT NULL,  -- the tenant column's own, to the table of organizations
  PRIMARY KEY (tbl, col));

CREATE TABLE lokadb.settings (name text PRIMARY KEY, value text NOT NULL);

GRANT SELECT (org, server, profile) ON lokadb.organizations TO PUBLIC;
