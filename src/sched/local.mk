# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/accesses.c %D%/arrange.c %D%/baseline.c %D%/bytes.c %D%/choices.c %D%/choose.c %D%/count.c %D%/cut.c %D%/fusion.def %D%/fusion_cost.def %D%/given.c %D%/operator_graph.c %D%/operator_graph.h %D%/group.c %D%/group.h %D%/grow.c \
	%D%/layout.c %D%/look_up.c %D%/line.c %D%/line.h %D%/local.c %D%/mapping.c %D%/matrix_tiles.c %D%/mapping.def %D%/narrow_end.c %D%/order.c %D%/order.h %D%/chains.c %D%/choose_mutants.c %D%/plan.c %D%/plan.h %D%/print_schedule.c %D%/read_schedule.c %D%/sched.def \
	%D%/sched.h %D%/slots.c %D%/sort.c %D%/specialize.c %D%/stored_types.c %D%/verify_plan.c %D%/walk_target.c %D%/words.c %D%/words.h %D%/words_in_place.c %D%/work.c
EXTRA_DIST += %D%/README.md
