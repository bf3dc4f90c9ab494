libespalier_internal_la_SOURCES += \
	%D%/compile.c %D%/jit.h %D%/load.c
EXTRA_DIST += %D%/README.md
