/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model that is built is the model that a text says: graphs of texts are built anew, node by node, and must
 * come out as the same nodes in the same order. */
#include "ra/builder.h"
#include "ra/syntax.h"
#include "tests/models/generate.h"
#include "tests/ra/read.h"
#include "tests/ra/same.h"
#include "tests/ra/session.h"
#include "tests/tap.h"

#include <dirent.h>
#include <time.h>

/* --- a graph, rebuilt by calls --- */

struct rebuild {
	const struct ra_model *m;
	struct ra_builder *b;
	struct arena *arena;
	uint32_t *value; /* of a node */
	uint32_t *params, *inputs;
};

static char *dim_text(struct rebuild *r, const struct ra_dim *d)
{
	struct str s = str_in(r->arena);
	ra_dim_print(r->m, d, &s);
	return arena_string(r->arena, str_text(&s));
}

/* Without the brackets, and with the type that is not f32. */
static char *shape_text(struct rebuild *r, const struct ra_shape *shape, enum dtype dtype)
{
	struct str s = str_in(r->arena);
	if (!shape->rank && dtype == DTYPE_F32)
		return NULL;
	ra_shape_print(r->m, shape, &s);
	s.n--;
	if (dtype != DTYPE_F32)
		str_printf(&s, " : %s", dtype_traits_of(dtype)->spelling);
	return arena_text(r->arena, str_text(&s) + 1, s.n - 1);
}

/* The same of a parameter, with what is declared of products with it. */
static const char *param_text(struct rebuild *r, const struct ra_param *param)
{
	struct str s = str_in(r->arena);
	const char *shape = shape_text(r, &param->shape, param->dtype);
	if (!param->declared)
		return shape;
	str_printf(&s, "%s products %s", shape ? shape : "", precision_traits_of(param->products)->spelling);
	return str_text(&s);
}

/* The same of an input, with its bound. */
static const char *input_text(struct rebuild *r, const struct ra_input *in)
{
	struct str s = str_in(r->arena);
	const char *shape = shape_text(r, &in->shape, in->dtype);
	if (!in->within)
		return shape;
	str_printf(&s, "%s within ", shape ? shape : "");
	str_double(&s, in->within);
	return str_text(&s);
}

static const char *structure_text(struct rebuild *r)
{
	static const char *const kinds[] = {
	    [RA_SEQUENCE] = "sequence", [RA_TREE] = "tree(", [RA_DAG] = "dag(", [RA_NONE] = "none"};
	const struct ra_structure *t = &r->m->structure;
	struct str s = str_in(r->arena);
	str_puts(&s, kinds[t->kind]);
	if (t->kind == RA_SEQUENCE || t->kind == RA_NONE)
		return str_text(&s);
	if (t->children < 0)
		str_puts(&s, "*");
	else if (!t->child)
		str_printf(&s, "%d", t->children);
	for (int i = 0; t->child && i < t->children; i++)
		str_printf(&s, "%s%s", i ? ", " : "", t->child[i]);
	str_puts(&s, ")");
	return str_text(&s);
}

static void rebuild_declarations(struct rebuild *r)
{
	const struct ra_model *m = r->m;
	r->params = ARENA_ARRAY(r->arena, uint32_t, m->params.n);
	r->inputs = ARENA_ARRAY(r->arena, uint32_t, m->inputs.n);
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct ra_input *in = &m->inputs.at[i];
		if (in->edge && in->token)
			ra_builder_edge_token(r->b, in->name);
		else if (in->edge)
			ra_builder_edge(r->b, in->name, input_text(r, in));
		else
			r->inputs[i] = in->token ? ra_builder_token(r->b, in->name)
						 : ra_builder_input(r->b, in->name, input_text(r, in));
	}
	for (size_t i = 0; i < m->params.n; i++)
		r->params[i] = ra_builder_param(r->b, m->params.at[i].name, param_text(r, &m->params.at[i]));
}

static bool is_of(const struct rebuild *r, size_t state, int traversal)
{
	return r->m->states.at[state].traversal == traversal;
}

static uint32_t rebuild_slice(struct rebuild *r, const struct ra_node *n, uint32_t x)
{
	struct ra_dim end;
	ra_dim_add(&n->shape.dim[n->axis], 1, &n->begin, &end);
	return ra_builder_slice(r->b, x, n->axis, dim_text(r, &n->begin), dim_text(r, &end));
}

/* What the node carries, or the one of a sum, or the edge to a child. */
static uint32_t carried_value(struct rebuild *r, const struct ra_node *n)
{
	const struct ra_input *in = &r->m->inputs.at[n->input];
	if (in->edge)
		return ra_builder_child(r->b, n->slot, in->name);
	return n->slot == RA_EACH_MEMBER ? ra_builder_member(r->b, in->name) : r->inputs[n->input];
}

static uint32_t rebuild_transpose(struct rebuild *r, const struct ra_node *n, uint32_t x)
{
	uint32_t arg[1 + RA_MAX_RANK] = {x};
	for (int d = 0; d < n->shape.rank; d++)
		arg[1 + d] = ra_builder_number(r->b, n->order[d]);
	return ra_builder_call(r->b, "transpose", arg, 1 + (size_t)n->shape.rank);
}

static uint32_t rebuild_node(struct rebuild *r, const struct ra_node *n)
{
	const struct ra_model *m = r->m;
	uint32_t arg[3] = {r->value[n->arg[0].i], r->value[n->arg[1].i], r->value[n->arg[2].i]};
	switch (n->op) {
	case RA_CONST:
		return ra_builder_number(r->b, n->constant);
	case RA_ZERO:
		return ra_builder_zeros(r->b, shape_text(r, &n->shape, n->dtype));
	case RA_EXTENT:
		return ra_builder_dimension(r->b, dim_text(r, &n->begin));
	case RA_PARAM:
		return r->params[n->param];
	case RA_INPUT:
		return carried_value(r, n);
	case RA_LOOKUP:
		return ra_builder_lookup(r->b, arg[0], carried_value(r, n));
	case RA_STATE:
		return n->state.slot == RA_EACH_MEMBER ? ra_builder_member(r->b, m->states.at[n->state.state].name)
						       : ra_builder_get(r->b, m->states.at[n->state.state].name);
	case RA_CHILD:
		return ra_builder_child(r->b, n->state.slot, m->states.at[n->state.state].name);
	case RA_PARENT:
		return ra_builder_parent(r->b, n->state.slot == RA_EACH_CHILD, m->states.at[n->state.state].name);
	case RA_CAST:
		return ra_builder_call(r->b, dtype_traits_of(n->dtype)->spelling, arg, 1);
	case RA_SLICE:
		return rebuild_slice(r, n, arg[0]);
	case RA_ROW:
		return ra_builder_lookup(r->b, arg[0], ra_builder_number(r->b, (double)n->begin.constant));
	case RA_CHILD_SUM:
	case RA_CHILD_MAX:
		return (n->members ? ra_builder_members : ra_builder_children)(
		    r->b, n->op == RA_CHILD_SUM ? "sum" : "max", arg[0]);
	case RA_PARENT_SUM:
	case RA_PARENT_MAX:
		return ra_builder_parents(r->b, n->op == RA_PARENT_SUM ? "sum" : "max", arg[0]);
	case RA_SUM:
	case RA_MAX:
	case RA_MIN:
	case RA_PROD:
	case RA_CUMSUM:
	case RA_ARGMAX:
	case RA_ARGMIN:
	case RA_CONCAT:
		return ra_builder_call_along(r->b, ra_op_spelling(n->op), n->axis, arg, (size_t)ra_op_arity(n->op));
	case RA_RESHAPE:
		return ra_builder_reshape(r->b, arg[0], shape_text(r, &n->shape, DTYPE_F32));
	case RA_TRANSPOSE:
		return rebuild_transpose(r, n, arg[0]);
	default:
		return ra_builder_call(r->b, ra_op_spelling(n->op), arg, (size_t)ra_op_arity(n->op));
	}
}

/* The nodes that the roots need, in order. */
static void rebuild_nodes(struct rebuild *r, const ra_ref *root, size_t roots)
{
	const struct ra_model *m = r->m;
	bool *mark = ARENA_ARRAY(r->arena, bool, m->nodes.n + 1);
	for (size_t i = 0; i < roots; i++)
		mark[root[i].i] = true;
	for (size_t i = m->nodes.n; i-- > 1;)
		for (int j = 0; mark[i] && j < arity(m->nodes.at[i].op); j++)
			mark[m->nodes.at[i].arg[j].i] = true;
	for (size_t i = 1; i < m->nodes.n; i++)
		if (mark[i])
			r->value[i] = rebuild_node(r, &m->nodes.at[i]);
}

static void rebuild_case(struct rebuild *r, const struct ra_named_case *c)
{
	struct str s = str_in(r->arena);
	if (c->children >= 0)
		str_printf(&s, "children == %d", c->children);
	for (size_t i = 0; i < c->tokens.n; i++)
		str_printf(&s, "%s%s == %d", s.n ? " and " : "", r->m->inputs.at[c->tokens.at[i].input].name,
			   c->tokens.at[i].value);
	ra_builder_case(r->b, c->name, c->base == RA_LEAF ? RA_BODY_LEAF : RA_BODY_INNER, str_text(&s));
}

static void rebuild_body(struct rebuild *r, int traversal, int which)
{
	static const enum ra_builder_body bodies[2][RA_CASES] = {
	    {[RA_LEAF] = RA_BODY_LEAF, [RA_INNER] = RA_BODY_INNER},
	    {[RA_ROOT] = RA_BODY_ROOT, [RA_BELOW] = RA_BODY_BELOW}};
	const struct ra_model *m = r->m;
	ra_ref *root = ARENA_ARRAY(r->arena, ra_ref, m->states.n);
	for (size_t i = 0; i < m->states.n; i++)
		root[i] = is_of(r, i, traversal) ? m->states.at[i].value[which] : (ra_ref){0};
	const struct ra_traversal *t = &m->traversals.at[traversal];
	bool of_rows = m->structure.kind == RA_NONE && !ra_is_scan(t);
	ra_builder_body(r->b, of_rows		 ? (int)RA_BODY_NODE
			      : which < RA_CASES ? (int)bodies[t->down][which]
						 : RA_BODY_CASE + which - RA_CASES);
	rebuild_nodes(r, root, m->states.n);
	for (size_t i = 0; i < m->states.n; i++)
		if (is_of(r, i, traversal))
			ra_builder_assign(r->b, m->states.at[i].name, r->value[root[i].i]);
}

static const char *direction_text(struct rebuild *r, const struct ra_traversal *t)
{
	struct str s = str_in(r->arena);
	str_puts(&s, t->down ? "down" : "up");
	if (ra_is_scan(t))
		str_printf(&s, " over %s", dim_text(r, &t->steps));
	return str_text(&s);
}

/* The first one goes up, once in each row, unless it says otherwise. */
static void rebuild_traversal(struct rebuild *r, int t)
{
	const struct ra_model *m = r->m;
	if (t || m->traversals.at[t].down || ra_is_scan(&m->traversals.at[t]))
		ra_builder_traversal(r->b, direction_text(r, &m->traversals.at[t]));
	for (size_t i = 0; i < m->states.n; i++)
		if (is_of(r, i, t))
			ra_builder_state(r->b, m->states.at[i].name,
					 shape_text(r, &m->states.at[i].shape, m->states.at[i].dtype));
	for (int which = 0; which < ra_bodies(m); which++)
		if (ra_has_own_body(m, t, which))
			rebuild_body(r, t, which);
}

static void rebuild_outputs(struct rebuild *r)
{
	const struct ra_model *m = r->m;
	ra_ref *root = ARENA_ARRAY(r->arena, ra_ref, m->outputs.n);
	for (size_t i = 0; i < m->outputs.n; i++)
		root[i] = m->outputs.at[i].value;
	/* Without a structure, and without states, outputs share the values of a body; otherwise they share nothing but each other. */
	ra_builder_body(r->b, m->structure.kind == RA_NONE && !m->states.n ? RA_BODY_NODE : RA_BODY_OUTPUT);
	rebuild_nodes(r, root, m->outputs.n);
	for (size_t i = 0; i < m->outputs.n; i++) {
		const struct ra_output *o = &m->outputs.at[i];
		ra_builder_output(r->b, o->name, r->value[root[i].i],
				  o->at_root ? RA_AT_ROOT : RA_AT_EVERY_NODE, o->label, (size_t)o->labels);
	}
}

static void show_diags(const struct diags *d)
{
	for (size_t i = 0; i < d->n; i++)
		printf("# %s:%d %s [%s]\n", d->at[i].file ? d->at[i].file : "", d->at[i].line,
		       d->at[i].message, diag_spelling(d->at[i].id));
}

static const struct ra_model *rebuild_model(struct rebuild *r, struct diags *diags)
{
	r->value = ARENA_ARRAY(r->arena, uint32_t, r->m->nodes.n + 1);
	r->b = ra_builder_new(r->arena, diags, 7, r->m->name, structure_text(r));
	if (!r->b)
		return NULL;
	rebuild_declarations(r);
	for (size_t i = 0; i < r->m->cases.n; i++)
		rebuild_case(r, &r->m->cases.at[i]);
	for (size_t t = 0; t < r->m->traversals.n; t++)
		rebuild_traversal(r, (int)t);
	rebuild_outputs(r);
	return ra_builder_finish(r->b);
}

/* Whether the model of a text, built by calls, is the same graph and prints as the same text. */
static bool test_rebuild(const char *text, size_t length)
{
	struct session s;
	session_parse(&s, &allocator_default, text, length);
	struct rebuild r = {.m = s.model, .arena = &s.arena};
	const struct ra_model *m = s.model ? rebuild_model(&r, &s.diags) : NULL;
	bool same = m && same_graph(s.model, m);
	show_diags(&s.diags);
	if (same) {
		struct str other = str_in(&s.arena);
		ra_print(m, &other);
		same = strcmp(session_print(&s), str_text(&other)) == 0;
	}
	session_end(&s);
	return same;
}

/* Models with index notation are made by texts: check_indexed. */
static bool has_indices(const char *text, size_t length)
{
	struct session s;
	session_parse(&s, &allocator_default, text, length);
	bool has = s.model && s.model->indices.n;
	session_end(&s);
	return has;
}

static void check_file(const char *path)
{
	size_t length;
	char *text = read_text(source_path(path), &length);
	tap_ok(text && (has_indices(text, length) || test_rebuild(text, length)), "%s can be built", path);
	free(text);
}

static void check_folder(const char *folder)
{
	DIR *d = opendir(source_path(folder));
	for (struct dirent *e; d && (e = readdir(d));) {
		char path[600];
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".ra") == 0)
			check_file(path);
	}
	if (d)
		closedir(d);
}

/* --- places: what a text cannot have --- */

struct built {
	struct arena arena;
	struct diags diags;
	jmp_buf escape;
	struct ra_builder *b;
};

static void begin_model(struct built *x, const char *structure)
{
	arena_init(&x->arena, &allocator_default);
	diags_init(&x->diags, &allocator_default);
	if (arena_guard(&x->arena, &x->escape))
		abort();
	x->b = ra_builder_new(&x->arena, &x->diags, 1, "m", structure);
}

static void end_model(struct built *x)
{
	diags_free(&x->diags);
	arena_free(&x->arena);
}

static bool has_diagnostic(const struct built *x, enum diag_id id, const char *file, int line,
			   const char *message)
{
	for (size_t i = 0; i < x->diags.n; i++) {
		const struct diag *d = &x->diags.at[i];
		if (d->id == id && d->line == line && d->file && strcmp(d->file, file) == 0 &&
		    strstr(d->message, message))
			return true;
	}
	return false;
}

static void check_order(void)
{
	struct built x;
	begin_model(&x, "tree(left, right)");
	ra_builder_at(x.b, "a.c", 10);
	ra_builder_param(x.b, "W", "D, E");
	ra_builder_at(x.b, "a.c", 11);
	ra_builder_state(x.b, "h", "D");
	ra_builder_at(x.b, "b.c", 5);
	ra_builder_param(x.b, "h", "D");
	tap_ok(!ra_builder_finish(x.b), "what is wrong is refused");
	tap_ok(has_diagnostic(&x, DIAG_MODEL_DUPLICATE, "b.c", 5, "'h' is already a state (line 11)"),
	       "of two declarations the later one is at fault, whatever its line");
	end_model(&x);
}

static void check_places(void)
{
	struct built x;
	begin_model(&x, "tree(left, right)");
	ra_builder_at(x.b, "a.c", 10);
	uint32_t W = ra_builder_param(x.b, "W", "D, E");
	ra_builder_state(x.b, "h", "D");
	ra_builder_body(x.b, RA_BODY_NODE);
	ra_builder_at(x.b, "b.c", 7);
	uint32_t h = ra_builder_child(x.b, 0, "h");
	uint32_t product = ra_builder_call(x.b, "@", (uint32_t[]){W, h}, 2);
	ra_builder_call(x.b, "+", (uint32_t[]){product, product}, 2);
	uint32_t unknown = ra_builder_call(x.b, "sigmoit", &h, 1);
	ra_builder_call(x.b, "sigmoyd", &h, 1);
	ra_builder_at(x.b, "b.c", 9);
	ra_builder_assign(x.b, "h", unknown);
	ra_builder_at(x.b, "c.c", 3);
	ra_builder_body(x.b, RA_BODY_OUTPUT);
	ra_builder_output(x.b, "o", ra_builder_call(x.b, "sum", (uint32_t[]){W}, 1), RA_AT_ROOT,
			  (const char *const[]){"one", "two"}, 2);
	ra_builder_call(x.b, "sum", (uint32_t[]){ra_builder_number(x.b, 1)}, 1);
	tap_ok(!ra_builder_finish(x.b), "so are faults in expressions");
	tap_ok(has_diagnostic(&x, DIAG_MODEL_SHAPE, "b.c", 7, "'W @ children[0].h': [D, E] @ [D]"),
	       "shapes are told with the value as text, at the call");
	tap_ok(has_diagnostic(&x, DIAG_MODEL_FUNCTION, "b.c", 7, "'sigmoit'") &&
		   has_diagnostic(&x, DIAG_MODEL_FUNCTION, "b.c", 7, "'sigmoyd'"),
	       "two faults of one kind on one line are both told");
	tap_ok(has_diagnostic(&x, DIAG_MODEL_RANK, "c.c", 3, "'sum(1)'"),
	       "and so is one in a value that nothing needs");
	tap_is((long)x.diags.n, 4, "and each is told once, though the body is for both cases");
	show_diags(&x.diags);
	end_model(&x);
}

/* --- sizes --- */

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Enough that a stack frame a value, or a second look at all values for each, would not end. */
static void check_chain(void)
{
	enum { LENGTH = 100000 };
	struct built x;
	double start = seconds_now();
	begin_model(&x, "sequence");
	uint32_t in = ra_builder_input(x.b, "x", "D");
	ra_builder_state(x.b, "h", "D");
	ra_builder_body(x.b, RA_BODY_LEAF);
	ra_builder_assign(x.b, "h", in);
	ra_builder_body(x.b, RA_BODY_INNER);
	uint32_t v = ra_builder_child(x.b, 0, "h"), e = ra_builder_child(x.b, RA_EACH_CHILD, "h");
	for (int i = 0; i < LENGTH / 2; i++) {
		v = ra_builder_call(x.b, "tanh", &v, 1);
		e = ra_builder_call(x.b, "sigmoid", &e, 1);
	}
	v = ra_builder_call(x.b, "*", (uint32_t[]){v, ra_builder_children(x.b, "max", e)}, 2);
	ra_builder_assign(x.b, "h", v);
	ra_builder_body(x.b, RA_BODY_OUTPUT);
	v = ra_builder_get(x.b, "h");
	for (int i = 0; i < LENGTH / 4; i++)
		v = ra_builder_call(x.b, "+", (uint32_t[]){v, v}, 2);
	ra_builder_output(x.b, "o", v, RA_AT_ROOT, NULL, 0);
	const struct ra_model *m = ra_builder_finish(x.b);
	show_diags(&x.diags);
	tap_ok(m && m->nodes.n > LENGTH, "a chain of 100000 calls can be built, and each value used twice");
	struct str s = str_in(&x.arena);
	if (m)
		ra_print(m, &s);
	struct session again;
	session_parse(&again, &allocator_default, str_text(&s), s.n);
	tap_ok(m && again.model && same_graph(m, again.model), "and be printed and read");
	session_end(&again);
	printf("# %.2f s\n", seconds_now() - start);
	end_model(&x);
}

/* What sums and outputs have in common is written into each of them: that has a limit. */
static void check_limits(void)
{
	struct built x;
	begin_model(&x, "tree(*)");
	ra_builder_state(x.b, "h", "D");
	ra_builder_body(x.b, RA_BODY_NODE);
	uint32_t e = ra_builder_child(x.b, RA_EACH_CHILD, "h"), sum = 0;
	for (int i = 0; i < 20000; i++) {
		e = ra_builder_call(x.b, "tanh", &e, 1);
		sum = ra_builder_children(x.b, "sum", e);
	}
	ra_builder_assign(x.b, "h", sum);
	tap_ok(!ra_builder_finish(x.b) && x.diags.at[0].id == DIAG_MODEL_LARGE,
	       "too many large sums are refused");
	end_model(&x);

	begin_model(&x, "tree(*)");
	uint32_t v = 1;
	for (int i = 0; v && i <= 1 << RA_VALUE_BITS; i++)
		v = ra_builder_number(x.b, i);
	tap_ok(!v && x.diags.at[0].id == DIAG_MODEL_LARGE && ra_builder_number(x.b, 1) == 0,
	       "so are more values than numbers for them");
	end_model(&x);
}

/* What index notation is as calls: a text, with names for its arguments. */
static void check_indexed(void)
{
	static const char text[] =
	    "model m\nstructure tree(left, right)\ninput x[C, H]\nparam W[K, C, R]\n"
	    "state y[K, (H - R)/2 + 2], s\nleaf:\n"
	    "y[k, i] = sum(W[k, c, u] * x[c, 2*i + u - 1] for c, u)\ns = max(x[c, i] for c, i)\n"
	    "inner:\ny[k, i] = left.y[k, i] + right.y[k, i]\ns = left.s\noutput o = y\noutput p = s\n";
	struct session s;
	struct built x;
	session_parse(&s, &allocator_default, text, strlen(text));
	begin_model(&x, "tree(left, right)");
	uint32_t in = ra_builder_input(x.b, "x", "C, H"), W = ra_builder_param(x.b, "W", "K, C, R");
	ra_builder_state(x.b, "y", "K, (H - R)/2 + 2");
	ra_builder_state(x.b, "s", "");
	ra_builder_body(x.b, RA_BODY_LEAF);
	ra_builder_assign(x.b, "y",
			  ra_builder_indexed(x.b,
					     "(W, x)[k, i] = sum(W[k, c, u] * x[c, 2*i + u - 1] for c, u)",
					     (uint32_t[]){W, in}, 2));
	ra_builder_assign(x.b, "s", ra_builder_indexed(x.b, "(a) = max(a[c, i] for c, i)", &in, 1));
	ra_builder_body(x.b, RA_BODY_INNER);
	uint32_t both[] = {ra_builder_child(x.b, 0, "y"), ra_builder_child(x.b, 1, "y")};
	ra_builder_assign(x.b, "y", ra_builder_indexed(x.b, "(l, r)[k, i] = l[k, i] + r[k, i]", both, 2));
	ra_builder_assign(x.b, "s", ra_builder_child(x.b, 0, "s"));
	ra_builder_body(x.b, RA_BODY_OUTPUT);
	ra_builder_output(x.b, "o", ra_builder_get(x.b, "y"), RA_AT_EVERY_NODE, NULL, 0);
	ra_builder_output(x.b, "p", ra_builder_get(x.b, "s"), RA_AT_EVERY_NODE, NULL, 0);
	const struct ra_model *m = ra_builder_finish(x.b);
	show_diags(&x.diags);
	show_diags(&s.diags);
	tap_ok(m && s.model && same_graph(s.model, m), "index notation is the same as calls");
	end_model(&x);
	session_end(&s);
	begin_model(&x, "tree(left, right)");
	W = ra_builder_param(x.b, "W", "K, C");
	ra_builder_body(x.b, RA_BODY_LEAF);
	ra_builder_indexed(x.b, "(a)[k, i] = a[k, c]", &W, 1);
	ra_builder_indexed(x.b, "[k, i] = 2", NULL, 0);
	ra_builder_indexed(x.b, "(a, b)[k, i] = a[k, i] * b[i]", &W, 1);
	tap_ok(!ra_builder_finish(x.b) && x.diags.n, "faults in it are reported");
	show_diags(&x.diags);
	end_model(&x);
}

static void check_random(void)
{
	int built = 0, models = 0, seed = 0;
	for (; models < 200; seed++) {
		static struct generator g;
		char sizes[64];
		const char *text = generate_model(&g, (uint64_t)seed, sizes);
		if (has_indices(text, strlen(text)))
			continue;
		models++;
		if (test_rebuild(text, strlen(text)))
			built++;
		else
			printf("# seed %d\n", seed);
	}
	tap_is(built, models, "random models can be built");
}

int main(void)
{
	check_folder("tests/ra/good");
	check_folder("tests/models");
	check_folder("tests/golden");
	check_folder("tests/cli");
	check_folder("examples/treelstm");
	check_random();
	check_indexed();
	check_order();
	check_places();
	check_chain();
	check_limits();
	return tap_done();
}
