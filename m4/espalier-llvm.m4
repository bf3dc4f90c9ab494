# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ESPALIER_LLVM(MAJOR)
# The compiler behind the plug-in espalier-llvm. Sets LLVM_CPPFLAGS, LLVM_LDFLAGS, LLVM_LIBS, the conditional LLVM, and
# espalier_llvm_state, a word for the summary. Without LLVM everything else is still built; a version that was asked
# for and does not fit is an error.
AC_DEFUN([ESPALIER_LLVM], [
AC_ARG_WITH([llvm], [AS_HELP_STRING([--without-llvm], [build no LLVM back end])], [], [with_llvm=search])
AC_ARG_WITH([llvm-config], [AS_HELP_STRING([--with-llvm-config=PATH], [llvm-config of LLVM $1])],
	[], [with_llvm_config=$with_llvm])
AS_CASE([$with_llvm], [no], [with_llvm_config=no])
AS_CASE([$with_llvm_config],
	[no], [LLVM_CONFIG=],
	[yes|search], [AC_PATH_PROGS([LLVM_CONFIG], [llvm-config-$1 llvm-config])],
	[LLVM_CONFIG=$with_llvm_config])
espalier_llvm_state=no
AS_IF([test -n "$LLVM_CONFIG"], [
	AC_MSG_CHECKING([for the version of LLVM])
	espalier_llvm_version=`"$LLVM_CONFIG" --version 2>/dev/null`
	AC_MSG_RESULT([${espalier_llvm_version:-none}])
	AS_CASE([$espalier_llvm_version], [$1.*], [espalier_llvm_state="$espalier_llvm_version"])])
AS_CASE([$with_llvm_config:$espalier_llvm_state],
	[no:*], [AC_MSG_NOTICE([the LLVM back end is not wanted])],
	[search:no], [AC_MSG_WARN([no LLVM $1 found (llvm-$1-dev): the LLVM back end is not built])],
	[*:no], [AC_MSG_ERROR([--with-llvm-config=$with_llvm_config: LLVM $1 is needed, found: ${espalier_llvm_version:-none}])])
AS_IF([test "$espalier_llvm_state" != no], [
	LLVM_CPPFLAGS="-isystem `$LLVM_CONFIG --includedir`"
	LLVM_LDFLAGS=`$LLVM_CONFIG --ldflags`
	LLVM_LIBS=`$LLVM_CONFIG --libs core native passes`
	AS_IF([test "`$LLVM_CONFIG --shared-mode core`" = static],
		[LLVM_LIBS="$LLVM_LIBS `$LLVM_CONFIG --system-libs` -lstdc++"])])
AC_SUBST([LLVM_CPPFLAGS])
AC_SUBST([LLVM_LDFLAGS])
AC_SUBST([LLVM_LIBS])
AM_CONDITIONAL([LLVM], [test "$espalier_llvm_state" != no])
])
