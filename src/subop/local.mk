# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/build.c %D%/condition.c %D%/contract.c %D%/evaluate.c %D%/families.c %D%/families.def %D%/fold.c %D%/lower.c %D%/match.c %D%/narrow.c \
	%D%/measure.c %D%/move.c %D%/names.c %D%/ops.def %D%/optimize.c %D%/print.c %D%/range.c %D%/recursive.c %D%/replace.c %D%/rewrite.h %D%/rules.c \
	%D%/rules.def %D%/rules.h %D%/split.c %D%/subop.h %D%/tables.c %D%/trace.c %D%/verify.c
EXTRA_DIST += %D%/README.md
