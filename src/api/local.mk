# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
lib_LTLIBRARIES += libespalier.la
include_HEADERS += %D%/espalier.h %D%/espalier_arrays.h %D%/espalier_builder.h %D%/espalier_profile.h %D%/espalier_quantise.h \
	%D%/espalier_service.h %D%/espalier_treebank.h %D%/espalier_vta.h

# current:revision:age.  A release that changes no symbol: revision + 1.  One that only adds symbols: current + 1,
# age + 1, revision 0.  One that removes or changes a symbol, a public struct or a meaning: current + 1, age 0,
# revision 0; the soname changes then.
libespalier_version = 2:0:0

# Never unloaded: threads of an ended team may be on their way out of the OpenMP library, which goes with it.
libespalier_la_SOURCES =
libespalier_la_LIBADD = libespalier-internal.la
libespalier_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(libespalier_version) $(DEFINED_LDFLAGS) \
	-Wl,--version-script=$(srcdir)/%D%/espalier.map -Wl,-z,nodelete
EXTRA_libespalier_la_DEPENDENCIES = %D%/espalier.map build-aux/link-library.sh
# As automake would say it, by way of the script: an archive knows no map, so the script hides its other names.
libespalier_la_LINK = $(BASH) $(srcdir)/build-aux/link-library.sh $(srcdir)/%D%/espalier.map '$(CC) $(CFLAGS)' \
	'$(OBJCOPY)' '$(AR)' $@ $(LIBTOOL) $(AM_V_lt) --tag=CC $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=link \
	$(CCLD) $(AM_CFLAGS) $(CFLAGS) $(libespalier_la_LDFLAGS) $(LDFLAGS) -o $@
EXTRA_DIST += %D%/espalier.map

libespalier_internal_la_SOURCES += \
	%D%/add_structures.c %D%/binding.c %D%/bodies.c %D%/build_model.c %D%/call.c %D%/calibration.c %D%/calibration.h %D%/call_arrays.c \
	%D%/context.c %D%/error.c %D%/export.c %D%/forest.c %D%/objects.h %D%/linked.c %D%/find_machine.c \
	%D%/message.c %D%/model.c %D%/onnx_model.c %D%/counted.c %D%/read_options.c %D%/read_options.h %D%/profile.c %D%/profile.h %D%/dump_program.c %D%/make_code.c %D%/program.c %D%/quantised_weights.c %D%/save_source.c %D%/saved.c %D%/service.c %D%/session.c %D%/stream.c %D%/submit.h %D%/tensor.c %D%/copy_text.c %D%/deep_stack.c %D%/treebank.c %D%/vocabulary.c %D%/vta_stream.c \
	%D%/weights.c %D%/write_quantised.c
EXTRA_DIST += %D%/README.md
