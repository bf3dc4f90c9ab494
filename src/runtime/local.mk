# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/affinity.c %D%/bind_weights.c %D%/copy_plane.c %D%/crew.c %D%/crew.h %D%/data.c %D%/drive_calls.c %D%/drive_calls.h %D%/gate.c %D%/gate.h %D%/input_bounds.c %D%/lazy_tables.c %D%/shared.h %D%/run_memory.c %D%/pack_weights.c %D%/record.c %D%/record.h %D%/range.c %D%/range.h %D%/rows.c %D%/runtime.h %D%/scratch.c %D%/sort_rows.c %D%/run_session.c %D%/section.c %D%/section.h %D%/span.c %D%/span.h %D%/split.c %D%/split.h %D%/steps.c \
	%D%/team.c %D%/team.h %D%/threads.c %D%/unstack_rows.c
EXTRA_DIST += %D%/README.md
