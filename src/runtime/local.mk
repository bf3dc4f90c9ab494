# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/bind.c %D%/crew.c %D%/crew.h %D%/data.c %D%/gate.c %D%/gate.h %D%/internal.h %D%/memory.c %D%/pack.c %D%/profile.c %D%/profile.h %D%/range.c %D%/range.h %D%/rows.c %D%/runtime.h %D%/scratch.c %D%/session.c %D%/span.c %D%/span.h %D%/split.c %D%/split.h %D%/steps.c \
	%D%/team.c %D%/team.h %D%/threads.c
EXTRA_DIST += %D%/README.md
