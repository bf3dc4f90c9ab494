# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/apply_operators.c %D%/apply_operators.h %D%/compose_maps.c %D%/constant.c %D%/declare_program.c %D%/evaluate.c %D%/index_map.c %D%/infer_vars.c %D%/intern.c %D%/intern.h %D%/live.c %D%/lower_model.c %D%/lower_movement.c %D%/lower_nest.c %D%/lower_operator.c %D%/lower_operator.h \
	%D%/names.c %D%/sub_ops.def %D%/print_program.c %D%/recursive.c \
	%D%/size.c %D%/split_cases.c %D%/subop.h %D%/traits.c %D%/verify_program.c
EXTRA_DIST += %D%/README.md
