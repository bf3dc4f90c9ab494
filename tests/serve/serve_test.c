/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests that join and leave at random give the bits of sessions that run each alone; rows are returned. */
#include "serve/serve.h"
#include "tests/models/agree.h"

#include <stdlib.h>

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
    {"tests/ra/good/down.ra", "D=9 E=10", 30},
    {"tests/ra/good/dag.ra", "D=9 E=10", 30},
    {"tests/ra/good/updown.ra", "D=18 V=30", 30},
};

enum { REQUESTS = 60 };

struct company {
	struct test_run plain, joined;
	struct test_forest forest[REQUESTS];
	char *expected[REQUESTS]; /* outputs row after row */
	int made;
};

static size_t row_bytes(const struct image *image, int output)
{
	return output_elements(image, output) * (size_t)dtype_traits_of(image->output[output].dtype)->bytes;
}

static int64_t rows_of(const struct image *image, int output, const struct test_forest *f)
{
	return image->output[output].at_root ? f->minibatch.forest.inputs : f->nodes;
}

/* All outputs of a run over one forest. */
static char *run_alone(struct test_run *r, const struct test_forest *f)
{
	size_t bytes = 1;
	for (int o = 0; o < r->image.outputs; o++)
		bytes += rows_of(&r->image, o, f) * row_bytes(&r->image, o);
	char *all = calloc(bytes, 1), *to = all;
	if (!run_forest(r, &f->minibatch))
		return free(all), NULL;
	for (int o = 0; o < r->image.outputs; o++)
		for (int64_t row = 0; row < rows_of(&r->image, o, f); row++, to += row_bytes(&r->image, o))
			memcpy(to, rt_session_row(&r->session, o, row), row_bytes(&r->image, o));
	return all;
}

static bool begin_company(struct company *c, const struct test_model *t, struct option_texts o, int size)
{
	memset(c, 0, sizeof *c);
	if (!start_run(&c->plain, t, &o))
		return false;
	o.continuous = true;
	if (!start_run(&c->joined, t, &o))
		return false;
	for (; c->made < REQUESTS; c->made++) {
		struct test_forest *f = &c->forest[c->made];
		make_shaped_forest(f, &c->plain.image, 1 + random_below(2), size, random_below(3));
		c->expected[c->made] = run_alone(&c->plain, f);
		if (!c->expected[c->made])
			return false;
	}
	return true;
}

static void end_company(struct company *c)
{
	for (int i = 0; i < c->made; i++) {
		free_forest(&c->forest[i]);
		free(c->expected[i]);
	}
	end_run(&c->plain);
	if (c->joined.arena.allocator)
		end_run(&c->joined);
}

static bool has_bits(const struct company *c, const struct serve_request *r, int which)
{
	const struct image *image = &c->joined.image;
	const char *expected = c->expected[which];
	bool same = serve_succeeded(r);
	for (int o = 0; same && o < image->outputs; o++)
		for (int64_t row = 0; same && row < rows_of(image, o, &c->forest[which]); row++) {
			same = memcmp(serve_row(r, o, row), expected, row_bytes(image, o)) == 0;
			expected += row_bytes(image, o);
		}
	return same;
}

/* How many join before the next superstep: `each` at most; 0 = one, when the one before has ended. */
static int draw_joining(const struct serve_engine *e, int each)
{
	return each ? random_below(each + 1) : !serve_is_busy(e);
}

/* Serves all requests; every superstep some join, when there are rows for them. */
static bool serve_all(struct company *c, struct serve_engine *e, int each, struct rt_team *team, int threads)
{
	int next = 0, ended = 0;
	bool ok = true;
	while (ok && ended < REQUESTS) {
		for (int n = draw_joining(e, each); n > 0 && next < REQUESTS; n--) {
			struct serve_request *r;
			enum serve_outcome outcome =
			    serve_admit(e,
					&(struct serve_entry){&c->joined.binding, &c->forest[next].minibatch,
							      random_below(3), NULL, 0},
					&r, &c->joined.diags);
			if (outcome == SERVE_FULL)
				break;
			if (outcome == SERVE_REFUSED)
				return print_diags(&c->joined.diags), false;
			*serve_owner(r) = &c->forest[next++];
		}
		ok = serve_advance(e, team, threads, &c->joined.diags);
		for (struct serve_request *r; ok && (r = serve_take(e)); ended++) {
			int which = (const struct test_forest *)*serve_owner(r) - c->forest;
			ok = has_bits(c, r, which);
			if (!ok)
				printf("# request %d differs\n", which);
			serve_release(e, r);
		}
	}
	return ok && !serve_is_busy(e);
}

struct service {
	struct serve_limits limits;
	int each; /* requests that join at a time, at most; 0 = one after the other */
	struct rt_team *team;
	const char *how;
};

static void serve_company(struct company *c, const char *name, struct service s)
{
	struct serve_engine *e =
	    serve_create(&allocator_default, &c->joined.image, s.limits, &c->joined.diags);
	print_diags(&c->joined.diags);
	int threads = s.team ? rt_team_enter(s.team, 1e15) : 0;
	bool same = e && serve_all(c, e, s.each, s.team, threads);
	if (threads)
		rt_team_leave(s.team);
	tap_ok(same && (threads > 1 || !s.team),
	       "%s: %d join at a time, %lld rows, %lld a superstep%s: bits of each alone", name, s.each,
	       (long long)s.limits.rows, (long long)s.limits.step_rows, s.how);
	if (e) {
		struct serve_counts n = serve_count(e);
		tap_ok(n.rows == 0 && n.most_rows <= s.limits.rows && n.requests == REQUESTS,
		       "%s: all rows returned, %lld at most in use, %llu supersteps", name,
		       (long long)n.most_rows, (unsigned long long)n.supersteps);
	}
	serve_free(e);
}

/* Each range is divided, however small. */
static void serve_by_team(struct company *c, const char *name)
{
	struct rt_team team;
	rt_team_init(&team, &allocator_default, 2);
	request_strategy(&c->joined, IMAGE_ROWS);
	serve_company(c, name, (struct service){{4096, 512}, 8, &team, ", rows divided"});
	request_strategy(&c->joined, IMAGE_COLUMNS);
	serve_company(c, name, (struct service){{4096, 512}, 8, &team, ", columns divided"});
	serve_company(c, name, (struct service){{4096, 512}, 0, &team, ", columns divided"});
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
	if (tap_ok(begin_company(&c, &t, o, models[i].size), "%s: compiled", name)) {
		serve_company(&c, name, (struct service){{4096, 512}, 6, NULL, ""});
		serve_company(&c, name, (struct service){{260, 16}, 20, NULL, ""});
		serve_company(&c, name, (struct service){{4096, 512}, 0, NULL, ""});
		serve_company(&c, name, (struct service){{260, 16}, 0, NULL, ""});
		if (strcmp(backend, "interpreter") != 0)
			serve_by_team(&c, name);
	}
	end_company(&c);
	free_model(&t);
}

/* Compiling takes most of the time. */
enum { COMPILED_EACH = 2 };

/*     serve_test [PART]     models whose path has this part */
int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (argc < 2 || strstr(models[i].path, argv[1])) {
			test_model(i, "interpreter");
			if (backend_at(0) && i % COMPILED_EACH == 0)
				test_model(i, usual_backend());
		}
	return tap_done();
}
