# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/bf16_products.c %D%/choose_functions.c %D%/compose.c %D%/condition.c %D%/contract.c %D%/cost.c %D%/embed.c %D%/rule_engine.h %D%/error_bound.c %D%/error_bound.h %D%/error_constant.c %D%/error_value.c %D%/families.c %D%/families.def \
	%D%/fold.c %D%/group_words.c %D%/match.c %D%/mean_range.c %D%/narrow.c %D%/expressions.c %D%/expressions.h %D%/optimize.c %D%/observe.c %D%/products.c %D%/products.h %D%/quantise.c %D%/replace.c %D%/rewrite.h %D%/row_scales.c %D%/rules.c %D%/rules.def %D%/rules.h \
	%D%/split_limbs.c %D%/split_limbs.h %D%/state_range.c %D%/tables.c %D%/trace.c %D%/value_range.c %D%/weight_elements.c %D%/weight_elements.h %D%/weight_scales.c %D%/word_products.c %D%/word_products.h
EXTRA_DIST += %D%/README.md
