# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
libespalier_internal_la_SOURCES += \
	%D%/graph.c %D%/graph.h %D%/onnx_types.def \
	%D%/constants.c %D%/control.c %D%/convolve.c %D%/elementwise.c %D%/fold_nodes.c %D%/import.c %D%/import.h %D%/iterate.c %D%/iterate.h %D%/loss.c %D%/matmul.c %D%/movement.c \
	%D%/normalise.c %D%/onnx_ops.def %D%/operand.c %D%/operators.c %D%/operators.h %D%/qlinear.c %D%/quantised_values.c %D%/quantised_values.h %D%/recurrent.c %D%/reduce.c %D%/resize.c %D%/sample_images.c %D%/select.c %D%/spectrum.c %D%/windows.h %D%/write_formulas.c %D%/write_scan.c

# The reader, and the messages that protoc-c makes of the description of the format.
onnx_reader = \
	%D%/attributes.c %D%/decide.c %D%/definitions.c %D%/external.c %D%/join_quantised.c %D%/make_graph.c %D%/newer_fields.def %D%/read_onnx.c %D%/reading.h \
	%D%/scan_bytes.c %D%/scan_bytes.h %D%/tensors.c %D%/topological.c %D%/unpack.c
if ONNX
libespalier_internal_la_SOURCES += $(onnx_reader)
nodist_libespalier_internal_la_SOURCES = %D%/onnx.pb-c.c
%D%/onnx.pb-c.c: $(ONNX_PROTO)
	$(AM_V_GEN)$(MKDIR_P) %D% && folder=`dirname $(ONNX_PROTO)` && $(PROTOC_C) --proto_path=$$folder --c_out=%D% $(ONNX_PROTO)
%D%/onnx.pb-c.h: %D%/onnx.pb-c.c
%D%/libespalier_internal_la-attributes.lo %D%/libespalier_internal_la-decide.lo %D%/libespalier_internal_la-definitions.lo \
%D%/libespalier_internal_la-external.lo %D%/libespalier_internal_la-join_quantised.lo %D%/libespalier_internal_la-make_graph.lo %D%/libespalier_internal_la-read_onnx.lo \
%D%/libespalier_internal_la-tensors.lo %D%/libespalier_internal_la-topological.lo %D%/libespalier_internal_la-unpack.lo: %D%/onnx.pb-c.h
CLEANFILES += %D%/onnx.pb-c.c %D%/onnx.pb-c.h
else
libespalier_internal_la_SOURCES += %D%/no_reader.c
endif
EXTRA_DIST += %D%/README.md %D%/no_reader.c $(onnx_reader)
