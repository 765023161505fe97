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

dnl LOKADB_PAM: logins by PAM where its headers are there; --with-pam insists on them, --without-pam leaves it out.
AC_DEFUN([LOKADB_PAM], [
  AC_ARG_WITH([pam], [AS_HELP_STRING([--without-pam], [leave out logins by PAM])], [], [with_pam=auto])
  PAM_LIBS=
  AS_IF([test "x$with_pam" != xno], [
    AC_CHECK_HEADER([security/pam_appl.h],
      [AC_CHECK_LIB([pam], [pam_start],
        [PAM_LIBS=-lpam
         AC_DEFINE([HAVE_PAM], [1], [Define to 1 if libpam is used.])])])
    AS_IF([test "x$with_pam" = xyes && test -z "$PAM_LIBS"], [AC_MSG_ERROR([libpam was asked for and is missing])])
  ])
  AC_SUBST([PAM_LIBS])
])

dnl LOKADB_LDAP: the same for libldap.
AC_DEFUN([LOKADB_LDAP], [
  AC_ARG_WITH([ldap], [AS_HELP_STRING([--without-ldap], [leave out logins by LDAP])], [], [with_ldap=auto])
  AS_IF([test "x$with_ldap" != xno], [
    PKG_CHECK_MODULES([LDAP], [ldap >= 2.5],
      [AC_DEFINE([HAVE_LDAP], [1], [Define to 1 if libldap is used.])],
      [AS_IF([test "x$with_ldap" = xyes], [AC_MSG_ERROR([libldap was asked for and is missing])])])
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
