dnl LOKADB_SYSTEMD: readiness notices and socket activation are built in where libsystemd is there;
dnl --with-systemd insists on it, --without-systemd leaves it out.
AC_DEFUN([LOKADB_SYSTEMD], [
  AC_ARG_WITH([systemd], [AS_HELP_STRING([--without-systemd], [leave out service notification and sockets])],
    [], [with_systemd=auto])
  AS_IF([test "x$with_systemd" != xno], [
    PKG_CHECK_MODULES([SYSTEMD], [libsystemd],
      [AC_DEFINE([HAVE_SYSTEMD], [1], [Define to 1 if libsystemd is used.])],
      [AS_IF([test "x$with_systemd" = xyes], [AC_MSG_ERROR([libsystemd was asked for and is missing])])])
  ])
])

dnl LOKADB_BOOST_TEST: only `make check` needs Boost.Test, so its absence is remembered, not fatal.
AC_DEFUN([LOKADB_BOOST_TEST], [
  AC_MSG_CHECKING([for Boost.Test])
  lokadb_saved_libs=$LIBS
  LIBS="-lboost_unit_test_framework $LIBS"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
      #define BOOST_TEST_DYN_LINK
      #define BOOST_TEST_MODULE probe
      #include <boost/test/unit_test.hpp>
      BOOST_AUTO_TEST_CASE(links) { BOOST_TEST(1 == 1); }
    ]])],
    [AC_MSG_RESULT([yes])
     lokadb_boost_test=yes],
    [AC_MSG_RESULT([no, make check will not work])
     lokadb_boost_test=no])
  LIBS=$lokadb_saved_libs
  AM_CONDITIONAL([BOOST_TEST], [test $lokadb_boost_test = yes])
])
