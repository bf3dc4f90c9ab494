# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	src/jit/place.c src/jit/place.h \
	%D%/csource.h %D%/print_arithmetic.c %D%/print_calls.c %D%/print_executor.c %D%/print_kernels.c %D%/print_memory.c %D%/print_names.c \
	%D%/print_run.c %D%/print_values.c %D%/print_weights.c %D%/write_source.c %D%/writer.h
EXTRA_DIST += %D%/README.md %D%/run_modules.txt

# Conversions between types, and what instructions of the accelerator do, are in written source as they are in the library: as texts,
# without the headers of the library that they include.
write_text = $(MKDIR_P) %D% && { echo "static const char $$name[] ="; \
	sed -e '/^\#include "/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $$text; echo ';'; } >$@.new && mv $@.new $@
%D%/convert_text.inc: src/base/convert.h
	$(AM_V_GEN)name=conversions text=$(srcdir)/src/base/convert.h; $(write_text)
%D%/device_text.inc: src/vta/vta_device.h
	$(AM_V_GEN)name=device_source text=$(srcdir)/src/vta/vta_device.h; $(write_text)
%D%/modules_text.inc: %D%/run_modules.txt
	$(AM_V_GEN)name=modules_source text=$(srcdir)/%D%/run_modules.txt; $(write_text)
arithmetic_object = %D%/libespalier_internal_la-print_arithmetic.lo
$(arithmetic_object): %D%/convert_text.inc
executor_object = %D%/libespalier_internal_la-print_executor.lo
$(executor_object): %D%/device_text.inc %D%/modules_text.inc
CLEANFILES += %D%/convert_text.inc %D%/device_text.inc %D%/modules_text.inc
