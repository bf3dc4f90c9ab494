# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The command sees the public header and, of the library, only what includes nothing else of it: the names of targets,
# how a machine is measured, and how JSON, decimals and UTF-8 are read.
bin_PROGRAMS += espalier
tools_cppflags = -D_GNU_SOURCE -I$(srcdir)/src/api -I$(srcdir)/src -I%D% -I$(srcdir)/%D% \
	$(JANSSON_CFLAGS) $(MINIZIP_CFLAGS)
tools_libraries = libespalier-tools.a libespalier.la $(JANSSON_LIBS) $(MINIZIP_LIBS)
espalier_CPPFLAGS = $(tools_cppflags)
espalier_LDADD = $(tools_libraries)
espalier_SOURCES = %D%/main.c

# All but the dispatch of commands, which bench/serve has in common with the command.
noinst_LIBRARIES = libespalier-tools.a
libespalier_tools_a_CPPFLAGS = $(tools_cppflags) -DPKGLIBEXECDIR='"$(pkglibexecdir)"'
libespalier_tools_a_SOURCES = \
	%D%/array_file.c %D%/array_file.h %D%/arrays.c %D%/batches.c %D%/calibrate.c %D%/calibrate.h %D%/calibrate_report.c %D%/check.c %D%/commands.def %D%/compile.c %D%/describe.c %D%/dump.c %D%/explain.c %D%/explain_error.c %D%/floor.c %D%/floor.h %D%/init.c %D%/interrupt.c \
	%D%/machine.c %D%/machine.h src/base/measure.c src/base/measure.h src/base/measure_loops.h src/base/target_loops.c src/base/target_loops.h src/base/targets.h \
	src/base/decimal.c src/base/decimal.h src/base/json_number.c src/base/json_scan.c src/base/json_scan.h src/base/utf8.c src/base/utf8.h \
	%D%/objects.c %D%/onnx.c %D%/options.c %D%/options.def %D%/output.c %D%/reading.c %D%/recording.c %D%/recording.h %D%/run.c %D%/tables.c %D%/tables.h %D%/tool.h \
	%D%/vta.c %D%/words.c
libespalier_tools_a_SOURCES += \
	%D%/serve/body.c %D%/serve/body.h %D%/serve/describe.c %D%/serve/failure.c %D%/serve/gather.c %D%/serve/infer.h \
	%D%/serve/parse.c %D%/serve/put_float.c %D%/serve/read_texts.c %D%/serve/request.c %D%/serve/request.h \
	%D%/serve/start.c %D%/serve/tensor.c %D%/serve/tensor.h %D%/serve/write.c
libespalier_tools_a_SOURCES += \
	%D%/bench/ablation.c %D%/bench/ablation.def %D%/bench/bench.h %D%/bench/candidates.c %D%/bench/candidates.h %D%/bench/command.c %D%/bench/exhaustive.c %D%/bench/floor.c %D%/bench/input.c %D%/bench/report.c %D%/bench/shapes.c %D%/bench/subject.c \
	%D%/bench/weights.c \
	%D%/compare/bounds.c %D%/compare/command.c %D%/compare/compare.h %D%/compare/find.c %D%/compare/json.c %D%/compare/levels.c \
	%D%/compare/locals.c %D%/compare/match.c \
	%D%/compare/measure.c %D%/compare/say.c %D%/reference/npy.c %D%/reference/npz.c \
	%D%/reference/reference.c %D%/reference/reference.h %D%/reference/safetensors.c %D%/reference/text.c
libespalier_tools_a_SOURCES += \
	%D%/profile/command.c %D%/profile/gather.c %D%/profile/json.c %D%/profile/legend.c %D%/profile/picture.h %D%/profile/profile.h %D%/profile/summary.c \
	%D%/profile/svg.c %D%/profile/text.c %D%/profile/trace.c %D%/profile/words.c
libespalier_tools_a_SOURCES += %D%/init/extents.c %D%/init/skeleton.c %D%/init/skeleton.h
libespalier_tools_a_SOURCES += %D%/tune/climb.c %D%/tune/command.c %D%/tune/contest.c %D%/tune/mutants.c %D%/tune/precisions.c %D%/tune/space.c %D%/tune/tune.h
# What `espalier serve` goes on as.
if MICROHTTPD
pkglibexec_PROGRAMS += espalier-serve
espalier_serve_CPPFLAGS = $(tools_cppflags) $(MICROHTTPD_CFLAGS)
espalier_serve_LDADD = $(tools_libraries) $(MICROHTTPD_LIBS)
espalier_serve_SOURCES = %D%/serve/access_log.c %D%/serve/compute.c %D%/serve/decide.c %D%/serve/http.c %D%/serve/listen.c %D%/serve/load.c %D%/serve/loop.c \
	%D%/serve/main.c %D%/serve/metrics.c %D%/serve/models.c %D%/serve/routes.c %D%/serve/serve.h %D%/serve/systemd.c %D%/serve/trace.c
endif

# The models of `espalier init`, as texts for a C compiler.
init_models = %D%/init/dag.inc %D%/init/none.inc %D%/init/sequence.inc %D%/init/tree.inc
%D%/libespalier_tools_a-init.$(OBJEXT): $(init_models)
# And those of `espalier bench --ablation`.
bench_texts = bench/models/childsum.inc bench/models/simpletreegru.inc bench/models/treefc.inc bench/models/treegru.inc \
	bench/models/treernn.inc examples/dagrnn/dagrnn.inc examples/mvrnn/mvrnn.inc examples/lstm/lstm.inc examples/gru/gru.inc
%D%/bench/libespalier_tools_a-ablation.$(OBJEXT): $(bench_texts)
.ra.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< >$@.new && mv $@.new $@
SUFFIXES = .ra .inc
CLEANFILES += $(init_models) $(bench_texts)
EXTRA_DIST += %D%/serve/README.md %D%/init/dag.ra %D%/init/none.ra %D%/init/sequence.ra %D%/init/tree.ra
