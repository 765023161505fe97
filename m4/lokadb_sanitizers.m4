dnl LOKADB_SANITIZERS: --enable-asan, --enable-ubsan and --enable-tsan collect SANITIZER_FLAGS, for compiling and
dnl linking. Whatever is found ends the process, so that no test passes over it.
AC_DEFUN([LOKADB_SANITIZERS], [
  AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer])])
  AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [build with UndefinedBehaviorSanitizer])])
  AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])])
  AS_IF([test "x$enable_tsan" = xyes && test "x$enable_asan" = xyes],
    [AC_MSG_ERROR([--enable-tsan and --enable-asan cannot be combined])])
  SANITIZER_FLAGS=
  AS_IF([test "x$enable_asan" = xyes], [LOKADB_ADD_SANITIZER([-fsanitize=address])])
  AS_IF([test "x$enable_ubsan" = xyes], [LOKADB_ADD_SANITIZER([-fsanitize=undefined -fno-sanitize-recover=all])])
  AS_IF([test "x$enable_tsan" = xyes], [LOKADB_ADD_SANITIZER([-fsanitize=thread])])
  AS_IF([test -n "$SANITIZER_FLAGS"], [SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-omit-frame-pointer"])
  AC_SUBST([SANITIZER_FLAGS])
  dnl The unit tests themselves compile in half the time without, and are not what is looked at.
  UNIT_TEST_FLAGS=
  AS_IF([test "x$enable_ubsan" = xyes], [UNIT_TEST_FLAGS=-fno-sanitize=undefined])
  AC_SUBST([UNIT_TEST_FLAGS])
])

dnl LOKADB_ADD_SANITIZER(FLAGS): the flags must link, too: the run-time library is often a package of its own.
AC_DEFUN([LOKADB_ADD_SANITIZER], [
  AC_MSG_CHECKING([whether $CXX links with $1])
  lokadb_saved_flags=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CXX cannot build with $1])])
  CXXFLAGS=$lokadb_saved_flags
  SANITIZER_FLAGS="$SANITIZER_FLAGS $1"
])

dnl LOKADB_FUZZ_TARGETS: with --enable-fuzz-targets test/fuzz/*.cc become libFuzzer programs; without it they are
dnl linked with a main() that replays the stored inputs in `make check`.
AC_DEFUN([LOKADB_FUZZ_TARGETS], [
  AC_ARG_ENABLE([fuzz-targets],
    [AS_HELP_STRING([--enable-fuzz-targets], [build test/fuzz with libFuzzer (needs clang)])])
  FUZZ_COMPILE_FLAGS=
  FUZZ_LINK_FLAGS=
  AS_IF([test "x$enable_fuzz_targets" = xyes], [
    FUZZ_COMPILE_FLAGS=-fsanitize=fuzzer-no-link
    FUZZ_LINK_FLAGS=-fsanitize=fuzzer
    AC_MSG_CHECKING([whether $CXX links with $FUZZ_LINK_FLAGS])
    lokadb_saved_flags=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $FUZZ_LINK_FLAGS"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
        extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, decltype(sizeof 0)) { return 0; }
      ]])], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([--enable-fuzz-targets needs clang with libFuzzer: configure CXX=clang++])])
    CXXFLAGS=$lokadb_saved_flags
  ])
  AC_SUBST([FUZZ_COMPILE_FLAGS])
  AC_SUBST([FUZZ_LINK_FLAGS])
  AM_CONDITIONAL([FUZZ_TARGETS], [test "x$enable_fuzz_targets" = xyes])
])
