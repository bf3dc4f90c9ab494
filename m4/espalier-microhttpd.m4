# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ESPALIER_MICROHTTPD(VERSION)
# The library behind the command `espalier serve`. Sets MICROHTTPD_CFLAGS, MICROHTTPD_LIBS, the conditional MICROHTTPD,
# and espalier_microhttpd_state, a word for the summary. Without it the command says that it is not part of the build;
# asked for and not found it is an error.
AC_DEFUN([ESPALIER_MICROHTTPD], [
AC_ARG_WITH([microhttpd],
	[AS_HELP_STRING([--without-microhttpd], [build no server for HTTP: 'espalier serve' needs libmicrohttpd $1 or later])],
	[], [with_microhttpd=search])
espalier_microhttpd_state=no
AS_IF([test "$with_microhttpd" != no], [
	PKG_CHECK_MODULES([MICROHTTPD], [libmicrohttpd >= $1], [espalier_microhttpd_state=yes], [:])])
AS_CASE([$with_microhttpd:$espalier_microhttpd_state],
	[no:*], [AC_MSG_NOTICE([the server for HTTP is not wanted])],
	[search:no], [AC_MSG_WARN([no libmicrohttpd found (libmicrohttpd-dev): 'espalier serve' is not built])],
	[*:no], [AC_MSG_ERROR([--with-microhttpd: no libmicrohttpd of $1 or later is there])])
AM_CONDITIONAL([MICROHTTPD], [test "$espalier_microhttpd_state" = yes])
])
