/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The oracle: computes every element of every value of a body, node by node, with no optimisation, in any of
 * several arithmetics (apply_operators.c). */
#include "subop/apply_operators.h"

#include "base/convert.h"

#include <math.h>
#include <stdlib.h>

/* While a node is evaluated the leading dimensions are fixed, except edges and members, over which values are
 * computed as over a dimension: a node has an edge for each child or, in a traversal down, each parent. */
struct evaluator {
	struct sub_numbers numbers;
	const struct sub_program *p;
	const struct sub_forest *f;
	const void *const *params;
	double *const *states, *const *outputs;
	double **folded;  /* by parameter: the elements that a body at binding computed */
	double **hoisted; /* by input: the rows that bodies ahead of the recursion computed */
	const int32_t *edge_begin[2], *neighbours[2]; /* of children; of parents */
	const int32_t *input_of;		      /* by node */
	bool down;				      /* the current body belongs to a traversal down */
	int64_t node, input;
	int64_t step;	   /* of a scan */
	int64_t *env;	   /* by variable: the current index */
	double **tensor;   /* by value: its elements at this node */
	size_t *capacity;  /* of tensor, in elements */
	struct arena *scratch;
};

/* The i-th element of an array in memory, widened. */
static double read_element(struct evaluator *v, enum dtype dtype, const void *at, int64_t i)
{
	switch (dtype) {
	case DTYPE_F32:
		return sub_round_number(&v->numbers, ((const float *)at)[i]);
	case DTYPE_F16:
		return sub_round_number(&v->numbers, f32_of_f16(((const uint16_t *)at)[i]));
	case DTYPE_BF16:
		return sub_round_number(&v->numbers, f32_of_bf16(((const uint16_t *)at)[i]));
	case DTYPE_I8:
		return sub_element_of(((const int8_t *)at)[i]);
	case DTYPE_I16:
		return sub_element_of(((const int16_t *)at)[i]);
	case DTYPE_I32:
		return sub_element_of(((const int32_t *)at)[i]);
	case DTYPE_I64:
		return sub_element_of(((const int64_t *)at)[i]);
	default:
		return sub_element_of(((const uint8_t *)at)[i]);
	}
}

/* A number of the program in a type. */
static double number_of(struct evaluator *v, enum dtype dtype, double x)
{
	return dtype == DTYPE_F32 ? sub_round_number(&v->numbers, x) : sub_element_of(sub_convert_number(dtype, x));
}

static int64_t first_member(const struct evaluator *v, int64_t input)
{
	return input >= v->f->inputs ? v->f->nodes : v->f->input_begin ? v->f->input_begin[input] : 0;
}

static int64_t extent_of(const struct evaluator *v, int var)
{
	switch (v->p->vars.at[var].set) {
	case SUB_DIM:
	case SUB_ROW:
		return v->p->vars.at[var].extent;
	case SUB_MEMBER:
		return first_member(v, v->input + 1) - first_member(v, v->input);
	case SUB_EDGE:
		return v->edge_begin[v->down][v->node + 1] - v->edge_begin[v->down][v->node];
	default:
		return 1;
	}
}

static bool is_fixed(const struct evaluator *v, int var)
{
	return v->p->vars.at[var].set == SUB_NODE || v->p->vars.at[var].set == SUB_INPUT;
}

/* The offset of the element at the given indices in a value's tensor. */
static int64_t find_position(const struct evaluator *v, const struct sub_value *value, const int64_t *index)
{
	int64_t at = 0;
	for (int i = 0; i < value->vars; i++)
		if (!is_fixed(v, value->var[i]))
			at = at * extent_of(v, value->var[i]) + index[i];
	return at;
}

static int64_t row_elements(const struct sub_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* Reads an element of any value.  Sources are read from their own arrays, in the row of the first index. */
static double read_value(struct evaluator *v, sub_ref r, const int64_t *index)
{
	const struct sub_value *value = sub_at(v->p, r);
	int64_t within = find_position(v, value, index);
	switch (value->op) {
	case SUB_CONST:
		return number_of(v, value->dtype, value->constant);
	case SUB_INDEX:
		return sub_element_of(index[0]);
	case SUB_PARAM:
		return v->folded[value->which] ? v->folded[value->which][within]
					       : read_element(v, v->p->params.at[value->which].dtype,
							      v->params[value->which], within);
	case SUB_STATE:
		return v->states[value->which][index[0] * row_elements(&v->p->states.at[value->which]) + within];
	case SUB_VECTOR: {
		const void *rows = v->f->data[value->which];
		const double *hoisted = v->hoisted[value->which];
		bool edge = v->p->inputs.at[value->which].on_edge;
		int64_t first = edge ? v->f->child_begin[index[0]] : index[0];
		int64_t at = first * row_elements(&v->p->inputs.at[value->which].row) + within;
		return hoisted ? hoisted[at] : read_element(v, v->p->inputs.at[value->which].row.dtype, rows, at);
	}
	default:
		return v->tensor[r.i][within];
	}
}

static double read_use(struct evaluator *v, const struct sub_use *u)
{
	int64_t index[SUB_MAX_VARS] = {0};
	for (int i = 0; i < u->vars; i++)
		index[i] = v->env[u->var[i]];
	return read_value(v, u->value, index);
}

static int64_t apply_map(const struct evaluator *v, const struct sub_map *m)
{
	int64_t at = m->var < 0 ? 0 : v->env[m->var];
	const struct sub_forest *f = v->f;
	int64_t sum = m->scale * at + (m->scale2 ? m->scale2 * v->env[m->var2] : 0) + m->offset;
	switch (m->function) {
	case SUB_CHILD:
		return f->children[f->child_begin[at] + m->which];
	case SUB_EDGE_CHILD:
	case SUB_EDGE_PARENT:
		return v->neighbours[v->down][v->edge_begin[v->down][v->node] + at];
	case SUB_PARENT:
		return v->neighbours[true][v->edge_begin[true][at]];
	case SUB_MEMBER_NODE:
		return first_member(v, v->input) + at;
	case SUB_ROOT:
		return f->root[at];
	case SUB_TOKEN:
		if (v->p->inputs.at[m->which].on_edge)
			at = v->p->vars.at[m->var].set == SUB_EDGE ? f->child_begin[v->node] + at
								   : f->child_begin[at] + m->slot;
		else if (v->p->vars.at[m->var].set == SUB_MEMBER)
			at += first_member(v, v->input);
		return ((const int32_t *)f->data[m->which])[at];
	case SUB_SLOT_EDGE:
		return m->which;
	case SUB_STEP:
		return m->scale * v->step + m->offset;
	case SUB_DIGIT:
		return m->modulus ? sum / m->divisor % m->modulus : sum / m->divisor;
	default:
		return sum;
	}
}

static double assign_element(struct evaluator *v, const struct sub_value *value)
{
	const struct sub_value *from = sub_at(v->p, value->arg[0].value);
	int64_t index[SUB_MAX_VARS] = {0};
	for (int i = 0; i < from->vars; i++) {
		index[i] = apply_map(v, &value->map[i]);
		if (value->fills && v->p->vars.at[from->var[i]].set == SUB_DIM &&
		    (index[i] < 0 || index[i] >= extent_of(v, from->var[i])))
			return number_of(v, value->dtype, value->fill);
	}
	return read_value(v, value->arg[0].value, index);
}

/* Sets the reduced variables to their first element; false if there is none. */
static bool first_reduced(struct evaluator *v, const struct sub_value *value)
{
	bool any = true;
	for (int i = 0; i < value->reduced.n; i++) {
		v->env[value->reduced.var[i]] = 0;
		any &= extent_of(v, value->reduced.var[i]) > 0;
	}
	return any;
}

/* Steps the reduced variables to the next element, the last one the fastest; false after the last. */
static bool next_reduced(struct evaluator *v, const struct sub_value *value)
{
	for (int i = value->reduced.n; i-- > 0;) {
		int64_t *at = &v->env[value->reduced.var[i]];
		if (++*at < extent_of(v, value->reduced.var[i]))
			return true;
		*at = 0;
	}
	return false;
}

static double reduce_elements(struct evaluator *v, const struct sub_value *value)
{
	const struct sub_traits *row = sub_traits_of(value->op);
	double total = number_of(v, value->dtype, row->neutral);
	for (bool more = first_reduced(v, value); more; more = next_reduced(v, value))
		total = sub_apply_operator(&v->numbers, row->combine, value->dtype, value->dtype, total,
				       read_use(v, &value->arg[0]), 0);
	return total;
}

/* By blocks, the words of which are summed in f16. */
static double accumulate_halves(struct evaluator *v, const struct sub_value *value)
{
	float total = (float)read_use(v, &value->arg[0]);
	int64_t block = sub_block_of(v->p, value), left = block;
	uint32_t word = 0;
	for (bool more = first_reduced(v, value); more; more = next_reduced(v, value)) {
		word = fma_halves((uint32_t)sub_integer(read_use(v, &value->arg[1])),
				  (uint32_t)sub_integer(read_use(v, &value->arg[2])), word);
		if (--left)
			continue;
		total = add_halves(word, total);
		word = 0;
		left = block;
	}
	return total;
}

/* By blocks of words of bf16. */
static double accumulate_bf16_blocks(struct evaluator *v, const struct sub_value *value)
{
	float total = (float)read_use(v, &value->arg[0]);
	int64_t block = sub_block_of(v->p, value), n = 0;
	int32_t a[SUB_MOST_BF16_BLOCK], b[SUB_MOST_BF16_BLOCK];
	for (bool more = first_reduced(v, value); more; more = next_reduced(v, value)) {
		a[n] = (int32_t)sub_integer(read_use(v, &value->arg[1]));
		b[n++] = (int32_t)sub_integer(read_use(v, &value->arg[2]));
		total = n == block ? add_bf16_block(a, b, block, 1, total) : total;
		n %= block;
	}
	return total;
}

static double accumulate_elements(struct evaluator *v, const struct sub_value *value)
{
	enum sub_op combine = sub_traits_of(value->op)->combine;
	if (value->op == SUB_ACCUMULATE_F16 && v->numbers.arithmetic != SUB_FIELD)
		return accumulate_halves(v, value);
	if (value->op == SUB_ACCUMULATE_BF16_BLOCK && v->numbers.arithmetic != SUB_FIELD)
		return accumulate_bf16_blocks(v, value);
	double total = read_use(v, &value->arg[0]);
	for (bool more = first_reduced(v, value); more; more = next_reduced(v, value))
		total = sub_apply_operator(&v->numbers, combine, value->dtype, value->dtype, read_use(v, &value->arg[1]),
				       read_use(v, &value->arg[2]), total);
	return total;
}

/* An element of a concatenation.  Each side has its own variable for the axis. */
static double concatenate_element(struct evaluator *v, const struct sub_value *value)
{
	int64_t at = v->env[value->var[value->axis]];
	for (int a = 0;; a++) {
		const struct sub_use *u = &value->arg[a];
		int var = sub_joined_var(value, a);
		int64_t extent = extent_of(v, var), saved = v->env[var];
		if (a == 0 && at >= extent) {
			at -= extent;
			continue;
		}
		v->env[var] = at;
		double x = read_use(v, u);
		v->env[var] = saved;
		return x;
	}
}

/* The element of the first argument at the index that the second is, or the nearest to it. */
static double gather_element(struct evaluator *v, const struct sub_value *value)
{
	int var = value->reduced.var[0];
	int64_t at = sub_integer(read_use(v, &value->arg[1])), last = extent_of(v, var) - 1,
		saved = v->env[var];
	v->env[var] = clamp_integer(at, 0, last);
	double x = read_use(v, &value->arg[0]);
	v->env[var] = saved;
	return x;
}

static double apply_elementwise(struct evaluator *v, const struct sub_value *value)
{
	double x[SUB_MAX_ARITY] = {0};
	for (int a = 0; a < value->args; a++)
		x[a] = read_use(v, &value->arg[a]);
	return sub_apply_operator(&v->numbers, value->op, sub_at(v->p, value->arg[0].value)->dtype, value->dtype, x[0],
			      x[1], x[2]);
}

static double compute_element(struct evaluator *v, const struct sub_value *value)
{
	switch (value->op) {
	case SUB_ASSIGN:
		return assign_element(v, value);
	case SUB_COND:
		return concatenate_element(v, value);
	case SUB_GATHER:
		return gather_element(v, value);
	default:
		if (sub_class_of(value->op) == SUB_CONTRACTION)
			return accumulate_elements(v, value);
		return sub_reduces(value->op) ? reduce_elements(v, value) : apply_elementwise(v, value);
	}
}

/* Steps the variables of a value to the next element; false after the last. */
static bool advance_index(struct evaluator *v, const struct sub_value *value)
{
	for (int i = value->vars; i-- > 0;) {
		if (is_fixed(v, value->var[i]))
			continue;
		if (++v->env[value->var[i]] < extent_of(v, value->var[i]))
			return true;
		v->env[value->var[i]] = 0;
	}
	return false;
}

static void evaluate_value(struct evaluator *v, uint32_t r)
{
	const struct sub_value *value = &v->p->values.at[r];
	size_t elements = 1;
	v->env[v->p->node] = v->node;
	v->env[v->p->input] = v->input;
	for (int i = 0; i < value->vars; i++) {
		elements *= extent_of(v, value->var[i]);
		if (!is_fixed(v, value->var[i]))
			v->env[value->var[i]] = 0;
	}
	if (elements > v->capacity[r]) {
		v->tensor[r] = ARENA_ARRAY(v->scratch, double, elements);
		v->capacity[r] = elements;
	}
	for (size_t i = 0; i < elements; i++, advance_index(v, value))
		v->tensor[r][i] = compute_element(v, value);
}

static void write_store(struct evaluator *v, const struct sub_store *s, int64_t row)
{
	const struct sub_tensor part = sub_stored_part(v->p, s), *t = &part;
	double *const *rows = s->to == SUB_TO_OUTPUT  ? v->outputs
			      : s->to == SUB_TO_INPUT ? v->hoisted
						      : v->states;
	double *to = rows[s->which] + row * row_elements(sub_store_tensor(v->p, s)) +
		     (s->scale * v->step + s->offset) * row_elements(t);
	int64_t index[SUB_MAX_VARS] = {0};
	const struct sub_value *value = sub_at(v->p, s->value.value);
	int leading = value->vars - t->rank;
	for (int i = 0; i < leading; i++)
		index[i] = v->env[value->var[i]];
	for (int64_t e = 0, n = row_elements(t); e < n; e++) {
		int64_t rest = e;
		for (int d = t->rank; d-- > 0; rest /= t->shape[d])
			index[leading + d] = rest % t->shape[d];
		to[e] = read_value(v, s->value.value, index);
	}
}

static void evaluate_body(struct evaluator *v, const struct sub_body *b, const bool *live, int64_t row)
{
	v->down = sub_goes_down(v->p, b);
	for (uint32_t i = 1; i < v->p->values.n; i++)
		if (live[i] && sub_class_of(v->p->values.at[i].op) != SUB_SOURCE)
			evaluate_value(v, i);
	v->env[v->p->node] = v->node;
	v->env[v->p->input] = v->input;
	for (size_t i = 0; i < b->stores.n; i++)
		write_store(v, &b->stores.at[i], row);
}

/* The nearest number of so many binary digits, ties to even, that a type with these exponents has. */
static double round_digits(double x, int digits, int least, int greatest)
{
	if (!isfinite(x) || x == 0)
		return x;
	int exponent = ilogb(x) > least ? ilogb(x) : least;
	double nearest = ldexp(nearbyint(ldexp(x, digits - 1 - exponent)), exponent - (digits - 1));
	return fabs(nearest) < ldexp(1, greatest + 1) ? nearest : copysign(INFINITY, x);
}

/* Rounds a value to what memory of a type holds. */
static double narrow_element(struct evaluator *v, enum dtype dtype, double x)
{
	bool rounds = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
	v->numbers.refused |= rounds && v->numbers.arithmetic == SUB_FIELD;
	if (rounds)
		return dtype == DTYPE_F16 ? round_digits(x, 11, -14, 15) : round_digits(x, 8, -126, 127);
	return dtype == DTYPE_I8 ? sub_element_of(clamp_integer(sub_integer(x), INT8_MIN, INT8_MAX)) : x;
}

/* Evaluates a body at binding, whose one value becomes a parameter. */
static void evaluate_constant(struct evaluator *v, const struct sub_body *b, const bool *live)
{
	const struct sub_store *s = &b->stores.at[0];
	for (uint32_t i = 1; i <= s->value.value.i; i++)
		if (live[i] && sub_class_of(v->p->values.at[i].op) != SUB_SOURCE)
			evaluate_value(v, i);
	double *value = v->tensor[s->value.value.i];
	for (int64_t i = 0, n = row_elements(sub_store_tensor(v->p, s)); value && i < n; i++)
		value[i] = narrow_element(v, sub_store_tensor(v->p, s)->dtype, value[i]);
	v->folded[s->which] = value;
	v->tensor[s->value.value.i] = NULL;
	v->capacity[s->value.value.i] = 0;
}

static bool has_parent(const struct evaluator *v)
{
	return v->edge_begin[true][v->node] < v->edge_begin[true][v->node + 1];
}

static void set_node(struct evaluator *v, int64_t node)
{
	v->node = node;
	v->input = v->input_of[node];
}

static bool fits_case(const struct evaluator *v, const struct image_case *k)
{
	int children = v->f->child_begin[v->node + 1] - v->f->child_begin[v->node];
	bool parent = has_parent(v);
	bool ok = k->inner == (children > 0) && (k->children < 0 || k->children == children) &&
		  (k->parent == IMAGE_EITHER || (k->parent == IMAGE_YES) == parent);
	for (int m = 0; m < k->matches; m++)
		ok = ok && ((const int32_t *)v->f->data[k->match[m].input])[v->node] == k->match[m].value;
	return ok;
}

/* The case of the node: the first that it fits. */
static size_t case_of(const struct evaluator *v)
{
	size_t c = 0;
	while (c < v->p->cases.n && !fits_case(v, &v->p->cases.at[c]))
		c++;
	return c;
}

static bool runs_at_node(const struct evaluator *v, const struct sub_body *b)
{
	bool leaf = v->f->child_begin[v->node] == v->f->child_begin[v->node + 1];
	if (b->domain == SUB_TOP || b->domain == SUB_BELOW)
		return (b->domain == SUB_BELOW) == has_parent(v);
	if (b->cases && !(b->cases >> case_of(v) & 1))
		return false;
	return b->domain == SUB_EVERY_NODE || b->domain == SUB_AHEAD ||
	       b->domain == (leaf ? SUB_LEAF : SUB_INNER) || (b->domain == SUB_AHEAD_INNER && !leaf);
}

/* Makes the lists of the parents of each node. */
static void find_parents(struct evaluator *v)
{
	const struct sub_forest *f = v->f;
	int32_t *begin = ARENA_ARRAY(v->scratch, int32_t, f->nodes + 2);
	int32_t *parent = ARENA_ARRAY(v->scratch, int32_t, f->child_begin[f->nodes] + 1);
	for (int64_t e = f->child_begin[0]; e < f->child_begin[f->nodes]; e++)
		begin[f->children[e] + 2]++;
	for (int64_t n = 2; n <= f->nodes + 1; n++)
		begin[n] += begin[n - 1];
	for (int64_t n = 0; n < f->nodes; n++)
		for (int64_t e = f->child_begin[n]; e < f->child_begin[n + 1]; e++)
			parent[begin[f->children[e] + 1]++] = n;
	v->edge_begin[true] = begin;
	v->neighbours[true] = parent;
}

static void find_inputs(struct evaluator *v)
{
	int32_t *input_of = ARENA_ARRAY(v->scratch, int32_t, v->f->nodes + 1);
	for (int64_t i = 0; i < v->f->inputs; i++)
		for (int64_t n = first_member(v, i); n < first_member(v, i + 1); n++)
			input_of[n] = (int32_t)i;
	v->input_of = input_of;
}

/* Runs the steps of a scan, each over all nodes. */
static void evaluate_scan(struct evaluator *v, int traversal, bool **live)
{
	const struct sub_program *p = v->p;
	for (v->step = 0; v->step < p->traversals.at[traversal].steps; v->step++)
		for (size_t b = 0; b < p->bodies.n; b++)
			for (int64_t i = 0; i < v->f->nodes; i++) {
				const struct sub_body *body = &p->bodies.at[b];
				set_node(v, i);
				if (body->traversal == traversal &&
				    body->domain == (v->step ? SUB_NEXT_STEPS : SUB_FIRST_STEP))
					evaluate_body(v, body, live[b], i);
			}
	v->step = 0;
}

static void evaluate_traversal(struct evaluator *v, int traversal, bool **live)
{
	const struct sub_program *p = v->p;
	bool down = p->traversals.at[traversal].down;
	for (int64_t i = 0; i < v->f->nodes; i++) {
		set_node(v, v->f->order[down ? v->f->nodes - 1 - i : i]);
		for (size_t b = 0; b < p->bodies.n; b++) {
			const struct sub_body *body = &p->bodies.at[b];
			if (body->traversal == traversal && body->domain < SUB_AT_BINDING &&
			    body->domain != SUB_EVERY_NODE && body->domain != SUB_EVERY_INPUT &&
			    runs_at_node(v, body))
				evaluate_body(v, body, live[b], v->node);
		}
	}
}

/* Evaluates the bodies of outputs in one domain at a node or input. */
static void evaluate_bodies(struct evaluator *v, enum sub_domain domain, int64_t row, bool **live)
{
	for (size_t b = 0; b < v->p->bodies.n; b++)
		if (v->p->bodies.at[b].domain == domain)
			evaluate_body(v, &v->p->bodies.at[b], live[b], row);
}

bool sub_evaluate_in(enum sub_arithmetic arithmetic, const struct sub_program *p, const struct sub_forest *f,
		     const void *const *params, double *const *states, double *const *outputs, struct arena *scratch)
{
	struct evaluator v = {.numbers = {.arithmetic = arithmetic}, .p = p, .f = f, .params = params, .states = states, .outputs = outputs, .scratch = scratch};
	v.env = ARENA_ARRAY(scratch, int64_t, p->vars.n);
	v.tensor = ARENA_ARRAY(scratch, double *, p->values.n);
	v.capacity = ARENA_ARRAY(scratch, size_t, p->values.n);
	bool **live = ARENA_ARRAY(scratch, bool *, p->bodies.n);
	for (size_t b = 0; b < p->bodies.n; b++) {
		live[b] = ARENA_ARRAY(scratch, bool, p->values.n);
		sub_mark_live(p, &p->bodies.at[b], live[b]);
	}
	v.edge_begin[false] = f->child_begin;
	v.neighbours[false] = f->children;
	find_parents(&v);
	find_inputs(&v);
	v.folded = ARENA_ARRAY(scratch, double *, p->params.n);
	v.hoisted = ARENA_ARRAY(scratch, double *, p->inputs.n);
	for (size_t i = 0; i < p->inputs.n; i++)
		if (p->inputs.at[i].hoisted)
			v.hoisted[i] =
			    ARENA_ARRAY(scratch, double, f->nodes *row_elements(&p->inputs.at[i].row));
	for (size_t b = 0; b < p->bodies.n; b++)
		if (p->bodies.at[b].domain == SUB_AT_BINDING)
			evaluate_constant(&v, &p->bodies.at[b], live[b]);
	for (size_t t = 0; t < p->traversals.n; t++) {
		evaluate_traversal(&v, t, live);
		evaluate_scan(&v, t, live);
	}
	for (int64_t n = 0; n < f->nodes; n++) {
		set_node(&v, n);
		evaluate_bodies(&v, SUB_EVERY_NODE, n, live);
	}
	for (v.input = 0; v.input < f->inputs; v.input++)
		evaluate_bodies(&v, SUB_EVERY_INPUT, v.input, live);
	return !v.numbers.refused;
}

void sub_evaluate(const struct sub_program *p, const struct sub_forest *f, const void *const *params,
		  double *const *states, double *const *outputs, struct arena *scratch)
{
	sub_evaluate_in(SUB_BINARY64, p, f, params, states, outputs, scratch);
}
