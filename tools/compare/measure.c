/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures differences from the reference, and where they begin. */
#include "compare/compare.h"

#include <math.h>

/* --- values --- */

/* 0 for two NaNs and for equal infinities, INFINITY when one of both is not finite otherwise. */
static double measure_distance(double ours, double theirs)
{
	if (ours == theirs || (isnan(ours) && isnan(theirs)))
		return 0;
	double d = fabs(ours - theirs);
	return isnan(d) ? INFINITY : d;
}

static bool is_beyond(const struct options *o, double d, double theirs)
{
	return d > 0 && !(d <= o->atol + o->rtol * fabs(theirs) && isfinite(d));
}

static const float *row_of(const struct comparison *c, const struct quantity *q, size_t structure,
			   size_t node)
{
	const esp_session *s = c->batches.session;
	return q->is_state ? esp_session_state(s, q->index, structure, node)
			   : esp_session_output(s, q->index, structure, node);
}

/* --- rows --- */

struct row {
	const struct batch *batch;
	size_t structure, node, number; /* number: in the tensor */
	size_t beyond;
	double worst; /* the largest difference, at `place` */
	struct spot place;
};

static void measure_values(struct comparison *c, struct pair *p, struct row *r)
{
	const struct reference_tensor *t = &c->reference.tensor[p->tensor];
	const float *ours = row_of(c, &p->quantity, r->structure, r->node);
	size_t n = p->quantity.elements;
	struct spot place = {.tree = r->batch->first + r->structure, .node = r->node};
	r->worst = -1;
	for (size_t i = 0; i < n; i++) {
		double theirs = reference_value(t, r->number * n + i), d = measure_distance(ours[i], theirs);
		r->beyond += is_beyond(c->options, d, theirs);
		if (d <= r->worst)
			continue;
		r->worst = d;
		r->place = place;
		r->place.element = i;
		r->place.ours = ours[i];
		r->place.theirs = theirs;
	}
}

int compare_spots(const struct spot *a, const struct spot *b)
{
	if (a->traversal != b->traversal)
		return a->traversal < b->traversal ? -1 : 1;
	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->tree != b->tree)
		return a->tree < b->tree ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static bool note_beyond(struct comparison *c, struct pair *p, struct row *r)
{
	if (!levels_find(c, r->batch, r->structure))
		return false;
	r->place.traversal = p->quantity.traversal;
	r->place.level = level_of(c, &p->quantity, r->node);
	if (!p->beyond || compare_spots(&r->place, &p->first) < 0) {
		p->first = r->place;
		p->first_beyond = r->beyond;
	}
	p->beyond += r->beyond;
	return true;
}

static bool measure_row(struct comparison *c, struct pair *p, struct row r)
{
	measure_values(c, p, &r);
	if (!p->rows || r.worst > p->absolute) {
		p->absolute = r.worst;
		p->largest = r.place;
	}
	p->rows++;
	p->values += p->quantity.elements;
	return !r.beyond || note_beyond(c, p, &r);
}

/* --- trees --- */

static void measure_class(struct comparison *c, const struct batch *b, size_t structure)
{
	const struct pair *p = match_classes(c);
	size_t tree = b->first + structure, best = 0;
	if (!p || tree >= p->trees || p->quantity.is_state)
		return;
	const float *row = esp_session_root(c->batches.session, p->quantity.index, structure);
	for (size_t i = 1; i < p->quantity.elements; i++)
		if (row[i] > row[best])
			best = i;
	c->classes++;
	c->classes_beyond += best != (size_t)c->reference.class[tree];
}

static bool measure_tree(struct comparison *c, struct pair *p, const struct batch *b, size_t structure)
{
	size_t tree = b->first + structure, nodes = esp_forest_nodes(b->forest, structure);
	struct row r = {.batch = b, .structure = structure};
	if (tree >= p->trees)
		return true;
	if (p->quantity.is_local && !levels_find(c, b, structure))
		return false;
	size_t first = p->roots ? esp_forest_root(b->forest, structure) : 0, end = p->roots ? first + 1 : nodes;
	for (size_t node = first; node < end; node++) {
		if (!computes_quantity(c, &p->quantity, b, structure, node))
			continue;
		r.node = node;
		r.number = p->roots ? tree : c->trees.begin[tree] + node;
		if (!measure_row(c, p, r))
			return false;
	}
	return true;
}

bool measure_batch(struct comparison *c, const struct batch *b)
{
	for (size_t i = 0; i < b->sentences; i++) {
		for (size_t p = 0; p < c->pairs; p++)
			if (!measure_tree(c, &c->pair[p], b, i))
				return false;
		measure_class(c, b, i);
	}
	return true;
}
