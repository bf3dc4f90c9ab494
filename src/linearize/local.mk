# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/check_forest.c %D%/collect.c %D%/cut_spans.c %D%/descend.c %D%/fill.c %D%/find_cases.c %D%/frontier.c %D%/linearize.c %D%/linearize.h %D%/number.c %D%/number_rows.c %D%/scan.c %D%/find_spans.c \
	%D%/walk.c %D%/walk.h
EXTRA_DIST += %D%/README.md
