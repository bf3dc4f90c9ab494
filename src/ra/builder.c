/* Calls to syntax.  A value of a body is a statement `%7 = ...` of that body, and used by that name, which no
 * text can spell; parameters, inputs and numbers are written where they are used.  A value that depends on
 * the child that a sum is at is no statement: it becomes part of every sum that needs it, as a text would
 * have it. Outputs share nothing but each other: each gets the statements that it needs. */
#include "ra/builder.h"
#include "ra/internal.h"

#include <math.h>

enum { SHOWN = 64, INDEX = (1 << RA_VALUE_BITS) - 1 };

/* The name of the child that a sum is at; the blank keeps it apart from the caller's names. */
#define EACH "each child"

struct value {
	uint32_t index;
	struct ra_expr *use;	      /* as it is written where it is used; its span is the value as text */
	struct ra_expr *definition;   /* what the name stands for; NULL = it is no statement */
	enum ra_word body;	      /* RA_WORD_NONE = can be used in any */
	bool infix;		      /* its text needs brackets in another */
	bool each;		      /* depends on the child that a sum is at */
	bool needed;		      /* by a sum, when it is of each child, or by an output */
	const struct ra_span *output; /* that it is the value of; NULL = none */
	const uint32_t *arg;	      /* indices of the values that the definition uses */
	size_t args;
	unsigned walk; /* the last one that came by */
};

/* A state that is given a value: its declaration may follow. */
struct assignment {
	size_t body, statement;
};

struct ra_builder {
	struct arena *arena;
	struct ra_report report;
	struct ra_syntax syntax;
	uint32_t tag;
	const char *file;
	int line, calls;
	enum ra_word body;
	VEC(struct value *) values; /* from index 1 */
	VEC(struct assignment) assignments;
	unsigned walks;
	size_t repeated; /* statements that stand in sums and outputs */
};

static const uint32_t none = 0;

/* --- places, texts and faults --- */

static struct diag_at here(const struct ra_builder *b)
{
	return (struct diag_at){.file = b->file, .line = b->line, .call = b->calls};
}

void ra_builder_at(struct ra_builder *b, const char *file, int line)
{
	if (file && (!b->file || strcmp(file, b->file) != 0))
		b->file = arena_string(b->arena, file);
	else if (!file)
		b->file = NULL;
	b->line = line > 0 ? line : 0;
}

void ra_builder_refuse(struct ra_builder *b, const char *function, const char *argument, const char *what)
{
	b->calls++;
	ra_report(&b->report, DIAG_BAD_ARGUMENT, here(b), "see espalier.h", "%s: '%s' %s", function, argument,
		  what);
}

/* A reader of a text that the caller passed, with all its places at this call. */
static struct ra_parser parser_of(struct ra_builder *b, const char *text)
{
	struct ra_parser p = {.arena = b->arena, .report = &b->report, .syntax = &b->syntax};
	struct diag_at *place = ARENA_NEW(b->arena, struct diag_at);
	size_t length = strlen(text);
	const char *copy = arena_text(b->arena, text, length);
	*place = here(b);
	place->source = copy;
	p.lexer = ra_lexer_of(NULL, copy, length);
	p.lexer.place = place;
	ra_advance(&p);
	return p;
}

static bool at_end(struct ra_parser *p)
{
	return ra_expect(p, RA_TOKEN_END, "the end");
}

static bool read_name(struct ra_builder *b, const char *text, const char *what, struct ra_span *name)
{
	struct ra_parser p = parser_of(b, text);
	return ra_expect_new_name(&p, what, name) && at_end(&p);
}

static bool read_shape(struct ra_builder *b, const char *text, ra_dim_texts *dims)
{
	struct ra_parser p = parser_of(b, text ? text : "");
	return ra_parse_dims(&p, RA_TOKEN_END, dims);
}

static bool read_dim(struct ra_builder *b, const char *text, struct ra_dim_text **dim)
{
	struct ra_parser p = parser_of(b, text);
	return (*dim = ra_parse_dim(&p)) && at_end(&p);
}

/* --- the text of a value, for messages --- */

static struct ra_span span_of(const struct ra_builder *b, const char *text)
{
	return (struct ra_span){text, strlen(text), here(b)};
}

/* Clipped, so that texts of texts stay short. */
static struct ra_span shown(const struct ra_builder *b, struct str *s)
{
	if (s->n > SHOWN) {
		s->n = SHOWN - 3;
		str_puts(s, "...");
	}
	return span_of(b, str_text(s));
}

static void show(struct str *s, const struct value *v, bool operand)
{
	struct ra_span text = v->use->span;
	bool brackets = operand && v->infix;
	str_printf(s, "%s%.*s%s", brackets ? "(" : "", (int)text.length, text.text, brackets ? ")" : "");
}

__attribute__((format(printf, 2, 3))) static struct ra_span show_text(struct ra_builder *b,
								      const char *format, ...)
{
	struct str s = str_in(b->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	return shown(b, &s);
}

static struct ra_expr *new_expr(struct ra_builder *b, enum ra_expr_kind kind, struct ra_span span)
{
	struct ra_expr *e = ARENA_NEW(b->arena, struct ra_expr);
	e->kind = kind;
	e->span = e->name = span;
	return e;
}

/* --- values --- */

static const char *body_text(enum ra_word body)
{
	return body == RA_WORD_LEAF    ? "leaf"
	       : body == RA_WORD_INNER ? "inner"
	       : body == RA_WORD_NODE  ? "node"
				       : "output";
}

static struct value *new_value(struct ra_builder *b, struct ra_expr *use)
{
	if (b->values.n > INDEX)
		return ra_report(&b->report, DIAG_MODEL_LARGE, here(b), "build fewer values",
				 "a builder has at most %d values", INDEX),
		       NULL;
	struct value *v = ARENA_NEW(b->arena, struct value);
	v->index = (uint32_t)b->values.n;
	v->use = use;
	vec_push(b->arena, &b->values, v);
	return v;
}

static uint32_t id_of(const struct ra_builder *b, const struct value *v)
{
	return v ? b->tag << RA_VALUE_BITS | v->index : none;
}

static void missing_value(struct ra_builder *b)
{
	if (!b->report.seen.n)
		ra_report(&b->report, DIAG_BAD_ARGUMENT, here(b), "pass what an earlier call returned",
			  "a value is wanted, and none was passed");
}

/* The value of an id that the caller has.  What comes of an earlier fault is not worth another. */
static struct value *find(struct ra_builder *b, uint32_t id)
{
	uint32_t index = id & INDEX;
	if (!id)
		return missing_value(b), NULL;
	if (id >> RA_VALUE_BITS != b->tag || !index || index >= b->values.n)
		return ra_report(&b->report, DIAG_BAD_ARGUMENT, here(b),
				 "pass what an earlier call with this builder returned",
				 "a value of another builder is passed"),
		       NULL;
	return b->values.at[index];
}

/* The same, for use in the body that the calls are for. */
static struct value *use(struct ra_builder *b, uint32_t id)
{
	struct value *v = find(b, id);
	if (!v || !v->body || v->body == b->body)
		return v;
	return ra_report(&b->report, DIAG_MODEL_PLACE, here(b),
			 "bodies share parameters, inputs and numbers, and see each other's states",
			 "'%s' is a value of '%s:', which '%s:' cannot use",
			 ra_excerpt(b->arena, v->use->span), body_text(v->body), body_text(b->body)),
	       NULL;
}

static bool has_body(struct ra_builder *b)
{
	return b->body || ra_report(&b->report, DIAG_MODEL_PLACE, here(b), "call esp_builder_body first",
				    "this stands in no body");
}

/* The value as it is written here: a fault of what a name means is one of its use. */
static struct ra_expr *written(struct ra_builder *b, const struct value *v)
{
	struct ra_expr *e = v->use;
	if (!v->definition) {
		e = arena_copy(b->arena, e, sizeof *e);
		e->span.at = e->name.at = here(b);
	}
	return e;
}

static struct ra_body *current_body(struct ra_builder *b)
{
	for (size_t i = 0; i < b->syntax.bodies.n; i++)
		if (b->syntax.bodies.at[i].word == b->body)
			return &b->syntax.bodies.at[i];
	return NULL;
}

static bool is_each_child(const struct ra_expr *e)
{
	return e->kind == RA_E_NAME && e->name.length > strlen(EACH) &&
	       memcmp(e->name.text, EACH, strlen(EACH)) == 0;
}

/* A value with a name of its own.  Of its arguments none may be NULL. */
static uint32_t add_value(struct ra_builder *b, struct ra_expr *definition, struct value *const *arg,
			  size_t n)
{
	struct ra_expr *name = new_expr(b, RA_E_NAME, definition->span);
	struct value *v = new_value(b, name);
	if (!v)
		return none;
	const char *text = ra_format(b->arena, "%c%u", RA_VALUE_LETTER, (unsigned)v->index);
	name->name = span_of(b, text);
	v->definition = definition;
	v->body = b->body;
	v->each = is_each_child(definition);
	uint32_t *index = ARENA_ARRAY(b->arena, uint32_t, n);
	for (size_t i = 0; i < n; i++) {
		index[i] = arg[i]->index;
		v->each |= arg[i]->each;
	}
	v->arg = index;
	v->args = n;
	struct ra_body *body = current_body(b);
	if (body && !v->each)
		vec_push(b->arena, &body->statements, (struct ra_binding){name->name, definition});
	return id_of(b, v);
}

/* A value that is written the same wherever it is used. */
static uint32_t add_plain(struct ra_builder *b, struct ra_expr *e)
{
	return id_of(b, new_value(b, e));
}

/* --- the model, its structure and declarations --- */

static bool read_heading(struct ra_builder *b, const char *name, const char *structure)
{
	struct ra_parser p = parser_of(b, structure);
	return read_name(b, name, "the name of the model", &b->syntax.model) && ra_parse_structure(&p) &&
	       at_end(&p);
}

struct ra_builder *ra_builder_new(struct arena *a, struct diags *diags, unsigned tag, const char *name,
				  const char *structure)
{
	struct ra_builder *b = ARENA_NEW(a, struct ra_builder);
	*b = (struct ra_builder){
	    .arena = a, .report = {.arena = a, .diags = diags}, .tag = tag, .syntax = {.built = true}};
	vec_push(a, &b->values, NULL);
	return read_heading(b, name, structure) ? b : NULL;
}

/* Names that could not be read are names that others may use. */
static bool declare(struct ra_builder *b, const char *name, const char *what, const char *shape,
		    struct ra_declaration *d)
{
	b->calls++;
	*d = (struct ra_declaration){0};
	if (read_name(b, name, what, &d->name) && read_shape(b, shape, &d->dims))
		return true;
	b->syntax.incomplete = true;
	return false;
}

static uint32_t declared(struct ra_builder *b, const struct ra_declaration *d)
{
	return add_plain(b, new_expr(b, RA_E_NAME, d->name));
}

uint32_t ra_builder_param(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	if (!declare(b, name, "the name of a parameter", shape, &d))
		return none;
	if (b->syntax.params.n == RA_PARAM_LIMIT)
		return ra_report(&b->report, DIAG_MODEL_LARGE, here(b), NULL,
				 "a model has at most %d parameters", RA_PARAM_LIMIT);
	vec_push(b->arena, &b->syntax.params, d);
	return declared(b, &d);
}

static uint32_t add_input(struct ra_builder *b, const char *name, const char *shape, bool token)
{
	struct ra_declaration d;
	if (!declare(b, name, "the name of an input", shape, &d))
		return none;
	d.token = token;
	vec_push(b->arena, &b->syntax.inputs, d);
	return declared(b, &d);
}

uint32_t ra_builder_input(struct ra_builder *b, const char *name, const char *shape)
{
	return add_input(b, name, shape, false);
}

uint32_t ra_builder_token(struct ra_builder *b, const char *name)
{
	return add_input(b, name, NULL, true);
}

void ra_builder_state(struct ra_builder *b, const char *name, const char *shape)
{
	struct ra_declaration d;
	if (declare(b, name, "the name of a state", shape, &d))
		vec_push(b->arena, &b->syntax.states, d);
}

void ra_builder_body(struct ra_builder *b, enum ra_builder_body body)
{
	static const enum ra_word words[] = {[RA_BODY_LEAF] = RA_WORD_LEAF,
					     [RA_BODY_INNER] = RA_WORD_INNER,
					     [RA_BODY_NODE] = RA_WORD_NODE,
					     [RA_BODY_OUTPUT] = RA_WORD_OUTPUT};
	b->calls++;
	b->body = words[body];
	if (b->body == RA_WORD_OUTPUT || current_body(b))
		return;
	struct ra_body new = {.header = span_of(b, body_text(b->body)), .word = b->body};
	vec_push(b->arena, &b->syntax.bodies, new);
}

/* --- numbers and calls --- */

/* A text has numbers without a sign, and the operator that gives them one. */
uint32_t ra_builder_number(struct ra_builder *b, double number)
{
	b->calls++;
	if (!isfinite((float)number))
		return ra_report(&b->report, DIAG_MODEL_NUMBER, here(b), "numbers are at most 3.4e38",
				 "%g cannot be a number of a model", number);
	struct str s = str_in(b->arena);
	ra_write_number(&s, fabs(number));
	struct ra_expr *e = new_expr(b, RA_E_NUMBER, shown(b, &s));
	e->number = fabs(number);
	if (signbit(number)) {
		struct ra_expr *negative = new_expr(b, RA_E_NEGATE, show_text(b, "-%s", str_text(&s)));
		negative->base = e;
		e = negative;
	}
	return add_plain(b, e);
}

static bool is_operator(const char *function)
{
	return *function && !function[1] && strchr("+-*/@", *function);
}

static struct ra_expr *operation(struct ra_builder *b, char op, struct value *const *arg, size_t n)
{
	struct str s = str_in(b->arena);
	for (size_t i = 0; i < n; i++) {
		if (i || n == 1)
			str_printf(&s, i ? " %c " : "%c", op);
		show(&s, arg[i], true);
	}
	struct ra_expr *e = new_expr(b, n == 1 ? RA_E_NEGATE : RA_E_CHAIN, shown(b, &s));
	if (n == 1)
		return e->base = written(b, arg[0]), e;
	vec_push(b->arena, &e->chain.operand, written(b, arg[0]));
	vec_push(b->arena, &e->chain.operand, written(b, arg[1]));
	vec_push(b->arena, &e->chain.op, op);
	return e;
}

static struct ra_expr *function_call(struct ra_builder *b, struct ra_span name, struct value *const *arg,
				     size_t n)
{
	struct str s = str_in(b->arena);
	str_printf(&s, "%.*s(", (int)name.length, name.text);
	for (size_t i = 0; i < n && s.n < SHOWN; i++) {
		str_puts(&s, i ? ", " : "");
		show(&s, arg[i], false);
	}
	str_puts(&s, ")");
	struct ra_expr *e = new_expr(b, RA_E_CALL, shown(b, &s));
	e->name = name;
	for (size_t i = 0; i < n; i++)
		vec_push(b->arena, &e->args, written(b, arg[i]));
	return e;
}

/* The values of all arguments, or NULL after a fault of one. */
static struct value **use_all(struct ra_builder *b, const uint32_t *id, size_t n)
{
	struct value **arg = ARENA_ARRAY(b->arena, struct value *, n + 1);
	bool good = true;
	for (size_t i = 0; i < n; i++)
		good &= (arg[i] = use(b, id[i])) != NULL;
	return good ? arg : NULL;
}

static uint32_t call_operator(struct ra_builder *b, char op, struct value *const *arg, size_t n)
{
	if (n != 2 && !(n == 1 && op == '-'))
		return ra_report(&b->report, DIAG_MODEL_ARGUMENTS, here(b), NULL, "'%c' takes %s, not %zu",
				 op, op == '-' ? "1 or 2 arguments" : "2 arguments", n);
	uint32_t id = add_value(b, operation(b, op, arg, n), arg, n);
	if (id)
		b->values.at[id & INDEX]->infix = true;
	return id;
}

uint32_t ra_builder_call(struct ra_builder *b, const char *function, const uint32_t *arguments, size_t n)
{
	struct ra_span name;
	struct value **arg;
	b->calls++;
	if (!has_body(b) || !(arg = use_all(b, arguments, n)))
		return none;
	if (is_operator(function))
		return call_operator(b, *function, arg, n);
	if (!read_name(b, function, "the name of a function, or an operator", &name))
		return none;
	if (ra_span_is(name, "zeros") || ra_span_is(name, "dimension"))
		return ra_report(&b->report, DIAG_MODEL_FUNCTION, here(b),
				 ra_format(b->arena, "call esp_builder_%s", function),
				 "'%s' takes dimensions, no values", function);
	return add_value(b, function_call(b, name, arg, n), arg, n);
}

uint32_t ra_builder_lookup(struct ra_builder *b, uint32_t param, uint32_t token)
{
	b->calls++;
	struct value **arg = has_body(b) ? use_all(b, (uint32_t[]){param, token}, 2) : NULL;
	if (!arg)
		return none;
	if (arg[1]->body || arg[1]->use->kind != RA_E_NAME)
		return ra_report(&b->report, DIAG_MODEL_LOOKUP, here(b), "declare it with esp_builder_token",
				 "'%s' is not an input that is a token",
				 ra_excerpt(b->arena, arg[1]->use->span));
	struct str s = str_in(b->arena);
	show(&s, arg[0], true);
	str_puts(&s, "[");
	show(&s, arg[1], false);
	str_puts(&s, "]");
	struct ra_expr *e = new_expr(b, RA_E_LOOKUP, shown(b, &s));
	e->base = written(b, arg[0]);
	e->name = arg[1]->use->name;
	e->name.at = here(b);
	return add_value(b, e, arg, 2);
}

uint32_t ra_builder_slice(struct ra_builder *b, uint32_t x, const char *begin, const char *end)
{
	b->calls++;
	struct value *base = has_body(b) ? use(b, x) : NULL;
	if (!base)
		return none;
	struct str s = str_in(b->arena);
	show(&s, base, true);
	str_printf(&s, "[%s:%s]", begin ? begin : "", end ? end : "");
	struct ra_expr *e = new_expr(b, RA_E_SLICE, shown(b, &s));
	e->base = written(b, base);
	if ((begin && !read_dim(b, begin, &e->begin)) || (end && !read_dim(b, end, &e->end)))
		return none;
	return add_value(b, e, &base, 1);
}

uint32_t ra_builder_zeros(struct ra_builder *b, const char *shape)
{
	b->calls++;
	struct ra_expr *e = new_expr(b, RA_E_ZEROS, show_text(b, "zeros(%s)", shape ? shape : ""));
	return has_body(b) && read_shape(b, shape, &e->dims) ? add_value(b, e, NULL, 0) : none;
}

uint32_t ra_builder_dimension(struct ra_builder *b, const char *dimension)
{
	struct ra_dim_text *dim;
	b->calls++;
	struct ra_expr *e = new_expr(b, RA_E_DIMENSION, show_text(b, "dimension(%s)", dimension));
	if (!has_body(b) || !read_dim(b, dimension, &dim))
		return none;
	vec_push(b->arena, &e->dims, dim);
	return add_value(b, e, NULL, 0);
}

/* --- states, outputs and children --- */

uint32_t ra_builder_get(struct ra_builder *b, const char *text)
{
	struct ra_span name;
	b->calls++;
	if (!has_body(b) || !read_name(b, text, "the name of a state or an output", &name))
		return none;
	return add_value(b, new_expr(b, RA_E_NAME, name), NULL, 0);
}

uint32_t ra_builder_child(struct ra_builder *b, int slot, const char *text)
{
	struct ra_span state;
	b->calls++;
	if (!has_body(b) || !read_name(b, text, "the name of a state", &state))
		return none;
	struct ra_expr *e;
	if (slot == RA_EACH_CHILD) {
		e = new_expr(b, RA_E_NAME, show_text(b, EACH ".%s", text));
		e->name = span_of(b, ra_format(b->arena, EACH ".%s", text));
	} else {
		e = new_expr(b, RA_E_SLOT, show_text(b, "children[%d].%s", slot, text));
		e->name = state;
		e->slot = slot;
	}
	return add_value(b, e, NULL, 0);
}

/* --- cones: a value as one expression that holds the statements that it needs --- */

struct cone_step {
	struct value *value;
	size_t next; /* argument to be visited */
};

/* Those of each child, for a sum; or those of the outputs' body, for an output. */
struct cone {
	bool each;
	unsigned walk;
	struct ra_expr *let;
	VEC(struct cone_step) stack;
};

static struct cone cone_of(struct ra_builder *b, bool each)
{
	return (struct cone){each, ++b->walks, new_expr(b, RA_E_LET, span_of(b, "")), {0}};
}

/* An output that is declared already stands for its value, and for all below. */
static void enter(struct ra_builder *b, struct cone *c, struct value *v)
{
	bool inside = c->each ? v->each : v->body == RA_WORD_OUTPUT && !v->each;
	if (!inside || v->walk == c->walk)
		return;
	v->walk = c->walk;
	v->needed = true;
	vec_push(b->arena, &c->stack, (struct cone_step){v, v->output ? v->args : 0});
}

static void leave(struct ra_builder *b, struct cone *c, const struct value *v)
{
	struct ra_expr *definition = v->output ? new_expr(b, RA_E_NAME, *v->output) : v->definition;
	struct ra_binding statement = {v->use->name, definition};
	vec_push(b->arena, &c->let->bindings, statement);
	c->stack.n--;
	b->repeated++;
}

/* Adds what a value needs, arguments first.  False when sums and outputs have too much in common. */
static bool visit(struct ra_builder *b, struct cone *c, struct value *root)
{
	enter(b, c, root);
	while (c->stack.n && b->repeated <= RA_STEP_LIMIT) {
		struct cone_step *top = &c->stack.at[c->stack.n - 1];
		if (top->next == top->value->args)
			leave(b, c, top->value);
		else
			enter(b, c, b->values.at[top->value->arg[top->next++]]);
	}
	c->let->base = written(b, root);
	c->let->span = root->use->span;
	return !c->stack.n || ra_report(&b->report, DIAG_MODEL_LARGE, here(b),
					"what many sums or outputs need is better kept in a state",
					"the sums over children and the outputs are too large together");
}

static struct ra_expr *cone_expr(const struct cone *c)
{
	return c->let->bindings.n ? c->let : c->let->base;
}

static struct ra_expr *sum_of(struct ra_builder *b, const struct cone *c, bool maximum)
{
	struct str s = str_in(b->arena);
	struct ra_span of_each = c->let->span;
	str_printf(&s, "%s(%.*s for each child)", maximum ? "max" : "sum", (int)of_each.length, of_each.text);
	struct ra_expr *e = new_expr(b, RA_E_EACH, shown(b, &s));
	e->name = span_of(b, EACH);
	e->base = cone_expr(c);
	e->maximum = maximum;
	return e;
}

uint32_t ra_builder_children(struct ra_builder *b, const char *function, uint32_t of_each)
{
	b->calls++;
	bool maximum = strcmp(function, "max") == 0;
	if (!has_body(b))
		return none;
	if (!maximum && strcmp(function, "sum") != 0)
		return ra_report(&b->report, DIAG_MODEL_SYNTAX, here(b),
				 "the children's values are combined by sum or max",
				 "'%s' does not range over children",
				 ra_excerpt(b->arena, span_of(b, function)));
	struct value *v = use(b, of_each);
	struct cone c = cone_of(b, true);
	return v && visit(b, &c, v) ? add_value(b, sum_of(b, &c, maximum), NULL, 0) : none;
}

/* --- states and outputs --- */

static bool check_for_all(struct ra_builder *b, struct value *v)
{
	v->needed = true;
	return !v->each ||
	       ra_report(&b->report, DIAG_MODEL_PLACE, here(b), "sum it up with esp_builder_children",
			 "'%s' differs from child to child", ra_excerpt(b->arena, v->use->span));
}

void ra_builder_assign(struct ra_builder *b, const char *state, uint32_t id)
{
	struct ra_binding s = {0};
	b->calls++;
	struct ra_body *body = current_body(b);
	if (!has_body(b))
		return;
	if (!body) {
		ra_report(&b->report, DIAG_MODEL_PLACE, here(b),
			  "bodies of leaves and of inner nodes assign states",
			  "'%s' is assigned where outputs are computed",
			  ra_excerpt(b->arena, span_of(b, state)));
		return;
	}
	if (!read_name(b, state, "the name of a state", &s.name)) {
		b->syntax.incomplete = true;
		return;
	}
	struct value *v = use(b, id);
	if (v && check_for_all(b, v)) {
		s.value = arena_copy(b->arena, v->use, sizeof *v->use);
		s.value->span.at = here(b);
	}
	struct assignment a = {(size_t)(body - b->syntax.bodies.at), body->statements.n};
	vec_push(b->arena, &b->assignments, a);
	vec_push(b->arena, &body->statements, s);
}

/* A label is a string of a text. */
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

/* The value in the outputs' body, whichever body the calls are for. */
static struct value *use_in_output(struct ra_builder *b, uint32_t id)
{
	struct value *v = find(b, id);
	if (!v || !v->body || v->body == RA_WORD_OUTPUT)
		return v && check_for_all(b, v) ? v : NULL;
	return ra_report(&b->report, DIAG_MODEL_PLACE, here(b),
			 "make a state of it, and get that below ESP_BODY_OUTPUT",
			 "'%s' is a value of '%s:', which outputs cannot use",
			 ra_excerpt(b->arena, v->use->span), body_text(v->body)),
	       NULL;
}

void ra_builder_output(struct ra_builder *b, const char *name, uint32_t id, enum ra_place place,
		       const char *const *label, size_t labels)
{
	b->calls++;
	struct ra_output_text o = {.at_root = place == RA_AT_ROOT, .labels_at = here(b)};
	if (!read_name(b, name, "the name of an output", &o.name)) {
		b->syntax.incomplete = true;
		return;
	}
	for (size_t i = 0; i < labels; i++)
		if (!read_label(b, label[i], &o)) {
			o.labels.n = 0;
			break;
		}
	struct value *v = use_in_output(b, id);
	struct cone c = cone_of(b, false);
	if (v && visit(b, &c, v)) {
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

static void unknown_state(struct ra_builder *b, struct ra_span name)
{
	struct ra_nearest near = ra_nearest_to(name.text, name.length);
	for (size_t i = 0; i < b->syntax.states.n; i++)
		ra_consider(&near, b->syntax.states.at[i].name.text, b->syntax.states.at[i].name.length);
	ra_report(&b->report, DIAG_MODEL_UNKNOWN, name.at,
		  ra_did_you_mean(b->arena, &near, "declare it with esp_builder_state"),
		  "no state is named '%s'", ra_excerpt(b->arena, name));
}

/* In a text an assignment to no state makes a local name. */
static void check_assignments(struct ra_builder *b)
{
	struct map states = map_in(b->arena);
	for (size_t i = 0; i < b->syntax.states.n; i++)
		map_add(&states, b->syntax.states.at[i].name.text, b->syntax.states.at[i].name.length, 0);
	for (size_t i = 0; i < b->assignments.n; i++) {
		struct assignment a = b->assignments.at[i];
		struct ra_binding *s = &b->syntax.bodies.at[a.body].statements.at[a.statement];
		if (is_state(&states, s->name))
			continue;
		if (b->report.seen.n < RA_REPORT_LIMIT)
			unknown_state(b, s->name);
		s->name = span_of(b, ra_format(b->arena, "%c=%zu", RA_VALUE_LETTER, i));
	}
}

/* Adds all values of the body that nothing needs.  False when there are none. */
static bool gather_unused(struct ra_builder *b, struct cone *c, enum ra_word body)
{
	bool found = false;
	for (size_t i = 1; i < b->values.n; i++) {
		struct value *v = b->values.at[i];
		if (v->body == body && v->each == c->each && !v->needed)
			found |= visit(b, c, v);
	}
	return found;
}

/* Values that nothing needs have faults, too.  Those of each child are looked at in a sum. */
static void keep_unused(struct ra_builder *b)
{
	static const enum ra_word words[] = {RA_WORD_LEAF, RA_WORD_INNER, RA_WORD_NODE, RA_WORD_OUTPUT};
	for (int i = 0; i < 4; i++) {
		struct cone c = cone_of(b, true);
		b->body = words[i];
		if (!gather_unused(b, &c, words[i]))
			continue;
		struct ra_expr *sum = sum_of(b, &c, false);
		sum->span.at = c.let->span.at;
		add_value(b, sum, NULL, 0);
	}
	struct cone c = cone_of(b, false);
	if (gather_unused(b, &c, RA_WORD_OUTPUT))
		b->syntax.unused = cone_expr(&c);
}

struct ra_model *ra_builder_finish(struct ra_builder *b)
{
	struct ra_model *model = ARENA_NEW(b->arena, struct ra_model);
	b->calls++;
	if (!b->syntax.incomplete)
		check_assignments(b);
	keep_unused(b);
	ra_parse_prelude(b->arena, &b->report, &b->syntax);
	return ra_make_graph(b->arena, &b->report, &b->syntax, model);
}
