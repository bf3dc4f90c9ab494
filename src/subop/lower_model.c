/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a model to a program: what it declares, its cases, and a body for each case of a traversal and for the
 * outputs.  The operators of a body are lowered in lower_operator.c. */
#include "subop/lower_operator.h"

/* --- bodies --- */

/* The operators on the longest path from a node to a source; `depth` has those of its arguments. */
static int depth_of(const struct ra_node *n, const int *depth)
{
	int deepest = 0;
	for (int a = 0; a < 3; a++)
		deepest = depth[n->arg[a].i] > deepest ? depth[n->arg[a].i] : deepest;
	return 1 + deepest;
}

static bool refuse_depth(struct lowering *l, const struct ra_node *n)
{
	return diag_add(l->diags, DIAG_MODEL_LARGE, n->at,
			"make a state of what is halfway, or group long sums by parentheses",
			"more than %d operators follow one from another", SUB_MAX_DEPTH);
}

/* Lowers the marked nodes and their arguments, in the order of the graph: arguments come first. */
static bool lower_graph(struct lowering *l, bool *needed)
{
	const struct ra_model *m = l->model;
	int *depth = ARENA_ARRAY(l->p->arena, int, m->nodes.n);
	for (size_t i = m->nodes.n; i-- > 1;)
		for (int a = 0; needed[i] && a < 3; a++)
			needed[m->nodes.at[i].arg[a].i] = true;
	for (size_t i = 1; i < m->nodes.n; i++) {
		if (!needed[i])
			continue;
		depth[i] = depth_of(&m->nodes.at[i], depth);
		if (depth[i] > SUB_MAX_DEPTH)
			return refuse_depth(l, &m->nodes.at[i]);
		l->values[i] = sub_lower_node(l, &m->nodes.at[i]);
		if (!l->values[i].i)
			return false;
	}
	return true;
}

/* The mask of the cases whose nodes have this answer to whether there is a parent. */
static unsigned cases_with(const struct sub_program *p, enum image_answer parent)
{
	unsigned mask = 0;
	for (size_t c = 0; c < p->cases.n; c++)
		mask |= (unsigned)(p->cases.at[c].parent == parent) << c;
	return mask;
}

static void start_body(struct lowering *l, const char *name, enum sub_domain domain, int traversal)
{
	l->row = domain == SUB_EVERY_INPUT ? l->p->input : l->p->node;
	l->traversal = traversal;
	l->values = ARENA_ARRAY(l->p->arena, sub_ref, l->model->nodes.n);
	struct sub_body b = {
	    .name = sub_find_free_name(l->p, SUB_NAME_BODY, name), .domain = domain, .traversal = traversal};
	if (domain == SUB_TOP || domain == SUB_BELOW)
		b.cases = cases_with(l->p, domain == SUB_BELOW ? IMAGE_YES : IMAGE_NO);
	vec_push(l->p->arena, &l->p->bodies, b);
}

static void add_store(struct lowering *l, enum sub_target to, int which, ra_ref value,
		      const struct ra_shape *shape)
{
	struct sub_store s = {
	    .to = to, .which = which, .value = sub_lower_result(l, l->values[value.i], shape)};
	if (to == SUB_TO_STATE && sub_is_scanned(l->p, which)) {
		struct sub_map at = sub_step_map(l, 0);
		s.stepped = true;
		s.scale = at.scale;
		s.offset = at.offset;
	}
	vec_push(l->p->arena, &l->p->bodies.at[l->p->bodies.n - 1].stores, s);
}

/* "leaf" in the first traversal, "leaf2" in the second. */
static const char *body_name(struct lowering *l, const char *name, int traversal)
{
	struct str s = str_in(l->p->arena);
	str_printf(&s, traversal ? "%s%d" : "%s", name, traversal + 1);
	return str_text(&s);
}

/* The cases of a body of a traversal up: that of its name and, in a base case, those without a body of their
 * own. */
static unsigned cases_of(const struct lowering *l, int traversal, int which)
{
	const struct ra_model *m = l->model;
	unsigned mask = l->p->named.at[which].cases;
	for (size_t i = 0; i < m->cases.n; i++)
		if ((int)m->cases.at[i].base == which && !ra_has_own_body(m, traversal, RA_CASES + i))
			mask |= l->p->named.at[RA_CASES + i].cases;
	return mask;
}

static bool lower_case(struct lowering *l, int traversal, int which, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	if (which >= RA_CASES && !ra_has_own_body(m, traversal, which))
		return true;
	bool *needed = ARENA_ARRAY(l->p->arena, bool, m->nodes.n);
	start_body(l, body_name(l, name, traversal), domain, traversal);
	if (m->cases.n && !m->traversals.at[traversal].down)
		l->p->bodies.at[l->p->bodies.n - 1].cases = cases_of(l, traversal, which);
	for (size_t s = 0; s < m->states.n; s++)
		if (m->states.at[s].traversal == traversal)
			needed[m->states.at[s].value[which].i] = true;
	if (!lower_graph(l, needed))
		return false;
	for (size_t s = 0; s < m->states.n; s++)
		if (m->states.at[s].traversal == traversal)
			add_store(l, SUB_TO_STATE, s, m->states.at[s].value[which], &m->states.at[s].shape);
	return true;
}

static bool lower_named(struct lowering *l, int traversal, enum ra_case base)
{
	const struct ra_model *m = l->model;
	enum sub_domain domain = base == RA_LEAF ? SUB_LEAF : SUB_INNER;
	bool ok = true;
	for (size_t i = 0; ok && i < m->cases.n; i++)
		if (m->cases.at[i].base == base)
			ok = lower_case(l, traversal, RA_CASES + i, m->cases.at[i].name, domain);
	return ok;
}

/* Whether a traversal computes anything; without a structure it does not. */
static bool has_states(const struct ra_model *m, int traversal)
{
	for (size_t s = 0; s < m->states.n; s++)
		if (m->states.at[s].traversal == traversal)
			return true;
	return false;
}

static bool lower_traversal(struct lowering *l, int t)
{
	if (!has_states(l->model, t))
		return true;
	if (ra_is_scan(&l->model->traversals.at[t]))
		return lower_case(l, t, RA_LEAF, "first", SUB_FIRST_STEP) &&
		       lower_case(l, t, RA_INNER, "next", SUB_NEXT_STEPS);
	if (l->model->structure.kind == RA_NONE)
		return lower_case(l, t, RA_LEAF, "rows", SUB_AHEAD);
	if (l->model->traversals.at[t].down)
		return lower_case(l, t, RA_ROOT, "root", SUB_TOP) &&
		       lower_case(l, t, RA_BELOW, "below", SUB_BELOW);
	return lower_case(l, t, RA_LEAF, "leaf", SUB_LEAF) && lower_named(l, t, RA_LEAF) &&
	       lower_case(l, t, RA_INNER, "inner", SUB_INNER) && lower_named(l, t, RA_INNER);
}

/* Adds the body of the outputs that are computed over `domain`, if there are any. */
static bool lower_outputs(struct lowering *l, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	bool *needed = ARENA_ARRAY(l->p->arena, bool, m->nodes.n), any = false,
	     at_root = domain == SUB_EVERY_INPUT;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			any = needed[m->outputs.at[o].value.i] = true;
	if (!any)
		return true;
	start_body(l, name, domain, m->traversals.n - 1);
	if (!lower_graph(l, needed))
		return false;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			add_store(l, SUB_TO_OUTPUT, o, m->outputs.at[o].value,
				  &ra_at(m, m->outputs.at[o].value)->shape);
	return true;
}

static struct sub_tensor tensor_of(struct lowering *l, const char *name, enum dtype dtype,
				   const struct ra_shape *shape)
{
	struct sub_tensor t = {.name = name, .dtype = dtype, .rank = shape->rank};
	sub_lower_shape(l, shape, t.var);
	for (int d = 0; d < shape->rank; d++)
		t.shape[d] = ra_dim_value(&shape->dim[d], l->sizes);
	return t;
}

static struct sub_tensor tensor_of_param(struct lowering *l, const struct ra_param *param)
{
	struct sub_tensor t = tensor_of(l, param->name, param->dtype, &param->shape);
	t.declared = param->declared;
	t.products = param->products;
	return t;
}

static void declare_state(struct lowering *l, int state)
{
	const struct ra_state *s = &l->model->states.at[state];
	const struct ra_shape shape = ra_outer_shape(l->model, state);
	struct sub_tensor t = tensor_of(l, s->name, s->dtype, &shape);
	t.traversal = s->traversal;
	vec_push(l->p->arena, &l->p->states, t);
}

/* By node of the graph: whether it is, or needs, a sum or maximum over the members of an input. */
static bool *find_members(struct lowering *l)
{
	const struct ra_model *m = l->model;
	bool *found = ARENA_ARRAY(l->p->arena, bool, m->nodes.n);
	for (size_t i = 1; i < m->nodes.n; i++) {
		const struct ra_node *n = &m->nodes.at[i];
		found[i] = (n->op == RA_CHILD_SUM || n->op == RA_CHILD_MAX) && n->members;
		found[i] |= found[n->arg[0].i] || found[n->arg[1].i] || found[n->arg[2].i];
	}
	return found;
}

/* Whether an input selects rows of a parameter, or distinguishes cases. */
static bool is_looked_up(const struct ra_model *m, size_t input)
{
	for (size_t i = 1; i < m->nodes.n; i++)
		if (m->nodes.at[i].op == RA_LOOKUP && m->nodes.at[i].input == (int)input)
			return true;
	for (size_t c = 0; c < m->cases.n; c++)
		for (size_t t = 0; t < m->cases.at[c].tokens.n; t++)
			if (m->cases.at[c].tokens.at[t].input == (int)input)
				return true;
	return false;
}

static struct sub_tensor tensor_of_input(struct lowering *l, const struct ra_input *in)
{
	struct sub_tensor t = tensor_of(l, in->name, in->dtype, &in->shape);
	t.within = (float)in->within;
	return t;
}

static void declare_inputs(struct lowering *l)
{
	const struct ra_model *m = l->model;
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct ra_input *in = &m->inputs.at[i];
		vec_push(l->p->arena, &l->p->inputs,
			 (struct sub_input){.name = in->name,
					    .token = in->token || is_looked_up(m, i),
					    .on_edge = in->edge,
					    .row = tensor_of_input(l, in)});
	}
}

/* An output at root that needs members is always computed once for each input. */
static void declare_outputs(struct lowering *l, enum sub_outputs_at at)
{
	const bool *members = find_members(l);
	for (size_t i = 0; i < l->model->outputs.n; i++) {
		const struct ra_output *out = &l->model->outputs.at[i];
		const struct ra_node *n = ra_at(l->model, out->value);
		bool at_root = at == SUB_AT_MODEL ? out->at_root : at == SUB_AT_ROOT && l->model->structure.kind != RA_NONE;
		vec_push(l->p->arena, &l->p->outputs,
			 (struct sub_output){tensor_of(l, out->name, n->dtype, &n->shape),
					     at_root || (out->at_root && members[out->value.i])});
	}
}

static void declare_model(struct lowering *l, enum sub_outputs_at at)
{
	const struct ra_model *m = l->model;
	struct sub_program *p = l->p;
	p->children = m->structure.children;
	p->tree = m->structure.kind != RA_DAG;
	for (size_t i = 0; i < m->params.n; i++)
		vec_push(p->arena, &p->params, tensor_of_param(l, &m->params.at[i]));
	for (size_t i = 0; i < m->states.n; i++)
		declare_state(l, (int)i);
	p->traversals.n = 0;
	for (size_t i = 0; i < m->traversals.n; i++)
		vec_push(p->arena, &p->traversals,
			 (struct sub_traversal){m->traversals.at[i].down,
						ra_dim_value(&m->traversals.at[i].steps, l->sizes)});
	declare_inputs(l);
	declare_outputs(l, at);
}

static void declare_case(struct lowering *l, struct image_case c, int of)
{
	l->p->named.at[of].cases |= 1u << l->p->cases.n;
	vec_push(l->p->arena, &l->p->cases, c);
}

/* Declares a case: two of them, with and without a parent, if a traversal goes down. */
static void declare_with_parents(struct lowering *l, struct image_case c, int of)
{
	static const struct {
		enum image_answer parent;
		const char *suffix;
	} halves[] = {{IMAGE_NO, "root"}, {IMAGE_YES, "below"}};
	const char *name = c.name;
	if (!ra_has_down(l->model)) {
		declare_case(l, c, of);
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct str s = str_in(l->p->arena);
		str_printf(&s, "%s.%s", name, halves[i].suffix);
		c.name = str_text(&s);
		c.parent = halves[i].parent;
		declare_case(l, c, of);
	}
}

static void name_cases(struct lowering *l)
{
	static const char *const bases[] = {[RA_LEAF] = "leaf", [RA_INNER] = "inner"};
	const struct ra_model *m = l->model;
	for (int base = RA_LEAF; base < RA_CASES; base++)
		vec_push(l->p->arena, &l->p->named, (struct sub_named_case){.name = bases[base]});
	for (size_t i = 0; i < m->cases.n; i++)
		vec_push(l->p->arena, &l->p->named, (struct sub_named_case){.name = m->cases.at[i].name});
}

/* Declares the cases of leaves, then those of inner nodes; named ones come before the rest. */
static void declare_cases(struct lowering *l)
{
	const struct ra_model *m = l->model;
	bool any = m->cases.n || (m->structure.kind != RA_NONE && ra_has_down(m));
	name_cases(l);
	for (int base = RA_LEAF; any && base < RA_CASES; base++) {
		struct image_case rest = {.name = l->p->named.at[base].name, .inner = base, .children = -1};
		for (size_t i = 0; i < m->cases.n; i++) {
			const struct ra_named_case *c = &m->cases.at[i];
			struct image_case named = {c->name,	 base,	      c->children,
						   IMAGE_EITHER, c->tokens.n, c->tokens.at};
			if ((int)c->base == base)
				declare_with_parents(l, named, RA_CASES + i);
		}
		declare_with_parents(l, rest, base);
	}
}

bool sub_lower_model(struct sub_program *p, const struct ra_model *m, const int64_t *sizes, enum sub_outputs_at at,
		     struct diags *diags)
{
	struct lowering l = {.p = p, .model = m, .sizes = sizes, .diags = diags};
	declare_model(&l, at);
	declare_cases(&l);
	l.index = sub_lower_indices(&l);
	for (size_t t = 0; t < m->traversals.n; t++)
		if (!lower_traversal(&l, t))
			return false;
	return lower_outputs(&l, "output", SUB_EVERY_NODE) &&
	       lower_outputs(&l, "output.root", SUB_EVERY_INPUT);
}
