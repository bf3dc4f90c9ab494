# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/vta.h %D%/vta_check.c %D%/vta_device.h %D%/vta_emit.c %D%/vta_encode.c %D%/vta_execute.c %D%/vta_file.c %D%/vta_generate.c %D%/vta_generate.h %D%/vta_isa.def %D%/vta_layout.c %D%/vta_layout.h %D%/vta_pack.c %D%/vta_pack.h %D%/vta_parse.c %D%/vta_parts.h %D%/vta_print.c \
	%D%/vta_queues.c %D%/vta_round.c %D%/vta_tile.c %D%/vta_uses.c %D%/vta_verify.c %D%/vta_verify.h
EXTRA_DIST += %D%/README.md
