dnl LOKADB_PROBE_FLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if the C++ compiler knows it. -Werror makes a
dnl compiler that only warns about an unknown flag say no.
AC_DEFUN([LOKADB_PROBE_FLAG], [
  AC_MSG_CHECKING([whether $CXX knows $1])
  lokadb_saved_flags=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -Werror $1"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes])
     $2="$$2 $1"],
    [AC_MSG_RESULT([no])])
  CXXFLAGS=$lokadb_saved_flags
])

dnl LOKADB_CXX20: puts the flag that selects C++20 into CXX, so that every later check uses it too.
AC_DEFUN([LOKADB_CXX20], [
  lokadb_cxx_plain=$CXX
  lokadb_cxx20=
  for lokadb_flag in -std=c++20 -std=c++2a; do
    CXX="$lokadb_cxx_plain $lokadb_flag"
    AC_MSG_CHECKING([for C++20 with $CXX])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <compare>
        #include <concepts>
        #include <span>
        template <std::integral T> auto order(T a, T b) { return a <=> b; }
      ]], [[
        int numbers[] = {1, 2};
        return std::span(numbers).size() == 2 && order(1, 2) < 0 ? 0 : 1;
      ]])],
      [AC_MSG_RESULT([yes])
       lokadb_cxx20=yes
       break],
      [AC_MSG_RESULT([no])])
  done
  AS_IF([test -z "$lokadb_cxx20"], [AC_MSG_ERROR([a C++20 compiler is needed (g++ 10 or clang++ 14 will do)])])
])

dnl LOKADB_WARNINGS: WARNING_FLAGS, and --enable-werror for developers and CI. Off by default, so that a newer
dnl compiler's new warning never breaks somebody's package.
AC_DEFUN([LOKADB_WARNINGS], [
  WARNING_FLAGS=
  LOKADB_PROBE_FLAG([-Wall], [WARNING_FLAGS])
  LOKADB_PROBE_FLAG([-Wextra], [WARNING_FLAGS])
  LOKADB_PROBE_FLAG([-Wshadow], [WARNING_FLAGS])
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])])
  AS_IF([test "x$enable_werror" = xyes], [WARNING_FLAGS="$WARNING_FLAGS -Werror"])
  AC_SUBST([WARNING_FLAGS])
])
