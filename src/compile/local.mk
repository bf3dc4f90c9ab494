# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/cache.c %D%/cache.h %D%/compilation.h %D%/compile.c %D%/compile.h %D%/describe_image.c %D%/dump.c \
	%D%/explain.c %D%/explain.h %D%/explain_calls.c %D%/generate.c %D%/key.c %D%/late_code.c %D%/layers.c %D%/options.def %D%/options.c %D%/options.h %D%/plan_choices.c \
	%D%/program_passes.c %D%/program_passes.def %D%/program_passes.h %D%/report_errors.c
EXTRA_DIST += %D%/README.md
