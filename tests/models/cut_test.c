/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reductions that are cut into pieces have the bits of those that are not, interpreted and by each back end:
 * with pieces that divide the range and that do not, over rows of a node and over nodes. */
#include "tests/models/agree.h"

static const struct {
	const char *path, *sizes, *schedule;
} cuts[] = {
    {"tests/models/products.ra", "A=7 B=19 C=33 V=9",
     "tile inner.2 rows 4 2 1 columns 2 unroll 1 cut 5 across 0 along 1\n"
     "tile output.0 rows 6 4 1 columns 1 unroll 4 cut 4 across 0 block 5 along 1\n"
     "tile inner.1 nodes 4 2 1 columns 2 unroll 3 cut 8 along 1\n"},
    {"tests/models/products.ra", "A=8 B=16 C=32 V=9",
     "tile inner.2 rows 4 1 columns 2 unroll 2 cut 8 across 0 along 1\n"
     "tile output.0 rows 8 1 columns 1 unroll 4 cut 1 across 0 along 1\n"},
    {"tests/models/products.ra", "A=7 B=19 C=33 V=9",
     "dynamic_batch off\ndense_index off\ntile inner.2 rows 2 1 columns 1 unroll 1 cut 6 across 0 along 1\n"},
    {"tests/golden/nest.ra", "C=5 H=17 D=9",
     "pad all\ntile leaf.1 rows 3 1 columns 1 unroll 3 cut 2 across 0 along 1\nvectorize off\n"},
};

static bool same_in_pieces(struct setting *s, const char *backend, const char *schedule)
{
	struct test_run r;
	struct option_texts o = {.backend = backend, .target = strcmp(backend, "interpreter") == 0 ? "avx2" : "native",
				 .schedule = schedule};
	bool ok = start_run(&r, s->model, &o) && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r);
	end_run(&r);
	return ok;
}

/* The schedule without its cuts. */
static const char *uncut(struct arena *a, const char *schedule)
{
	struct str s = str_in(a);
	for (const char *c = schedule; *c; c++) {
		if (strncmp(c, " cut ", 5) == 0)
			c += 5 + strspn(c + 5, "0123456789");
		str_printf(&s, "%c", *c);
	}
	return str_text(&s);
}

/* The forest is made for the program in pieces, which needs more index arrays. */
static void test_cut(const char *path, const char *sizes, const char *schedule)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run base = {0}, cut = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	random_state = 11;
	if (!tap_ok(load_model(&t, path, sizes) && start_run(&cut, &t, &o), "%s %s: in pieces", path, sizes))
		return;
	make_forest(&s.forest, &cut.image, 4, 20);
	o.schedule = uncut(&t.arena, schedule);
	if (tap_ok(start_run(&base, &t, &o) && run_forest(&base, &s.forest.minibatch), "%s: interpreted", path)) {
		s.expected = gather_outputs(&base, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
		tap_ok(same_in_pieces(&s, "interpreter", schedule), "%s: in pieces, interpreted", path);
		for (int i = 0; backend_at(i); i++)
			tap_ok(same_in_pieces(&s, backend_at(i), schedule), "%s: in pieces, by %s", path,
			       backend_at(i));
	}
	free_forest(&s.forest);
	end_run(&base);
	end_run(&cut);
	free(s.expected);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
		test_cut(cuts[i].path, cuts[i].sizes, cuts[i].schedule);
	return tap_done();
}
