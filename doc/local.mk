# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The manual and the completions are written by a program of the build, from the tables of the command, the registry of
# diagnostics and doc/model-text.md.  It runs on the machine that builds: CC_FOR_BUILD.
manual_sources = \
	%D%/manual/completion.c %D%/manual/manual.c %D%/manual/manual.h %D%/manual/roff.c \
	tools/commands.def tools/options.def tools/tables.c tools/tables.h tools/tool.h \
	src/api/espalier.h src/base/diag.def src/base/targets.h src/rewrite/families.def src/rewrite/rules.def
manual = %D%/manual/manual.build
$(manual): $(manual_sources)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cd $(srcdir) && \
		$(CC_FOR_BUILD) -std=c11 -Wall -Wextra -D_GNU_SOURCE -Isrc -Isrc/api -Itools -o $(abs_builddir)/$@ \
		%D%/manual/completion.c %D%/manual/manual.c %D%/manual/roff.c tools/tables.c

man_MANS = %D%/espalier.1 %D%/espalier-algebra.7 %D%/espalier-diagnostics.7 %D%/espalier-model.7
%D%/espalier.1 %D%/espalier-diagnostics.7 %D%/espalier-model.7: $(manual) $(srcdir)/%D%/model-text.md
	$(AM_V_GEN)$(manual) $(@F) $(srcdir)/%D%/model-text.md >$@.new && mv $@.new $@
%D%/espalier-algebra.7: $(manual) $(srcdir)/%D%/algebra.md
	$(AM_V_GEN)$(manual) $(@F) $(srcdir)/%D%/algebra.md >$@.new && mv $@.new $@

bashcompdir = $(datadir)/bash-completion/completions
bashcomp_DATA = %D%/completion/espalier
fishcompdir = $(datadir)/fish/vendor_completions.d
fishcomp_DATA = %D%/completion/espalier.fish
zshcompdir = $(datadir)/zsh/site-functions
zshcomp_DATA = %D%/completion/_espalier
completion = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(manual)
%D%/completion/espalier: $(manual)
	$(completion) bash >$@.new && mv $@.new $@
%D%/completion/espalier.fish: $(manual)
	$(completion) fish >$@.new && mv $@.new $@
%D%/completion/_espalier: $(manual)
	$(completion) zsh >$@.new && mv $@.new $@

CLEANFILES += $(manual) $(man_MANS) $(bashcomp_DATA) $(fishcomp_DATA) $(zshcomp_DATA)
EXTRA_DIST += \
	%D%/manual/completion.c %D%/manual/manual.c %D%/manual/manual.h %D%/manual/roff.c
nobase_dist_doc_DATA += \
	%D%/ahead.md %D%/algebra.md %D%/api-review.md %D%/c-source.md %D%/compatibility.md %D%/limits.md %D%/linking.md %D%/model-text.md %D%/mutants.md \
	%D%/load.svg %D%/onnx.md %D%/tflite.md %D%/performance.md %D%/performance/floor.md %D%/performance/kernels.md %D%/performance/peers.md \
	%D%/performance/runs.md %D%/performance/serving.md %D%/performance/tensors.md %D%/profile.svg %D%/profiling.md %D%/precision.md %D%/pytorch.md %D%/quantise.md %D%/scale.md %D%/schedules.md %D%/serving.md %D%/structures.md %D%/tuning.md %D%/tutorial.md %D%/vta.md
