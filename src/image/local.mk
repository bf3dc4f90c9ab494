libespalier_internal_la_SOURCES += \
	%D%/code.c %D%/code.h %D%/image.h %D%/link.c %D%/link.h
EXTRA_DIST += %D%/README.md
