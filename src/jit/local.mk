# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/compile_kernels.c %D%/helper.c %D%/helper.h %D%/jit.h %D%/load.c %D%/units.c %D%/units.h
EXTRA_DIST += %D%/README.md

# The helper program.  In the build tree it is found where the plug-ins are.
pkglibexec_PROGRAMS += espalier-compile
espalier_compile_SOURCES = %D%/helper/main.c
noinst_DATA += .libs/espalier-compile
.libs/espalier-compile: espalier-compile$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) .libs && ln -sf ../espalier-compile$(EXEEXT) $@
CLEANFILES += .libs/espalier-compile
