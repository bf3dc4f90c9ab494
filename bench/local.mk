# Built by `make bench`, not by `make`: serve is our side of compare.py, the others print figures of their own.
bench_programs = %D%/algebra %D%/fusion %D%/linearize %D%/overhead %D%/schedules %D%/serve %D%/start %D%/team
EXTRA_PROGRAMS += $(bench_programs)
bench_algebra_LDADD = libespalier-internal.la
bench_fusion_LDADD = libespalier-internal.la
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
EXTRA_DIST += %D%/timing.h %D%/compare.py %D%/peers/treelstm_torch.py

# One after the other: `all` is made by a make of its own.
bench: all
	$(MAKE) $(AM_MAKEFLAGS) $(bench_programs)
.PHONY: bench
