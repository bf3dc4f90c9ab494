# Built by `make bench`, not by `make`: our side of bench/compare.py.
bench_programs = %D%/serve %D%/team
EXTRA_PROGRAMS += $(bench_programs)
bench_serve_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_serve_LDADD = libespalier.la
# Inside the library, hence not against its interface.
bench_team_CFLAGS = $(AM_CFLAGS) -O3 -march=native -ffast-math
EXTRA_DIST += %D%/compare.py %D%/peers/treelstm_torch.py

bench: all $(bench_programs)
.PHONY: bench
