-- Logins for organizations' databases. The secrets are encrypted by the command line; the key never comes here.
CREATE TABLE lokadb.credentials (
  org text COLLATE "C" NOT NULL,
  kind text NOT NULL CHECK (kind IN ('fdw', 'direct')),
  user_name text NOT NULL,
  secret bytea NOT NULL,  -- nonce (12 bytes), tag (16), AES-256-GCM of the password
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (org, kind));
REVOKE ALL ON SCHEMA lokadb FROM PUBLIC;
