# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The plug-in has its own copy of what it shares with the library; only data passes between them.
if LLVM
pkglib_LTLIBRARIES += espalier-llvm.la
endif

espalier_llvm_la_SOURCES = \
	src/base/diag.c src/base/dtype.c src/base/map.c src/base/memory.c src/base/str.c src/ilir/clone.c src/ilir/construct.c src/ilir/construct_statements.c src/ilir/query_loops.c src/ilir/walk_loops.c src/image/buffer_kinds.c \
	src/jit/place.c src/jit/place.h src/jit/units.c src/jit/units.h %D%/access.c %D%/backend.c %D%/dot.c %D%/dot_bf16.c %D%/emit.c %D%/emit.h %D%/expr.c %D%/fma.c %D%/fma_f16.c %D%/half.c %D%/lines.c %D%/matrix.c %D%/process.c %D%/processor.c
espalier_llvm_la_CPPFLAGS = $(AM_CPPFLAGS) $(LLVM_CPPFLAGS)
espalier_llvm_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared $(LLVM_LDFLAGS) $(DEFINED_LDFLAGS)
espalier_llvm_la_LIBADD = $(LLVM_LIBS)
EXTRA_DIST += %D%/README.md
