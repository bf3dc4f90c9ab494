# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ESPALIER_ONNX(VERSION)
# What ONNX files are read with: the library protobuf-c, its compiler protoc-c, and the description of the format, onnx.proto.
# Sets PROTOBUF_C_CFLAGS, PROTOBUF_C_LIBS, PROTOC_C, ONNX_PROTO, the conditional ONNX, and espalier_onnx_state, a word for the summary.
# Without them such files are refused; asked for and not found it is an error.
AC_DEFUN([ESPALIER_ONNX], [
AC_ARG_WITH([onnx],
	[AS_HELP_STRING([--without-onnx], [read no ONNX files: that needs protobuf-c $1 or later, and onnx.proto])],
	[], [with_onnx=search])
AC_ARG_VAR([ONNX_PROTO], [the file onnx.proto that describes ONNX files])
AC_PATH_PROG([PROTOC_C], [protoc-c])
espalier_onnx_state=no
AS_IF([test "$with_onnx" != no], [
	PKG_CHECK_MODULES([PROTOBUF_C], [libprotobuf-c >= $1], [espalier_onnx_state=yes], [:])
	AC_MSG_CHECKING([for onnx.proto])
	AS_IF([test -z "$ONNX_PROTO"], [
		for espalier_folder in "$includedir" /usr/local/include /usr/include; do
			AS_IF([test -z "$ONNX_PROTO" && test -r "$espalier_folder/onnx/onnx.proto"], [ONNX_PROTO=$espalier_folder/onnx/onnx.proto])
		done])
	AC_MSG_RESULT([${ONNX_PROTO:-no}])
	AS_IF([test -z "$ONNX_PROTO" || test -z "$PROTOC_C"], [espalier_onnx_state=no])])
AS_CASE([$with_onnx:$espalier_onnx_state],
	[no:*], [AC_MSG_NOTICE([the reader of ONNX files is not wanted])],
	[search:no], [AC_MSG_WARN([no protobuf-c or no onnx.proto found (libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev): ONNX files are not read])],
	[*:no], [AC_MSG_ERROR([--with-onnx: protobuf-c of $1 or later, protoc-c and onnx.proto are not all there])])
AM_CONDITIONAL([ONNX], [test "$espalier_onnx_state" = yes])
])
