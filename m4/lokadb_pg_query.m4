dnl LOKADB_PG_QUERY: PostgreSQL's own parser as a library (which has no .pc file), and protobuf-c to read its trees.
AC_DEFUN([LOKADB_PG_QUERY], [
  PKG_CHECK_MODULES([PROTOBUF_C], [libprotobuf-c >= 1.3])
  AC_CHECK_HEADER([pg_query/pg_query.pb-c.h], [],
    [AC_MSG_ERROR([libpg_query 15 not found: install libpg-query-dev])], [AC_INCLUDES_DEFAULT])
  AC_CHECK_LIB([pg_query], [pg_query_parse_protobuf], [PG_QUERY_LIBS=-lpg_query],
    [AC_MSG_ERROR([libpg_query 15 not found: install libpg-query-dev])], [$PROTOBUF_C_LIBS])
  AC_SUBST([PG_QUERY_LIBS])
])
