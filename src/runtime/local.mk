# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/affinity.c %D%/bind_weights.c %D%/copy_plane.c %D%/crew.c %D%/crew.h %D%/data.c %D%/gate.c %D%/gate.h %D%/lazy_tables.c %D%/shared.h %D%/run_memory.c %D%/pack_weights.c %D%/record.c %D%/record.h %D%/range.c %D%/range.h %D%/rows.c %D%/runtime.h %D%/scratch.c %D%/sort_rows.c %D%/run_session.c %D%/span.c %D%/span.h %D%/split.c %D%/split.h %D%/steps.c \
	%D%/team.c %D%/team.h %D%/threads.c
EXTRA_DIST += %D%/README.md
