libespalier_internal_la_SOURCES += \
	%D%/file.h %D%/float16.c %D%/float16.h %D%/npy.c %D%/ptb.c %D%/ptb.h %D%/read.c %D%/safetensors.c \
	%D%/safetensors.h %D%/safetensors_write.c %D%/store.c %D%/store.h %D%/vocab.c %D%/vocab.h %D%/write.c \
	%D%/write.h
EXTRA_DIST += %D%/README.md
