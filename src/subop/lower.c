/* From operators to sub-operators.  Every row of ra/ops.def names a function of this file; the node becomes an index
 * variable: n for bodies that run over nodes, t for read-outs that run over inputs. */
#include "subop/subop.h"

struct lowering {
	struct sub_program *p;
	const struct ra_model *model;
	const int64_t *sizes;
	struct diags *diags;
	int lead;        /* the variable that stands for the node: p->node or p->input */
	sub_ref *values; /* by node of the model graph, in the body at hand */
};

typedef sub_ref lower_op(struct lowering *, const struct ra_node *);

/* --- shapes and uses --- */

/* The canonical variables of a shape: the d-th dimension has the variable of its extent that no earlier one has. */
static int shape_vars(struct lowering *l, const struct ra_shape *shape, int *vars)
{
	int64_t extent[RA_MAX_RANK];
	for (int d = 0; d < shape->rank; d++) {
		int ordinal = 0;
		extent[d] = ra_dim_value(&shape->dim[d], l->sizes);
		for (int i = 0; i < d; i++)
			ordinal += extent[i] == extent[d];
		vars[d] = sub_dim(l->p, extent[d], ordinal);
	}
	return shape->rank;
}

/* A dimension variable of this extent that is none of `taken`. */
static int spare_var(struct lowering *l, int64_t extent, const int *taken, int n)
{
	for (int ordinal = 0;; ordinal++) {
		int var = sub_dim(l->p, extent, ordinal), i = 0;
		while (i < n && taken[i] != var)
			i++;
		if (i == n)
			return var;
	}
}

static bool is_dim(const struct sub_program *p, int var)
{
	return p->vars.at[var].set == SUB_DIM;
}

/* The value with its dimensions named `vars`, aligned at the last; lead variables keep their names. */
static struct sub_use use_under(const struct lowering *l, sub_ref r, const int *vars, int n)
{
	struct sub_use u = sub_as_is(l->p, r);
	int dims = 0, at = n;
	for (int i = 0; i < u.vars; i++)
		dims += is_dim(l->p, u.var[i]);
	at = n - dims;
	for (int i = 0; i < u.vars; i++)
		if (is_dim(l->p, u.var[i]))
			u.var[i] = vars[at++];
	return u;
}

static sub_ref argument(const struct lowering *l, const struct ra_node *n, int i)
{
	return l->values[n->arg[i].i];
}

static struct sub_map affine(int var, int64_t offset)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1, .offset = offset};
}

/* Appends lead variables of a use that are not there yet. */
static void add_leads(const struct lowering *l, struct sub_value *v, const struct sub_use *u)
{
	for (int i = 0; i < u->vars && !is_dim(l->p, u->var[i]); i++) {
		int j = 0;
		while (j < v->vars && v->var[j] != u->var[i])
			j++;
		if (j == v->vars)
			v->var[v->vars++] = u->var[i];
	}
}

static void add_dims(struct sub_value *v, const int *vars, int n)
{
	for (int i = 0; i < n; i++)
		v->var[v->vars++] = vars[i];
}

/* --- elementwise --- */

/* The sub-operator that ra/ops.def names. */
static const enum sub_op sub_of[RA_OPS] = {
#define RA_OP(name, arity, spelling, function, way, sub) [RA_##name] = SUB_##sub,
#include "ra/ops.def"
};

static sub_ref unary(struct lowering *l, enum sub_op op, sub_ref r)
{
	return sub_add(l->p, (struct sub_value){.op = op, .arg = {sub_as_is(l->p, r)}}, l->diags);
}

static sub_ref lower_unary(struct lowering *l, const struct ra_node *n)
{
	return unary(l, sub_of[n->op], argument(l, n, 0));
}

static sub_ref elementwise(struct lowering *l, const struct ra_node *n, sub_ref second)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_value v = {.op = sub_of[n->op],
			      .arg = {use_under(l, argument(l, n, 0), vars, rank), use_under(l, second, vars, rank)}};
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_binary(struct lowering *l, const struct ra_node *n)
{
	return elementwise(l, n, argument(l, n, 1));
}

static sub_ref lower_sub(struct lowering *l, const struct ra_node *n)
{
	return elementwise(l, n, unary(l, SUB_NEG, argument(l, n, 1)));
}

static sub_ref lower_div(struct lowering *l, const struct ra_node *n)
{
	return elementwise(l, n, unary(l, SUB_REC, argument(l, n, 1)));
}

/* --- sources --- */

static sub_ref constant(struct lowering *l, double value)
{
	return sub_add(l->p, (struct sub_value){.op = SUB_CONST, .constant = value}, l->diags);
}

static sub_ref lower_const(struct lowering *l, const struct ra_node *n)
{
	return constant(l, n->constant);
}

static sub_ref lower_extent(struct lowering *l, const struct ra_node *n)
{
	return constant(l, ra_dim_value(&n->begin, l->sizes));
}

/* A scalar repeated over a shape. */
static sub_ref lower_zero(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, constant(l, 0))}};
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref source(struct lowering *l, enum sub_op op, int which, int lead, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, shape, vars);
	struct sub_value v = {.op = op, .which = which};
	if (lead >= 0)
		v.var[v.vars++] = lead;
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_param(struct lowering *l, const struct ra_node *n)
{
	return source(l, SUB_PARAM, n->param, -1, &l->model->params.at[n->param].shape);
}

static sub_ref lower_input(struct lowering *l, const struct ra_node *n)
{
	return source(l, SUB_VECTOR, n->input, l->p->node, &l->model->inputs.at[n->input].shape);
}

/* Rows of `from` picked by `row`; the result runs over the variables that `row` names and the row's own. */
static sub_ref pick_rows(struct lowering *l, sub_ref from, struct sub_map row, bool per_edge)
{
	struct sub_use u = sub_as_is(l->p, from);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .map = {row}};
	v.var[v.vars++] = l->lead;
	if (per_edge)
		v.var[v.vars++] = l->p->edge;
	for (int i = 1; i < u.vars; i++) {
		int ordinal = 0;
		int64_t extent = l->p->vars.at[u.var[i]].extent;
		for (int j = 1; j < i; j++)
			ordinal += l->p->vars.at[u.var[j]].extent == extent;
		int var = sub_dim(l->p, extent, ordinal);
		v.map[i] = affine(var, 0);
		v.var[v.vars++] = var;
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_lookup(struct lowering *l, const struct ra_node *n)
{
	struct sub_map row = {.function = SUB_TOKEN, .which = n->input, .var = l->lead};
	return pick_rows(l, argument(l, n, 0), row, false);
}

static sub_ref lower_state(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state;
	sub_ref state = source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	if (l->lead == l->p->node)
		return state;
	return pick_rows(l, state, (struct sub_map){.function = SUB_ROOT, .var = l->lead}, false);
}

static sub_ref lower_child(struct lowering *l, const struct ra_node *n)
{
	int s = n->state.state, slot = n->state.slot;
	sub_ref state = source(l, SUB_STATE, s, l->p->node, &l->model->states.at[s].shape);
	if (slot == RA_EACH_CHILD)
		return pick_rows(l, state, (struct sub_map){.function = SUB_EDGE_CHILD, .var = l->p->edge}, true);
	return pick_rows(l, state, (struct sub_map){.function = SUB_CHILD, .which = slot, .var = l->lead}, false);
}

/* --- products and reductions --- */

static sub_ref lower_matmul(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *a = &ra_at(l->model, n->arg[0])->shape, *b = &ra_at(l->model, n->arg[1])->shape;
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out);
	int k = spare_var(l, ra_dim_value(&b->dim[0], l->sizes), out, rank);
	int left[] = {out[0], k}, right[] = {k, out[rank ? rank - 1 : 0]};
	struct sub_value product = {.op = SUB_MULTIPLY,
				    .arg = {use_under(l, argument(l, n, 0), a->rank == 2 ? left : &k, a->rank),
					    use_under(l, argument(l, n, 1), right, b->rank)}};
	sub_ref r = sub_add(l->p, product, l->diags);
	if (!r.i)
		return r;
	return sub_add(l->p, (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(l->p, r)}, .reduced = k}, l->diags);
}

static sub_ref lower_reduce(struct lowering *l, const struct ra_node *n)
{
	const struct ra_shape *from = &ra_at(l->model, n->arg[0])->shape;
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out), under[RA_MAX_RANK];
	int k = spare_var(l, ra_dim_value(&from->dim[n->axis], l->sizes), out, rank);
	for (int d = 0, o = 0; d < from->rank; d++)
		under[d] = d == n->axis ? k : out[o++];
	struct sub_value v = {
	    .op = sub_of[n->op], .arg = {use_under(l, argument(l, n, 0), under, from->rank)}, .reduced = k};
	return sub_add(l->p, v, l->diags);
}

/* The value repeated for each edge, when it does not depend on the edge. */
static sub_ref per_edge(struct lowering *l, sub_ref r)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .vars = 2, .var = {l->lead, l->p->edge}};
	for (int i = 0; i < u.vars; i++) {
		if (u.var[i] == l->p->edge)
			return r;
		v.map[i] = affine(u.var[i], 0);
		if (is_dim(l->p, u.var[i]))
			v.var[v.vars++] = u.var[i];
	}
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_over_children(struct lowering *l, const struct ra_node *n)
{
	sub_ref r = per_edge(l, argument(l, n, 0));
	struct sub_value v = {.op = sub_of[n->op], .arg = {sub_as_is(l->p, r)}, .reduced = l->p->edge};
	return sub_add(l->p, v, l->diags);
}

/* --- movement --- */

/* A copy whose dimension d is reached by `map[d]`, with dimensions `vars`. */
static sub_ref move(struct lowering *l, sub_ref from, const struct sub_map *map, const int *vars, int rank)
{
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(l->p, from)}};
	int leads = 0;
	add_leads(l, &v, &v.arg[0]);
	for (leads = 0; leads < v.vars; leads++)
		v.map[leads] = affine(v.var[leads], 0);
	for (int d = 0; d < rank; d++)
		v.map[leads + d] = map[d];
	add_dims(&v, vars, rank);
	return sub_add(l->p, v, l->diags);
}

static sub_ref lower_slice(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[d] = affine(vars[d], d == rank - 1 ? ra_dim_value(&n->begin, l->sizes) : 0);
	return move(l, argument(l, n, 0), map, vars, rank);
}

static sub_ref lower_transpose(struct lowering *l, const struct ra_node *n)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, &n->shape, vars);
	struct sub_map map[RA_MAX_RANK];
	for (int d = 0; d < rank; d++)
		map[d] = affine(vars[d], 0);
	map[rank - 2] = affine(vars[rank - 1], 0);
	map[rank - 1] = affine(vars[rank - 2], 0);
	return move(l, argument(l, n, 0), map, vars, rank);
}

static sub_ref lower_concat(struct lowering *l, const struct ra_node *n)
{
	int out[RA_MAX_RANK], rank = shape_vars(l, &n->shape, out);
	struct sub_value v = {.op = SUB_COND};
	for (int a = 0; a < 2; a++) {
		const struct ra_shape *shape = &ra_at(l->model, n->arg[a])->shape;
		int under[RA_MAX_RANK];
		memcpy(under, out, sizeof under);
		under[n->axis] = spare_var(l, ra_dim_value(&shape->dim[n->axis], l->sizes), out, rank);
		v.arg[a] = use_under(l, argument(l, n, a), under, rank);
		add_leads(l, &v, &v.arg[a]);
	}
	v.axis = v.vars + n->axis;
	add_dims(&v, out, rank);
	return sub_add(l->p, v, l->diags);
}

/* --- the table, bodies --- */

static lower_op *const ways[RA_OPS] = {
#define RA_OP(name, arity, spelling, function, way, sub) [RA_##name] = lower_##way,
#include "ra/ops.def"
};

/* What follows goes down from a result to its sources by recursion, and must not run out of stack. */
enum { MAX_DEPTH = 1000 };

/* The operators on the longest way from a node down to a source; `depth` has those of its arguments. */
static int depth_of(const struct ra_node *n, const int *depth)
{
	int a = depth[n->arg[0].i], b = depth[n->arg[1].i];
	return 1 + (a > b ? a : b);
}

static bool refuse_depth(struct lowering *l, const struct ra_node *n)
{
	return diag_add(l->diags, DIAG_MODEL_LARGE, n->at, "make a state of what is halfway, or group long sums by parentheses",
			"more than %d operators follow one from another", MAX_DEPTH);
}

/* Lowers what the wanted nodes need, in the order of the graph: arguments come first. */
static bool lower_graph(struct lowering *l, bool *wanted)
{
	const struct ra_model *m = l->model;
	int *depth = ARENA_ARRAY(l->p->arena, int, m->nodes.n);
	for (size_t i = m->nodes.n; i-- > 1;)
		for (int a = 0; wanted[i] && a < 2; a++)
			wanted[m->nodes.at[i].arg[a].i] = true;
	for (size_t i = 1; i < m->nodes.n; i++) {
		if (!wanted[i])
			continue;
		depth[i] = depth_of(&m->nodes.at[i], depth);
		if (depth[i] > MAX_DEPTH)
			return refuse_depth(l, &m->nodes.at[i]);
		l->values[i] = ways[m->nodes.at[i].op](l, &m->nodes.at[i]);
		if (!l->values[i].i)
			return false;
	}
	return true;
}

static void start_body(struct lowering *l, const char *name, enum sub_domain domain)
{
	l->lead = domain == SUB_EVERY_INPUT ? l->p->input : l->p->node;
	l->values = ARENA_ARRAY(l->p->arena, sub_ref, l->model->nodes.n);
	vec_push(l->p->arena, &l->p->bodies, (struct sub_body){.name = name, .domain = domain});
}

/* The value repeated for every row, when it does not depend on the row. */
static sub_ref per_row(struct lowering *l, sub_ref r)
{
	struct sub_use u = sub_as_is(l->p, r);
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {u}, .vars = 1, .var = {l->lead}};
	if (u.vars && !is_dim(l->p, u.var[0]))
		return r;
	for (int i = 0; i < u.vars; i++)
		v.map[i] = affine(u.var[i], 0);
	add_dims(&v, u.var, u.vars);
	return sub_add(l->p, v, l->diags);
}

static void add_store(struct lowering *l, enum sub_target to, int which, ra_ref value, const struct ra_shape *shape)
{
	int vars[RA_MAX_RANK], rank = shape_vars(l, shape, vars);
	struct sub_store s = {to, which, use_under(l, per_row(l, l->values[value.i]), vars, rank)};
	vec_push(l->p->arena, &l->p->bodies.at[l->p->bodies.n - 1].stores, s);
}

static bool lower_case(struct lowering *l, enum ra_case which, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	bool *wanted = ARENA_ARRAY(l->p->arena, bool, m->nodes.n);
	start_body(l, name, domain);
	for (size_t s = 0; s < m->states.n; s++)
		wanted[m->states.at[s].value[which].i] = true;
	if (!lower_graph(l, wanted))
		return false;
	for (size_t s = 0; s < m->states.n; s++)
		add_store(l, SUB_TO_STATE, s, m->states.at[s].value[which], &m->states.at[s].shape);
	return true;
}

/* The read-out of those outputs that are computed over `domain`; no body when there is none. */
static bool lower_outputs(struct lowering *l, const char *name, enum sub_domain domain)
{
	const struct ra_model *m = l->model;
	bool *wanted = ARENA_ARRAY(l->p->arena, bool, m->nodes.n), any = false, at_root = domain == SUB_EVERY_INPUT;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			any = wanted[m->outputs.at[o].value.i] = true;
	if (!any)
		return true;
	start_body(l, name, domain);
	if (!lower_graph(l, wanted))
		return false;
	for (size_t o = 0; o < m->outputs.n; o++)
		if (l->p->outputs.at[o].at_root == at_root)
			add_store(l, SUB_TO_OUTPUT, o, m->outputs.at[o].value, &ra_at(m, m->outputs.at[o].value)->shape);
	return true;
}

static struct sub_tensor tensor_of(struct lowering *l, const char *name, const struct ra_shape *shape)
{
	struct sub_tensor t = {.name = name, .rank = shape->rank};
	shape_vars(l, shape, t.var);
	for (int d = 0; d < shape->rank; d++)
		t.shape[d] = ra_dim_value(&shape->dim[d], l->sizes);
	return t;
}

static void declare(struct lowering *l, int at)
{
	const struct ra_model *m = l->model;
	struct sub_program *p = l->p;
	p->children = m->structure.children;
	p->tree = m->structure.kind != RA_DAG;
	for (size_t i = 0; i < m->params.n; i++)
		vec_push(p->arena, &p->params, tensor_of(l, m->params.at[i].name, &m->params.at[i].shape));
	for (size_t i = 0; i < m->states.n; i++)
		vec_push(p->arena, &p->states, tensor_of(l, m->states.at[i].name, &m->states.at[i].shape));
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct ra_input *in = &m->inputs.at[i];
		vec_push(p->arena, &p->inputs,
			 (struct sub_input){.name = in->name,
					    .token = in->token,
					    .row = tensor_of(l, in->name, &in->shape)});
	}
	for (size_t i = 0; i < m->outputs.n; i++) {
		const struct ra_output *out = &m->outputs.at[i];
		vec_push(p->arena, &p->outputs,
			 (struct sub_output){tensor_of(l, out->name, &ra_at(m, out->value)->shape),
					     at ? at == 1 : out->at_root});
	}
}

bool sub_lower(struct sub_program *p, const struct ra_model *m, const int64_t *sizes, const struct sub_options *options,
	       struct diags *diags)
{
	struct lowering l = {.p = p, .model = m, .sizes = sizes, .diags = diags};
	declare(&l, options->at);
	return lower_case(&l, RA_LEAF, "leaf", SUB_LEAF) && lower_case(&l, RA_INNER, "inner", SUB_INNER) &&
	       lower_outputs(&l, "output", SUB_EVERY_NODE) && lower_outputs(&l, "output.root", SUB_EVERY_INPUT);
}
