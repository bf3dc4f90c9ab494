/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/program.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WEIGHTS = 1 << 20, MOST_DATA = 1 << 14, MOST_CHILDREN = 50 };

/* --- weights: small numbers of both signs --- */

static bool read_weight(void *context, int param, int64_t first, int64_t count, void *out, struct diags *d)
{
	float *to = out;
	const struct image *image = context;
	int64_t all = tensor_elements(&image->param[param]);
	if (param < 0 || param >= image->params || first < 0 || count > all - first)
		abort();
	if (all > MOST_WEIGHTS)
		return diag_add(d, DIAG_CANNOT_READ, (struct diag_at){0}, NULL, "nobody has such weights");
	for (int64_t i = 0; i < count; i++)
		to[i] = ((first + i) * 37 % 16 - 8) / 16.0f;
	return true;
}

/* --- structures: a tree with one inner node, then one that is a leaf --- */

struct structure {
	int32_t begin[MOST_CHILDREN + 3], children[MOST_CHILDREN], root[2], first[2];
	struct lin_forest forest;
	int nodes;
};

/* Two leaves when a node has no or many children. */
static void make_structure(struct structure *s, int children)
{
	int k = children < 0 ? 3 : children > MOST_CHILDREN ? 0 : children;
	memset(s, 0, sizeof *s);
	s->nodes = k + 2;
	for (int i = 0; i < k; i++)
		s->children[i] = i;
	s->begin[k + 1] = s->begin[k + 2] = k;
	s->root[0] = k;
	s->root[1] = k + 1;
	s->first[1] = k + 1;
	s->forest = (struct lin_forest){s->nodes, 2, s->begin, s->children, s->root, s->first, NULL, 0};
}

/* Zeros for every input, or NULL when that would be much. */
static const void **make_data(struct fuzz *f, const struct image *image, int nodes)
{
	const void **data = arena_try(&f->arena, image->inputs + 1, sizeof *data);
	for (int i = 0; data && i < image->inputs; i++) {
		int64_t elements = image->input[i].token ? 1 : image->input[i].elements;
		if (elements > MOST_DATA ||
		    !(data[i] = arena_try(&f->arena, nodes * elements + 1, sizeof(float))))
			return NULL;
	}
	return data;
}

/* --- results --- */

static void take_row(const struct image_output *o, const float *row, struct fuzz_results *r)
{
	for (int64_t e = 0; e < o->elements; e++)
		r->at[r->n++] = row[e];
}

static void check_states(const struct fuzz *f, const struct rt_session *s, int nodes)
{
	for (int i = 0; i < s->image->states; i++)
		for (int row = -1; row <= nodes; row++) {
			const volatile float *at = rt_session_state_row(s, i, row);
			fuzz_check(f, !at == !(row >= 0 && row < nodes), "nodes have states");
			if (at)
				(void)at[s->image->state[i].elements - 1];
		}
}

static void check_rows(const struct fuzz *f, const struct rt_session *s, int o, int nodes)
{
	bool at_root = s->image->output[o].at_root;
	for (int row = -1; row <= nodes + 1; row++) {
		const float *at = rt_session_row(s, o, row), *root = rt_session_root_row(s, o, row);
		fuzz_check(f, !at == !(row >= 0 && row < (at_root ? 2 : nodes)),
			   "rows that exist have results");
		fuzz_check(f, !root == !(row >= 0 && row < 2), "and so do roots");
	}
}

static bool take_results(struct fuzz *f, const struct rt_session *s, int nodes, struct fuzz_results *r)
{
	const struct image *image = s->image;
	int64_t n = 0;
	for (int o = 0; o < image->outputs; o++)
		n += image->output[o].elements * nodes;
	check_states(f, s, nodes);
	*r = (struct fuzz_results){arena_try(&f->arena, n + 1, sizeof(float)), 0};
	for (int o = 0; r->at && o < image->outputs; o++) {
		const struct image_output *out = &image->output[o];
		check_rows(f, s, o, nodes);
		for (int row = 0; row < (out->at_root ? 2 : nodes); row++)
			take_row(out, rt_session_row(s, o, row), r);
	}
	return r->at;
}

/* --- the run --- */

static bool run(struct fuzz *f, const struct image *image, const struct rt_binding *binding,
		struct fuzz_results *results)
{
	struct structure structure;
	struct rt_session session;
	struct fuzz_results local;
	make_structure(&structure, image->children);
	struct rt_minibatch m = {structure.forest, make_data(f, image, structure.nodes)};
	if (!m.data)
		return true;
	if (!rt_session_init(&session, &f->allocator, image, &f->diags))
		return false;
	bool fits = rt_check_minibatch(&f->allocator, image, &m, &f->diags);
	bool ran = rt_session_run(&session, binding, NULL, &m, &f->diags);
	fuzz_check(f, ran == fits, "what was checked runs");
	if (ran)
		take_results(f, &session, structure.nodes, results ? results : &local);
	rt_session_free(&session);
	return ran;
}

bool fuzz_run_program(struct fuzz *f, const struct image *image, struct fuzz_results *results)
{
	struct rt_binding binding;
	struct rt_source source = {read_weight, (void *)image};
	if (results)
		*results = (struct fuzz_results){0};
	if (image->packs ? !rt_bind_packed(&binding, &f->allocator, image, &f->diags)
			 : !rt_bind(&binding, &f->allocator, image, &source, NULL, &f->diags))
		return false;
	bool ok = run(f, image, &binding, results);
	rt_binding_free(&binding);
	return ok;
}
