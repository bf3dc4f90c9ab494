/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Checks the rules of the sub-operator IR, from the values alone. */
#include "subop/subop.h"

#include <stdarg.h>
#include <stdio.h>

struct verifier {
	const struct sub_program *p;
	struct diags *diags;
	bool ok;
};

__attribute__((format(printf, 3, 4))) static void report_fault(struct verifier *v, uint32_t value,
							       const char *format, ...)
{
	char text[200];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	v->ok = diag_add(v->diags, DIAG_INVALID_SUBOPS, (struct diag_at){0},
			 "this is a fault of the compiler; please report it with the model",
			 "%s: value %%%u: %s", v->p->name, value, text);
}

/* Whether two variables may name one dimension: they have one range.  A row may name a dimension. */
static bool same_range(const struct sub_program *p, int a, int b)
{
	const struct sub_var *x = &p->vars.at[a], *y = &p->vars.at[b];
	bool fixed = x->set == SUB_DIM || x->set == SUB_ROW;
	return fixed ? (y->set == SUB_DIM || y->set == SUB_ROW) && x->extent == y->extent : x->set == y->set;
}

static void check_use(struct verifier *v, uint32_t at, const struct sub_use *u)
{
	if (u->value.i == 0 || u->value.i >= at) {
		report_fault(v, at, "uses %%%u, which does not come before it", u->value.i);
		return;
	}
	const struct sub_value *from = sub_at(v->p, u->value);
	if (u->vars != from->vars) {
		report_fault(v, at, "names %d of the %d dimensions of %%%u", u->vars, from->vars, u->value.i);
		return;
	}
	for (int i = 0; i < u->vars; i++)
		if (!same_range(v->p, u->var[i], from->var[i]))
			report_fault(v, at, "dimension %d of %%%u is renamed to one with another range", i,
				     u->value.i);
}

static void check_distinct(struct verifier *v, uint32_t at, const int *var, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (var[i] == var[j])
				report_fault(v, at, "variable %s stands twice", v->p->vars.at[var[i]].name);
}

static bool has_var(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return true;
	return false;
}

/* Whether a map keeps the index of a leading dimension; only functions of the structure may change it. */
static bool is_identity(const struct sub_program *p, const struct sub_map *m, int var)
{
	return m->function == SUB_AFFINE && m->var >= 0 && same_range(p, m->var, var) && m->scale == 1 &&
	       m->offset == 0 && m->scale2 == 0;
}

static void check_arithmetic(struct verifier *v, uint32_t at, const struct sub_value *value, int i)
{
	const struct sub_map *m = &value->map[i];
	int var = sub_at(v->p, value->arg[0].value)->var[i];
	int64_t least, most;
	if (v->p->vars.at[var].set != SUB_DIM) {
		if (!is_identity(v->p, m, var))
			report_fault(v, at, "a row is reached by arithmetic");
	} else if (m->function == SUB_DIGIT && (m->divisor < 1 || m->modulus < 0)) {
		report_fault(v, at, "an index is divided by what is not positive");
	} else if (!sub_map_range(v->p, m, &least, &most)) {
		report_fault(v, at, "an index has no range");
	} else if ((!value->fills || m->function == SUB_DIGIT) && sub_map_leaves(v->p, value, i)) {
		report_fault(v, at, "an index runs outside its dimension");
	}
}

/* The most children that a node may have; if any number is allowed, the most that a case specifies. */
static int most_slots(const struct sub_program *p)
{
	int most = p->children;
	for (size_t i = 0; p->children < 0 && i < p->cases.n; i++)
		most = p->cases.at[i].children > most ? p->cases.at[i].children : most;
	return most;
}

static bool is_input(const struct sub_program *p, int which)
{
	return which >= 0 && (size_t)which < p->inputs.n;
}

/* Whether a map reads a child, an edge, or the token of an edge by its slot. */
static bool is_by_slot(const struct sub_program *p, const struct sub_map *m)
{
	bool token =
	    m->function == SUB_TOKEN && p->inputs.at[m->which].on_edge && p->vars.at[m->var].set == SUB_NODE;
	return token || m->function == SUB_CHILD || m->function == SUB_SLOT_EDGE;
}

/* Checks the index sets of a function of the structure: its argument and its value. */
static void check_function(struct verifier *v, uint32_t at, const struct sub_value *value, int i)
{
	static const struct {
		enum sub_set from, to;
	} sets[] = {[SUB_CHILD] = {SUB_NODE, SUB_NODE},	 [SUB_EDGE_CHILD] = {SUB_EDGE, SUB_NODE},
		    [SUB_PARENT] = {SUB_NODE, SUB_NODE}, [SUB_EDGE_PARENT] = {SUB_EDGE, SUB_NODE},
		    [SUB_ROOT] = {SUB_INPUT, SUB_NODE},	 [SUB_MEMBER_NODE] = {SUB_MEMBER, SUB_NODE},
		    [SUB_TOKEN] = {SUB_NODE, SUB_DIM},	 [SUB_SLOT_EDGE] = {SUB_NODE, SUB_EDGE}};
	const struct sub_map *m = &value->map[i];
	if (m->function == SUB_TOKEN && (!is_input(v->p, m->which) || !v->p->inputs.at[m->which].token)) {
		report_fault(v, at, "rows are picked by what is no token");
		return;
	}
	enum sub_set from = m->var < 0 ? SUB_DIM : v->p->vars.at[m->var].set;
	enum sub_set to = v->p->vars.at[sub_at(v->p, value->arg[0].value)->var[i]].set;
	bool token = m->function == SUB_TOKEN, on_edge = token && v->p->inputs.at[m->which].on_edge;
	bool of_ragged = token && from == (on_edge ? SUB_EDGE : SUB_MEMBER);
	int slot = m->function == SUB_TOKEN ? m->slot : m->which;
	if (to != sets[m->function].to || (from != sets[m->function].from && !of_ragged))
		report_fault(v, at, "a function of the structure is applied to another index set");
	else if (is_by_slot(v->p, m) && (slot < 0 || slot >= most_slots(v->p)))
		report_fault(v, at, "nodes have no such slot");
}

static void check_maps(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	for (int i = 0; i < value->arg[0].vars; i++) {
		const struct sub_map *m = &value->map[i];
		if (m->function == SUB_STEP) {
			if (v->p->vars.at[sub_at(v->p, value->arg[0].value)->var[i]].set != SUB_DIM)
				report_fault(v, at, "a step is an index along no dimension");
			continue;
		}
		if ((m->var >= 0 && !has_var(value, m->var)) || (m->scale2 && !has_var(value, m->var2)))
			report_fault(v, at, "a map uses a variable that the value does not have");
		else if (sub_is_arithmetic(m))
			check_arithmetic(v, at, value, i);
		else if (m->scale2)
			report_fault(v, at, "a function of two variables");
		else
			check_function(v, at, value, i);
	}
}

/* The position of the joined axis in an argument of a COND. */
static int joined_at(const struct sub_value *value, int a)
{
	return value->arg[a].vars - (value->vars - value->axis);
}

/* Whether a variable of an argument is not passed on to the value: it is reduced, or joined. */
static bool is_own(const struct sub_value *value, int a, int j)
{
	if (sub_reduces(value->op))
		return sub_position_in(&value->reduced, value->arg[a].var[j]) >= 0;
	if (value->op == SUB_GATHER)
		return a == 0 && value->arg[0].var[j] == value->reduced.var[0];
	return value->op == SUB_COND && j == joined_at(value, a);
}

static bool comes_from_argument(const struct sub_value *value, int var)
{
	for (int a = 0; a < value->args; a++)
		for (int j = 0; j < value->arg[a].vars; j++)
			if (!is_own(value, a, j) && value->arg[a].var[j] == var)
				return true;
	return false;
}

/* Checks that the variables of a value are those of its arguments, in an order that agrees with each. */
static void check_inference(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	for (int i = 0; i < value->vars; i++)
		if (!(value->op == SUB_COND && i == value->axis) &&
		    !comes_from_argument(value, value->var[i]))
			report_fault(v, at, "variable %s comes from no argument",
				     v->p->vars.at[value->var[i]].name);
	for (int a = 0; a < value->args; a++)
		for (int j = 0, at_var = -1; j < value->arg[a].vars; j++) {
			int var = value->arg[a].var[j], k = 0;
			if (is_own(value, a, j))
				continue;
			while (k < value->vars && value->var[k] != var)
				k++;
			if (k == value->vars || k <= at_var)
				report_fault(v, at, "variable %s is lost or out of order",
					     v->p->vars.at[var].name);
			at_var = k;
		}
}

/* Checks that a reduction is over one variable of edges or members, or over dimensions of its elements. */
static void check_reduced(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	int var[SUB_MAX_VARS] = {0}, n = sub_reduced_vars(v->p, value, var);
	struct sub_vars all = {.n = n};
	memcpy(all.var, var, sizeof all.var);
	if (!value->reduced.n)
		report_fault(v, at, "reduces no variable");
	check_distinct(v, at, value->reduced.var, value->reduced.n);
	for (int i = 0; i < value->reduced.n; i++) {
		int reduced = value->reduced.var[i];
		if (sub_position_in(&all, reduced) < 0)
			report_fault(v, at, "reduces %s, which its argument lacks", v->p->vars.at[reduced].name);
		else if (value->reduced.n > 1 && v->p->vars.at[reduced].set != SUB_DIM)
			report_fault(v, at, "reduces %s, which is no dimension, together with others",
				     v->p->vars.at[reduced].name);
	}
}

static void check_gather(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	const struct sub_use *from = &value->arg[0];
	if (value->reduced.n != 1 || !sub_use_has(from, value->reduced.var[0]) ||
	    v->p->vars.at[value->reduced.var[0]].set != SUB_DIM)
		report_fault(v, at, "gathers along what is no dimension of its argument");
	else
		check_inference(v, at, value);
}

static void check_cond(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	int64_t sum = 0;
	bool joins = value->axis >= 0 && value->axis < value->vars;
	for (int a = 0; joins && a < 2; a++) {
		int axis = joined_at(value, a);
		joins = axis >= 0;
		sum += joins ? v->p->vars.at[value->arg[a].var[axis]].extent : 0;
	}
	if (!joins || sum != v->p->vars.at[value->var[value->axis]].extent)
		report_fault(v, at, "the joined extents do not add up");
	else
		check_inference(v, at, value);
}

/* --- what is declared --- */

/* Whether variables are the given leading dimensions and then one for each dimension of a tensor. */
static bool has_shape(const struct sub_program *p, const int *var, int vars, const int *leading,
		      int n_leading, const struct sub_tensor *t)
{
	bool has = vars == n_leading + t->rank;
	for (int i = 0; has && i < vars; i++) {
		const struct sub_var *x = &p->vars.at[var[i]];
		bool fixed = x->set == SUB_DIM || x->set == SUB_ROW;
		has = i < n_leading ? var[i] == leading[i] : fixed && x->extent == t->shape[i - n_leading];
	}
	return has;
}

/* The tensor that a source reads; NULL = it is not declared. */
static const struct sub_tensor *tensor_of(const struct sub_program *p, const struct sub_value *value)
{
	size_t which = value->which;
	switch (value->op) {
	case SUB_PARAM:
		return which < p->params.n ? &p->params.at[which] : NULL;
	case SUB_STATE:
		return which < p->states.n ? &p->states.at[which] : NULL;
	default:
		return which < p->inputs.n ? &p->inputs.at[which].row : NULL;
	}
}

/* Whether an INDEX is along one dimension. */
static bool is_index(const struct sub_program *p, const struct sub_value *value)
{
	return value->vars == 1 && p->vars.at[value->var[0]].set == SUB_DIM;
}

static void check_source(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	static const struct sub_tensor number = {.rank = 0};
	const int leading[] = {v->p->node, v->p->edge};
	const struct sub_tensor *t = value->op == SUB_CONST ? &number : tensor_of(v->p, value);
	bool of_node = value->op == SUB_STATE || value->op == SUB_VECTOR;
	bool of_edge = t && value->op == SUB_VECTOR && v->p->inputs.at[value->which].on_edge;
	if (value->op == SUB_INDEX) {
		if (!is_index(v->p, value))
			report_fault(v, at, "an index is along one dimension");
	} else if (!t)
		report_fault(v, at, "what it reads is not declared");
	else if (!has_shape(v->p, value->var, value->vars, leading, of_node + of_edge, t))
		report_fault(v, at, "the variables are not those of what it reads");
}

/* Checks that a value has the type that its arguments or declaration give it. */
static void check_type(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	struct sub_value again = *value;
	if (!sub_find_type(v->p, &again) || again.dtype != value->dtype ||
	    ra_widened(value->dtype) != value->dtype)
		report_fault(v, at, "it is %s, which is not what its operator makes of its arguments",
			     dtype_traits_of(value->dtype)->spelling);
}

static void check_value(struct verifier *v, uint32_t at)
{
	const struct sub_value *value = &v->p->values.at[at];
	for (int a = 0; a < value->args; a++)
		check_use(v, at, &value->arg[a]);
	check_distinct(v, at, value->var, value->vars);
	if (v->ok)
		check_type(v, at, value);
	if (!v->ok)
		return;
	if (value->op == SUB_ASSIGN)
		check_maps(v, at, value);
	else if (value->op == SUB_COND)
		check_cond(v, at, value);
	else if (value->op == SUB_GATHER)
		check_gather(v, at, value);
	else if (sub_class_of(value->op) == SUB_SOURCE)
		check_source(v, at, value);
	else
		check_inference(v, at, value);
	if (v->ok && sub_reduces(value->op))
		check_reduced(v, at, value);
}

static bool report_body_fault(struct verifier *v, const struct sub_body *b, const char *what)
{
	return v->ok = diag_add(v->diags, DIAG_INVALID_SUBOPS, (struct diag_at){0},
				"this is a fault of the compiler; please report it with the model",
				"%s: body %s: %s", v->p->name, b->name, what);
}

static bool is_case_of(const struct image_case *k, enum sub_domain domain)
{
	return domain == SUB_LEAF    ? !k->inner
	       : domain == SUB_INNER ? k->inner
	       : domain == SUB_TOP   ? k->parent == IMAGE_NO
				     : k->parent == IMAGE_YES;
}

/* Checks that every case of a body's domain has one body in its traversal. */
static void check_masks(struct verifier *v, size_t at)
{
	const struct sub_body *b = &v->p->bodies.at[at];
	unsigned all = 0, taken = 0;
	bool twice = false;
	for (size_t c = 0; c < v->p->cases.n; c++)
		all |= (unsigned)is_case_of(&v->p->cases.at[c], b->domain) << c;
	for (size_t i = 0; i < v->p->bodies.n; i++) {
		const struct sub_body *o = &v->p->bodies.at[i];
		unsigned mask = o->cases ? o->cases : all;
		if (o->domain != b->domain || o->traversal != b->traversal)
			continue;
		twice |= (taken & mask) || (!all && i != at);
		taken |= mask;
	}
	if (twice || taken != all)
		report_body_fault(v, b, "a case has no body, or several");
}

/* Checks that a body reads neighbours visited before: children going up, parents going down. */
static void check_link(struct verifier *v, const struct sub_body *b, const struct sub_map *m)
{
	bool child = m->function == SUB_CHILD || m->function == SUB_EDGE_CHILD;
	bool parent = m->function == SUB_PARENT || m->function == SUB_EDGE_PARENT;
	if (sub_goes_down(v->p, b) ? child : parent)
		report_body_fault(v, b, "a traversal goes along edges of the other direction");
	else if ((m->function == SUB_CHILD && b->domain == SUB_LEAF) || (parent && b->domain == SUB_TOP))
		report_body_fault(v, b, "a leaf reads a child in a slot, or a root a parent");
}

/* Checks that a body reads states of other nodes of its input only where all of them are complete. */
static void check_member(struct verifier *v, const struct sub_body *b, const struct sub_value *value)
{
	const struct sub_value *from = sub_at(v->p, value->arg[0].value);
	bool known = from->op != SUB_STATE || b->domain == SUB_EVERY_NODE || b->domain == SUB_EVERY_INPUT ||
		     v->p->states.at[from->which].traversal < b->traversal;
	if (value->map[0].function == SUB_MEMBER_NODE && !known)
		report_body_fault(v, b, "reads a state of all nodes before they have it");
}

/* Checks that the indices of steps lie inside of what is read, and that a scan reads its own states, which have a row of
 * each step behind the node, of earlier steps. */
static void check_step(struct verifier *v, const struct sub_body *b, const struct sub_value *value)
{
	int64_t steps = v->p->traversals.at[b->traversal].steps,
		last = b->domain == SUB_FIRST_STEP ? 0 : steps - 1;
	for (int i = 0; value->op == SUB_ASSIGN && i < value->arg[0].vars; i++) {
		const struct sub_map *m = &value->map[i];
		const struct sub_value *from = sub_at(v->p, value->arg[0].value);
		int64_t first = b->domain == SUB_NEXT_STEPS, a = m->scale * first + m->offset,
			z = m->scale * last + m->offset, extent = v->p->vars.at[from->var[i]].extent;
		bool own = from->op == SUB_STATE && v->p->states.at[from->which].traversal == b->traversal;
		if (m->function != SUB_STEP || first > last)
			continue;
		if (a < 0 || z < 0 || a >= extent || z >= extent)
			report_body_fault(v, b, "reads a step that is not there");
		else if (own && i == 1 && (m->scale < 0 ? m->offset < steps : m->offset >= 0))
			report_body_fault(v, b, "reads a step of its own states that has not run");
	}
}

/* Checks that a value is known when the body runs. */
static void check_order(struct verifier *v, const struct sub_body *b, const struct sub_value *value)
{
	if (value->op == SUB_STATE && v->p->states.at[value->which].traversal > b->traversal)
		report_body_fault(v, b, "reads a state of a later traversal");
	if (!sub_is_stepped(b) && sub_reads_step(value))
		report_body_fault(v, b, "reads at a step, and is of none");
	check_step(v, b, value);
	if (value->op != SUB_ASSIGN || !value->arg[0].vars)
		return;
	check_link(v, b, &value->map[0]);
	check_member(v, b, value);
}

static enum sub_target target_of(enum sub_domain domain)
{
	return domain <= SUB_BELOW				      ? SUB_TO_STATE
	       : domain <= SUB_EVERY_INPUT			      ? SUB_TO_OUTPUT
	       : domain == SUB_FIRST_STEP || domain == SUB_NEXT_STEPS ? SUB_TO_STATE
	       : domain == SUB_AT_BINDING			      ? SUB_TO_PARAM
								      : SUB_TO_INPUT;
}

static bool is_target(const struct sub_program *p, const struct sub_body *b, const struct sub_store *s)
{
	const size_t declared[] = {[SUB_TO_STATE] = p->states.n,
				   [SUB_TO_OUTPUT] = p->outputs.n,
				   [SUB_TO_PARAM] = p->params.n,
				   [SUB_TO_INPUT] = p->inputs.n};
	bool gathered = b->domain == SUB_EVERY_NODE && s->to == SUB_TO_INPUT;
	bool flat = b->domain == SUB_AHEAD && s->to == SUB_TO_STATE;
	return (gathered || flat || s->to == target_of(b->domain)) && s->which >= 0 && (size_t)s->which < declared[s->to];
}

static void check_store(struct verifier *v, const struct sub_body *b, const struct sub_store *s)
{
	const int leading[] = {b->domain == SUB_EVERY_INPUT ? v->p->input : v->p->node, v->p->edge};
	check_use(v, v->p->values.n, &s->value);
	if (!v->ok)
		return;
	if (!is_target(v->p, b, s)) {
		report_body_fault(v, b, "stores what is not declared, or not its own");
		return;
	}
	int n_leading =
	    s->to == SUB_TO_PARAM ? 0 : 1 + (s->to == SUB_TO_INPUT && v->p->inputs.at[s->which].on_edge);
	const struct sub_tensor part = sub_stored_part(v->p, s), *t = &part;
	if (s->stepped != sub_is_stepped(b) || (s->stepped && !sub_is_scanned(v->p, s->which)))
		report_body_fault(v, b, "stores a step to what has none, or not one step");
	else if (!has_shape(v->p, s->value.var, s->value.vars, leading, n_leading, t))
		report_body_fault(v, b, "stores a value of another shape");
	else if (sub_at(v->p, s->value.value)->dtype !=
		 (s->to == SUB_TO_PARAM || s->to == SUB_TO_INPUT ? ra_widened(t->dtype) : t->dtype))
		report_body_fault(v, b, "stores a value of another type");
}

/* Checks what a body reads and stores against the traversal that it belongs to. */
static void check_traversal(struct verifier *v, const struct sub_body *b)
{
	bool *live = ARENA_ARRAY(v->p->arena, bool, v->p->values.n);
	if (b->traversal < 0 || (size_t)b->traversal >= v->p->traversals.n) {
		report_body_fault(v, b, "belongs to no traversal");
		return;
	}
	for (size_t i = 0; i < b->stores.n && v->ok; i++)
		check_store(v, b, &b->stores.at[i]);
	if (!v->ok)
		return;
	sub_mark_live(v->p, b, live);
	for (uint32_t i = 1; i < v->p->values.n && v->ok; i++)
		if (live[i])
			check_order(v, b, &v->p->values.at[i]);
	for (size_t i = 0; i < b->stores.n && v->ok; i++)
		if (b->stores.at[i].to == SUB_TO_STATE &&
		    v->p->states.at[b->stores.at[i].which].traversal != b->traversal)
			report_body_fault(v, b, "stores a state of another traversal");
}

/* Checks what a call reads and writes: inputs of nodes, and parameters. */
static void check_call(struct verifier *v, const struct sub_body *b)
{
	const struct sub_call *c = b->call > 0 && (size_t)b->call <= v->p->calls.n ? &v->p->calls.at[b->call - 1] : NULL;
	if (!c || b->stores.n || b->domain != SUB_AHEAD) {
		report_body_fault(v, b, "is no call of its own, ahead of its traversal");
		return;
	}
	for (int i = 0; i < c->operands && v->ok; i++) {
		const struct sub_operand *o = &c->operand[i];
		bool constant = o->role == IMAGE_OPERAND_CONSTANT;
		if (o->which < 0 || (size_t)o->which >= (constant ? v->p->params.n : v->p->inputs.n))
			report_body_fault(v, b, "has an operand that is not declared");
		else if (o->role == IMAGE_OPERAND_OUTPUT && !v->p->inputs.at[o->which].hoisted)
			report_body_fault(v, b, "writes an input of the model");
	}
}

bool sub_verify(const struct sub_program *p, struct diags *diags)
{
	struct verifier v = {p, diags, true};
	for (uint32_t i = 1; i < p->values.n && v.ok; i++)
		check_value(&v, i);
	for (size_t b = 0; b < p->bodies.n && v.ok; b++)
		if (sub_is_recursive(&p->bodies.at[b]))
			check_masks(&v, b);
	for (size_t b = 0; b < p->bodies.n && v.ok; b++)
		check_traversal(&v, &p->bodies.at[b]);
	for (size_t b = 0; b < p->bodies.n && v.ok; b++)
		if (p->bodies.at[b].call)
			check_call(&v, &p->bodies.at[b]);
	return v.ok;
}
