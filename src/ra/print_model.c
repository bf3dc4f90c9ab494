/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of a model.  A node that is used more than once, or that would be nested too deeply,
 * gets a name; names are assigned in the order of the nodes, which has arguments before users. */
#include "ra/print.h"

#include <stdlib.h>

enum { NESTING = 40 };

static bool is_leaf(const struct ra_node *n)
{
	return ra_op_arity(n->op) == 0;
}

/* --- declarations --- */

static void print_structure(struct ra_printer *p)
{
	const struct ra_structure *t = &p->m->structure;
	str_printf(p->s, "structure %s", ra_structure_words[t->kind]);
	if (t->kind == RA_SEQUENCE || t->kind == RA_NONE) {
		str_puts(p->s, "\n");
		return;
	}
	str_puts(p->s, t->children < 0 ? "(*" : "(");
	if (t->children > 0 && !t->child)
		str_printf(p->s, "%d", t->children);
	for (int i = 0; t->child && i < t->children; i++)
		str_printf(p->s, "%s%s", i ? ", " : "", t->child[i]);
	str_puts(p->s, ")\n");
}

static void print_declared(struct ra_printer *p, const char *word, const char *name,
			   const struct ra_shape *shape, enum dtype dtype)
{
	str_printf(p->s, "%s %s", word, name);
	if (shape->rank)
		ra_shape_print(p->m, shape, p->s);
	if (dtype != DTYPE_F32)
		str_printf(p->s, " : %s", dtype_traits_of(dtype)->spelling);
}

static void print_param(struct ra_printer *p, const struct ra_param *param)
{
	print_declared(p, "param", param->name, &param->shape, param->dtype);
	if (param->declared)
		str_printf(p->s, " products %s", precision_traits_of(param->products)->spelling);
	str_puts(p->s, "\n");
}

/* case pair = inner when children == 2 and kind == 1 */
static void print_case(struct ra_printer *p, const struct ra_named_case *c)
{
	const char *before = "when";
	str_printf(p->s, "case %s = %s ", c->name, c->base == RA_LEAF ? "leaf" : "inner");
	if (c->children >= 0) {
		str_printf(p->s, "when children == %d", c->children);
		before = " and";
	}
	for (size_t i = 0; i < c->tokens.n; i++, before = " and")
		str_printf(p->s, "%s %s == %d", before, p->m->inputs.at[c->tokens.at[i].input].name,
			   c->tokens.at[i].value);
	str_puts(p->s, "\n");
}

static void print_states(struct ra_printer *p, int traversal)
{
	for (size_t i = 0; i < p->m->states.n; i++)
		if (p->m->states.at[i].traversal == traversal) {
			print_declared(p, "state", p->m->states.at[i].name, &p->m->states.at[i].shape,
				       p->m->states.at[i].dtype);
			str_puts(p->s, "\n");
		}
}

static void print_declarations(struct ra_printer *p)
{
	const struct ra_model *m = p->m;
	str_printf(p->s, "model %s\n\n", m->name);
	print_structure(p);
	str_puts(p->s, "\n");
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct ra_input *in = &m->inputs.at[i];
		const char *word = in->edge ? "edge" : "input";
		if (in->token)
			str_printf(p->s, "%s %s : token", word, in->name);
		else
			print_declared(p, word, in->name, &in->shape, in->dtype);
		if (in->within)
			str_puts(p->s, " within "), str_double(p->s, in->within);
		str_puts(p->s, "\n");
	}
	for (size_t i = 0; i < m->cases.n; i++)
		print_case(p, &m->cases.at[i]);
	for (size_t i = 0; i < m->params.n; i++)
		print_param(p, &m->params.at[i]);
}

/* --- names --- */

/* A name and, if it has dots, what stands before the first: `k` would turn `k.h` into the state of a child.
 */
static void take_name(struct ra_printer *p, const char *name)
{
	map_add(&p->taken, name, strlen(name), 1);
	map_add(&p->taken, name, strcspn(name, "."), 1);
	map_add(&p->declared, name, strlen(name), 1);
	map_add(&p->declared, name, strcspn(name, "."), 1);
}

static void take_names(struct ra_printer *p)
{
	const struct ra_model *m = p->m;
	p->taken = p->declared = map_in(p->arena);
	for (size_t i = 0; i < m->symbols.n; i++)
		take_name(p, m->symbols.at[i].name);
	for (size_t i = 0; i < m->params.n; i++)
		take_name(p, m->params.at[i].name);
	for (size_t i = 0; i < m->inputs.n; i++)
		take_name(p, m->inputs.at[i].name);
	for (size_t i = 0; i < m->states.n; i++)
		take_name(p, m->states.at[i].name);
	for (size_t i = 0; i < m->cases.n; i++)
		take_name(p, m->cases.at[i].name);
	for (size_t i = 0; i < m->outputs.n; i++)
		take_name(p, m->outputs.at[i].name);
	for (int i = 0; m->structure.child && i < m->structure.children; i++)
		take_name(p, m->structure.child[i]);
	if (ra_parent_name(m->structure.kind))
		take_name(p, ra_parent_name(m->structure.kind));
	for (size_t i = 0; i < m->indices.n; i++)
		map_add(&p->taken, m->indices.at[i].name, strlen(m->indices.at[i].name), 1);
}

static const char *fresh_name(struct ra_printer *p, const char *letter, int *number)
{
	const char *name;
	do
		name = str_format(p->arena, "%s%d", letter, ++*number);
	while (map_get(&p->taken, name, strlen(name)) >= 0);
	return name;
}

static void choose_child_name(struct ra_printer *p)
{
	int number = 0;
	p->child = map_get(&p->taken, "k", 1) < 0 ? "k" : fresh_name(p, "k", &number);
}

/* --- what needs a name --- */

static void count_uses(const struct ra_model *m, uint32_t *uses)
{
	for (size_t i = 1; i < m->nodes.n; i++)
		for (int j = 0; j < ra_op_arity(m->nodes.at[i].op); j++)
			uses[m->nodes.at[i].arg[j].i]++;
	for (size_t i = 0; i < m->states.n; i++)
		for (int which = 0; which < ra_bodies(m); which++)
			uses[m->states.at[i].value[which].i]++;
	for (size_t i = 0; i < m->outputs.n; i++)
		uses[m->outputs.at[i].value.i]++;
}

static bool depends_on_each(const struct ra_printer *p, const struct ra_node *n)
{
	if (n->op == RA_CHILD || n->op == RA_PARENT || n->op == RA_STATE)
		return n->state.slot == RA_EACH_CHILD;
	if (n->op == RA_INPUT || n->op == RA_LOOKUP)
		return n->slot == RA_EACH_CHILD;
	if (ra_is_each(n->op))
		return false;
	for (int j = 0; j < ra_op_arity(n->op); j++)
		if (p->each[n->arg[j].i])
			return true;
	return false;
}

/* What stands inside of a sum over children, and holds one, needs a name: sums are not written in sums.
 * Returns whether the node holds one where it is written. */
static bool name_inner_sums(struct ra_printer *p, size_t i, const bool *holds)
{
	const struct ra_node *n = &p->m->nodes.at[i];
	bool inside = p->each[i] || ra_is_each(n->op), any = ra_is_each(n->op);
	for (int j = 0; j < ra_op_arity(n->op); j++) {
		uint32_t a = n->arg[j].i;
		p->named[a] |= inside && !p->each[a] && holds[a];
		any |= holds[a] && !p->named[a];
	}
	return any;
}

static void find_named(struct ra_printer *p)
{
	size_t nodes = p->m->nodes.n;
	int *height = ARENA_ARRAY(p->arena, int, nodes + 1);
	bool *holds = ARENA_ARRAY(p->arena, bool, nodes + 1);
	count_uses(p->m, p->uses);
	for (size_t i = 1; i < nodes; i++) {
		const struct ra_node *n = &p->m->nodes.at[i];
		int h = 0;
		for (int j = 0; j < ra_op_arity(n->op); j++)
			h = height[n->arg[j].i] > h ? height[n->arg[j].i] : h;
		p->each[i] = depends_on_each(p, n);
		p->named[i] = !is_leaf(n) && (p->uses[i] > 1 || h + 1 >= NESTING || n->op == RA_NEST);
		height[i] = p->named[i] ? 0 : h + 1;
		holds[i] = name_inner_sums(p, i, holds);
	}
}

typedef VEC(uint32_t) indices;

static int compare_indices(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The nodes below `root` that need a name and have none, in order: those whose home is this node, or those of
 * none, inside a sum over children or outside. */
static indices nodes_to_name(struct ra_printer *p, uint32_t root, bool inside, uint32_t home)
{
	indices found = {0}, stack = {0};
	vec_push(p->arena, &stack, root);
	p->walk++;
	while (stack.n) {
		uint32_t i = stack.at[--stack.n];
		const struct ra_node *n = &p->m->nodes.at[i];
		if (p->stamp[i] == p->walk || p->name[i] || is_leaf(n) || (inside && !p->each[i]) || (home && !n->free))
			continue;
		p->stamp[i] = p->walk;
		if (i != root && p->named[i] && p->home[i] == home && (home || p->each[i] == inside))
			vec_push(p->arena, &found, i);
		for (int j = 0; j < ra_op_arity(n->op); j++)
			vec_push(p->arena, &stack, n->arg[j].i);
	}
	if (found.n)
		qsort(found.at, found.n, sizeof *found.at, compare_indices);
	return found;
}

/* --- expressions --- */

static enum ra_precedence precedence_of(const struct ra_node *n)
{
	switch (n->op) {
	case RA_OR:
		return OR;
	case RA_AND:
		return AND;
	case RA_LESS:
	case RA_LESS_EQUAL:
	case RA_EQUAL:
	case RA_UNEQUAL:
	case RA_GREATER:
	case RA_GREATER_EQUAL:
		return COMPARE;
	case RA_ADD:
	case RA_SUB:
		return SUM;
	case RA_MUL:
	case RA_DIV:
	case RA_MATMUL:
		return PRODUCT;
	case RA_NEG:
		return SIGN;
	case RA_ELEMENT:
	case RA_GATHER:
		return n->element->written ? ANY : PRIMARY;
	case RA_CONST:
		return n->constant < 0 ? SIGN : PRIMARY;
	default:
		return PRIMARY;
	}
}

static void print_definition(struct ra_printer *, uint32_t);
static void print_named(struct ra_printer *, const char *name, uint32_t);

void ra_print_use(struct ra_printer *p, ra_ref r, enum ra_precedence least)
{
	bool brackets = !p->name[r.i] && precedence_of(ra_at(p->m, r)) < least;
	if (brackets)
		str_puts(p->s, "(");
	if (p->name[r.i])
		str_puts(p->s, p->name[r.i]);
	else
		print_definition(p, r.i);
	if (brackets)
		str_puts(p->s, ")");
}

/* Prints axes that are not the default, the last. */
static void print_axes(struct ra_printer *p, const struct ra_node *n)
{
	int rank = ra_at(p->m, n->arg[0])->shape.rank;
	bool along = n->op == RA_SUM || n->op == RA_MAX || n->op == RA_MIN || n->op == RA_PROD ||
		     n->op == RA_CUMSUM || n->op == RA_ARGMAX || n->op == RA_ARGMIN || n->op == RA_CONCAT;
	if (along && n->axis != rank - 1)
		str_printf(p->s, ", axis=%d", n->axis);
	bool last = true;
	for (int d = 0; n->op == RA_TRANSPOSE && d < rank; d++)
		last &= n->order[d] == (d < rank - 2 ? d : 2 * rank - 3 - d);
	for (int d = 0; !last && d < rank; d++)
		str_printf(p->s, ", %d", n->order[d]);
}

static void print_call(struct ra_printer *p, const struct ra_node *n)
{
	str_printf(p->s, "%s(", ra_op_spelling(n->op));
	for (int j = 0; j < ra_op_arity(n->op); j++) {
		str_puts(p->s, j ? ", " : "");
		ra_print_use(p, n->arg[j], ANY);
	}
	if (n->op == RA_CAST)
		str_printf(p->s, ", %s", dtype_traits_of(n->dtype)->spelling);
	print_axes(p, n);
	for (int d = 0; n->op == RA_RESHAPE && d < n->shape.rank; d++) {
		str_puts(p->s, ", ");
		ra_dim_print(p->m, &n->shape.dim[d], p->s);
	}
	str_puts(p->s, ")");
}

void ra_print_with_names(struct ra_printer *p, uint32_t root, bool inside, uint32_t home)
{
	indices found = nodes_to_name(p, root, inside, home);
	bool nest = p->m->nodes.at[root].op == RA_NEST && !p->name[root];
	if (nest)
		vec_push(p->arena, &found, root);
	str_puts(p->s, found.n ? "(" : "");
	for (size_t i = 0; i < found.n; i++) {
		const char *name = fresh_name(p, "t", &p->locals);
		print_named(p, name, found.at[i]);
		str_puts(p->s, "; ");
		p->name[found.at[i]] = name;
	}
	if (p->name[root])
		str_puts(p->s, p->name[root]);
	else
		print_definition(p, root);
	str_puts(p->s, found.n ? ")" : "");
	p->name[root] = nest ? NULL : p->name[root];
}

static void print_each(struct ra_printer *p, const struct ra_node *n)
{
	bool parents = n->op == RA_PARENT_SUM || n->op == RA_PARENT_MAX;
	str_puts(p->s, n->op == RA_CHILD_MAX || n->op == RA_PARENT_MAX ? "max(" : "sum(");
	ra_print_with_names(p, n->arg[0].i, true, 0);
	str_printf(p->s, " for %s in %s)", p->child, parents ? "parents" : n->members ? "nodes" : "children");
}

/* Prints a state of a child, or what the edge to it carries; of the node of a sum, or what that carries. */
static void print_child(struct ra_printer *p, int slot, const char *name)
{
	const struct ra_structure *t = &p->m->structure;
	if (slot == RA_EACH_CHILD)
		str_printf(p->s, "%s.%s", p->child, name);
	else if (t->child)
		str_printf(p->s, "%s.%s", t->child[slot], name);
	else
		str_printf(p->s, "children[%d].%s", slot, name);
}

static void print_parent(struct ra_printer *p, const struct ra_node *n)
{
	bool each = n->state.slot == RA_EACH_CHILD;
	str_printf(p->s, "%s.%s", each ? p->child : ra_parent_name(p->m->structure.kind),
		   p->m->states.at[n->state.state].name);
}

static void print_input(struct ra_printer *p, const struct ra_node *n)
{
	const struct ra_input *in = &p->m->inputs.at[n->input];
	if (in->edge || n->slot == RA_EACH_MEMBER)
		print_child(p, n->slot, in->name);
	else
		str_puts(p->s, in->name);
}

static void print_slice(struct ra_printer *p, const struct ra_node *n)
{
	struct ra_dim end;
	ra_print_use(p, n->arg[0], PRIMARY);
	str_puts(p->s, "[");
	ra_dim_print(p->m, &n->begin, p->s);
	str_puts(p->s, ":");
	if (ra_dim_add(&n->shape.dim[n->axis], 1, &n->begin, &end))
		ra_dim_print(p->m, &end, p->s);
	for (int d = n->axis + 1; d < n->shape.rank; d++)
		str_puts(p->s, ", :");
	str_puts(p->s, "]");
}

static void print_row(struct ra_printer *p, const struct ra_node *n)
{
	ra_print_use(p, n->arg[0], PRIMARY);
	str_printf(p->s, "[%lld]", (long long)n->begin.constant);
}

/* Prints `name = value`, or `name[i, j] = number`. */
static void print_named(struct ra_printer *p, const char *name, uint32_t i)
{
	str_puts(p->s, name);
	if (p->m->nodes.at[i].op == RA_NEST) {
		ra_print_nest(p, i);
		return;
	}
	str_puts(p->s, " = ");
	print_definition(p, i);
}

static void print_infix(struct ra_printer *p, const struct ra_node *n)
{
	enum ra_precedence own = precedence_of(n);
	ra_print_use(p, n->arg[0], own + (own == COMPARE));
	str_printf(p->s, " %s ", ra_op_spelling(n->op));
	ra_print_use(p, n->arg[1], own + 1);
}

static void print_zero(struct ra_printer *p, const struct ra_node *n)
{
	str_puts(p->s, "zeros(");
	for (int i = 0; i < n->shape.rank; i++) {
		str_puts(p->s, i ? ", " : "");
		ra_dim_print(p->m, &n->shape.dim[i], p->s);
	}
	if (n->dtype != DTYPE_F32)
		str_printf(p->s, " : %s", dtype_traits_of(n->dtype)->spelling);
	str_puts(p->s, ")");
}

static void print_extent(struct ra_printer *p, const struct ra_dim *d)
{
	bool symbol = d->terms == 1 && d->term[0].coefficient == 1 && !d->constant &&
		      !p->m->symbols.at[d->term[0].symbol].divisor;
	str_puts(p->s, symbol ? "" : "dimension(");
	ra_dim_print(p->m, d, p->s);
	str_puts(p->s, symbol ? "" : ")");
}

static void print_leaf(struct ra_printer *p, const struct ra_node *n)
{
	const struct ra_model *m = p->m;
	if (n->op == RA_CONST)
		str_double(p->s, n->constant);
	else if (n->op == RA_ZERO)
		print_zero(p, n);
	else if (n->op == RA_EXTENT)
		print_extent(p, &n->begin);
	else if (n->op == RA_PARENT)
		print_parent(p, n);
	else if (n->op == RA_CHILD)
		print_child(p, n->state.slot, m->states.at[n->state.state].name);
	else if (n->op == RA_PARAM)
		str_puts(p->s, m->params.at[n->param].name);
	else if (n->op == RA_INPUT)
		print_input(p, n);
	else if (n->state.slot == RA_EACH_MEMBER)
		print_child(p, RA_EACH_CHILD, m->states.at[n->state.state].name);
	else
		str_puts(p->s, m->states.at[n->state.state].name);
}

static void print_definition(struct ra_printer *p, uint32_t i)
{
	const struct ra_node *n = &p->m->nodes.at[i];
	if (is_leaf(n)) {
		print_leaf(p, n);
		return;
	}
	switch (n->op) {
	case RA_LOOKUP:
		ra_print_use(p, n->arg[0], PRIMARY);
		str_puts(p->s, "[");
		print_input(p, n);
		str_puts(p->s, "]");
		break;
	case RA_NEG:
		str_puts(p->s, "-");
		ra_print_use(p, n->arg[0], SIGN);
		break;
	case RA_OR:
	case RA_AND:
	case RA_LESS:
	case RA_LESS_EQUAL:
	case RA_EQUAL:
	case RA_UNEQUAL:
	case RA_GREATER:
	case RA_GREATER_EQUAL:
	case RA_ADD:
	case RA_SUB:
	case RA_MUL:
	case RA_DIV:
	case RA_MATMUL:
		print_infix(p, n);
		break;
	case RA_SLICE:
		print_slice(p, n);
		break;
	case RA_ROW:
		print_row(p, n);
		break;
	case RA_ELEMENT:
	case RA_GATHER:
		ra_print_element(p, n);
		break;
	case RA_SUM_OVER:
	case RA_MAX_OVER:
	case RA_MIN_OVER:
	case RA_PROD_OVER:
		ra_print_over(p, i);
		break;
	case RA_CHILD_SUM:
	case RA_CHILD_MAX:
	case RA_PARENT_SUM:
	case RA_PARENT_MAX:
		print_each(p, n);
		break;
	default:
		print_call(p, n);
	}
}

/* --- bodies and outputs --- */

static void print_statement(struct ra_printer *p, const char *name, uint32_t i)
{
	str_puts(p->s, "    ");
	if (p->name[i])
		str_printf(p->s, "%s = %s", name, p->name[i]);
	else
		print_named(p, name, i);
	str_puts(p->s, "\n");
}

/* Whether this traversal computes the state. */
static bool is_own(const struct ra_printer *p, size_t state, int traversal)
{
	return p->m->states.at[state].traversal == traversal;
}

/* Marks the nodes that the states of a case need: users come after their arguments. */
static bool *mark_needed(const struct ra_printer *p, int traversal, int which)
{
	const struct ra_model *m = p->m;
	bool *mark = ARENA_ARRAY(p->arena, bool, m->nodes.n + 1);
	for (size_t i = 0; i < m->states.n; i++)
		mark[m->states.at[i].value[which].i] |= is_own(p, i, traversal);
	for (size_t i = m->nodes.n; i-- > 1;)
		for (int j = 0; mark[i] && j < ra_op_arity(m->nodes.at[i].op); j++)
			mark[m->nodes.at[i].arg[j].i] = true;
	return mark;
}

/* States whose value is a leaf, or the value of a state before them, come last. */
static void print_body(struct ra_printer *p, int traversal, int which)
{
	const struct ra_model *m = p->m;
	if (!ra_has_own_body(m, traversal, which))
		return;
	const bool *mark = mark_needed(p, traversal, which);
	const char **owner = ARENA_ARRAY(p->arena, const char *, m->nodes.n + 1);
	bool of_rows = m->structure.kind == RA_NONE && !ra_is_scan(&m->traversals.at[traversal]);
	str_printf(p->s, "\n%s:\n",
		   of_rows	      ? ra_word_text(RA_WORD_NODE)
		   : which < RA_CASES ? ra_word_text(ra_case_word(m->traversals.at[traversal].down, which))
				      : m->cases.at[which - RA_CASES].name);
	for (size_t i = m->states.n; i-- > 0;)
		if (is_own(p, i, traversal))
			owner[m->states.at[i].value[which].i] = m->states.at[i].name;
	for (uint32_t i = 1; i < m->nodes.n; i++) {
		if (!mark[i] || is_leaf(&m->nodes.at[i]) || p->each[i] || p->home[i] || !(owner[i] || p->named[i]))
			continue;
		const char *name = owner[i] ? owner[i] : fresh_name(p, "t", &p->locals);
		print_statement(p, name, i);
		p->name[i] = name;
	}
	for (size_t i = 0; i < m->states.n; i++) {
		uint32_t value = m->states.at[i].value[which].i;
		if (is_own(p, i, traversal) && p->name[value] != m->states.at[i].name)
			print_statement(p, m->states.at[i].name, value);
	}
}

/* The first traversal goes up without a statement. */
static void print_traversal(struct ra_printer *p, int t)
{
	const struct ra_traversal *of = &p->m->traversals.at[t];
	if (t || of->down || ra_is_scan(of))
		str_printf(p->s, "%straversal %s", t || ra_is_scan(of) ? "\n" : "", of->down ? "down" : "up");
	if (ra_is_scan(of)) {
		str_puts(p->s, " over ");
		ra_dim_print(p->m, &of->steps, p->s);
	}
	if (t || of->down || ra_is_scan(of))
		str_puts(p->s, "\n");
	print_states(p, t);
	for (int which = 0; which < ra_bodies(p->m); which++)
		print_body(p, t, which);
}

/* Whether a node is the value of an output. */
static bool *mark_outputs(const struct ra_printer *p)
{
	bool *mark = ARENA_ARRAY(p->arena, bool, p->m->nodes.n + 1);
	for (size_t i = 0; i < p->m->outputs.n; i++)
		mark[p->m->outputs.at[i].value.i] = true;
	return mark;
}

/* The body of a model without a structure: the names that its outputs share, or need. */
static void print_shared(struct ra_printer *p)
{
	const struct ra_model *m = p->m;
	const bool *result = mark_outputs(p);
	bool any = false;
	for (uint32_t i = 1; i < m->nodes.n; i++) {
		if (!p->named[i] || p->home[i] || (result[i] && p->uses[i] == 1))
			continue;
		str_puts(p->s, any ? "" : "\nnode:\n");
		any = true;
		const char *name = fresh_name(p, "t", &p->locals);
		print_statement(p, name, i);
		p->name[i] = name;
	}
}

static void print_string(struct str *s, const char *text)
{
	str_puts(s, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			str_puts(s, "\\");
		str_add(s, text, 1);
	}
	str_puts(s, "\"");
}

/* Prints `= value`, or `[i, j] = number`, of an output. */
static void print_value(struct ra_printer *p, uint32_t i)
{
	if (ra_at(p->m, (ra_ref){i})->op == RA_NEST && !p->name[i] && !nodes_to_name(p, i, false, 0).n) {
		ra_print_nest(p, i);
		return;
	}
	str_puts(p->s, " = ");
	ra_print_with_names(p, i, false, 0);
}

static void print_output(struct ra_printer *p, const struct ra_output *o)
{
	str_printf(p->s, "output %s", o->name);
	print_value(p, o->value.i);
	if (p->m->structure.kind != RA_NONE)
		str_puts(p->s, o->at_root ? " at root" : " at every node");
	for (int i = 0; i < o->labels; i++) {
		str_puts(p->s, i ? ", " : " labels ");
		print_string(p->s, o->label[i]);
	}
	str_puts(p->s, "\n");
	if (!is_leaf(ra_at(p->m, o->value)) && !p->name[o->value.i])
		p->name[o->value.i] = o->name;
}

void ra_print(const struct ra_model *m, struct str *s)
{
	struct ra_printer p = {.m = m, .s = s, .arena = s->arena};
	p.name = ARENA_ARRAY(p.arena, const char *, m->nodes.n + 1);
	p.uses = ARENA_ARRAY(p.arena, uint32_t, m->nodes.n + 1);
	p.named = ARENA_ARRAY(p.arena, bool, m->nodes.n + 1);
	p.each = ARENA_ARRAY(p.arena, bool, m->nodes.n + 1);
	p.stamp = ARENA_ARRAY(p.arena, uint32_t, m->nodes.n + 1);
	p.home = ARENA_ARRAY(p.arena, uint32_t, m->nodes.n + 1);
	p.index = ARENA_ARRAY(p.arena, const char *, m->indices.n + 1);
	p.plain = ARENA_ARRAY(p.arena, bool, m->indices.n + 1);
	take_names(&p);
	choose_child_name(&p);
	ra_find_homes(&p);
	find_named(&p);
	print_declarations(&p);
	for (size_t t = 0; t < m->traversals.n; t++)
		print_traversal(&p, (int)t);
	if (m->structure.kind == RA_NONE && !m->states.n)
		print_shared(&p);
	str_puts(s, "\n");
	for (size_t i = 0; i < m->outputs.n; i++)
		print_output(&p, &m->outputs.at[i]);
}
