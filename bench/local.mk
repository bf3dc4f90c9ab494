# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Built by `make bench-programs`, not by `make`: they print figures of their own.
bench_programs = %D%/algebra %D%/beside %D%/bodies %D%/byte_products %D%/cells %D%/convolution %D%/denormals %D%/epilogue %D%/fusion %D%/hand/treelstm %D%/linearize %D%/machine %D%/overhead %D%/schedules %D%/start %D%/team
EXTRA_PROGRAMS += $(bench_programs)
bench_algebra_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/api
bench_algebra_LDADD = libespalier-internal.la
bench_beside_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_beside_LDADD = libespalier.la
bench_bodies_CPPFLAGS = $(tools_cppflags) -I$(srcdir)
bench_bodies_LDADD = $(tools_libraries)
bench_byte_products_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_byte_products_CFLAGS = $(AM_CFLAGS) -O3 -march=native
bench_byte_products_LDADD = libespalier.la -lm
bench_cells_LDADD = libespalier-internal.la
bench_convolution_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_convolution_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffp-contract=fast
bench_convolution_LDADD = libespalier.la -lm
if DNNL
bench_convolution_CPPFLAGS += -DHAVE_DNNL
bench_convolution_LDADD += -ldnnl
endif
bench_denormals_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_denormals_LDADD = libespalier.la
bench_epilogue_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_epilogue_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffp-contract=fast -fno-trapping-math
bench_epilogue_LDADD = libespalier.la
bench_fusion_LDADD = libespalier-internal.la
bench_hand_treelstm_SOURCES = %D%/hand/treelstm.c %D%/hand/avx2.c %D%/hand/avx512.c
bench_hand_treelstm_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir) -I$(srcdir)/src/api
bench_hand_treelstm_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast -O3
bench_hand_treelstm_LDADD = libespalier.la -lm
bench_linearize_LDADD = libespalier-internal.la
bench_machine_LDADD = libespalier-internal.la -lm
bench_overhead_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_overhead_LDADD = libespalier.la
bench_schedules_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_schedules_LDADD = libespalier.la
bench_start_LDADD =
# Tests ask it for outputs.
script_programs += %D%/serve
bench_serve_CPPFLAGS = $(tools_cppflags)
bench_serve_LDADD = $(tools_libraries)
script_programs += %D%/load/load
bench_load_load_SOURCES = %D%/load/main.c %D%/load/alone.c %D%/load/drive.c %D%/load/jitter.c %D%/load/measure.c %D%/load/queue.c %D%/load/report.c %D%/load/requests.c %D%/load/service.c
bench_load_load_CPPFLAGS = $(tools_cppflags) -I$(srcdir)/bench
bench_load_load_LDADD = $(tools_libraries) -lm
# Inside the library, hence not against its interface.
bench_team_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffast-math
if DNNL
bench_peers = %D%/peers/dnnl_rnn
endif
EXTRA_PROGRAMS += %D%/peers/dnnl_rnn
bench_peers_dnnl_rnn_LDADD = -ldnnl
# Not by bench-programs: DyNet is in no distribution.  DYNET is where it was installed, EIGEN where its headers lie.
EIGEN = /usr/include/eigen3
CXX = c++
dynet-peer:
	$(CXX) -std=c++11 -O3 -march=native -DNDEBUG -w -I'$(DYNET)/include' -I'$(EIGEN)' -o %D%/peers/dynet_trees \
		$(srcdir)/%D%/peers/dynet_trees.cc -L'$(DYNET)/lib' -Wl,-rpath,'$(DYNET)/lib' -ldynet
EXTRA_DIST += %D%/README.md %D%/load/load.h %D%/library.h %D%/timing.h %D%/bench.py %D%/cases.tsv %D%/cortex.tsv %D%/hand/body.h %D%/hand/kernels.h %D%/hand/treelstm.ra %D%/load_plot.py %D%/plots.py %D%/graph_files.py %D%/graphs.py %D%/tables.py %D%/tagger.py %D%/vision_networks.py %D%/window.py \
	%D%/models/childsum.ra %D%/models/dagrnn.ra %D%/models/gatedcell.ra %D%/models/gru-bounded.ra %D%/models/lstm-bounded.ra %D%/models/lstm.ra %D%/models/multiplicative.ra %D%/models/peephole.ra \
	%D%/models/simpletreegru.ra %D%/models/ternarytree.ra %D%/models/treefc.ra %D%/models/treegru.ra \
	%D%/models/treelstm.ra %D%/models/treernn.ra \
	%D%/peers/README.md %D%/peers/common.py %D%/peers/dynet_trees.cc %D%/peers/onnx_rnn.py %D%/peers/onnx_session.py %D%/peers/onnx_trees.py %D%/peers/torch_graphs.py %D%/peers/torch_layers.py %D%/peers/torch_rnn.py %D%/peers/torch_trees.py

# One after the other: `all` is made by a make of its own.
bench-programs: all
	$(MAKE) $(AM_MAKEFLAGS) $(bench_programs) %D%/serve %D%/load/load $(bench_peers)
# Everything, with the peers that are installed: tables, and results and plots in bench-results. BENCH_FLAGS is for bench.py.
bench: bench-programs
	python3 $(srcdir)/%D%/bench.py --build '$(abs_top_builddir)' --output bench-results $(BENCH_FLAGS)
.PHONY: bench bench-programs dynet-peer
