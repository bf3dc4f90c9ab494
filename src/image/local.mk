libespalier_internal_la_SOURCES += \
	%D%/image.h
