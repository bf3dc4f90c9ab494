# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/baseline.c %D%/bytes.c %D%/choices.c %D%/choose.c %D%/count.c %D%/fusion.def %D%/fusion_cost.def %D%/graph.c %D%/graph.h %D%/group.c %D%/group.h %D%/grow.c %D%/hoist.c \
	%D%/layout.c %D%/line.c %D%/line.h %D%/mapping.c %D%/mapping.def %D%/moves.c %D%/order.c %D%/parts.c %D%/plan.c %D%/plan.h %D%/print.c %D%/read.c %D%/refactor.c %D%/refactor.h %D%/refactor_child.c %D%/refactor_place.c %D%/sched.def \
	%D%/sched.h %D%/slots.c %D%/specialize.c %D%/verify.c %D%/walk.c %D%/words.c %D%/words.h %D%/work.c
EXTRA_DIST += %D%/README.md
