/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the text that print_loops.c writes.  The text is untrusted: the parser checks types, the verifier all
 * other rules.  The first fault ends the parse. */
#include "ilir/lex_loops.h"
#include "ilir/spelling.h"

#include "base/decimal.h"
#include "base/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { MOST_NESTING = 256 };
/* The largest constant, so that simple index arithmetic cannot overflow. */
static const int64_t largest = (int64_t)1 << 48;

struct parser {
	struct lexer *l;
	struct ilir_module *m;
	struct map names; /* of variables and buffers: 2 * id, + 1 for buffers */
	struct map dims;
	int depth;
};

static void enter_nesting(struct parser *p)
{
	if (++p->depth > MOST_NESTING)
		lex_fail(p->l, "name a part of the expression with let", "nested more than %d deep",
			 MOST_NESTING);
}

static void leave_nesting(struct parser *p)
{
	p->depth--;
}

/* --- numbers --- */

static int64_t check_range(struct parser *p, int64_t value, int64_t low, int64_t high)
{
	if (value < low || value > high)
		lex_fail(p->l, NULL, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value, low, high);
	return value;
}

static int64_t parse_integer(struct parser *p, int64_t low, int64_t high)
{
	char text[LEX_LONGEST_NUMBER], *end;
	bool negative = lex_accept(p->l, "-");
	lex_number(p->l, text);
	int64_t value = strtoll(text, &end, 10);
	if (*end)
		lex_expected(p->l, "an integer");
	check_range(p, value, 0, largest); /* strtoll saturates */
	value = check_range(p, negative ? -value : value, low, high);
	lex_next(p->l);
	return value;
}

/* An i64 may have any value, unlike other integers, which are limited by `largest`. */
static int64_t read_long_integer(struct parser *p, const char *text, bool negative)
{
	errno = 0;
	uint64_t magnitude = strtoull(text, NULL, 10);
	if (errno || magnitude > (uint64_t)INT64_MAX + negative)
		lex_fail(p->l, NULL, "%s%s is no integer of 64 bits", negative ? "-" : "", text);
	return (int64_t)(negative ? 0 - magnitude : magnitude);
}

static ilir_expr parse_number(struct parser *p, bool negative)
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
		e = ilir_float(p->m, negative ? -decimal_to_float(text) : decimal_to_float(text));
	else if (text[last] == 'i')
		e = ilir_i32(p->m, check_range(p, negative ? -value : value, INT32_MIN, INT32_MAX));
	else if (text[last] == 'l')
		e = ilir_i64(p->m, read_long_integer(p, text, negative));
	else
		e = ilir_index(p->m, check_range(p, negative ? -value : value, -largest, largest));
	lex_next(p->l);
	return e;
}

static ilir_expr parse_nan(struct parser *p, bool negative)
{
	uint32_t bits = lex_nan(p->l) | 0x7f800000 | (uint32_t)negative << 31;
	float f;
	memcpy(&f, &bits, sizeof f);
	lex_next(p->l);
	return ilir_float(p->m, f);
}

/* --- expressions --- */

static ilir_expr parse_expr(struct parser *p);

/* Reports operands that have no result type. */
static void check_operands(struct parser *p, const struct ilir_node *n, const ilir_expr *args)
{
	const char *problem;
	if (!ilir_infer_type(p->m, n, args, &problem).lanes)
		lex_fail(p->l, NULL, "%s: %s", n->op == ILIR_LOAD ? "load" : ilir_op_spelling(n->op),
			 problem);
}

static int parse_list(struct parser *p, ilir_expr *at, int most, const char *end)
{
	int n = 0;
	if (lex_accept(p->l, end))
		return 0;
	do {
		if (n == most)
			lex_fail(p->l, NULL, "more than %d in a list", most);
		at[n++] = parse_expr(p);
	} while (lex_accept(p->l, ","));
	lex_expect(p->l, end);
	return n;
}

static ilir_expr parse_spread(struct parser *p, enum ilir_op op)
{
	int lanes = parse_integer(p, 2, ILIR_MAX_LANES);
	lex_expect(p->l, ",");
	ilir_expr e = parse_expr(p);
	struct ilir_type t = ilir_type_of(p->m, e);
	if (t.lanes != 1 || (op == ILIR_RAMP && t.dtype != ILIR_INDEX))
		lex_fail(p->l, NULL, "%s needs a scalar%s", ilir_op_spelling(op),
			 op == ILIR_RAMP ? " index" : "");
	int step = op == ILIR_RAMP && lex_accept(p->l, ",") ? parse_integer(p, 1, ILIR_MAX_STEP) : 1;
	lex_expect(p->l, ")");
	return op == ILIR_RAMP ? ilir_ramp(p->m, e, lanes, step) : ilir_spread(p->m, op, e, lanes);
}

/* Lanes of two vectors, by constants. */
static ilir_expr make_pair(struct parser *p, enum ilir_op op, const ilir_expr *a)
{
	int64_t by[3] = {0};
	for (int i = 2; i < ilir_op_arity(op); i++)
		if (!ilir_constant(p->m, a[i], &by[i - 2]))
			lex_fail(p->l, NULL, "%s by something else than constants", ilir_op_spelling(op));
	return op == ILIR_KEEP ? ilir_keep(p->m, a[0], a[1], by[0], by[1])
			       : ilir_splice(p->m, a[0], a[1], by[0], by[1], by[2]);
}

static ilir_expr parse_call(struct parser *p, enum ilir_op op)
{
	ilir_expr a[5];
	lex_next(p->l);
	lex_expect(p->l, "(");
	if (op == ILIR_BROADCAST || op == ILIR_RAMP)
		return parse_spread(p, op);
	int n = parse_list(p, a, 5, ")"), arity = ilir_op_arity(op);
	if (n != arity)
		lex_fail(p->l, NULL, "%s takes %d operands, not %d", ilir_op_spelling(op), arity, n);
	check_operands(p, &(struct ilir_node){.op = op, .args = n}, a);
	if (op == ILIR_SPLICE || op == ILIR_KEEP)
		return make_pair(p, op, a);
	return n == 1	? ilir_unary(p->m, op, a[0])
	       : n == 2 ? ilir_binary(p->m, op, a[0], a[1])
			: ilir_ternary(p->m, op, a[0], a[1], a[2]);
}

/* Reads a defined name; returns 2 * id for a variable, 2 * id + 1 for a buffer. */
static int parse_known_name(struct parser *p)
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

static ilir_expr parse_reference(struct parser *p)
{
	int id = parse_known_name(p);
	if (id % 2 == 0)
		return ilir_var_ref(p->m, (ilir_var){id / 2});
	ilir_expr index[ILIR_MAX_RANK];
	ilir_buffer b = {id / 2};
	lex_expect(p->l, "[");
	int n = parse_list(p, index, ILIR_MAX_RANK, "]");
	check_operands(p, &(struct ilir_node){.op = ILIR_LOAD, .args = n, .buffer = b}, index);
	return ilir_load(p->m, b, index, n);
}

static ilir_expr parse_word(struct parser *p)
{
	for (int i = 0; i < IMAGE_SIZES; i++)
		if (lex_accept(p->l, ilir_size_word[i]))
			return ilir_size(p->m, i);
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_op_arity(i) > 0 && !ilir_is_infix(i) && lex_is_next(p->l, ilir_op_spelling(i)))
			return parse_call(p, i);
	if (!lex_at_name(p->l))
		lex_expected(p->l, "an expression");
	return parse_reference(p);
}

static ilir_expr parse_operand(struct parser *p)
{
	bool negative = lex_accept(p->l, "-");
	if (p->l->token.kind == NUMBER)
		return parse_number(p, negative);
	if (lex_is_next(p->l, "nan"))
		return parse_nan(p, negative);
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
		return parse_word(p);
	ilir_expr e = parse_expr(p);
	lex_expect(p->l, ")");
	return e;
}

static ilir_expr parse_expr(struct parser *p)
{
	enter_nesting(p);
	ilir_expr a[2] = {parse_operand(p)};
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_is_infix(i) && lex_accept(p->l, ilir_op_spelling(i))) {
			a[1] = parse_operand(p);
			check_operands(p, &(struct ilir_node){.op = i, .args = 2}, a);
			a[0] = ilir_binary(p->m, i, a[0], a[1]);
			break;
		}
	leave_nesting(p);
	return a[0];
}

/* --- buffers --- */

/* `from`: position of the name in the source, for a diagnostic. */
static void define_name(struct parser *p, const char *text, const char *from, int id)
{
	if (map_add(&p->names, text, strlen(text), id))
		return;
	p->l->token.from = from;
	lex_fail(p->l, "each variable and buffer has one definition in the module", "'%s' is defined already",
		 text);
}

static int parse_dim_name(struct parser *p)
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

static struct ilir_dim parse_dim(struct parser *p)
{
	struct ilir_dim d = {.rows = IMAGE_ONE};
	if (p->l->token.kind == NUMBER) {
		d.extent = parse_integer(p, 0, largest);
	} else {
		d.rows = lex_one_of(p->l, ilir_size_word, IMAGE_SIZES, "an extent");
		d.extent = lex_accept(p->l, "+") ? parse_integer(p, 0, largest) : 0;
	}
	d.padded = lex_accept(p->l, "/") ? parse_integer(p, d.extent, largest) : d.extent;
	lex_expect(p->l, ":");
	d.name = parse_dim_name(p);
	return d;
}

/* Reads a type and dimensions, such as f32 [64:D, 8:lane]. */
static void parse_shape(struct parser *p, struct ilir_buffer_decl *b)
{
	b->dtype = lex_one_of(p->l, ilir_dtype_word, ILIR_DTYPES, "an element type");
	lex_expect(p->l, "[");
	if (lex_accept(p->l, "]"))
		return;
	do {
		if (b->rank == ILIR_MAX_RANK)
			lex_fail(p->l, NULL, "more than %d dimensions", ILIR_MAX_RANK);
		b->dim[b->rank++] = parse_dim(p);
	} while (lex_accept(p->l, ","));
	lex_expect(p->l, "]");
}

static struct image_pack_dim parse_pack_dim(struct parser *p)
{
	struct image_pack_dim d = {.extent = parse_integer(p, 0, largest)};
	lex_expect(p->l, "of");
	if (lex_accept(p->l, "source")) {
		d.axis = IMAGE_PACK_SOURCE;
	} else {
		lex_expect(p->l, "axis");
		d.axis = parse_integer(p, 0, TENSOR_MAX_RANK - 1);
	}
	lex_expect(p->l, "step");
	d.stride = parse_integer(p, -largest, largest);
	return d;
}

static struct image_pack_source parse_pack_source(struct parser *p)
{
	struct image_pack_source s = {.param = parse_integer(p, 0, INT32_MAX)};
	bool more = true;
	lex_expect(p->l, "[");
	if (lex_accept(p->l, "]"))
		return s;
	for (int axis = 0; more && axis < TENSOR_MAX_RANK; axis++) {
		s.begin[axis] = parse_integer(p, -largest, largest);
		lex_expect(p->l, "..");
		s.end[axis] = parse_integer(p, -largest, largest);
		more = lex_accept(p->l, ",");
	}
	if (more)
		lex_fail(p->l, NULL, "more than %d axes", TENSOR_MAX_RANK);
	lex_expect(p->l, "]");
	return s;
}

static const struct image_recipe *parse_recipe(struct parser *p)
{
	struct image_recipe r = {0};
	VEC(struct image_pack_source) sources = {0};
	lex_expect(p->l, "[");
	while (!lex_accept(p->l, "]")) {
		if (r.dims)
			lex_expect(p->l, ",");
		if (r.dims == IMAGE_PACK_DIMS)
			lex_fail(p->l, NULL, "more than %d packed dimensions", IMAGE_PACK_DIMS);
		r.dim[r.dims++] = parse_pack_dim(p);
	}
	lex_expect(p->l, "from");
	do {
		struct image_pack_source s = parse_pack_source(p);
		vec_push(p->m->arena, &sources, s);
	} while (lex_accept(p->l, ","));
	r.sources = sources.n;
	r.source = sources.at;
	return arena_copy(p->m->arena, &r, sizeof r);
}

static ilir_buffer parse_buffer_name(struct parser *p)
{
	int id = parse_known_name(p);
	if (id % 2 == 0)
		lex_fail(p->l, NULL, "a variable is named where a buffer is expected");
	return (ilir_buffer){id / 2};
}

static void parse_buffer(struct parser *p)
{
	const char *from = p->l->token.from;
	struct ilir_buffer_decl b = {.name = lex_name(p->l, "the buffer's name")};
	define_name(p, b.name, from, 2 * p->m->buffers.n + 1);
	lex_expect(p->l, ":");
	b.kind = lex_one_of(p->l, ilir_kind_word, ILIR_REGISTER, "a kind of buffer");
	b.which = parse_integer(p, 0, INT32_MAX);
	parse_shape(p, &b);
	if (lex_accept(p->l, "packed"))
		b.recipe = parse_recipe(p);
	if (lex_accept(p->l, "or")) {
		b.table = parse_buffer_name(p);
		lex_expect(p->l, "by");
		b.read_row = parse_buffer_name(p);
	}
	ilir_new_buffer(p->m, b);
}

/* --- statements --- */

static struct ilir_stmt *parse_block(struct parser *p);

static ilir_var define_var(struct parser *p, const char *text, const char *from, struct ilir_type type)
{
	define_name(p, text, from, 2 * p->m->vars.n);
	return ilir_new_var(p->m, text, type);
}

/* Reads `in begin..end`. */
static void parse_bounds(struct parser *p, ilir_expr *begin, ilir_expr *end)
{
	lex_expect(p->l, "in");
	*begin = parse_expr(p);
	lex_expect(p->l, "..");
	*end = parse_expr(p);
}

static struct ilir_stmt *parse_for(struct parser *p)
{
	ilir_expr begin, end;
	int64_t step = 1;
	const char *from = p->l->token.from, *text = lex_name(p->l, "the loop's variable");
	lex_expect(p->l, ":");
	int walked = parse_dim_name(p);
	parse_bounds(p, &begin, &end);
	if (lex_accept(p->l, "step"))
		step = parse_integer(p, 1, largest);
	ilir_var v = define_var(p, text, from, (struct ilir_type){ILIR_INDEX, 1});
	enum ilir_loop_kind kind =
	    lex_is_next(p->l, "{")
		? ILIR_SERIAL
		: lex_one_of(p->l, ilir_loop_word, ILIR_LOOP_KINDS, "a kind of loop or '{'");
	return ilir_for(p->m, v, begin, end, step, walked, kind, parse_block(p));
}

static struct ilir_stmt *parse_if(struct parser *p)
{
	ilir_expr condition = parse_expr(p);
	struct ilir_stmt *then = parse_block(p);
	return ilir_if(p->m, condition, then, lex_accept(p->l, "else") ? parse_block(p) : NULL);
}

static struct ilir_stmt *parse_let(struct parser *p)
{
	const char *from = p->l->token.from, *text = lex_name(p->l, "the variable");
	lex_expect(p->l, "=");
	ilir_expr value = parse_expr(p);
	return ilir_let(p->m, define_var(p, text, from, ilir_type_of(p->m, value)), value);
}

static struct ilir_stmt *parse_alloc(struct parser *p)
{
	bool matrix = lex_accept(p->l, "matrix");
	const char *from = p->l->token.from;
	struct ilir_buffer_decl b = {.kind = ILIR_REGISTER, .matrix = matrix, .name = lex_name(p->l, "the register's name")};
	define_name(p, b.name, from, 2 * p->m->buffers.n + 1);
	lex_expect(p->l, ":");
	parse_shape(p, &b);
	b.parked = lex_accept(p->l, "parked");
	return ilir_alloc(p->m, ilir_new_buffer(p->m, b));
}

static int parse_group(struct parser *p)
{
	return lex_accept(p->l, "group") ? parse_integer(p, 1, INT32_MAX) : 0;
}

/* Reads `of case 0 2 3`; 0 without it. */
static unsigned parse_cases(struct parser *p)
{
	unsigned mask = 0;
	if (!lex_accept(p->l, "of"))
		return 0;
	lex_expect(p->l, "case");
	do
		mask |= 1u << parse_integer(p, 0, IMAGE_MAX_CASES - 1);
	while (p->l->token.kind == NUMBER);
	return mask;
}

/* Reads `sorted 0`. */
static int parse_sorted(struct parser *p)
{
	return lex_accept(p->l, "sorted") ? parse_integer(p, 0, INT32_MAX - 1) + 1 : 0;
}

/* `call 0` is number 1. */
static int parse_call_number(struct parser *p)
{
	return lex_accept(p->l, "call") ? parse_integer(p, 0, INT32_MAX - 1) + 1 : 0;
}

static struct ilir_stmt *parse_step(struct parser *p)
{
	ilir_expr begin, end;
	const char *text = lex_name(p->l, "the step's name");
	int group = parse_group(p);
	unsigned cases = parse_cases(p);
	bool apart = lex_accept(p->l, "apart");
	int sort = parse_sorted(p), call = parse_call_number(p);
	parse_bounds(p, &begin, &end);
	struct ilir_stmt *s = ilir_step(p->m, text, group, begin, end, parse_block(p));
	s->step.cases = cases;
	s->step.sort = sort;
	s->step.apart = apart;
	s->step.call = call;
	return s;
}

static struct ilir_stmt *parse_prefetch(struct parser *p)
{
	bool writes = lex_accept(p->l, "write");
	return ilir_prefetch(p->m, parse_expr(p), writes);
}

/* Reads the rest of `matrix fill a = x[n, 0] to x[n + 3, 0]`, or of a spill. */
static struct ilir_stmt *parse_rows(struct parser *p, bool fills)
{
	ilir_buffer matrix = parse_buffer_name(p);
	lex_expect(p->l, "=");
	ilir_expr first = parse_expr(p);
	lex_expect(p->l, "to");
	return (fills ? ilir_fill : ilir_spill)(p->m, matrix, first, parse_expr(p));
}

/* Reads the rest of `matrix dot4 sum, a, b`, or of dot_bf16. */
static struct ilir_stmt *parse_matrix(struct parser *p)
{
	if (lex_accept(p->l, "fill"))
		return parse_rows(p, true);
	if (lex_accept(p->l, "spill"))
		return parse_rows(p, false);
	enum ilir_op op = lex_accept(p->l, ilir_op_spelling(ILIR_DOT_BF16)) ? ILIR_DOT_BF16 : ILIR_DOT4;
	if (op == ILIR_DOT4)
		lex_expect(p->l, ilir_op_spelling(op));
	ilir_buffer sum = parse_buffer_name(p);
	lex_expect(p->l, ",");
	ilir_buffer a = parse_buffer_name(p);
	lex_expect(p->l, ",");
	return ilir_dot(p->m, op, sum, a, parse_buffer_name(p));
}

static struct ilir_stmt *parse_barrier(struct parser *p)
{
	return ilir_barrier(p->m);
}

static struct ilir_stmt *parse_store(struct parser *p)
{
	ilir_expr index[ILIR_MAX_RANK];
	if (!lex_at_name(p->l))
		lex_expected(p->l, "a statement");
	int id = parse_known_name(p);
	if (id % 2 == 0)
		lex_fail(p->l, "let introduces a new variable",
			 "a variable is stored to as if it were a buffer");
	lex_expect(p->l, "[");
	int n = parse_list(p, index, ILIR_MAX_RANK, "]");
	lex_expect(p->l, "=");
	return ilir_store(p->m, (ilir_buffer){id / 2}, index, n, parse_expr(p));
}

static const struct {
	const char *word;
	struct ilir_stmt *(*parse)(struct parser *);
} statements[] = {
    {"for", parse_for},	  {"if", parse_if},	      {"let", parse_let},	    {"alloc", parse_alloc},
    {"step", parse_step}, {"barrier", parse_barrier}, {"prefetch", parse_prefetch},
    {"matrix", parse_matrix},
};

static struct ilir_stmt *parse_stmt(struct parser *p)
{
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (lex_accept(p->l, statements[i].word))
			return statements[i].parse(p);
	return parse_store(p);
}

static struct ilir_stmt *parse_block(struct parser *p)
{
	struct ilir_stmt *first = NULL, **end = &first;
	enter_nesting(p);
	lex_expect(p->l, "{");
	while (!lex_accept(p->l, "}")) {
		*end = parse_stmt(p);
		end = &(*end)->next;
	}
	leave_nesting(p);
	return first;
}

/* --- the module --- */

static void parse_dims(struct parser *p)
{
	do {
		const char *text = lex_name(p->l, "a dimension");
		if (!map_add(&p->dims, text, strlen(text), p->m->dims.n))
			lex_fail(p->l, NULL, "dimension '%s' is listed twice", text);
		ilir_dim_name(p->m, text);
	} while (lex_accept(p->l, ","));
}

static void parse_kernel(struct parser *p)
{
	struct ilir_kernel k = {.name = lex_name(p->l, "the kernel's name")};
	lex_expect(p->l, "in");
	k.domain = lex_one_of(p->l, ilir_domain_word, ILIR_DOMAINS, "a domain");
	if (k.domain == IMAGE_DOMAIN_SCAN) {
		k.first = parse_integer(p, 0, INT32_MAX);
		lex_expect(p->l, "..");
		k.last = parse_integer(p, 1, INT32_MAX);
	}
	k.group = parse_group(p);
	k.cases = parse_cases(p);
	k.apart = lex_accept(p->l, "apart");
	k.sort = parse_sorted(p);
	k.call = parse_call_number(p);
	if (lex_accept(p->l, "part")) {
		k.part = parse_integer(p, 1, INT32_MAX);
		lex_expect(p->l, "of");
		k.parts = parse_integer(p, 1, INT32_MAX);
	}
	k.body = parse_block(p);
	vec_push(p->m->arena, &p->m->kernels, k);
}

/* Reads the rest of `sort edges by 1 slot 0`. */
static void parse_sort(struct parser *p)
{
	struct image_sort s = {.slot = -1};
	s.edges = lex_accept(p->l, "edges");
	if (!s.edges)
		lex_expect(p->l, "nodes");
	lex_expect(p->l, "by");
	s.input = parse_integer(p, 0, INT32_MAX);
	if (lex_accept(p->l, "slot"))
		s.slot = parse_integer(p, 0, INT32_MAX);
	vec_push(p->m->arena, &p->m->sorts, s);
}

/* Reads the rest of `call vta0 reads a, writes b`. */
static void parse_operands(struct parser *p)
{
	struct ilir_call c = {.name = lex_name(p->l, "the name of the call")};
	VEC(struct ilir_operand) operands = {0};
	do {
		struct ilir_operand o = {.writes = lex_accept(p->l, "writes")};
		if (!o.writes)
			lex_expect(p->l, "reads");
		o.buffer = parse_buffer_name(p);
		vec_push(p->m->arena, &operands, o);
	} while (lex_accept(p->l, ","));
	c.operands = (int)operands.n;
	c.operand = operands.at;
	vec_push(p->m->arena, &p->m->calls, c);
}

static void parse_module(struct parser *p)
{
	lex_next(p->l);
	lex_expect(p->l, "module");
	p->m->name = lex_name(p->l, "the module's name");
	define_name(p, "begin", p->l->at, 2 * ilir_begin.i);
	define_name(p, "end", p->l->at, 2 * ilir_end.i);
	if (lex_accept(p->l, "dim"))
		parse_dims(p);
	while (lex_accept(p->l, "sort"))
		parse_sort(p);
	while (lex_accept(p->l, "buffer"))
		parse_buffer(p);
	while (lex_accept(p->l, "call"))
		parse_operands(p);
	while (lex_accept(p->l, "kernel"))
		parse_kernel(p);
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
	parse_module(p);
	return p->m;
}
