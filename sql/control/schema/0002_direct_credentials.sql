-- For proxies: what they may read, and that they learn of changes at once.

CREATE VIEW lokadb.direct_credentials WITH (security_barrier) AS
  SELECT org, user_name, secret FROM lokadb.credentials WHERE kind = 'direct';

CREATE FUNCTION lokadb.tell_of_credentials() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  PERFORM pg_notify('lokadb_credentials', '');
  RETURN NULL;
END $$;
CREATE TRIGGER tell_of_credentials AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON lokadb.credentials
  FOR EACH STATEMENT EXECUTE FUNCTION lokadb.tell_of_credentials();
