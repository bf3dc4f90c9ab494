# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/buffer_kinds.c %D%/buffer_kinds.def %D%/check_calls.c %D%/check_image.c %D%/code.c %D%/code.h %D%/frames.c %D%/frames.h %D%/gdb.c %D%/gdb.h %D%/image_file.h %D%/image.h %D%/jitdump.c %D%/jitdump.h %D%/link.c %D%/link.h %D%/link_lines.c %D%/linking.h %D%/members.c %D%/members.h %D%/object.c %D%/object.h %D%/perf.c %D%/perf.h %D%/read_image.c %D%/symfile.c %D%/step_targets.c %D%/step_targets.def %D%/symfile.h %D%/write_image.c
EXTRA_DIST += %D%/README.md
