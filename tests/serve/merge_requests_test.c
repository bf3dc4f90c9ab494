/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The one minibatch of several requests: where inputs begin, and what edges carry, of requests as callers may give them. */
#include "tests/serve/company.h"

enum { MERGED = 3 };

static const struct serve_limits limits = {640, 512, 0};
/* Structures of two children, whose edges carry a number and a vector, and nodes a word. */
static const char model[] = "tests/models/edgekinds.ra", sizes[] = "D=5 V=7";

struct merged {
	struct company company;
	struct serve_engine *engine;
	struct rt_minibatch minibatch;
};

static void end_merged(struct merged *m)
{
	serve_free(m->engine);
	end_company(&m->company);
}

/* Makes requests anew, that are as large for each test. */
static bool begin_merged(struct merged *m, const struct test_model *t)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	random_state = 31;
	m->engine = NULL;
	return begin_company(&m->company, t, o, MERGED, 9) &&
	       (m->engine = serve_create(&allocator_default, &m->company.joined.image, limits, &m->company.joined.diags));
}

static struct lin_forest *forest_of(struct merged *m, int which)
{
	return &m->company.forest[which].minibatch.forest;
}

static bool gather_all(struct merged *m)
{
	bool ok = true;
	for (int i = 0; ok && i < MERGED; i++) {
		struct serve_request *r;
		const struct serve_entry entry = {&m->company.joined.binding, &m->company.forest[i].minibatch, 0, NULL, 0};
		ok = serve_gather(m->engine, &entry, &r) == SERVE_ADMITTED;
		if (ok)
			*serve_owner(r) = &m->company.forest[i];
	}
	return ok;
}

/* Whether all are merged, and there is no diagnostic otherwise: requests are checked one by one then. */
static bool merge_all(struct merged *m)
{
	return gather_all(m) && serve_merge_requests(m->engine, &m->minibatch, &m->company.joined.diags);
}

/* Whether a run of what was gathered has the bits of each request alone. */
static bool has_all_bits(struct merged *m)
{
	int same = 0;
	serve_advance(m->engine, NULL, 0, &m->company.joined.diags);
	for (struct serve_request *r; (r = serve_take(m->engine)); serve_release(m->engine, r))
		same += has_bits(&m->company, r, (int)((const struct test_forest *)*serve_owner(r) - m->company.forest));
	return same == MERGED && serve_count(m->engine).forests == 1;
}

/* --- inputs --- */

static void test_inputs(const struct test_model *t)
{
	struct merged m;
	bool ok = begin_merged(&m, t) && merge_all(&m);
	int64_t input = 0, node = 0, right = 0;
	for (int i = 0; ok && i < MERGED; node += forest_of(&m, i++)->nodes)
		for (int64_t k = 0; k < forest_of(&m, i)->inputs; k++, input++)
			right += m.minibatch.forest.input_begin[input] == node + forest_of(&m, i)->input_begin[k];
	tap_ok(ok && input > MERGED && right == input && has_all_bits(&m), "%lld inputs begin behind the nodes of requests before",
	       (long long)input);
	end_merged(&m);
	ok = begin_merged(&m, t);
	int several = 0;
	while (ok && several < MERGED - 1 && forest_of(&m, several)->inputs < 2)
		several++;
	if (ok)
		forest_of(&m, several)->input_begin = NULL;
	tap_ok(ok && forest_of(&m, several)->inputs > 1 && merge_all(&m) && !m.minibatch.forest.input_begin && has_all_bits(&m),
	       "where the inputs of one request may be mixed, nothing says where those of all begin");
	end_merged(&m);
}

static void test_divisions(const struct test_model *t)
{
	static const struct {
		const char *what;
		int32_t begin[2];
	} wrong[] = {{"behind the first node", {1, 2}}, {"before the input before", {0, -1}}, {"beyond all nodes", {0, 1000}}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct merged m;
		bool ok = begin_merged(&m, t);
		int several = 0;
		while (ok && several < MERGED - 1 && forest_of(&m, several)->inputs < 2)
			several++;
		if (ok)
			forest_of(&m, several)->input_begin = wrong[i].begin;
		tap_ok(ok && forest_of(&m, several)->inputs > 1 && !merge_all(&m) && m.engine->forest.gathered.first,
		       "a request with an input that begins %s is not merged", wrong[i].what);
		end_merged(&m);
	}
}

/* --- data --- */

/* Two edges of another minibatch before those of the request, with what they carry. */
enum { EDGES_BEFORE = 2 };

static void put_edges_before(struct test_forest *f, const struct image *image)
{
	struct lin_forest *l = &f->minibatch.forest;
	int64_t edges = l->child_begin[l->nodes];
	int32_t *begin = malloc((size_t)(l->nodes + 1) * sizeof *begin),
		*children = malloc((size_t)(edges + EDGES_BEFORE) * sizeof *children);
	for (int64_t n = 0; n <= l->nodes; n++)
		begin[n] = l->child_begin[n] + EDGES_BEFORE;
	for (int64_t i = 0; i < edges + EDGES_BEFORE; i++)
		children[i] = i < EDGES_BEFORE ? -7 : l->children[i - EDGES_BEFORE];
	l->child_begin = begin;
	l->children = children;
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		size_t bytes = (size_t)(in->token ? 1 : in->elements) * (size_t)dtype_traits_of(in->dtype)->bytes;
		if (!in->on_edge)
			continue;
		char *data = malloc(((size_t)edges + EDGES_BEFORE) * bytes);
		memset(data, 0x55, EDGES_BEFORE * bytes);
		memcpy(data + EDGES_BEFORE * bytes, f->data[i], (size_t)edges * bytes);
		free(f->owned[i]);
		f->data[i] = f->owned[i] = data;
	}
}

static void test_edges(const struct test_model *t)
{
	struct merged m;
	bool ok = begin_merged(&m, t);
	int64_t edges = 0;
	for (int i = 0; ok && i < MERGED; i++) {
		edges += forest_of(&m, i)->child_begin[forest_of(&m, i)->nodes];
		put_edges_before(&m.company.forest[i], &m.company.joined.image);
	}
	tap_ok(ok && edges > MERGED && merge_all(&m) && m.minibatch.forest.child_begin[m.minibatch.forest.nodes] == edges &&
		   has_all_bits(&m),
	       "of requests whose edges do not begin with 0, %lld edges follow each other with what they carry", (long long)edges);
	for (int i = 0; ok && i < MERGED; i++) {
		free((void *)forest_of(&m, i)->child_begin);
		free((void *)forest_of(&m, i)->children);
	}
	end_merged(&m);
}

static void test_missing(const struct test_model *t)
{
	for (int without = 0; without < MERGED; without++) {
		struct merged m;
		bool ok = begin_merged(&m, t);
		if (ok)
			m.company.forest[without].data[0] = NULL;
		tap_ok(ok && !merge_all(&m) && m.engine->forest.gathered.first,
		       "request %d without what the edges of the others carry is not merged", without);
		end_merged(&m);
	}
}

int main(void)
{
	struct test_model t;
	if (!tap_ok(load_model(&t, model, sizes), "%s", model))
		return tap_done();
	test_inputs(&t);
	test_divisions(&t);
	test_edges(&t);
	test_missing(&t);
	free_model(&t);
	return tap_done();
}
