/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the text that print.c writes.  The text is untrusted: what is accepted here is well typed, but only
 * the verifier says whether it means anything.  The first fault ends the parse. */
#include "ilir/lex.h"
#include "ilir/text.h"

#include "base/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { MOST_NESTING = 256 };
static const int64_t largest = (int64_t)1 << 48; /* of constants: sums and products of some cannot overflow */

struct parser {
	struct lexer *l;
	struct ilir_module *m;
	struct map names; /* of variables and buffers: 2 * id, + 1 for buffers */
	struct map dims;
	int depth;
};

static void enter(struct parser *p)
{
	if (++p->depth > MOST_NESTING)
		lex_fail(p->l, "name a part of the expression with let", "nested more than %d deep",
			 MOST_NESTING);
}

static void leave(struct parser *p)
{
	p->depth--;
}

/* --- numbers --- */

static int64_t in_range(struct parser *p, int64_t value, int64_t low, int64_t high)
{
	if (value < low || value > high)
		lex_fail(p->l, NULL, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value, low, high);
	return value;
}

static int64_t integer(struct parser *p, int64_t low, int64_t high)
{
	char text[LEX_LONGEST_NUMBER], *end;
	bool negative = lex_accept(p->l, "-");
	lex_number(p->l, text);
	int64_t value = strtoll(text, &end, 10);
	if (*end)
		lex_expected(p->l, "an integer");
	in_range(p, value, 0, largest); /* strtoll saturates */
	value = in_range(p, negative ? -value : value, low, high);
	lex_next(p->l);
	return value;
}

/* An i64: all of them, unlike other integers. */
static int64_t long_integer(struct parser *p, const char *text, bool negative)
{
	errno = 0;
	uint64_t magnitude = strtoull(text, NULL, 10);
	if (errno || magnitude > (uint64_t)INT64_MAX + negative)
		lex_fail(p->l, NULL, "%s%s is no integer of 64 bits", negative ? "-" : "", text);
	return (int64_t)(negative ? 0 - magnitude : magnitude);
}

static ilir_expr number(struct parser *p, bool negative)
{
	char text[LEX_LONGEST_NUMBER];
	lex_number(p->l, text);
	size_t last = strlen(text) - 1;
	bool is_float = strpbrk(text, ".e");
	int64_t value = is_float ? 0 : strtoll(text, NULL, 10);
	ilir_expr e;
	if (is_float && (text[last] == 'i' || text[last] == 'l'))
		lex_expected(p->l, "a float or an integer");
	if (is_float)
		e = ilir_float(p->m, negative ? -str_read_float(text) : str_read_float(text));
	else if (text[last] == 'i')
		e = ilir_i32(p->m, in_range(p, negative ? -value : value, INT32_MIN, INT32_MAX));
	else if (text[last] == 'l')
		e = ilir_i64(p->m, long_integer(p, text, negative));
	else
		e = ilir_index(p->m, in_range(p, negative ? -value : value, -largest, largest));
	lex_next(p->l);
	return e;
}

static ilir_expr nan_constant(struct parser *p, bool negative)
{
	uint32_t bits = lex_nan(p->l) | 0x7f800000 | (uint32_t)negative << 31;
	float f;
	memcpy(&f, &bits, sizeof f);
	lex_next(p->l);
	return ilir_float(p->m, f);
}

/* --- expressions --- */

static ilir_expr expr(struct parser *p);

/* Refuses operands that the constructors would type as nothing. */
static void check(struct parser *p, const struct ilir_node *n, const ilir_expr *args)
{
	const char *problem;
	if (!ilir_infer_type(p->m, n, args, &problem).lanes)
		lex_fail(p->l, NULL, "%s: %s", n->op == ILIR_LOAD ? "load" : ilir_op_spelling(n->op),
			 problem);
}

static int list(struct parser *p, ilir_expr *at, int most, const char *end)
{
	int n = 0;
	if (lex_accept(p->l, end))
		return 0;
	do {
		if (n == most)
			lex_fail(p->l, NULL, "more than %d in a list", most);
		at[n++] = expr(p);
	} while (lex_accept(p->l, ","));
	lex_expect(p->l, end);
	return n;
}

static ilir_expr spread_call(struct parser *p, enum ilir_op op)
{
	int lanes = integer(p, 2, ILIR_MAX_LANES);
	lex_expect(p->l, ",");
	ilir_expr e = expr(p);
	struct ilir_type t = ilir_type_of(p->m, e);
	if (t.lanes != 1 || (op == ILIR_RAMP && t.dtype != ILIR_INDEX))
		lex_fail(p->l, NULL, "%s wants a scalar%s", ilir_op_spelling(op),
			 op == ILIR_RAMP ? " index" : "");
	lex_expect(p->l, ")");
	return ilir_spread(p->m, op, e, lanes);
}

static ilir_expr call(struct parser *p, enum ilir_op op)
{
	ilir_expr a[3];
	lex_next(p->l);
	lex_expect(p->l, "(");
	if (op == ILIR_BROADCAST || op == ILIR_RAMP)
		return spread_call(p, op);
	int n = list(p, a, 3, ")"), arity = ilir_op_arity(op);
	if (n != arity)
		lex_fail(p->l, NULL, "%s takes %d operands, not %d", ilir_op_spelling(op), arity, n);
	check(p, &(struct ilir_node){.op = op, .args = n}, a);
	return n == 1	? ilir_unary(p->m, op, a[0])
	       : n == 2 ? ilir_binary(p->m, op, a[0], a[1])
			: ilir_ternary(p->m, op, a[0], a[1], a[2]);
}

/* What a name stands for: 2 * id, + 1 for a buffer. */
static int known_name(struct parser *p)
{
	int id = map_get(&p->names, p->l->token.text, p->l->token.length);
	if (id < 0)
		lex_fail(
		    p->l,
		    "variables come from for and let, buffers from buffer and alloc, before they are used",
		    "'%.*s' is not defined", (int)p->l->token.length, p->l->token.text);
	lex_next(p->l);
	return id;
}

static ilir_expr reference(struct parser *p)
{
	int id = known_name(p);
	if (id % 2 == 0)
		return ilir_var_ref(p->m, (ilir_var){id / 2});
	ilir_expr index[ILIR_MAX_RANK];
	ilir_buffer b = {id / 2};
	lex_expect(p->l, "[");
	int n = list(p, index, ILIR_MAX_RANK, "]");
	check(p, &(struct ilir_node){.op = ILIR_LOAD, .args = n, .buffer = b}, index);
	return ilir_load(p->m, b, index, n);
}

static ilir_expr word(struct parser *p)
{
	for (int i = 0; i < IMAGE_SIZES; i++)
		if (lex_accept(p->l, ilir_size_word[i]))
			return ilir_size(p->m, i);
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_op_arity(i) > 0 && !ilir_is_infix(i) && lex_is_next(p->l, ilir_op_spelling(i)))
			return call(p, i);
	if (!lex_at_name(p->l))
		lex_expected(p->l, "an expression");
	return reference(p);
}

static ilir_expr operand(struct parser *p)
{
	bool negative = lex_accept(p->l, "-");
	if (p->l->token.kind == NUMBER)
		return number(p, negative);
	if (lex_is_next(p->l, "nan"))
		return nan_constant(p, negative);
	if (lex_accept(p->l, "inf"))
		return ilir_float(p->m, negative ? -__builtin_inff() : __builtin_inff());
	if (negative)
		lex_expected(p->l, "a number");
	for (int truth = 0; truth < 2; truth++)
		if (lex_accept(p->l, ilir_truth_word[truth]))
			return ilir_bool(p->m, truth);
	if (lex_accept(p->l, "?"))
		return ilir_inferred(p->m);
	if (!lex_accept(p->l, "("))
		return word(p);
	ilir_expr e = expr(p);
	lex_expect(p->l, ")");
	return e;
}

static ilir_expr expr(struct parser *p)
{
	enter(p);
	ilir_expr a[2] = {operand(p)};
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_is_infix(i) && lex_accept(p->l, ilir_op_spelling(i))) {
			a[1] = operand(p);
			check(p, &(struct ilir_node){.op = i, .args = 2}, a);
			a[0] = ilir_binary(p->m, i, a[0], a[1]);
			break;
		}
	leave(p);
	return a[0];
}

/* --- buffers --- */

/* `from`: where the name stands. */
static void define(struct parser *p, const char *text, const char *from, int id)
{
	if (map_add(&p->names, text, strlen(text), id))
		return;
	p->l->token.from = from;
	lex_fail(p->l, "each variable and buffer has one definition in the module", "'%s' is defined already",
		 text);
}

static int dim_name(struct parser *p)
{
	if (!lex_at_name(p->l))
		lex_expected(p->l, "a dimension");
	int id = map_get(&p->dims, p->l->token.text, p->l->token.length);
	if (id < 0)
		lex_fail(p->l, "list it in the dim line", "'%.*s' is not a dimension",
			 (int)p->l->token.length, p->l->token.text);
	lex_next(p->l);
	return id;
}

static struct ilir_dim dim(struct parser *p)
{
	struct ilir_dim d = {.rows = IMAGE_ONE};
	if (p->l->token.kind == NUMBER) {
		d.extent = integer(p, 0, largest);
	} else {
		d.rows = lex_one_of(p->l, ilir_size_word, IMAGE_SIZES, "an extent");
		d.extent = lex_accept(p->l, "+") ? integer(p, 0, largest) : 0;
	}
	d.padded = lex_accept(p->l, "/") ? integer(p, d.extent, largest) : d.extent;
	lex_expect(p->l, ":");
	d.name = dim_name(p);
	return d;
}

/* f32 [64:D, 8:lane] */
static void shape(struct parser *p, struct ilir_buffer_decl *b)
{
	b->dtype = lex_one_of(p->l, ilir_dtype_word, ILIR_DTYPES, "an element type");
	lex_expect(p->l, "[");
	if (lex_accept(p->l, "]"))
		return;
	do {
		if (b->rank == ILIR_MAX_RANK)
			lex_fail(p->l, NULL, "more than %d dimensions", ILIR_MAX_RANK);
		b->dim[b->rank++] = dim(p);
	} while (lex_accept(p->l, ","));
	lex_expect(p->l, "]");
}

static struct image_pack_dim pack_dim(struct parser *p)
{
	struct image_pack_dim d = {.extent = integer(p, 0, largest)};
	lex_expect(p->l, "of");
	if (lex_accept(p->l, "source")) {
		d.axis = IMAGE_PACK_SOURCE;
	} else {
		lex_expect(p->l, "axis");
		d.axis = integer(p, 0, TENSOR_MAX_RANK - 1);
	}
	lex_expect(p->l, "step");
	d.stride = integer(p, -largest, largest);
	return d;
}

static struct image_pack_source pack_source(struct parser *p)
{
	struct image_pack_source s = {.param = integer(p, 0, INT32_MAX)};
	bool more = true;
	lex_expect(p->l, "[");
	if (lex_accept(p->l, "]"))
		return s;
	for (int axis = 0; more && axis < TENSOR_MAX_RANK; axis++) {
		s.begin[axis] = integer(p, -largest, largest);
		lex_expect(p->l, "..");
		s.end[axis] = integer(p, -largest, largest);
		more = lex_accept(p->l, ",");
	}
	if (more)
		lex_fail(p->l, NULL, "more than %d axes", TENSOR_MAX_RANK);
	lex_expect(p->l, "]");
	return s;
}

static const struct image_recipe *recipe(struct parser *p)
{
	struct image_recipe r = {0};
	VEC(struct image_pack_source) sources = {0};
	lex_expect(p->l, "[");
	while (!lex_accept(p->l, "]")) {
		if (r.dims)
			lex_expect(p->l, ",");
		if (r.dims == IMAGE_PACK_DIMS)
			lex_fail(p->l, NULL, "more than %d packed dimensions", IMAGE_PACK_DIMS);
		r.dim[r.dims++] = pack_dim(p);
	}
	lex_expect(p->l, "from");
	do {
		struct image_pack_source s = pack_source(p);
		vec_push(p->m->arena, &sources, s);
	} while (lex_accept(p->l, ","));
	r.sources = sources.n;
	r.source = sources.at;
	return arena_copy(p->m->arena, &r, sizeof r);
}

static void buffer(struct parser *p)
{
	const char *from = p->l->token.from;
	struct ilir_buffer_decl b = {.name = lex_name(p->l, "the buffer's name")};
	define(p, b.name, from, 2 * p->m->buffers.n + 1);
	lex_expect(p->l, ":");
	b.kind = lex_one_of(p->l, ilir_kind_word, ILIR_REGISTER, "a kind of buffer");
	b.which = integer(p, 0, INT32_MAX);
	shape(p, &b);
	if (lex_accept(p->l, "packed"))
		b.recipe = recipe(p);
	ilir_new_buffer(p->m, b);
}

/* --- statements --- */

static struct ilir_stmt *block(struct parser *p);

static ilir_var new_var(struct parser *p, const char *text, const char *from, struct ilir_type type)
{
	define(p, text, from, 2 * p->m->vars.n);
	return ilir_new_var(p->m, text, type);
}

/* in begin..end */
static void bounds(struct parser *p, ilir_expr *begin, ilir_expr *end)
{
	lex_expect(p->l, "in");
	*begin = expr(p);
	lex_expect(p->l, "..");
	*end = expr(p);
}

static struct ilir_stmt *for_stmt(struct parser *p)
{
	ilir_expr begin, end;
	int64_t step = 1;
	const char *from = p->l->token.from, *text = lex_name(p->l, "the loop's variable");
	lex_expect(p->l, ":");
	int walked = dim_name(p);
	bounds(p, &begin, &end);
	if (lex_accept(p->l, "step"))
		step = integer(p, 1, largest);
	ilir_var v = new_var(p, text, from, (struct ilir_type){ILIR_INDEX, 1});
	enum ilir_loop_kind kind =
	    lex_is_next(p->l, "{")
		? ILIR_SERIAL
		: lex_one_of(p->l, ilir_loop_word, ILIR_UNROLLED + 1, "a kind of loop or '{'");
	return ilir_for(p->m, v, begin, end, step, walked, kind, block(p));
}

static struct ilir_stmt *if_stmt(struct parser *p)
{
	ilir_expr condition = expr(p);
	struct ilir_stmt *then = block(p);
	return ilir_if(p->m, condition, then, lex_accept(p->l, "else") ? block(p) : NULL);
}

static struct ilir_stmt *let_stmt(struct parser *p)
{
	const char *from = p->l->token.from, *text = lex_name(p->l, "the variable");
	lex_expect(p->l, "=");
	ilir_expr value = expr(p);
	return ilir_let(p->m, new_var(p, text, from, ilir_type_of(p->m, value)), value);
}

static struct ilir_stmt *alloc_stmt(struct parser *p)
{
	const char *from = p->l->token.from;
	struct ilir_buffer_decl b = {.kind = ILIR_REGISTER, .name = lex_name(p->l, "the register's name")};
	define(p, b.name, from, 2 * p->m->buffers.n + 1);
	lex_expect(p->l, ":");
	shape(p, &b);
	b.parked = lex_accept(p->l, "parked");
	return ilir_alloc(p->m, ilir_new_buffer(p->m, b));
}

static int group_number(struct parser *p)
{
	return lex_accept(p->l, "group") ? integer(p, 1, INT32_MAX) : 0;
}

/* of case 0 2 3 */
static unsigned case_mask(struct parser *p)
{
	unsigned mask = 0;
	if (!lex_accept(p->l, "of"))
		return 0;
	lex_expect(p->l, "case");
	do
		mask |= 1u << integer(p, 0, IMAGE_MAX_CASES - 1);
	while (p->l->token.kind == NUMBER);
	return mask;
}

static struct ilir_stmt *step_stmt(struct parser *p)
{
	ilir_expr begin, end;
	const char *text = lex_name(p->l, "the step's name");
	int group = group_number(p);
	unsigned cases = case_mask(p);
	bounds(p, &begin, &end);
	struct ilir_stmt *s = ilir_step(p->m, text, group, begin, end, block(p));
	s->step.cases = cases;
	return s;
}

static struct ilir_stmt *prefetch_stmt(struct parser *p)
{
	return ilir_prefetch(p->m, expr(p));
}

static struct ilir_stmt *barrier_stmt(struct parser *p)
{
	return ilir_barrier(p->m);
}

static struct ilir_stmt *store_stmt(struct parser *p)
{
	ilir_expr index[ILIR_MAX_RANK];
	if (!lex_at_name(p->l))
		lex_expected(p->l, "a statement");
	int id = known_name(p);
	if (id % 2 == 0)
		lex_fail(p->l, "let introduces a new variable",
			 "a variable is stored to as if it were a buffer");
	lex_expect(p->l, "[");
	int n = list(p, index, ILIR_MAX_RANK, "]");
	lex_expect(p->l, "=");
	return ilir_store(p->m, (ilir_buffer){id / 2}, index, n, expr(p));
}

static const struct {
	const char *word;
	struct ilir_stmt *(*parse)(struct parser *);
} statements[] = {
    {"for", for_stmt},	 {"if", if_stmt},	    {"let", let_stmt},		 {"alloc", alloc_stmt},
    {"step", step_stmt}, {"barrier", barrier_stmt}, {"prefetch", prefetch_stmt},
};

static struct ilir_stmt *stmt(struct parser *p)
{
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (lex_accept(p->l, statements[i].word))
			return statements[i].parse(p);
	return store_stmt(p);
}

static struct ilir_stmt *block(struct parser *p)
{
	struct ilir_stmt *first = NULL, **end = &first;
	enter(p);
	lex_expect(p->l, "{");
	while (!lex_accept(p->l, "}")) {
		*end = stmt(p);
		end = &(*end)->next;
	}
	leave(p);
	return first;
}

/* --- the module --- */

static void dim_line(struct parser *p)
{
	do {
		const char *text = lex_name(p->l, "a dimension");
		if (!map_add(&p->dims, text, strlen(text), p->m->dims.n))
			lex_fail(p->l, NULL, "dimension '%s' is listed twice", text);
		ilir_dim_name(p->m, text);
	} while (lex_accept(p->l, ","));
}

static void kernel(struct parser *p)
{
	struct ilir_kernel k = {.name = lex_name(p->l, "the kernel's name")};
	lex_expect(p->l, "in");
	k.domain = lex_one_of(p->l, ilir_domain_word, ILIR_DOMAINS, "a domain");
	k.group = group_number(p);
	k.cases = case_mask(p);
	if (lex_accept(p->l, "part")) {
		k.part = integer(p, 1, INT32_MAX);
		lex_expect(p->l, "of");
		k.parts = integer(p, 1, INT32_MAX);
	}
	k.body = block(p);
	vec_push(p->m->arena, &p->m->kernels, k);
}

static void module(struct parser *p)
{
	lex_next(p->l);
	lex_expect(p->l, "module");
	p->m->name = lex_name(p->l, "the module's name");
	define(p, "begin", p->l->at, 2 * ilir_begin.i);
	define(p, "end", p->l->at, 2 * ilir_end.i);
	if (lex_accept(p->l, "dim"))
		dim_line(p);
	while (lex_accept(p->l, "buffer"))
		buffer(p);
	while (lex_accept(p->l, "kernel"))
		kernel(p);
	if (p->l->token.kind != END)
		lex_expected(p->l, "a kernel or the end");
}

struct ilir_module *ilir_parse(struct arena *a, struct diags *d, const char *file, const char *text,
			       size_t length)
{
	struct parser *p = ARENA_NEW(a, struct parser);
	*p = (struct parser){.names = map_in(a), .dims = map_in(a)};
	p->m = ARENA_NEW(a, struct ilir_module);
	ilir_init(p->m, a, "");
	p->l = ARENA_NEW(a, struct lexer);
	*p->l = (struct lexer){.arena = a, .diags = d, .file = file, .begin = arena_text(a, text, length)};
	p->l->at = p->l->begin;
	p->l->end = p->l->begin + length;
	if (setjmp(p->l->failed))
		return NULL;
	module(p);
	return p->m;
}
