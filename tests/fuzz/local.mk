# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Readers of untrusted bytes, each behind LLVMFuzzerTestOneInput. With --enable-fuzz libFuzzer brings the main function,
# else replay.c, which takes files; replay_test.sh feeds all that lies in the corpora to either.
fuzz_targets = \
	%D%/compile_fuzz %D%/conllu_fuzz %D%/drawn_fuzz %D%/forest_fuzz %D%/image_fuzz %D%/infer_fuzz %D%/jit_fuzz %D%/json_fuzz %D%/loops_fuzz \
	%D%/model_fuzz %D%/object_fuzz %D%/onnx_fuzz %D%/plain_fuzz %D%/reference_fuzz %D%/schedule_fuzz %D%/texts_fuzz %D%/tflite_fuzz %D%/tree_fuzz %D%/vocab_fuzz %D%/vta_fuzz %D%/weights_fuzz
check_PROGRAMS += $(fuzz_targets)
check_LTLIBRARIES += %D%/libfuzz.la
%C%_libfuzz_la_SOURCES = \
	%D%/drawn.c %D%/drawn.h %D%/fuzz.c %D%/fuzz.h %D%/graphs.c %D%/graphs.h %D%/program.c %D%/program.h %D%/structures.c %D%/structures.h
if !FUZZ
%C%_libfuzz_la_SOURCES += %D%/replay.c
endif

fuzz_libraries = %D%/libfuzz.la $(LDADD)
fuzz_ldflags = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
%C%_compile_fuzz_LDADD = $(fuzz_libraries)
%C%_compile_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_conllu_fuzz_LDADD = $(fuzz_libraries)
%C%_conllu_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_drawn_fuzz_LDADD = $(fuzz_libraries)
%C%_drawn_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_forest_fuzz_LDADD = $(fuzz_libraries)
%C%_forest_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_image_fuzz_LDADD = $(fuzz_libraries)
%C%_image_fuzz_LDFLAGS = $(fuzz_ldflags)
# Bodies of requests, and the command's readers of them.
infer_sources = %D%/served.c %D%/served.h tools/serve/body.c tools/serve/describe.c tools/serve/failure.c tools/serve/gather.c \
	tools/serve/parse.c tools/serve/put_float.c tools/serve/read_texts.c tools/serve/request.c \
	tools/serve/tensor.c tools/serve/write.c
infer_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/src/api -I$(srcdir)/tools
%C%_infer_fuzz_SOURCES = %D%/infer_fuzz.c $(infer_sources)
%C%_infer_fuzz_CPPFLAGS = $(infer_cppflags)
%C%_infer_fuzz_LDADD = $(fuzz_libraries)
%C%_infer_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_texts_fuzz_SOURCES = %D%/texts_fuzz.c $(infer_sources)
%C%_texts_fuzz_CPPFLAGS = $(infer_cppflags)
%C%_texts_fuzz_LDADD = $(fuzz_libraries)
%C%_texts_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_jit_fuzz_LDADD = $(fuzz_libraries)
%C%_jit_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_json_fuzz_LDADD = $(fuzz_libraries)
%C%_json_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_loops_fuzz_LDADD = $(fuzz_libraries)
%C%_loops_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_model_fuzz_LDADD = $(fuzz_libraries)
%C%_model_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_object_fuzz_LDADD = $(fuzz_libraries)
%C%_object_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_onnx_fuzz_LDADD = $(fuzz_libraries)
%C%_onnx_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_plain_fuzz_LDADD = $(fuzz_libraries)
%C%_plain_fuzz_LDFLAGS = $(fuzz_ldflags)
# The tool's own readers of what users have.
%C%_reference_fuzz_SOURCES = %D%/reference_fuzz.c \
	tools/reference/npy.c tools/reference/npz.c tools/reference/reference.c tools/reference/safetensors.c tools/reference/text.c
%C%_reference_fuzz_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/api -I$(srcdir)/tools $(MINIZIP_CFLAGS)
%C%_reference_fuzz_LDADD = $(fuzz_libraries) $(MINIZIP_LIBS)
%C%_reference_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_schedule_fuzz_LDADD = $(fuzz_libraries)
%C%_schedule_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_tflite_fuzz_LDADD = $(fuzz_libraries)
%C%_tflite_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_tree_fuzz_LDADD = $(fuzz_libraries)
%C%_tree_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_vocab_fuzz_LDADD = $(fuzz_libraries)
%C%_vocab_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_vta_fuzz_LDADD = $(fuzz_libraries)
%C%_vta_fuzz_LDFLAGS = $(fuzz_ldflags)
%C%_weights_fuzz_LDADD = $(fuzz_libraries)
%C%_weights_fuzz_LDFLAGS = $(fuzz_ldflags)

shell_tests += %D%/replay_test.sh
EXTRA_DIST += %D%/README.md %D%/corpus %D%/dict %D%/run %D%/targets

# The targets alone, and the back ends that one of them loads.
fuzz-targets: $(fuzz_targets) $(pkglib_LTLIBRARIES)
.PHONY: fuzz-targets
