libespalier_internal_la_SOURCES += \
	%D%/image.h
EXTRA_DIST += %D%/README.md
