libespalier_internal_la_SOURCES += \
	%D%/file.h %D%/float16.h %D%/ptb.c %D%/ptb.h %D%/read.c %D%/safetensors.c %D%/safetensors.h \
	%D%/store.c %D%/store.h %D%/vocab.c %D%/vocab.h
EXTRA_DIST += %D%/README.md
