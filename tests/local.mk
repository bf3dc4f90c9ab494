# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Unit tests link the internal library; scripts use the command, the plug-in and the scripts of the tree.
# Those that look at the tree and at the programs made from it, rather than at the library: what an archive can break. Not
# all that take long and look at what the others look at.
archive_unit_tests = \
	%D%/cli/json_test \
	%D%/doc/architecture_test \
	%D%/examples/counts_test \
	%D%/golden/golden_test \
	%D%/golden/schedules_test
archive_shell_tests = \
	%D%/cli/cache_test.sh \
	%D%/cli/check_test.sh \
	%D%/cli/compile_test.sh \
	%D%/cli/dump_test.sh \
	%D%/cli/gccjit_test.sh \
	%D%/cli/gdb_test.sh \
	%D%/cli/helper_test.sh \
	%D%/cli/explain_error_test.sh \
	%D%/cli/explain_test.sh \
	%D%/cli/export_test.sh \
	%D%/cli/init_test.sh \
	%D%/cli/input_test.sh \
	%D%/cli/interrupt_test.sh \
	%D%/cli/profile_test.sh \
	%D%/cli/quantise_test.sh \
	%D%/cli/quantise_onnx_test.sh \
	%D%/cli/labels_test.sh \
	%D%/cli/onnx_test.sh \
	%D%/cli/tflite_test.sh \
	%D%/cli/reading_test.sh \
	%D%/cli/refuse_test.sh \
	%D%/cli/rows_test.sh \
	%D%/cli/run_test.sh \
	%D%/cli/serve_clients_test.sh \
	%D%/cli/serve_endure_test.sh \
	%D%/cli/serve_examples_test.sh \
	%D%/cli/serve_faults_test.sh \
	%D%/cli/serve_onnx_test.sh \
	%D%/cli/serve_requests_test.sh \
	%D%/cli/serve_signals_test.sh \
	%D%/cli/state_dict_test.sh \
	%D%/cli/stream_test.sh \
	%D%/cli/usage_test.sh \
	%D%/cli/vta_test.sh \
	%D%/doc/completion_test.sh \
	%D%/doc/manual_test.sh \
	%D%/examples/dependency_test.sh \
	%D%/examples/embed_test.sh \
	%D%/examples/selfattention_test.sh \
	%D%/examples/serve_test.sh \
	%D%/examples/streams_test.sh \
	%D%/examples/valgrind_test.sh \
	%D%/harness/counts_test.sh \
	%D%/harness/diagnostics_test.sh \
	%D%/harness/licence_test.sh \
	%D%/harness/lists_test.sh \
	%D%/harness/packages_test.sh \
	%D%/harness/scripts_test.sh
archive_tests = $(archive_unit_tests) $(archive_shell_tests)
# All.
unit_tests = \
	$(archive_unit_tests) \
	%D%/api/arguments_test \
	%D%/api/bodies_test \
	%D%/api/builder_mistakes_test \
	%D%/api/builder_random_test \
	%D%/api/builder_test \
	%D%/api/cache_keys_test \
	%D%/api/cache_test \
	%D%/api/calibration_test \
	%D%/api/row_scales_test \
	%D%/api/context_test \
	%D%/api/cycles_test \
	%D%/api/convolution_test \
	%D%/api/explain_test \
	%D%/api/edges_test %D%/api/within_test %D%/api/stacks_test \
	%D%/api/endure_test \
	%D%/api/export_test \
	%D%/api/failures_test \
	%D%/api/graph_test \
	%D%/api/helper_test \
	%D%/api/late_test \
	%D%/api/limits_test \
	%D%/api/machine_test \
	%D%/api/linked_test \
	%D%/api/many_test \
	%D%/api/memory_test \
	%D%/api/message_test \
	%D%/api/numbers_test %D%/api/elements_test \
	%D%/api/overload_test \
	%D%/api/prelude_test \
	%D%/api/profile_test \
	%D%/api/race_test \
	%D%/api/narrow_test \
	%D%/api/rewriting_test \
	%D%/api/run_test \
	%D%/api/saved_test \
	%D%/api/source_test \
	%D%/api/scale_test \
	%D%/api/service_refusals_test \
	%D%/api/service_trace_test %D%/api/serving_test \
	%D%/api/state_test \
	%D%/api/streams_test \
	%D%/api/swap_test \
	%D%/api/lazy_test \
	%D%/api/permission_test \
	%D%/api/target_names_test \
	%D%/api/target_test \
	%D%/api/team_test \
	%D%/api/treebank_test \
	%D%/api/trim_test \
	%D%/api/weights_test \
	%D%/base/floats_test \
	%D%/base/fork_test \
	%D%/base/machine_test \
	%D%/base/memory_test \
	%D%/base/number_test \
	%D%/base/quota_test \
	%D%/data/sst_test \
	%D%/examples/models_test \
	%D%/examples/patches_test \
	%D%/examples/traversals_test \
	%D%/faults/faults_test \
	%D%/ilir/fetch_ahead_test \
	%D%/ilir/interpret_test \
	%D%/ilir/math_test \
	%D%/ilir/matrix_test \
	%D%/ilir/peel_test \
	%D%/ilir/pipeline_test \
	%D%/ilir/casts_test \
	%D%/ilir/text_test \
	%D%/ilir/verify_test \
	%D%/ilir/walk_test \
	%D%/image/bent_test \
	%D%/image/check_rows_test \
	%D%/image/check_test \
	%D%/image/code_test \
	%D%/image/file_test \
	%D%/image/kinds_test \
	%D%/image/link_test \
	%D%/io/conllu_test \
	%D%/io/file_test \
	%D%/io/float16_test \
	%D%/io/json_test \
	%D%/io/ptb_test \
	%D%/io/reader_test \
	%D%/io/safetensors_test \
	%D%/io/store_test \
	%D%/io/stream_test \
	%D%/io/vocab_test \
	%D%/io/write_test \
	%D%/jit/access_test \
	%D%/jit/compile_test \
	%D%/jit/expr_test \
	%D%/jit/types_test \
	%D%/jit/lines_test \
	%D%/jit/units_test \
	%D%/jit/fma_test %D%/jit/dot_bf16_test %D%/jit/fma_f16_test \
	%D%/jit/fork_test \
	%D%/jit/functions_test \
	%D%/jit/load_test \
	%D%/jit/refuse_test \
	%D%/jit/threads_test \
	%D%/jit/tile_test %D%/jit/amx_test \
	%D%/linearize/collect_test \
	%D%/linearize/large_test \
	%D%/linearize/linearize_test \
	%D%/linearize/random_test \
	%D%/linearize/span_test \
	%D%/linearize/walk_test \
	%D%/models/blocks_test \
	%D%/models/depth_test \
	%D%/models/differential_test \
	%D%/models/dump_test \
	%D%/models/cut_test \
	%D%/models/windows_test \
	%D%/models/layout_test \
	%D%/models/machines_test \
	%D%/models/observed_test \
	%D%/models/operators_test \
	%D%/models/primitives_test \
	%D%/models/random_matrices_test \
	%D%/models/random_test \
	%D%/models/tiles_test \
	%D%/models/scratch_test \
	%D%/models/sizes_test \
	%D%/models/threads_test \
	%D%/models/unroll_test \
	%D%/models/special_test \
	%D%/models/narrow_test %D%/models/precision_test %D%/models/error_bound_test %D%/models/typed_test %D%/models/types_test \
	%D%/mutation/mutation_test \
	%D%/ra/bind_test \
	%D%/ra/builder_test \
	%D%/ra/document_test \
	%D%/ra/illegal_test \
	%D%/ra/parse_test \
	%D%/ra/robust_test \
	%D%/runtime/bind_test \
	%D%/runtime/drive_test \
	%D%/runtime/pack_test \
	%D%/runtime/record_test \
	%D%/runtime/session_test \
	%D%/runtime/section_test \
	%D%/runtime/split_test \
	%D%/runtime/team_delays_test \
	%D%/runtime/team_process_test \
	%D%/runtime/team_test \
	%D%/runtime/strategies_test \
	%D%/serve/choose_way_test \
	%D%/serve/counters_test \
	%D%/serve/forecast_test \
	%D%/serve/gather_test \
	%D%/serve/merge_requests_test \
	%D%/serve/random_company_test \
	%D%/serve/refuse_requests_test \
	%D%/serve/service_test \
	%D%/serve/serve_test \
	%D%/sched/arrange_test %D%/sched/words_in_place_test \
	%D%/sched/choices_test \
	%D%/sched/matrix_tiles_test \
	%D%/move/flatten_test \
	%D%/move/hoist_test \
	%D%/move/pad_test \
	%D%/sched/made_names_test \
	%D%/move/refactor_test \
	%D%/move/tail_test \
	%D%/move/unstack_test \
	%D%/sched/plan_test \
	%D%/sched/schedule_test \
	%D%/subop/extra_op_test \
	%D%/split/random_split_test \
	%D%/mutate/mutants_test \
	%D%/mutate/generated_test \
	%D%/mutate/cancel_test \
	%D%/mutate/chains_test \
	%D%/mutate/leaves_test \
	%D%/mutate/products_test \
	%D%/mutate/single_rules_test \
	%D%/mutate/random_linear_test \
	%D%/rewrite/byte_products_test \
	%D%/rewrite/choose_functions_test \
	%D%/rewrite/compose_test \
	%D%/rewrite/exact_bits_test \
	%D%/rewrite/image_rules_test \
	%D%/rewrite/operands_test \
	%D%/rewrite/optimize_test \
	%D%/rewrite/range_test \
	%D%/rewrite/integer_rules_test \
	%D%/rewrite/limbs_test \
	%D%/rewrite/published_test \
	%D%/subop/random_lower_test \
	%D%/move/random_moves_test \
	%D%/rewrite/random_rewrite_test \
	%D%/rewrite/rules_test \
	%D%/rewrite/families_test \
	%D%/rewrite/fold_test \
	%D%/subop/subop_test \
	%D%/tools/infer_bits_test \
	%D%/tools/infer_numbers_test \
	%D%/tools/infer_test \
	%D%/tools/list_mutants_test \
	%D%/tools/machine_test \
	%D%/tools/profile_test \
	%D%/vta/generate_test \
	%D%/vta/mutate_test \
	%D%/vta/stream_test \
	%D%/vta/verify_test
shell_tests = \
	$(archive_shell_tests) \
	%D%/mutate/seeded_faults_test.sh \
	%D%/cli/batch_test.sh \
	%D%/cli/target_test.sh \
	%D%/cli/bench_test.sh \
	%D%/cli/compare_test.sh \
	%D%/cli/limits_test.sh \
	%D%/cli/amx_test.sh %D%/cli/machine_test.sh \
	%D%/cli/mutants_test.sh \
	%D%/cli/perf_test.sh \
	%D%/cli/progress_test.sh \
	%D%/cli/tune_test.sh \
	%D%/examples/ahead_test.sh \
	%D%/api/header_test.sh \
	%D%/compile/options_test.sh \
	%D%/api/symbols_test.sh \
	%D%/bench/bench_test.sh \
	%D%/bench/contestants_test.sh \
	%D%/bench/graphs_test.sh \
	%D%/bench/load_test.sh \
	%D%/jit/machines_test.sh \
	%D%/jit/moved_test.sh \
	%D%/python/package_test.sh \
	%D%/sched/names_test.sh \
	%D%/vta/simulate_test.sh

# Folders and files that tests read.
test_data = \
	%D%/golden/blocks %D%/golden/bytes %D%/golden/calibrated %D%/golden/cell %D%/golden/cell-parent %D%/golden/conv %D%/golden/counted %D%/golden/dilated %D%/golden/dot %D%/golden/down %D%/golden/edges %D%/golden/gated %D%/golden/gated-parent %D%/golden/heads %D%/golden/labels %D%/golden/limbs %D%/golden/mlp %D%/golden/mutated %D%/golden/network %D%/golden/nest %D%/golden/observed %D%/golden/pixels %D%/golden/quantised %D%/golden/quantised-bf16 %D%/golden/quantised-bf16x3 %D%/golden/quantised-f16 %D%/golden/quantised-i8x3 %D%/golden/scores %D%/golden/seam %D%/golden/sorted %D%/golden/steps %D%/golden/tiles %D%/golden/twobytes %D%/golden/windows %D%/ra/good %D%/ra/illegal %D%/cli/labelled.ra %D%/cli/nan.ra \
	%D%/cli/gates-wrong.npz %D%/cli/gates.npz %D%/cli/gates.ra \
	%D%/cli/curl.sh %D%/cli/serve.sh %D%/cli/serve_clients.py %D%/cli/serve_endure.py %D%/cli/serve_faults.py %D%/cli/onnx_file.py %D%/cli/serve_onnx.py %D%/cli/serve_requests.py %D%/cli/serve_signals.py %D%/cli/serving.py %D%/cli/support.sh %D%/cli/tiny.ra %D%/examples/counts.txt %D%/examples/valgrind.supp %D%/golden/bytes.ra %D%/golden/cell.ra %D%/golden/conv.ra %D%/golden/counted.ra %D%/golden/depthwise.ra %D%/golden/dilated.ra %D%/golden/dot.ra %D%/golden/down.ra %D%/golden/edges.ra %D%/golden/gated.ra %D%/golden/heads.ra %D%/golden/labels.ra %D%/golden/matrix.ra %D%/golden/mlp.ra %D%/golden/nest.ra %D%/golden/pixels.ra %D%/golden/network.ra %D%/golden/quantised.ra %D%/golden/twobytes.ra %D%/golden/scores.ra %D%/golden/seam.ra %D%/golden/steps.ra %D%/golden/windows.ra %D%/models/dots.ra %D%/models/mixed.ra %D%/models/bounded.ra %D%/models/boundedtree.ra %D%/models/declared.ra %D%/models/rows.ra %D%/models/sidebyside.ra %D%/models/softened.ra \
	%D%/sched/attention.ra %D%/sched/gru.ra %D%/sched/shared.ra %D%/models/borders.ra %D%/models/integer_borders.ra %D%/models/byte_windows.ra %D%/models/constants.ra %D%/models/labels.ra %D%/models/members.ra %D%/models/nested.ra %D%/models/dgl.ra %D%/models/flat.ra %D%/models/order.ra %D%/models/outside_sums.ra %D%/models/pairs.ra %D%/models/selected.ra %D%/models/tagged.ra %D%/models/parts.ra \
	%D%/models/bilstm.ra %D%/models/choices.ra %D%/models/edgekinds.ra %D%/models/instances.ra %D%/models/mixedgates.ra %D%/models/numbered.ra %D%/models/parents.ra %D%/models/stacked.ra %D%/models/typedlayers.ra %D%/models/types.ra \
	%D%/models/axes.ra %D%/models/columns.ra %D%/models/convolution.ra %D%/models/gather.ra %D%/models/indexed.ra %D%/models/looked.ra %D%/models/matrices.ra %D%/models/perceptron.ra %D%/models/nests.ra %D%/models/positions.ra %D%/models/products.ra %D%/models/ragged.ra %D%/models/reshape.ra %D%/models/scan.ra %D%/models/sides.ra %D%/models/slots.ra %D%/models/strides.ra %D%/models/ternary.ra %D%/models/transposed.ra \
	%D%/models/typed_dag.ra %D%/mutate/faults.tsv %D%/vta/product.golden %D%/vta/simulate.py

check_PROGRAMS += $(unit_tests)
script_programs += %D%/jit/record %D%/vta/run_stream
LDADD = libespalier-internal.la

# Parts of the command that need nothing else of it.
tests_tools_profile_test_SOURCES = %D%/tools/profile_test.c tools/floor.c tools/interrupt.c tools/machine.c tools/options.c tools/output.c \
	tools/profile/gather.c tools/profile/json.c tools/profile/legend.c tools/profile/summary.c tools/profile/svg.c tools/profile/text.c \
	tools/profile/trace.c tools/profile/words.c tools/recording.c tools/tables.c tools/words.c
tests_tools_profile_test_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/api -I$(srcdir)/tools
# Bodies of requests.  Memory is refused between the command's code and the C library.
infer_test_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/src/api -I$(srcdir)/tools
tests_tools_infer_bits_test_CPPFLAGS = $(infer_test_cppflags)
tests_tools_infer_bits_test_LDADD = libespalier-tools.a $(LDADD) $(JANSSON_LIBS)
tests_tools_infer_numbers_test_CPPFLAGS = $(infer_test_cppflags)
tests_tools_infer_numbers_test_LDADD = libespalier-tools.a $(LDADD)
tests_tools_infer_test_CPPFLAGS = $(infer_test_cppflags)
tests_tools_infer_test_LDADD = libespalier-tools.a $(LDADD)
tests_tools_infer_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=free
tests_tools_list_mutants_test_CPPFLAGS = $(infer_test_cppflags)
tests_tools_list_mutants_test_LDADD = libespalier-tools.a $(LDADD) $(JANSSON_LIBS) $(MINIZIP_LIBS)
tests_tools_machine_test_SOURCES = %D%/tools/machine_test.c tools/machine.c

tests_faults_faults_test_SOURCES = %D%/faults/faults_test.c %D%/faults/inject.c

# A host that uses OpenMP itself.
tests_runtime_team_process_test_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)

# The files that have a table of operators, once more with the rows of this test.
tests_subop_extra_op_test_SOURCES = \
	%D%/subop/extra_op_test.c src/ra/build.c src/ra/calls.c src/ra/types.c src/subop/traits.c src/subop/apply_operators.c src/subop/evaluate.c src/subop/lower_operator.c \
	src/rewrite/optimize.c src/rewrite/rules.c \
	src/ilir/lower_value.c
tests_subop_extra_op_test_CPPFLAGS = $(AM_CPPFLAGS) \
	-DSUB_EXTRA_OPS='"tests/subop/extra_sub.def"' -DRA_EXTRA_OPS='"tests/subop/extra_ra.def"'

# A back end of another version, to be refused.  A module is built for a place to install to, though it never goes there.
check_LTLIBRARIES += espalier-fake.la
espalier_fake_la_SOURCES = %D%/jit/fake_backend.c
espalier_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(pkglibdir)
check_LTLIBRARIES += espalier-counting.la
espalier_counting_la_SOURCES = %D%/jit/counting_backend.c
espalier_counting_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(pkglibdir)

# Calls that fail, to be preloaded.
check_LTLIBRARIES += %D%/faults/refuse.la
%C%_faults_refuse_la_SOURCES = %D%/faults/refuse.c
%C%_faults_refuse_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath $(pkglibdir)

noinst_HEADERS = \
	%D%/api/built.h %D%/api/calibrated.h %D%/api/called.h %D%/api/serving.h %D%/api/support.h %D%/backends.h %D%/faults/inject.h %D%/budget.h %D%/floats.h %D%/examples/equations.h %D%/examples/labels.h %D%/examples/numbers.h %D%/ilir/support.h %D%/image/bending.h %D%/image/bytes.h %D%/image/object.h %D%/io/files.h %D%/io/show.h %D%/jit/amx.h %D%/jit/helper.h %D%/jit/record.h %D%/linearize/forests.h \
	%D%/options.h %D%/models/atoms.h %D%/models/bounded_input.h %D%/models/cells.h %D%/models/checked.h %D%/models/expressions.h %D%/models/forms.h %D%/models/generate.h %D%/models/guard.h %D%/models/index_notation.h %D%/models/schedules.h %D%/models/subject.h %D%/models/helper.h %D%/models/reference.h %D%/models/reference_numbers.h %D%/models/reference_operators.h %D%/models/typed_operators.h %D%/models/agree.h %D%/models/anyhow.h %D%/mutate/linear.h %D%/mutate/known_lines.h %D%/mutate/oracle.h %D%/mutation/loops.h %D%/mutation/mutant.h %D%/mutation/mutations.def \
	%D%/mutation/programs.h %D%/mutation/runs.h %D%/ra/read.h \
	%D%/ra/same.h %D%/ra/session.h %D%/runtime/crew_work.h %D%/sample.h %D%/sanitizers.h %D%/serve/company.h %D%/tools/served.h %D%/models/variants.h %D%/move/moving.h %D%/subop/extra_ra.def %D%/subop/extra_sub.def %D%/rewrite/derivation.h %D%/rewrite/instance.h %D%/subop/random.h %D%/subop/run.h %D%/tap.h %D%/vta/operations.h %D%/vta/streams.h
EXTRA_DIST += %D%/mutation/README.md %D%/backends.sh %D%/tap.sh %D%/jit/replay.c $(shell_tests) $(test_data)

TESTS = $(unit_tests) $(shell_tests)
TEST_EXTENSIONS = .sh
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_DRIVER = $(TAP_DRIVER)
SH_LOG_COMPILER = $(BASH)

# What tests may rely on, beside `srcdir`.  Tests of real data skip when ESPALIER_DATA is no folder.  Programs that the
# library keeps are kept in the build tree.
AM_TESTS_ENVIRONMENT = $(SANITIZE_ENVIRONMENT) \
	export builddir='$(abs_top_builddir)'; \
	export CC='$(CC)'; \
	export ESPALIER='$(abs_top_builddir)/espalier'; \
	export ESPALIER_BACKEND_PATH='$(abs_top_builddir)/.libs'; \
	export XDG_CACHE_HOME='$(abs_top_builddir)/tests/cache'; \
	export ESPALIER_MACHINE=defaults; \
	@SANITIZE_ENVIRONMENT@ \
	export ESPALIER_DATA="$${ESPALIER_DATA-$(abs_top_srcdir)/../shared/data}";

clean-local:
	rm -rf tests/cache
.PHONY: clean-local

# Compiles the tests without running them.
test-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)
.PHONY: test-programs

# What takes minutes: every float through exp, log, sigmoid, tanh and sqrt, every failing request and call.
check-long:
	ESPALIER_STRIDE=1 $(MAKE) check TESTS='%D%/jit/functions_test %D%/api/failures_test %D%/faults/faults_test \
		%D%/cli/serve_faults_test.sh'
.PHONY: check-long

# Writes the expected texts of these tests anew: read the difference before you keep it.
golden_tests = %D%/examples/counts_test %D%/golden/golden_test %D%/golden/schedules_test %D%/ra/parse_test
update-golden:
	UPDATE_GOLDEN=1 $(MAKE) check TESTS='$(golden_tests)'
.PHONY: update-golden
