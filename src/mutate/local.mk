# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/apply_mutants.c %D%/build_mutant.c %D%/build_products.c %D%/cancel_moves.c %D%/correct_mutant.c %D%/image_mutant.h %D%/like_inner.c %D%/mutant_lines.c %D%/mutant_lines.h %D%/mutants.def \
	%D%/print_mutants.c %D%/print_products.c %D%/product_mutant.h %D%/products.def %D%/prove_products.c \
	%D%/search_mutants.c %D%/search_products.c %D%/shape_mutant.c \
	%D%/compare_values.c %D%/compute_all.c %D%/cuts.c %D%/forms.c %D%/forms.h %D%/index_conditions.c %D%/motions.c %D%/mutate.h \
	%D%/print_boxes.c %D%/sample.c
EXTRA_DIST += %D%/README.md
