# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/admit.c %D%/carry.c %D%/choose_way.c %D%/choose_way.h %D%/counters.c %D%/counters.h %D%/drive.c %D%/engine.c %D%/engine.h %D%/fill_inputs.c %D%/fill_rows.c %D%/forecast.c %D%/forecast.h %D%/gather_requests.c %D%/give_rows.c %D%/give_rows.h %D%/merge_requests.c %D%/metrics.c %D%/notify.c %D%/pick.c %D%/serve.h %D%/queue.c %D%/queue.h %D%/superstep.c \
	%D%/tickets.h %D%/trace.h %D%/trace_ring.c %D%/trace_text.c %D%/traversals.c
EXTRA_DIST += %D%/README.md
