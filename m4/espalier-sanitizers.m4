# ESPALIER_SANITIZERS
# --enable-asan (addresses, leaks, undefined behaviour) and --enable-tsan (data races). Sets SANITIZE_CFLAGS, for
# compiling and linking, SANITIZE_ENVIRONMENT, what tests run with, the conditional SANITIZE, and espalier_sanitizers for
# the summary. The first finding ends the program, so that a test cannot pass over it.
#
# Races: the team's threads tell each other everything by atomics of their own, which GCC's ThreadSanitizer follows. clang's OpenMP
# library keeps its threads from team to team; what passes between them in it is told by Archer (libarcher.so of
# libomp-19-dev). The OpenMP and compiler libraries themselves are not looked into.
AC_DEFUN([ESPALIER_SANITIZERS], [
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and UBSan])], [], [enable_asan=no])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])], [], [enable_tsan=no])
AS_CASE([$enable_asan:$enable_tsan],
	[yes:yes], [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])],
	[yes:*], [espalier_sanitizers=address,undefined],
	[*:yes], [espalier_sanitizers=thread])
AS_IF([test -n "$espalier_sanitizers"],
	[SANITIZE_CFLAGS="-fsanitize=$espalier_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
	AC_MSG_CHECKING([whether $CC links with -fsanitize=$espalier_sanitizers])
	espalier_saved_cflags=$CFLAGS
	CFLAGS="$CFLAGS $SANITIZE_CFLAGS"
	AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([the sanitizer's run-time library is missing])])
	CFLAGS=$espalier_saved_cflags])
SANITIZE_ENVIRONMENT=
AS_IF([test "$espalier_sanitizers" = thread],
	[SANITIZE_ENVIRONMENT="export TSAN_OPTIONS='ignore_noninstrumented_modules=1';"
	AC_CHECK_DECL([__clang__],
		[espalier_archer=`$CC -print-file-name=libarcher.so`
		AS_IF([test -e "$espalier_archer"],
			[SANITIZE_ENVIRONMENT="$SANITIZE_ENVIRONMENT export OMP_TOOL_LIBRARIES='$espalier_archer';"],
			[AC_MSG_ERROR([clang's ThreadSanitizer needs libarcher.so (package libomp-19-dev); gcc's does not])])])])
AC_SUBST([SANITIZE_CFLAGS])
AC_SUBST([SANITIZE_ENVIRONMENT])
AM_CONDITIONAL([SANITIZE], [test -n "$espalier_sanitizers"])
])
