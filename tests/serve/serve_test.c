/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests that join and leave at random give the bits of sessions that run each alone; rows are returned. */
#include "tests/serve/company.h"
#include "tests/sample.h"

static const struct {
	const char *path, *sizes;
	int size; /* of structures */
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30", 30},
    {"examples/narylstm/narylstm.ra", "D=19 E=9 V=30 C=5", 30},
    {"examples/childsum/childsum.ra", "D=13 E=10 V=30 C=4", 30},
    {"examples/treegru/treegru.ra", "D=16 E=6 V=30 C=3", 30},
    {"examples/simpletreegru/simpletreegru.ra", "D=16 E=6 V=30 C=3", 30},
    {"examples/lstm/lstm.ra", "D=20 E=6 V=30 C=4", 60},
    {"examples/bilstm/bilstm.ra", "D=9 E=6 X=6 V=30 C=4", 30},
    {"examples/bilstm/bilstm2.ra", "D=9 E=6", 30},
    {"examples/stacked/stacked-gru.ra", "D=9 E=6 V=30 C=4", 30},
    {"examples/dagrnn/dagrnn.ra", "C=4 D=18 E=7", 30},
    {"examples/updown/updown.ra", "V=30 E=9 D=17 C=3", 30},
    {"tests/models/scan.ra", "T=6 B=3 D=16 S=2", 30},
    {"examples/attention/attention.ra", "V=30 E=9 D=17 A=6 C=3", 30},
    {"examples/typed/typed.ra", "V=30 E=9 D=17 C=3", 30},
    {"examples/labelled/matrix.ra", "D=17 E=9 V=30 R=5 C=3", 30},
    {"examples/labelled/embedding.ra", "D=19 E=9 V=30 R=5 L=4 C=3", 30},
    {"examples/mvrnn/mvrnn.ra", "D=9 V=30 C=3 E=9", 20},
    {"tests/models/members.ra", "V=30 D=18 A=10", 30},
    {"tests/models/stacked.ra", "D=17 E=6 F=9 G=12 V=30", 30},
    {"tests/models/parents.ra", "D=10 X=7", 30},
    {"tests/models/flat.ra", "D=18 F=7 V=30", 30},
    {"tests/models/typedlayers.ra", "D=17 X=6 V=30 F=9 G=11", 30},
    {"tests/models/labels.ra", "V=30 D=18 R=4 F=5", 30},
    {"tests/models/ragged.ra", "D=21 R=4 F=3 K=6", 30},
    {"tests/models/tagged.ra", "D=17 R=5 F=20", 30},
    {"tests/ra/good/among.ra", "V=30 D=18 F=5 H=3 K=6", 30},
    {"examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4", 40},
    {"tests/models/indexed.ra", "C=17 V=5", 30},
    {"tests/ra/good/down.ra", "D=9 E=10", 30},
    {"tests/ra/good/dag.ra", "D=9 E=10", 30},
    {"tests/ra/good/updown.ra", "D=18 V=30", 30},
};

static void serve_company(struct company *c, const char *name, struct service s)
{
	struct serve_engine *e =
	    serve_create(&allocator_default, &c->joined.image, s.limits, &c->joined.diags);
	print_diags(&c->joined.diags);
	struct attendance a;
	int threads = s.team ? rt_team_enter(s.team, 1e15) : 0;
	bool same = e && serve_all(c, e, &s, threads, &a);
	if (threads)
		rt_team_leave(s.team);
	tap_ok(same && (threads > 1 || !s.team),
	       "%s: %d join at a time%s%s, %lld rows, %lld a superstep%s: bits of each alone", name, s.each,
	       s.leave ? ", some leave" : "", s.gather ? ", some as forests" : "", (long long)s.limits.rows,
	       (long long)s.limits.step_rows, s.how);
	if (e) {
		struct serve_counts n = serve_count(e);
		tap_ok(n.rows == 0 && n.most_rows <= s.limits.rows && n.requests == (uint64_t)a.ended,
		       "%s: all rows returned, %lld at most in use, %llu supersteps", name,
		       (long long)n.most_rows, (unsigned long long)n.supersteps);
		tap_ok(s.gather == (n.forests > 0) && n.forests < n.supersteps, "%s: %llu forests", name,
		       (unsigned long long)n.forests);
	}
	serve_free(e);
}

/* Each range is divided, however small. */
static void serve_by_team(struct company *c, const char *name)
{
	struct rt_team team;
	rt_team_init(&team, &allocator_default, 2);
	request_strategy(&c->joined, IMAGE_ROWS);
	serve_company(c, name, (struct service){{4096, 512, 0}, 8, false, &team, ", rows divided", false});
	request_strategy(&c->joined, IMAGE_COLUMNS);
	serve_company(c, name, (struct service){{4096, 512, 0}, 8, false, &team, ", columns divided", false});
	serve_company(c, name, (struct service){{4096, 512, 0}, 0, false, &team, ", columns divided", false});
	rt_team_stop(&team);
}

static void test_model(size_t i, const char *backend)
{
	struct test_model t = {0};
	static struct company c;
	char name[160];
	struct option_texts o = {.backend = backend,
				 .target = strcmp(backend, "interpreter") == 0 ? "avx2" : "native"};
	snprintf(name, sizeof name, "%s by %s", strrchr(models[i].path, '/') + 1, backend);
	if (!tap_ok(load_model(&t, models[i].path, models[i].sizes), "%s: parsed", name))
		return;
	random_state = 11 + i;
	if (tap_ok(begin_company(&c, &t, o, REQUESTS, models[i].size), "%s: compiled", name)) {
		static const struct service services[] = {{{4096, 512, 0}, 6, false, NULL, "", false},
							  {{4096, 512, 0}, 12, true, NULL, "", true},
							  {{260, 16, 100}, 20, true, NULL, "", false},
							  {{4096, 512, 0}, 0, false, NULL, "", false}};
		for (size_t k = 0; k < sizeof services / sizeof *services; k++)
			if (k == 0 || in_sample(k + i))
				serve_company(&c, name, services[k]);
		serve_company(&c, name, (struct service){{260, 16, 100}, 0, false, NULL, "", false});
		if (strcmp(backend, "interpreter") != 0)
			serve_by_team(&c, name);
	}
	end_company(&c);
	free_model(&t);
}

/* --- brief traversals --- */

/* Runs all requests, which have joined; returns the supersteps that this took. */
static int run_together(struct company *c, struct serve_engine *e)
{
	struct attendance a = {.now = 0};
	for (int i = 0; i < c->made; i++) {
		const struct serve_entry entry = {&c->joined.binding, &c->forest[i].minibatch, 0, NULL, 0};
		if (serve_admit(e, &entry, &a.in_flight[a.now], &c->joined.diags) != SERVE_ADMITTED)
			return print_diags(&c->joined.diags), -1;
		*serve_owner(a.in_flight[a.now++]) = &c->forest[i];
	}
	while (serve_is_busy(e))
		if (!serve_advance(e, NULL, 0, &c->joined.diags) || !take_ended(c, e, &a))
			return print_diags(&c->joined.diags), -1;
	return a.ended == c->made ? (int)serve_count(e).supersteps : -1;
}

/* The first traversal counts places in a sentence: its levels cost so little that requests in company are computed by
 * all of them in one superstep, as by a traversal without levels. */
static void test_brief_levels(void)
{
	enum { TOGETHER = 12 };
	static struct company c;
	struct test_model t = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	random_state = 5;
	bool ok = load_model(&t, "examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4") &&
		  begin_company(&c, &t, o, TOGETHER, 40);
	struct serve_limits limits = {4096, 4096, 0};
	struct serve_engine *e =
	    ok ? serve_create(&allocator_default, &c.joined.image, limits, &c.joined.diags) : NULL;
	int supersteps = e ? run_together(&c, e) : -1, traversals = e ? e->steps.traversals : 0;
	tap_ok(e && supersteps == traversals, "%d sequences in company: %d supersteps for %d traversals", TOGETHER,
	       supersteps, traversals);
	tap_ok(e && serve_count_supersteps(e, 40) == traversals &&
		   serve_count_supersteps(e, SERVE_LEVELS + 1) == traversals + 1,
	       "so many are expected, and one more for more levels than a superstep computes");
	serve_free(e);
	end_company(&c);
	free_model(&t);
}

/* With sanitizers one model in so many.  A team runs compiled code alone. */
enum { MODELS_EACH = SHADOWED ? 2 : 1 };

/*     serve_test [PART]     models whose path has this part */
int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i += MODELS_EACH)
		if (argc < 2 || strstr(models[i].path, argv[1])) {
			if (!RACES_SOUGHT)
				test_model(i, "interpreter");
			if (backend_at(0) && in_sample(i))
				test_model(i, usual_backend());
		}
	if (argc < 2)
		test_brief_levels();
	return tap_done();
}
