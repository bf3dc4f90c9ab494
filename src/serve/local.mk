# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/admit.c %D%/carry.c %D%/counters.c %D%/counters.h %D%/drive.c %D%/engine.c %D%/engine.h %D%/fill_inputs.c %D%/fill_rows.c %D%/forecast.c %D%/forecast.h %D%/give_rows.c %D%/give_rows.h %D%/metrics.c %D%/notify.c %D%/pick.c %D%/serve.h %D%/service.c %D%/service.h %D%/superstep.c \
	%D%/tickets.h %D%/trace.h %D%/trace_ring.c %D%/trace_text.c %D%/traversals.c
EXTRA_DIST += %D%/README.md
