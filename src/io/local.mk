# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/conllu.c %D%/conllu.h %D%/extent.c %D%/extent.h %D%/file.h %D%/foreign.c %D%/foreign.h %D%/folder.c %D%/folder.h %D%/float16.c %D%/float16.h %D%/json.c %D%/json.h %D%/json_fill.c \
	%D%/npy.c %D%/plain.c %D%/plain.h %D%/ptb.c %D%/ptb.h %D%/quantised.c %D%/quantised.h %D%/read.c %D%/reader.c %D%/reader.h \
	%D%/reshape.c %D%/reshape.h %D%/safetensors.c %D%/safetensors.h %D%/safetensors_write.c %D%/store.c \
	%D%/store.h %D%/structure_stream.c %D%/structure_stream.h %D%/structure.c %D%/structure.h %D%/text.c %D%/text.h %D%/vocab.c %D%/vocab.h %D%/write.c \
	%D%/write.h
EXTRA_DIST += %D%/README.md
