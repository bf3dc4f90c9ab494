# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/checksum.c %D%/checksum.h %D%/convert.h %D%/cpu.c %D%/cpu.h %D%/decimal.c %D%/decimal.h %D%/diag.c %D%/diag.def %D%/graph_files.def %D%/diag.h %D%/dtype.c %D%/dtype.def %D%/dtype.h %D%/precision.c %D%/precision.def %D%/precision.h %D%/floats.h %D%/fork.c %D%/fork.h %D%/iteration.def \
	%D%/json_number.c %D%/json_scan.c %D%/json_scan.h %D%/map.c %D%/map.h %D%/machine.c %D%/machine.h %D%/measure.c %D%/measure.h %D%/measure_loops.h %D%/target_loops.c %D%/target_loops.h %D%/memory.c %D%/memory.h %D%/quota.c %D%/quota.h %D%/str.c %D%/str.h %D%/target.c %D%/target.def %D%/target.h %D%/targets.h %D%/tensor.h \
	%D%/times.c %D%/times.h %D%/utf8.c %D%/utf8.h %D%/vec.h
EXTRA_DIST += %D%/README.md
