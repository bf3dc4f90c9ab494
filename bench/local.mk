# Built by `make bench`, not by `make`: our side of bench/compare.py.
bench_programs = %D%/serve
EXTRA_PROGRAMS += $(bench_programs)
bench_serve_CPPFLAGS = -D_GNU_SOURCE -I$(srcdir)/src/api
bench_serve_LDADD = libespalier.la
EXTRA_DIST += %D%/compare.py %D%/peers/treelstm_torch.py

bench: all $(bench_programs)
.PHONY: bench
