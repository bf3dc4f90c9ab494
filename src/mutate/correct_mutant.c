/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Corrections: a mutant where it is equal to the original, and where it is not the original, computed there alone.
 *
 * The positions are cut into regions, products of intervals, each of which is of one kind; their values are joined again.  Where that
 * takes little more work, all positions of some intervals of one variable are computed by the original, which makes fewer
 * regions. */
#include "mutate/image_mutant.h"

struct correction {
	struct sub_program *p;
	struct sub_value y, mutant; /* copies: values move when others are added */
	VEC(struct mutate_box) wrong; /* disjoint */
	int regions;
	double recomputed;
};

/* --- boxes --- */

static bool has_extent(const struct correction *c, int i)
{
	return c->p->vars.at[c->y.var[i]].set == SUB_DIM;
}

static double count_elements(const struct correction *c, const struct mutate_box *box)
{
	double n = 1;
	for (int i = 0; i < c->y.vars; i++)
		if (has_extent(c, i))
			n *= (double)(box->end[i] - box->first[i]);
	return n;
}

/* The elements of a box that are wrong. */
static double count_wrong(const struct correction *c, const struct mutate_box *box)
{
	double n = 0;
	for (size_t w = 0; w < c->wrong.n; w++) {
		struct mutate_box both = *box;
		bool meet = true;
		for (int i = 0; i < c->y.vars; i++) {
			const struct mutate_box *o = &c->wrong.at[w];
			both.first[i] = o->first[i] > both.first[i] ? o->first[i] : both.first[i];
			both.end[i] = o->end[i] < both.end[i] ? o->end[i] : both.end[i];
			meet &= both.first[i] < both.end[i];
		}
		n += meet ? count_elements(c, &both) : 0;
	}
	return n;
}

static struct mutate_box whole_box(const struct correction *c)
{
	struct mutate_box box = {.first = {0}};
	for (int i = 0; i < c->y.vars; i++)
		box.end[i] = has_extent(c, i) ? c->p->vars.at[c->y.var[i]].extent : INT32_MAX;
	return box;
}

/* Marks the indices along a variable at which something is wrong; returns how many there are. */
static int64_t mark_wrong(const struct correction *c, int along, bool *mark)
{
	int64_t n = 0, extent = c->p->vars.at[c->y.var[along]].extent;
	for (size_t w = 0; w < c->wrong.n; w++)
		for (int64_t at = c->wrong.at[w].first[along]; at < c->wrong.at[w].end[along]; at++)
			mark[at] = true;
	for (int64_t at = 0; at < extent; at++)
		n += mark[at];
	return n;
}

/* Makes of the indices that are marked along a variable the boxes that are wrong. */
static void take_slabs(struct correction *c, int along, const bool *mark)
{
	int64_t extent = c->p->vars.at[c->y.var[along]].extent;
	c->wrong.n = 0;
	for (int64_t at = 0; at < extent; at++) {
		struct mutate_box slab = whole_box(c);
		slab.first[along] = at;
		while (at < extent && mark[at])
			at++;
		slab.end[along] = at;
		if (slab.first[along] < at)
			vec_push(c->p->arena, &c->wrong, slab);
	}
}

/* Takes all positions of some intervals of one variable where these are at most twice as many as are wrong. */
static void widen_boxes(struct correction *c, double wrong)
{
	struct mutate_box all = whole_box(c);
	double least = 2 * wrong;
	int best = -1;
	bool *mark = NULL;
	for (int i = 0; i < c->y.vars; i++) {
		int64_t extent = c->p->vars.at[c->y.var[i]].extent;
		bool *here = has_extent(c, i) ? ARENA_ARRAY(c->p->arena, bool, extent) : NULL;
		double n = here ? count_elements(c, &all) / (double)extent * (double)mark_wrong(c, i, here) : 0;
		if (here && n <= least) {
			least = n;
			best = i;
			mark = here;
		}
	}
	if (best >= 0)
		take_slabs(c, best, mark);
}

/* --- parts of values --- */

/* Variables for the positions of a box: those of the value where the box has all of them. */
static void name_box(const struct correction *c, const struct mutate_box *box, int *var)
{
	struct mutate_box all = whole_box(c);
	for (int i = 0; i < c->y.vars; i++) {
		int64_t extent = box->end[i] - box->first[i];
		bool taken = true;
		var[i] = c->y.var[i];
		if (extent == all.end[i] - all.first[i])
			continue;
		for (int ordinal = 0; taken; ordinal++) {
			var[i] = sub_dim(c->p, extent, ordinal);
			taken = sub_position_in(&c->y.reduced, var[i]) >= 0;
			for (int k = 0; k < c->y.vars; k++)
				taken |= var[i] == c->y.var[k] || (k < i && var[i] == var[k]);
		}
	}
}

/* Puts into a map the first position of a box plus a variable of it in place of each variable. */
static void shift_map(const struct correction *c, const struct mutate_box *box, const int *var, struct sub_map *m)
{
	struct sub_map old = *m;
	for (int i = 0; i < c->y.vars; i++) {
		if (old.var == c->y.var[i]) {
			m->var = var[i];
			m->offset += has_extent(c, i) ? old.scale * box->first[i] : 0;
		}
		if (old.scale2 && old.var2 == c->y.var[i]) {
			m->var2 = var[i];
			m->offset += has_extent(c, i) ? old.scale2 * box->first[i] : 0;
		}
	}
}

static int rename_var(const struct correction *c, const int *var, int old)
{
	for (int i = 0; i < c->y.vars; i++)
		if (c->y.var[i] == old)
			return var[i];
	return old;
}

/* The part of a movement whose variables have the names of a use that lies in the box. */
static sub_ref cut_move(const struct correction *c, const struct sub_value *move, const struct sub_use *u,
			const struct mutate_box *box, const int *var)
{
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = *move;
	sub_copy_maps(&v, map);
	for (int k = 0; k < v.arg[0].vars; k++) {
		struct sub_map own = map[k];
		for (int i = 0; i < move->vars; i++) {
			map[k].var = own.var == move->var[i] ? u->var[i] : map[k].var;
			map[k].var2 = own.scale2 && own.var2 == move->var[i] ? u->var[i] : map[k].var2;
		}
		shift_map(c, box, var, &map[k]);
	}
	for (int i = 0; i < v.vars; i++)
		v.var[i] = rename_var(c, var, u->var[i]);
	return sub_add(c->p, v, NULL);
}

static bool is_cut(const struct correction *c, const struct sub_use *u, const int *var)
{
	bool any = false;
	for (int i = 0; i < u->vars; i++)
		any |= rename_var(c, var, u->var[i]) != u->var[i];
	return any;
}

/* The part of an argument that lies in a box. */
static struct sub_use cut_argument(const struct correction *c, const struct sub_use *u, const struct mutate_box *box,
				   const int *var)
{
	struct sub_map map[SUB_MAX_VARS];
	const struct sub_value a = *sub_at(c->p, u->value);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(c->p, u->value)}, .vars = u->vars, .map = map};
	if (!is_cut(c, u, var))
		return *u;
	if (a.op == SUB_ASSIGN)
		return sub_as_is(c->p, cut_move(c, &a, u, box, var));
	for (int i = 0; i < u->vars; i++) {
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = u->var[i], .scale = 1};
		shift_map(c, box, var, &map[i]);
		v.var[i] = map[i].var;
	}
	return sub_as_is(c->p, sub_add(c->p, v, NULL));
}

static sub_ref compute_original(const struct correction *c, const struct mutate_box *box, const int *var)
{
	struct sub_value v = c->y;
	for (int a = 0; a < v.args; a++) {
		v.arg[a] = cut_argument(c, &c->y.arg[a], box, var);
		if (!v.arg[a].value.i)
			return (sub_ref){0};
	}
	return sub_add(c->p, v, NULL);
}

static sub_ref take_mutant(const struct correction *c, const struct mutate_box *box, const int *var)
{
	struct sub_use u = {.vars = c->y.vars};
	memcpy(u.var, c->mutant.var, sizeof u.var);
	return cut_move(c, &c->mutant, &u, box, var);
}

/* --- regions --- */

/* Joins the values of two neighbours along a variable. */
static sub_ref join_parts(const struct correction *c, const struct mutate_box *box, int along, const sub_ref *part)
{
	struct sub_value v = {.op = SUB_COND, .vars = c->y.vars, .axis = along};
	if (!part[0].i || !part[1].i)
		return (sub_ref){0};
	name_box(c, box, v.var);
	for (int a = 0; a < 2; a++) {
		int extent_var = sub_at(c->p, part[a])->var[along], taken = 1;
		int64_t extent = c->p->vars.at[extent_var].extent;
		v.arg[a] = (struct sub_use){.value = part[a], .vars = v.vars};
		memcpy(v.arg[a].var, v.var, sizeof v.var);
		for (int ordinal = 0; taken; ordinal++) {
			v.arg[a].var[along] = sub_dim(c->p, extent, ordinal);
			taken = 0;
			for (int i = 0; i < v.vars; i++)
				taken |= v.var[i] == v.arg[a].var[along];
		}
	}
	return sub_add(c->p, v, NULL);
}

/* How many elements are in a part of one kind if a box is cut there. */
static double judge_cut(const struct correction *c, const struct mutate_box *box, int along, int64_t at)
{
	struct mutate_box part[2] = {*box, *box};
	double pure = 0;
	if (at <= box->first[along] || at >= box->end[along])
		return 0;
	part[0].end[along] = part[1].first[along] = at;
	for (int k = 0; k < 2; k++) {
		double all = count_elements(c, &part[k]), wrong = count_wrong(c, &part[k]);
		pure += wrong == 0 || wrong == all ? all : 0;
	}
	return pure;
}

static double find_cut(const struct correction *c, const struct mutate_box *box, int *along, int64_t *at)
{
	double best = -1;
	for (size_t w = 0; w < c->wrong.n; w++)
		for (int i = 0; i < c->y.vars; i++)
			for (int k = 0; k < 2; k++) {
				int64_t bound = k ? c->wrong.at[w].end[i] : c->wrong.at[w].first[i];
				bool inside = has_extent(c, i) && bound > box->first[i] && bound < box->end[i];
				double pure = inside ? judge_cut(c, box, i, bound) : -1;
				if (pure > best) {
					best = pure;
					*along = i;
					*at = bound;
				}
			}
	return best;
}

static sub_ref compute_region(struct correction *c, const struct mutate_box *box)
{
	double all = count_elements(c, box), wrong = count_wrong(c, box);
	int along = 0, var[SUB_MAX_VARS];
	int64_t at = 0;
	name_box(c, box, var);
	if (wrong == 0 || wrong == all) {
		c->recomputed += wrong;
		if (++c->regions > MUTATE_MAX_REGIONS)
			return (sub_ref){0};
		return wrong == 0 ? take_mutant(c, box, var) : compute_original(c, box, var);
	}
	if (find_cut(c, box, &along, &at) < 0 || c->regions > MUTATE_MAX_REGIONS)
		return (sub_ref){0};
	struct mutate_box part[2] = {*box, *box};
	part[0].end[along] = part[1].first[along] = at;
	sub_ref value[2];
	for (int k = 0; k < 2; k++)
		value[k] = compute_region(c, &part[k]);
	return join_parts(c, box, along, value);
}

sub_ref mutate_correct(struct sub_program *p, sub_ref original, sub_ref mutant, const struct mutate_comparison *proof,
		       double *recomputed)
{
	struct correction c = {.p = p, .y = *sub_at(p, original), .mutant = *sub_at(p, mutant)};
	for (size_t i = 0; i < proof->differ.n; i++)
		vec_push(p->arena, &c.wrong, proof->differ.at[i]);
	if (c.wrong.n)
		widen_boxes(&c, proof->wrong);
	struct mutate_box all = whole_box(&c);
	sub_ref corrected = c.wrong.n ? compute_region(&c, &all) : mutant;
	*recomputed = c.recomputed;
	return corrected;
}
