# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The plug-in has its own copy of what it shares with the library; only data passes between them.
if GCCJIT
pkglib_LTLIBRARIES += espalier-gccjit.la
endif

espalier_gccjit_la_SOURCES = \
	src/base/cpu.c src/base/diag.c src/base/dtype.c src/base/map.c src/base/memory.c src/base/str.c src/ilir/construct.c src/ilir/construct_statements.c src/ilir/query_loops.c src/ilir/walk_loops.c src/image/buffer_kinds.c \
	src/jit/place.c src/jit/place.h %D%/access.c %D%/apart.c %D%/apart.h %D%/asm.c %D%/asm.def %D%/backend.c \
	%D%/casts.c %D%/dot.c %D%/dot_bf16.c %D%/emit.c %D%/emit.h %D%/expr.c %D%/expr.h %D%/fma.c %D%/fma_f16.c %D%/half.c %D%/matrix.c %D%/processor.c \
	%D%/subvectors.c
espalier_gccjit_la_CPPFLAGS = $(AM_CPPFLAGS) $(GCCJIT_CPPFLAGS)
espalier_gccjit_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared $(GCCJIT_LDFLAGS) $(DEFINED_LDFLAGS)
espalier_gccjit_la_LIBADD = $(GCCJIT_LIBS)
EXTRA_DIST += %D%/README.md
