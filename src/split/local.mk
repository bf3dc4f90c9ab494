# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/compute_blocks.c %D%/cut_program.c %D%/cutting.h %D%/find_functions.c %D%/find_layouts.c %D%/find_products.c %D%/lay_constants.c %D%/match_tail.c %D%/patterns.def %D%/print_split.c %D%/target_split.h
EXTRA_DIST += %D%/README.md
