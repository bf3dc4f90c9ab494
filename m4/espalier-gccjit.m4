# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ESPALIER_GCCJIT(MAJOR)
# The compiler behind the plug-in espalier-gccjit. Sets GCCJIT_CPPFLAGS, GCCJIT_LDFLAGS, GCCJIT_LIBS, the conditional
# GCCJIT, and espalier_gccjit_state, a word for the summary. Without it everything else is still built; asked for and
# not found it is an error. Header and library lie in a folder of the compiler's own, which clang does not look into.
AC_DEFUN([ESPALIER_GCCJIT], [
AC_ARG_WITH([gccjit],
	[AS_HELP_STRING([--with-gccjit=FOLDER], [where libgccjit.h of GCC $1 or later is, in FOLDER/include; --without-gccjit builds no libgccjit back end])],
	[], [with_gccjit=search])
# The back end compiles in a fork, which the locks of a sanitizer in a process of several threads do not survive; and the
# search for leaks falls over what libgccjit has for each thread.
AS_CASE([$with_gccjit:${enable_asan-no}:${enable_tsan-no}], [search:no:no], [], [search:*], [with_gccjit=no])
espalier_gccjit_state=no
espalier_gccjit_dirs=$with_gccjit
AS_CASE([$with_gccjit], [yes|search], [espalier_gccjit_dirs="/usr `ls -d /usr/lib/gcc/*/$1 2>/dev/null`"])
espalier_saved_cppflags=$CPPFLAGS espalier_saved_ldflags=$LDFLAGS espalier_saved_libs=$LIBS
# Among GCC's own headers, which are not for other compilers: these find theirs first.
AS_IF([test "$with_gccjit" != no], [
	AC_MSG_CHECKING([for libgccjit of GCC $1 or later])
	for espalier_dir in $espalier_gccjit_dirs; do
		test -e "$espalier_dir/include/libgccjit.h" || continue
		GCCJIT_CPPFLAGS="-idirafter $espalier_dir/include" GCCJIT_LDFLAGS="-L$espalier_dir"
		AS_IF([test "$espalier_dir" = /usr], [GCCJIT_CPPFLAGS= GCCJIT_LDFLAGS=])
		GCCJIT_LIBS=-lgccjit
		CPPFLAGS="$espalier_saved_cppflags $GCCJIT_CPPFLAGS" LDFLAGS="$espalier_saved_ldflags $GCCJIT_LDFLAGS"
		LIBS="$espalier_saved_libs -lgccjit"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <libgccjit.h>
			#if !defined LIBGCCJIT_HAVE_gcc_jit_context_new_bitcast || !defined LIBGCCJIT_HAVE_ASM_STATEMENTS
			#error too old
			#endif]], [[return gcc_jit_version_major();]])],
			[espalier_gccjit_state=$espalier_dir; break])
	done
	AC_MSG_RESULT([$espalier_gccjit_state])])
CPPFLAGS=$espalier_saved_cppflags LDFLAGS=$espalier_saved_ldflags LIBS=$espalier_saved_libs
AS_CASE([$with_gccjit:$espalier_gccjit_state],
	[no:*], [AC_MSG_NOTICE([the libgccjit back end is not wanted])],
	[search:no], [AC_MSG_WARN([no libgccjit found (libgccjit-$1-dev): the libgccjit back end is not built])],
	[*:no], [AC_MSG_ERROR([--with-gccjit=$with_gccjit: no libgccjit of GCC $1 or later is there])])
AC_SUBST([GCCJIT_CPPFLAGS])
AC_SUBST([GCCJIT_LDFLAGS])
AC_SUBST([GCCJIT_LIBS])
AM_CONDITIONAL([GCCJIT], [test "$espalier_gccjit_state" != no])
])
