/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums over children, states and outputs, which need more than one value; and the end of a builder. */
#include "ra/values.h"

static const uint32_t none = 0;

/* --- cones: a value as one expression that holds the statements that it needs --- */

struct cone_step {
	struct ra_value *value;
	size_t next; /* argument to be visited */
};

/* The values that a sum needs of each child, or that an output needs of the outputs' body. */
struct cone {
	enum ra_each each;
	unsigned walk;
	struct ra_expr *let;
	VEC(struct cone_step) stack;
	VEC(struct ra_value *) outside; /* values that a sum needs and that are the same for all children */
};

static struct cone cone_of(struct ra_builder *b, enum ra_each each)
{
	return (struct cone){each, ++b->walks, ra_new_expr(b, RA_E_LET, ra_here_span(b, "")), {0}, {0}};
}

/* Puts a value of the cone on the stack, once; notes a value outside of it.  An output that is declared
 * already replaces its value and all below. */
static void enter_value(struct ra_builder *b, struct cone *c, struct ra_value *v)
{
	bool inside = c->each ? v->each == c->each : v->body == RA_WORD_OUTPUT && !v->each;
	if (v->walk == c->walk)
		return;
	v->walk = c->walk;
	if (!inside && c->each && !v->each && v->definition)
		vec_push(b->arena, &c->outside, v);
	if (!inside || !v->definition)
		return;
	v->needed = true;
	vec_push(b->arena, &c->stack, (struct cone_step){v, v->output ? v->args : 0});
}

static void leave_value(struct ra_builder *b, struct cone *c, const struct ra_value *v)
{
	struct ra_expr *definition = v->output ? ra_new_expr(b, RA_E_NAME, *v->output) : v->definition;
	struct ra_binding statement = {v->use->name, definition};
	vec_push(b->arena, &c->let->bindings, statement);
	c->stack.n--;
	b->repeated++;
}

/* Adds the values that a value needs, arguments first.  False when the sums and outputs are too large
 * together. */
static bool add_needed(struct ra_builder *b, struct cone *c, struct ra_value *root)
{
	enter_value(b, c, root);
	while (c->stack.n && b->repeated <= RA_STEP_LIMIT) {
		struct cone_step *top = &c->stack.at[c->stack.n - 1];
		if (top->next == top->value->args)
			leave_value(b, c, top->value);
		else
			enter_value(b, c, b->values.at[top->value->arg[top->next++]]);
	}
	c->let->base = ra_written_value(b, root);
	c->let->span = root->use->span;
	return !c->stack.n || ra_report(&b->report, DIAG_MODEL_LARGE, ra_here(b),
					"what many sums or outputs need is better kept in a state",
					"the sums over children and the outputs are too large together");
}

static struct ra_expr *cone_expr(const struct cone *c)
{
	return c->let->bindings.n ? c->let : c->let->base;
}

static struct ra_expr *sum_of(struct ra_builder *b, const struct cone *c, bool maximum, bool parents)
{
	struct str s = str_in(b->arena);
	struct ra_span of_each = c->let->span;
	const char *name = c->each == RA_OF_MEMBER ? RA_MEMBER_NAME : RA_EACH_NAME;
	str_printf(&s, "%s(%.*s for %s)", maximum ? "max" : "sum", (int)of_each.length, of_each.text,
		   parents ? "each parent" : name);
	struct ra_expr *e = ra_new_expr(b, RA_E_EACH, ra_clipped_span(b, &s));
	e->name = ra_here_span(b, name);
	e->base = cone_expr(c);
	e->each.maximum = maximum;
	e->each.parents = parents;
	e->each.members = c->each == RA_OF_MEMBER;
	return e;
}

static uint32_t sum_up(struct ra_builder *b, const char *function, uint32_t of_each, enum ra_each each, bool parents)
{
	b->calls++;
	bool maximum = strcmp(function, "max") == 0;
	if (!ra_has_body(b))
		return none;
	if (!maximum && strcmp(function, "sum") != 0)
		return ra_report(&b->report, DIAG_MODEL_SYNTAX, ra_here(b),
				 parents ? "the parents' values are combined by sum or max"
					 : "the children's values are combined by sum or max",
				 "'%s' does not range over %s", ra_excerpt(b->arena, ra_here_span(b, function)),
				 parents ? "parents" : "children");
	struct ra_value *v = ra_use_value(b, of_each);
	struct cone c = cone_of(b, each);
	return v && add_needed(b, &c, v)
		   ? ra_add_value(b, sum_of(b, &c, maximum, parents), c.outside.at, c.outside.n)
		   : none;
}

uint32_t ra_builder_children(struct ra_builder *b, const char *function, uint32_t of_each)
{
	return sum_up(b, function, of_each, RA_OF_CHILD, false);
}

uint32_t ra_builder_parents(struct ra_builder *b, const char *function, uint32_t of_each)
{
	return sum_up(b, function, of_each, RA_OF_CHILD, true);
}

uint32_t ra_builder_members(struct ra_builder *b, const char *function, uint32_t of_each)
{
	return sum_up(b, function, of_each, RA_OF_MEMBER, false);
}

/* --- states and outputs --- */

static bool check_for_all(struct ra_builder *b, struct ra_value *v)
{
	v->needed = true;
	return !v->each ||
	       ra_report(&b->report, DIAG_MODEL_PLACE, ra_here(b), v->each == RA_OF_MEMBER ? "sum it up with esp_builder_members"
						 : "sum it up with esp_builder_children",
			 v->each == RA_OF_MEMBER ? "'%s' differs from node to node" : "'%s' differs from child to child", ra_excerpt(b->arena, v->use->span));
}

void ra_builder_assign(struct ra_builder *b, const char *state, uint32_t id)
{
	struct ra_binding s = {0};
	b->calls++;
	struct ra_body *body = ra_current_body(b);
	if (!ra_has_body(b))
		return;
	if (!body) {
		ra_report(&b->report, DIAG_MODEL_PLACE, ra_here(b),
			  "bodies of leaves and of inner nodes assign states",
			  "'%s' is assigned where outputs are computed",
			  ra_excerpt(b->arena, ra_here_span(b, state)));
		return;
	}
	if (!ra_arg_name(b, state, "the name of a state", &s.name)) {
		b->syntax.incomplete = true;
		return;
	}
	struct ra_value *v = ra_use_value(b, id);
	if (v && check_for_all(b, v)) {
		s.value = arena_copy(b->arena, v->use, sizeof *v->use);
		s.value->span.at = ra_here(b);
	}
	struct ra_assignment a = {(size_t)(body - b->syntax.bodies.at), body->statements.n};
	vec_push(b->arena, &b->assignments, a);
	vec_push(b->arena, &body->statements, s);
}

/* Checks a label as the lexer does a string of a text. */
static bool read_label(struct ra_builder *b, const char *label, struct ra_output_text *o)
{
	const char *p = label ? label : "\n";
	while ((unsigned char)*p >= ' ' && *p != 127)
		p++;
	if (*p)
		return ra_report(
		    &b->report, DIAG_MODEL_STRING, o->labels_at, "labels are one line of text each",
		    label ? "a label of '%s' holds a control character" : "a label of '%s' is NULL",
		    ra_excerpt(b->arena, o->name));
	vec_push(b->arena, &o->labels, arena_string(b->arena, label));
	return true;
}

/* Finds a value of the outputs' body, whichever body the calls are for. */
static struct ra_value *use_in_output(struct ra_builder *b, uint32_t id)
{
	struct ra_value *v = ra_find_value(b, id);
	if (!v || !v->body || v->body == RA_WORD_OUTPUT || ra_is_shared(b, v))
		return v && check_for_all(b, v) ? v : NULL;
	return ra_report(&b->report, DIAG_MODEL_PLACE, ra_here(b),
			 "make a state of it, and get that below ESP_BODY_OUTPUT",
			 "'%s' is a value of '%s:', which outputs cannot use",
			 ra_excerpt(b->arena, v->use->span), ra_body_text(b, v->body)),
	       NULL;
}

void ra_builder_output(struct ra_builder *b, const char *name, uint32_t id, enum ra_place place,
		       const char *const *label, size_t labels)
{
	b->calls++;
	struct ra_output_text o = {.at_root = place == RA_AT_ROOT, .labels_at = ra_here(b)};
	if (!ra_arg_name(b, name, "the name of an output", &o.name)) {
		b->syntax.incomplete = true;
		return;
	}
	for (size_t i = 0; i < labels; i++)
		if (!read_label(b, label[i], &o)) {
			o.labels.n = 0;
			break;
		}
	struct ra_value *v = use_in_output(b, id);
	struct cone c = cone_of(b, RA_OF_NONE);
	if (v && add_needed(b, &c, v)) {
		o.value = cone_expr(&c);
		if (v->body && !v->output)
			v->output = arena_copy(b->arena, &o.name, sizeof o.name);
	}
	vec_push(b->arena, &b->syntax.outputs, o);
}

/* --- the end --- */

static bool is_state(const struct map *states, struct ra_span name)
{
	return map_get(states, name.text, name.length) >= 0;
}

static void refuse_state(struct ra_builder *b, struct ra_span name)
{
	if (!ra_is_news(&b->report, DIAG_MODEL_UNKNOWN, name.at))
		return;
	struct ra_nearest near = ra_nearest_to(name.text, name.length);
	for (size_t i = 0; i < b->syntax.states.n; i++)
		ra_consider_name(&near, b->syntax.states.at[i].name.text, b->syntax.states.at[i].name.length);
	ra_report(&b->report, DIAG_MODEL_UNKNOWN, name.at,
		  ra_did_you_mean(b->arena, &near, "declare it with esp_builder_state"),
		  "no state is named '%s'", ra_excerpt(b->arena, name));
}

/* Reports assignments to names that are no states, which in a text would make locals. */
static void check_assignments(struct ra_builder *b)
{
	struct map states = map_in(b->arena);
	for (size_t i = 0; i < b->syntax.states.n; i++)
		map_add(&states, b->syntax.states.at[i].name.text, b->syntax.states.at[i].name.length, 0);
	for (size_t i = 0; i < b->assignments.n; i++) {
		struct ra_assignment a = b->assignments.at[i];
		struct ra_binding *s = &b->syntax.bodies.at[a.body].statements.at[a.statement];
		if (is_state(&states, s->name))
			continue;
		if (b->report.seen.n < RA_REPORT_LIMIT)
			refuse_state(b, s->name);
		s->name = ra_here_span(b, str_format(b->arena, "%c=%zu", RA_VALUE_LETTER, i));
	}
}

/* Adds all values of the body at hand that nothing needs.  False when there are none. */
static bool gather_unused(struct ra_builder *b, struct cone *c, int traversal)
{
	bool found = false;
	for (size_t i = 1; i < b->values.n; i++) {
		struct ra_value *v = b->values.at[i];
		if (v->body == b->body && v->traversal == traversal && v->each == c->each && !v->needed)
			found |= add_needed(b, c, v);
	}
	return found;
}

/* Unused values of each child, or node, are checked in a sum that is added to the body. */
static void keep_unused_each(struct ra_builder *b, enum ra_word word, int traversal, enum ra_each each)
{
	struct cone c = cone_of(b, each);
	b->body = word;
	if (!gather_unused(b, &c, traversal))
		return;
	bool down = traversal && b->syntax.traversals.at[traversal - 1].down;
	struct ra_expr *sum = sum_of(b, &c, false, down && each == RA_OF_CHILD);
	sum->span.at = c.let->span.at;
	ra_add_value(b, sum, c.outside.at, c.outside.n);
}

static void keep_unused_in(struct ra_builder *b, enum ra_word word, int traversal)
{
	keep_unused_each(b, word, traversal, RA_OF_CHILD);
	keep_unused_each(b, word, traversal, RA_OF_MEMBER);
}

/* Keeps values that nothing needs, so that their faults are reported, too. */
static void keep_unused(struct ra_builder *b)
{
	static const enum ra_word words[] = {RA_WORD_LEAF, RA_WORD_INNER, RA_WORD_NODE, RA_WORD_ROOT, RA_WORD_BELOW};
	int n = (int)b->syntax.traversals.n;
	for (b->syntax.traversals.n = 0; (int)b->syntax.traversals.n <= n; b->syntax.traversals.n++)
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			keep_unused_in(b, words[i], (int)b->syntax.traversals.n);
	b->syntax.traversals.n = n;
	keep_unused_in(b, RA_WORD_OUTPUT, 0);
	struct cone c = cone_of(b, RA_OF_NONE);
	if (gather_unused(b, &c, 0))
		b->syntax.unused = cone_expr(&c);
}

struct ra_model *ra_builder_finish(struct ra_builder *b)
{
	struct ra_model *model = ARENA_NEW(b->arena, struct ra_model);
	b->calls++;
	if (!b->syntax.incomplete)
		check_assignments(b);
	keep_unused(b);
	return ra_make_graph(b->arena, &b->report, &b->syntax, model);
}
