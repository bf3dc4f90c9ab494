/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the engine refuses, and what is left of it then; requests that are dropped; rows; the order of
 * requests. */
#include "serve/engine.h"
#include "tests/budget.h"
#include "tests/models/helper.h"

#include <stdlib.h>

struct place {
	struct test_model model;
	struct test_run run;
	struct serve_engine *engine;
	struct diags diags;
};

static bool open_place(struct place *p, const char *path, const char *sizes, struct option_texts o,
		       struct serve_limits limits)
{
	memset(p, 0, sizeof *p);
	diags_init(&p->diags, &allocator_default);
	o.backend = "interpreter";
	o.target = "avx2";
	if (!load_model(&p->model, path, sizes) || !start_run(&p->run, &p->model, &o))
		return false;
	p->engine = serve_create(&allocator_default, &p->run.image, limits, &p->diags);
	return true;
}

static void close_place(struct place *p)
{
	serve_free(p->engine);
	end_run(&p->run);
	free_model(&p->model);
	diags_free(&p->diags);
}

static const char tree[] = "examples/treelstm/treelstm.ra", sizes[] = "D=5 E=4 V=30";
static const struct option_texts continuous = {.continuous = true};

static bool refused(const struct place *p, enum diag_id id)
{
	return p->diags.n == 1 && p->diags.at[0].id == id;
}

/* --- programs --- */

static void test_programs(void)
{
	static const struct {
		const char *what, *path, *sizes, *schedule;
	} programs[] = {
	    {"states by parent", tree, sizes, "layout h parent"},
	    {"vectors that are not copied", "examples/gru/gru.ra", "D=64 E=64", "vectors x given"},
	    {"states of leaves in a table", "examples/treefc/treefc.ra", "D=5 V=30", "leaves h table"},
	    {"node by node", tree, sizes, "dynamic_batch off"},
	    {"one kernel that tests each node", tree, sizes, "specialize none"},
	};
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct place p;
		struct option_texts o = {.continuous = true, .schedule = programs[i].schedule};
		tap_ok(
		    open_place(&p, programs[i].path, programs[i].sizes, o, (struct serve_limits){64, 0, 0}) &&
			!p.engine && refused(&p, DIAG_NOT_CONTINUOUS),
		    "%s: refused", programs[i].what);
		close_place(&p);
	}
	struct place p;
	struct option_texts sorted = {.schedule = "sort all"};
	tap_ok(open_place(&p, "examples/labelled/matrix.ra", "D=17 E=9 V=30 R=5 C=3", sorted,
			  (struct serve_limits){64, 0, 0}) &&
		   !p.engine && refused(&p, DIAG_NOT_CONTINUOUS),
	       "sorted rows of a program for sessions: refused");
	close_place(&p);
}

/* --- requests --- */

static void forget_diags(struct place *p)
{
	diags_free(&p->diags);
	diags_init(&p->diags, &allocator_default);
}

static enum serve_outcome admit_forest(struct place *p, const struct test_forest *f, int64_t rank,
				       struct serve_request **r)
{
	return serve_admit(p->engine, &(struct serve_entry){&p->run.binding, &f->minibatch, rank, NULL, 0}, r,
			   &p->diags);
}

static bool serve_until_idle(struct place *p)
{
	bool ok = true;
	while (ok && serve_is_busy(p->engine))
		ok = serve_advance(p->engine, NULL, 0, &p->diags);
	return ok;
}

static void test_requests(void)
{
	struct place p;
	struct test_forest f, large;
	struct serve_request *r, *second;
	open_place(&p, tree, sizes, continuous, (struct serve_limits){64, 0, 0});
	random_state = 3;
	make_shaped_forest(&f, &p.run.image, 1, 40, FOREST_DEEP);
	make_shaped_forest(&large, &p.run.image, 8, 60, FOREST_WIDE);
	int32_t *children = (int32_t *)f.minibatch.forest.children, was = children[0];
	children[0] = f.nodes - 1;
	tap_ok(admit_forest(&p, &f, 0, &r) == SERVE_REFUSED && !r && p.diags.n == 1, "a cycle: refused");
	children[0] = was;
	forget_diags(&p);
	((int32_t *)f.data[0])[0] = 30;
	tap_ok(admit_forest(&p, &f, 0, &r) == SERVE_REFUSED && refused(&p, DIAG_TOKEN_OUT_OF_RANGE),
	       "a token out of range: refused");
	((int32_t *)f.data[0])[0] = 3;
	forget_diags(&p);
	tap_ok(admit_forest(&p, &large, 0, &r) == SERVE_REFUSED && refused(&p, DIAG_REQUEST_TOO_LARGE),
	       "more rows at once than there are: refused");
	forget_diags(&p);
	int admitted = 0;
	while (admitted < 64 && admit_forest(&p, &f, 0, &r) == SERVE_ADMITTED)
		admitted++;
	tap_ok(admitted > 0 && admitted < 64 && p.diags.n == 0,
	       "full after %d requests, without a diagnostic", admitted);
	tap_ok(serve_until_idle(&p) && admit_forest(&p, &f, 0, &second) == SERVE_ADMITTED,
	       "room again when they have ended");
	int taken = 0;
	for (; (r = serve_take(p.engine)); taken++) {
		tap_ok(serve_succeeded(r) && serve_row(r, 0, 0) && !serve_row(r, 0, -1) &&
			   !serve_row(r, 9, 0),
		       "request %d ended", taken);
		serve_release(p.engine, r);
	}
	tap_ok(taken == admitted, "each ended once");
	admit_forest(&p, &f, 0, &r); /* in company, its levels are computed one by one */
	serve_advance(p.engine, NULL, 0, &p.diags);
	serve_release(p.engine, r);
	tap_ok(!serve_succeeded(second) && !serve_row(second, 0, 0), "no results of one in flight");
	serve_release(p.engine, second);
	tap_ok(!serve_is_busy(p.engine) && serve_count(p.engine).rows == 0,
	       "one that is dropped in flight returns its rows");
	free_forest(&f);
	free_forest(&large);
	close_place(&p);
}

/* --- deadlines --- */

static enum serve_outcome admit_until(struct place *p, const struct rt_minibatch *m, int64_t deadline)
{
	struct serve_request *r;
	return serve_admit(p->engine, &(struct serve_entry){&p->run.binding, m, 0, NULL, deadline}, &r, &p->diags);
}

/* The deadline is past, so that nothing depends on how fast the machine is. */
static void test_late(void)
{
	static const int32_t begin[] = {0, 2, 2, 2}, children[] = {1, 2}, root[] = {0}, words[] = {0, 1, 2};
	const void *data[MAX_INPUTS] = {words};
	const struct rt_minibatch parents_first = {
	    {.nodes = 3, .inputs = 1, .child_begin = begin, .children = children, .root = root}, data};
	struct place p;
	struct test_forest f;
	struct serve_request *r;
	open_place(&p, tree, sizes, continuous, (struct serve_limits){640, 0, 0});
	random_state = 3;
	make_shaped_forest(&f, &p.run.image, 1, 40, FOREST_DEEP);
	tap_ok(admit_until(&p, &f.minibatch, 1) == SERVE_ADMITTED, "one without company is not late");
	tap_ok(admit_until(&p, &f.minibatch, 1) == SERVE_ADMITTED, "nor while nothing is known of supersteps");
	serve_advance(p.engine, NULL, 0, &p.diags);
	tap_ok(admit_until(&p, &f.minibatch, 1) == SERVE_LATE, "one that cannot end in time is late");
	tap_ok(admit_until(&p, &parents_first, 1) == SERVE_LATE, "also where children come behind their parents");
	tap_ok(admit_until(&p, &parents_first, INT64_MAX) == SERVE_ADMITTED &&
		   admit_forest(&p, &f, 0, &r) == SERVE_ADMITTED,
	       "others are admitted");
	tap_ok(serve_until_idle(&p) && serve_count(p.engine).requests == 4 && p.engine->width == 0, "and end");
	while ((r = serve_take(p.engine)))
		serve_release(p.engine, r);
	free_forest(&f);
	close_place(&p);
}

/* Each node of the sentence of three words has three pairs. */
static void test_pairs(void)
{
	static const int32_t begin[] = {0, 0, 1, 2}, children[] = {0, 1}, root[] = {2}, words[] = {0, 1, 2};
	const void *data[MAX_INPUTS] = {words};
	const struct rt_minibatch three = {
	    {.nodes = 3, .inputs = 1, .child_begin = begin, .children = children, .root = root}, data};
	struct place p;
	struct serve_request *r;
	const struct serve_entry entry = {&p.run.binding, &three, 0, NULL, 0};
	open_place(&p, "examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4", continuous,
		   (struct serve_limits){64, 0, 2});
	tap_ok(serve_admit(p.engine, &entry, &r, &p.diags) == SERVE_REFUSED &&
		   refused(&p, DIAG_TOO_MANY_PAIRS),
	       "more pairs of a node than there is room for in a superstep: refused");
	close_place(&p);
	open_place(&p, "examples/selfattention/selfattention.ra", "V=30 K=3 F=9 C=4", continuous,
		   (struct serve_limits){4, 0, 3});
	tap_ok(serve_admit(p.engine, &entry, &r, &p.diags) == SERVE_ADMITTED && serve_until_idle(&p) &&
		   serve_take(p.engine) == r && serve_succeeded(r),
	       "as many as there is room for: computed, node by node");
	tap_ok(!serve_can_carry(p.engine, &p.diags) && refused(&p, DIAG_NO_STREAM) &&
		   strstr(p.diags.at[0].message, "all nodes"),
	       "no sequence goes on whose nodes read all of it");
	serve_release(p.engine, r);
	close_place(&p);
}

static void test_empty(void)
{
	struct place p;
	struct serve_request *r;
	const void *data[MAX_INPUTS] = {NULL};
	struct rt_minibatch none = {.data = data};
	open_place(&p, tree, sizes, continuous, (struct serve_limits){64, 0, 0});
	const struct serve_entry of = {&p.run.binding, &none, 0, NULL, 0};
	tap_ok(serve_admit(p.engine, &of, &r, &p.diags) == SERVE_ADMITTED &&
		   serve_take(p.engine) == r && serve_succeeded(r),
	       "a request of no nodes ends at once");
	serve_release(p.engine, r);
	close_place(&p);
}

/* A long sequence needs two rows at once: those of a node and of the one before. */
static void test_sequence(void)
{
	struct place p;
	struct test_forest f = {0};
	struct serve_request *r;
	open_place(&p, "examples/lstm/lstm.ra", "D=5 E=4 V=30 C=3", continuous,
		   (struct serve_limits){3, 0, 0});
	lin_collect_init(&f.collect, &allocator_default);
	random_state = 5;
	do {
		free_forest(&f);
		make_shaped_forest(&f, &p.run.image, 1, 3000, FOREST_DEEP);
	} while (f.nodes < 1000);
	bool served = admit_forest(&p, &f, 0, &r) == SERVE_ADMITTED && serve_until_idle(&p);
	long long most = serve_count(p.engine).most_rows;
	tap_ok(served && most <= 3, "a sequence of %d nodes has %lld rows at most", f.nodes, most);
	print_diags(&p.diags);
	free_forest(&f);
	close_place(&p);
}

/* Downwards, so that the leaves are what nobody reads. */
static void test_reuse(void)
{
	struct place p;
	struct test_forest f;
	int64_t rows[2] = {0};
	open_place(&p, "tests/ra/good/down.ra", "D=9 E=10", continuous, (struct serve_limits){256, 0, 0});
	random_state = 17;
	make_shaped_forest(&f, &p.run.image, 1, 60, FOREST_DEEP);
	for (int i = 0; i < 2; i++) {
		struct serve_request *r;
		if (admit_forest(&p, &f, 0, &r) != SERVE_ADMITTED)
			break;
		rows[i] = p.engine->rows;
		serve_until_idle(&p);
		serve_release(p.engine, serve_take(p.engine));
	}
	tap_ok(rows[0] > 0 && rows[0] < f.nodes && rows[1] == rows[0],
	       "a request in memory of another reserves %lld rows, as the first one: %lld", (long long)rows[1],
	       (long long)rows[0]);
	free_forest(&f);
	close_place(&p);
}

/* --- the order --- */

/* With one row a superstep the requests end one after the other, as their levels take turns only by rank
 * and age. */
static void test_order(void)
{
	enum { N = 6 };
	static const int rank[N] = {2, 0, 1, 0, 2, 1}, wanted[N] = {1, 3, 2, 5, 0, 4};
	struct place p;
	struct test_forest f;
	struct serve_request *r[N];
	bool same = true;
	open_place(&p, tree, sizes, continuous, (struct serve_limits){512, 1, 0});
	random_state = 9;
	make_shaped_forest(&f, &p.run.image, 1, 20, FOREST_ANY);
	for (int i = 0; i < N; i++)
		same &= admit_forest(&p, &f, rank[i], &r[i]) == SERVE_ADMITTED;
	serve_until_idle(&p);
	for (int i = 0; i < N; i++)
		same &= serve_take(p.engine) == r[wanted[i]];
	tap_ok(same, "by rank, then by age");
	free_forest(&f);
	for (int i = 0; i < N; i++)
		serve_release(p.engine, r[i]);
	close_place(&p);
}

/* --- rows --- */

static void test_rows(void)
{
	struct serve_rows rows;
	int64_t given;
	serve_rows_init(&rows, &allocator_default, 130);
	tap_ok(serve_give_rows(&rows, 100, &given) == 0 && given == 100, "rows from 0 on");
	tap_ok(serve_give_rows(&rows, 100, &given) == 100 && given == 30, "those that are left");
	tap_ok((serve_give_rows(&rows, 1, &given), given == 0), "none when all are given");
	for (int64_t row = 60; row < 70; row++)
		serve_return_row(&rows, row);
	serve_return_row(&rows, 5);
	tap_ok(serve_give_rows(&rows, 8, &given) == 60 && given == 8, "the first range that is long enough");
	tap_ok(serve_give_rows(&rows, 8, &given) == 68 && given == 2, "else the longest");
	tap_ok(serve_give_rows(&rows, 1, &given) == 5 && given == 1 && rows.used == 130 && rows.most == 130,
	       "and the last one");
	serve_rows_free(&rows);
}

/* --- memory --- */

static bool serve_with_budget(struct place *p, const struct test_forest *f, const struct allocator *a,
			      struct diags *diags)
{
	struct serve_engine *e = serve_create(a, &p->run.image, (struct serve_limits){256, 16, 0}, diags);
	struct serve_request *r = NULL;
	const struct serve_entry of = {&p->run.binding, &f->minibatch, 0, NULL, 0};
	bool ok = e && serve_admit(e, &of, &r, diags) == SERVE_ADMITTED;
	while (ok && serve_is_busy(e))
		ok = serve_advance(e, NULL, 0, diags);
	ok = ok && serve_take(e) == r && serve_succeeded(r);
	if (ok)
		serve_release(e, r);
	serve_free(e);
	return ok;
}

static void test_memory(void)
{
	struct place p;
	struct test_forest f;
	bool ok = false, reported = true, returned = true;
	long budget = 0;
	open_place(&p, tree, sizes, continuous, (struct serve_limits){256, 16, 0});
	random_state = 13;
	make_shaped_forest(&f, &p.run.image, 2, 40, FOREST_ANY);
	for (; !ok && budget < 1000; budget++) {
		struct budget left = {budget, 0};
		struct allocator a = {resize_budget, &left};
		struct diags diags;
		diags_init(&diags, &allocator_default);
		ok = serve_with_budget(&p, &f, &a, &diags);
		reported &= ok || (diags.n > 0 && diags.at[0].id == DIAG_OUT_OF_MEMORY);
		returned &= left.held == 0;
		diags_free(&diags);
	}
	tap_ok(ok && budget > 10, "%ld allocations", budget - 1);
	tap_ok(reported, "any of them failing: out-of-memory");
	tap_ok(returned, "and all memory is returned");
	free_forest(&f);
	close_place(&p);
}

int main(void)
{
	test_programs();
	test_requests();
	test_empty();
	test_pairs();
	test_late();
	test_sequence();
	test_reuse();
	test_order();
	test_rows();
	test_memory();
	return tap_done();
}
