# The command sees the public header and nothing else of the library.
bin_PROGRAMS += espalier
espalier_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api -I%D%
espalier_LDADD = libespalier.la

espalier_SOURCES = \
	%D%/check.c %D%/commands.def %D%/dump.c %D%/explain_error.c %D%/init.c %D%/interrupt.c %D%/main.c \
	%D%/objects.c %D%/options.c %D%/options.def %D%/output.c %D%/run.c %D%/tables.c %D%/tables.h %D%/tool.h \
	%D%/words.c

# The models of `espalier init`, as texts for a C compiler.
init_models = %D%/init/dag.inc %D%/init/sequence.inc %D%/init/tree.inc
%D%/espalier-init.$(OBJEXT): $(init_models)
.ra.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< >$@.new && mv $@.new $@
SUFFIXES = .ra .inc
CLEANFILES += $(init_models)
EXTRA_DIST += %D%/init/dag.ra %D%/init/sequence.ra %D%/init/tree.ra
