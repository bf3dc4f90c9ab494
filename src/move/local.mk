# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/flatten.c %D%/gather.c %D%/hoist.c %D%/moved_program.c %D%/move.h %D%/moved_program.h %D%/pad.c %D%/refactor.c %D%/refactor.h %D%/refactor_child.c %D%/refactor_place.c %D%/refactor_tail.c %D%/unstack.c
EXTRA_DIST += %D%/README.md
