-- What application roles may call; nothing else of the schema is theirs. Said in full, since default privileges may have
-- taken EXECUTE from PUBLIC. Trigger functions need no right.
SELECT lokadb.set_tenant_type(coalesce(lokadb.tenant_type(), 'bigint'));

GRANT USAGE ON SCHEMA lokadb TO PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA lokadb FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lokadb.to_tenant, lokadb.tenant, lokadb.tenant_lo, lokadb.tenant_hi, lokadb.nobody, lokadb.role,
  lokadb.require, lokadb.enter, lokadb.enter_all, lokadb.find_refs, lokadb.put_refs, lokadb.del_refs, lokadb.check_parents,
  lokadb.leaf_guard TO PUBLIC;
