/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests that join and leave at random, each with the bits that sessions give it alone. */
#ifndef ESPALIER_TESTS_SERVE_COMPANY_H
#define ESPALIER_TESTS_SERVE_COMPANY_H

#include "serve/engine.h"
#include "tests/models/agree.h"

#include <stdlib.h>

enum { REQUESTS = 60 };

struct company {
	struct test_run plain, joined;
	struct test_forest forest[REQUESTS];
	char *expected[REQUESTS]; /* outputs row after row */
	int made;
};

static inline size_t row_bytes(const struct image *image, int output)
{
	return output_elements(image, output) * (size_t)dtype_traits_of(image->output[output].dtype)->bytes;
}

static inline int64_t rows_of(const struct image *image, int output, const struct test_forest *f)
{
	return image->output[output].at_root ? f->minibatch.forest.inputs : f->nodes;
}

/* All outputs of a run over one forest. */
static inline char *run_alone(struct test_run *r, const struct test_forest *f)
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

static inline bool begin_company(struct company *c, const struct test_model *t, struct option_texts o,
				 int requests, int size)
{
	memset(c, 0, sizeof *c);
	if (!start_run(&c->plain, t, &o))
		return false;
	o.continuous = true;
	if (!start_run(&c->joined, t, &o))
		return false;
	for (; c->made < requests; c->made++) {
		struct test_forest *f = &c->forest[c->made];
		make_shaped_forest(f, &c->plain.image, 1 + random_below(2), size, random_below(3));
		c->expected[c->made] = run_alone(&c->plain, f);
		if (!c->expected[c->made])
			return false;
	}
	return true;
}

static inline void end_company(struct company *c)
{
	for (int i = 0; i < c->made; i++) {
		free_forest(&c->forest[i]);
		free(c->expected[i]);
	}
	end_run(&c->plain);
	if (c->joined.arena.allocator)
		end_run(&c->joined);
}

static inline bool has_bits(const struct company *c, const struct serve_request *r, int which)
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

/* --- in company --- */

struct service {
	struct serve_limits limits;
	int each;   /* requests that join at a time, at most; 0 = one after the other */
	bool leave; /* some leave while they are computed */
	struct rt_team *team;
	const char *how;
	bool gather; /* requests join while nothing is in flight, twice in three times as one forest */
};

/* Requests in flight, and of all how many joined, ended and left. */
struct attendance {
	struct serve_request *in_flight[REQUESTS];
	int now, joined, ended, left;
	int idle; /* how often nothing was in flight */
};

/* How many join before the next superstep: `each` at most; 0 = one, when the one before has ended. */
static inline int draw_joining(const struct serve_engine *e, int each)
{
	return each ? random_below(each + 1) : !serve_is_busy(e);
}

/* One joins, or is gathered: with those that were, or when it is the first of some. */
static inline enum serve_outcome let_in(struct company *c, struct serve_engine *e, const struct serve_entry *entry,
					bool gather, struct serve_request **r)
{
	enum serve_outcome outcome = gather ? serve_gather(e, entry, r) : SERVE_FULL;
	bool gathered = e->forest.gathered.first;
	return gathered || outcome != SERVE_FULL ? outcome : serve_admit(e, entry, r, &c->joined.diags);
}

/* Some join, when there are rows for them. */
static inline bool let_join(struct company *c, struct serve_engine *e, const struct service *s, struct attendance *a)
{
	enum { EACH = 3 };
	if (s->gather && serve_is_busy(e))
		return true;
	bool gather = s->gather && ++a->idle % EACH;
	for (int n = draw_joining(e, s->each); n > 0 && a->joined < c->made; n--) {
		struct test_forest *f = &c->forest[a->joined];
		struct serve_request *r;
		const struct serve_entry entry = {&c->joined.binding, &f->minibatch, random_below(3), NULL,
						  0};
		enum serve_outcome outcome = let_in(c, e, &entry, gather, &r);
		if (outcome == SERVE_REFUSED)
			return print_diags(&c->joined.diags), false;
		if (outcome == SERVE_FULL)
			return true;
		*serve_owner(r) = f;
		a->in_flight[a->now++] = r;
		a->joined++;
	}
	return true;
}

static inline void remove_at(struct attendance *a, int i)
{
	a->in_flight[i] = a->in_flight[--a->now];
}

/* Now and then one leaves that is in flight, wherever it is. */
static inline void let_leave(struct serve_engine *e, struct attendance *a)
{
	if (!a->now || random_below(6))
		return;
	int i = random_below(a->now);
	serve_release(e, a->in_flight[i]);
	remove_at(a, i);
	a->left++;
}

static inline bool take_ended(struct company *c, struct serve_engine *e, struct attendance *a)
{
	bool ok = true;
	for (struct serve_request *r; ok && (r = serve_take(e)); a->ended++) {
		int which = (const struct test_forest *)*serve_owner(r) - c->forest, i = 0;
		ok = has_bits(c, r, which);
		if (!ok)
			printf("# request %d differs\n", which);
		while (i < a->now && a->in_flight[i] != r)
			i++;
		remove_at(a, i);
		serve_release(e, r);
	}
	return ok;
}

/* Serves all requests; every superstep some join, and perhaps one leaves. */
static inline bool serve_all(struct company *c, struct serve_engine *e, const struct service *s, int threads,
			     struct attendance *a)
{
	bool ok = true;
	*a = (struct attendance){.now = 0};
	while (ok && a->ended + a->left < c->made) {
		ok = let_join(c, e, s, a);
		if (s->leave && !e->forest.gathered.first)
			let_leave(e, a);
		ok = ok && serve_advance(e, s->team, threads, &c->joined.diags) && take_ended(c, e, a);
	}
	return ok && !serve_is_busy(e);
}

#endif
