# Built by `make bench`, not by `make`: serve is our side of compare.py, the others print figures of their own.
bench_programs = %D%/algebra %D%/fusion %D%/hand/treelstm %D%/linearize %D%/overhead %D%/schedules %D%/serve %D%/start %D%/team
EXTRA_PROGRAMS += $(bench_programs)
bench_algebra_LDADD = libespalier-internal.la
bench_fusion_LDADD = libespalier-internal.la
bench_hand_treelstm_SOURCES = %D%/hand/treelstm.c %D%/hand/kernels.c
bench_hand_treelstm_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir) -I$(srcdir)/src/api
bench_hand_treelstm_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast -O3 -march=native
bench_hand_treelstm_LDADD = libespalier.la -lm
bench_linearize_LDADD = libespalier-internal.la
bench_overhead_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_overhead_LDADD = libespalier.la
bench_schedules_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_schedules_LDADD = libespalier.la
bench_serve_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_serve_LDADD = libespalier.la
bench_start_LDADD =
# Inside the library, hence not against its interface.
bench_team_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffast-math
EXTRA_DIST += %D%/timing.h %D%/hand/kernels.h %D%/hand/treelstm.ra %D%/compare.py %D%/peers/treelstm_torch.py

# One after the other: `all` is made by a make of its own.
bench: all
	$(MAKE) $(AM_MAKEFLAGS) $(bench_programs)
.PHONY: bench
