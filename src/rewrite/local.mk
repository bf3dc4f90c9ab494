# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/compose.c %D%/condition.c %D%/contract.c %D%/cost.c %D%/engine.h %D%/families.c %D%/families.def \
	%D%/fold.c %D%/group.c %D%/match.c %D%/mean_range.c %D%/narrow.c %D%/operators.c %D%/operators.h %D%/optimize.c %D%/quantise.c %D%/replace.c %D%/rewrite.h %D%/rules.c %D%/rules.def %D%/rules.h \
	%D%/state_range.c %D%/tables.c %D%/trace.c %D%/value_range.c
EXTRA_DIST += %D%/README.md
