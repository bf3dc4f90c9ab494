# The command sees the public header and nothing else of the library.
bin_PROGRAMS += espalier
espalier_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
espalier_LDADD = libespalier.la

espalier_SOURCES = \
	%D%/check.c %D%/dump.c %D%/main.c %D%/objects.c %D%/options.c %D%/output.c %D%/run.c %D%/tool.h
