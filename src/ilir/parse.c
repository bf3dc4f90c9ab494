/* Reads the text that print.c writes.  The text is untrusted: what is accepted here is well typed, but only
 * the verifier says whether it means anything.  The first fault ends the parse. */
#include "ilir/text.h"

#include "base/map.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

enum { MOST_NESTING = 256, LONGEST_NUMBER = 48 };
static const int64_t largest = (int64_t)1 << 48; /* of constants: sums and products of some cannot overflow */

enum token_kind { END, WORD /* bare */, QUOTED, NUMBER, PUNCTUATION };

struct token {
	enum token_kind kind;
	const char *text; /* QUOTED: the name itself */
	size_t length;
	const char *from; /* where it stands */
};

struct parser {
	struct ilir_module *m;
	struct diags *diags;
	const char *file, *begin, *at, *end;
	struct token token; /* the next one */
	struct map names;   /* of variables and buffers: 2 * id, + 1 for buffers */
	struct map dims;
	int depth;
	jmp_buf failed;
};

/* --- faults --- */

static struct diag_at place(const struct parser *p, const char *at)
{
	const char *line = p->begin;
	int number = 1;
	for (const char *c = p->begin; c < at; c++)
		if (*c == '\n') {
			line = c + 1;
			number++;
		}
	return (struct diag_at){.file = p->file, .line = number, .column = at - line + 1, .source = line};
}

__attribute__((format(printf, 3, 4))) static _Noreturn void fail(struct parser *p, const char *hint,
								 const char *format, ...)
{
	struct str s = str_in(p->m->arena);
	va_list args;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	diag_add(p->diags, DIAG_INVALID_LOOP_TEXT, place(p, p->token.from), hint, "%s", str_text(&s));
	longjmp(p->failed, 1);
}

static _Noreturn void expected(struct parser *p, const char *what)
{
	const struct token *t = &p->token;
	fail(p, NULL, "expected %s, found %s%.*s%s", what, t->kind == END ? "the end of the text" : "'",
	     t->length > 40 ? 40 : (int)t->length, t->text, t->kind == END ? "" : "'");
}

static void enter(struct parser *p)
{
	if (++p->depth > MOST_NESTING)
		fail(p, "name a part of the expression with let", "nested more than %d deep", MOST_NESTING);
}

static void leave(struct parser *p)
{
	p->depth--;
}

/* --- tokens --- */

static void skip_space(struct parser *p)
{
	while (p->at < p->end && (isspace((unsigned char)*p->at) || *p->at == '#'))
		if (*p->at++ == '#')
			while (p->at < p->end && *p->at != '\n')
				p->at++;
}

static size_t digits(const struct parser *p, const char *at)
{
	const char *from = at;
	while (at < p->end && isdigit((unsigned char)*at))
		at++;
	return at - from;
}

/* 12  12i  1.5  1e-06: a dot belongs to a number when a digit follows, so that 0..5 is two numbers. */
static size_t number_length(const struct parser *p)
{
	const char *at = p->at + digits(p, p->at);
	if (p->end - at > 1 && at[0] == '.' && digits(p, at + 1))
		at += 1 + digits(p, at + 1);
	if (p->end - at > 1 && *at == 'e') {
		bool sign = at[1] == '+' || at[1] == '-';
		size_t exponent = digits(p, at + 1 + sign);
		at += exponent ? 1 + sign + exponent : 0;
	}
	if (at < p->end && *at == 'i')
		at++;
	return at - p->at;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a \xHH in a quoted name stands for; a NUL would end the name early and is refused. */
static char escaped(struct parser *p, const char *at)
{
	int high = -1, low = -1;
	if (p->end - at > 3 && at[1] == 'x') {
		high = hex_digit(at[2]);
		low = hex_digit(at[3]);
	}
	if (high < 0 || low < 0 || high + low == 0)
		fail(p, "a byte is \\x and two small hexadecimal digits", "a backslash that escapes nothing");
	return high * 16 + low;
}

static void lex_quoted(struct parser *p)
{
	struct str name = str_in(p->m->arena);
	const char *at = p->at + 1;
	for (; at < p->end && *at != '`' && *at != '\n'; at++) {
		char c = *at == '\\' ? escaped(p, at) : *at;
		if (c == 0)
			fail(p, NULL, "a zero byte in a name");
		at += *at == '\\' ? 3 : 0;
		str_add(&name, &c, 1);
	}
	if (at >= p->end || *at != '`')
		fail(p, NULL, "a quoted name does not end on its line");
	p->token = (struct token){QUOTED, str_text(&name), name.n, p->at};
	p->at = at + 1;
}

static void lex(struct parser *p, enum token_kind kind, size_t length)
{
	p->token = (struct token){kind, p->at, length, p->at};
	p->at += length;
}

/* Moves to the next token. */
static void next(struct parser *p)
{
	skip_space(p);
	size_t left = p->end - p->at, name = ilir_name_length(p->at, left);
	p->token.from = p->at;
	if (!left)
		lex(p, END, 0);
	else if (name)
		lex(p, WORD, name);
	else if (isdigit((unsigned char)*p->at))
		lex(p, NUMBER, number_length(p));
	else if (*p->at == '`')
		lex_quoted(p);
	else if (left > 1 && (!memcmp(p->at, "..", 2) || !memcmp(p->at, "<=", 2) || !memcmp(p->at, "==", 2)))
		lex(p, PUNCTUATION, 2);
	else
		lex(p, PUNCTUATION, 1);
}

/* Whether the next token is this word or mark. */
static bool sees(const struct parser *p, const char *text)
{
	return (p->token.kind == WORD || p->token.kind == PUNCTUATION) && strlen(text) == p->token.length &&
	       memcmp(text, p->token.text, p->token.length) == 0;
}

static bool accept(struct parser *p, const char *text)
{
	bool found = sees(p, text);
	if (found)
		next(p);
	return found;
}

static void expect(struct parser *p, const char *text)
{
	if (!sees(p, text)) {
		struct str s = str_in(p->m->arena);
		str_printf(&s, "'%s'", text);
		expected(p, str_text(&s));
	}
	next(p);
}

/* Which word of a table comes next. */
static int one_of(struct parser *p, const char *const *words, int n, const char *what)
{
	for (int i = 0; i < n; i++)
		if (accept(p, words[i]))
			return i;
	expected(p, what);
}

static bool at_name(const struct parser *p)
{
	return p->token.kind == QUOTED ||
	       (p->token.kind == WORD && !ilir_is_reserved(p->token.text, p->token.length));
}

static const char *name(struct parser *p, const char *what)
{
	if (!at_name(p))
		expected(p, what);
	const char *text = arena_text(p->m->arena, p->token.text, p->token.length);
	next(p);
	return text;
}

/* --- numbers --- */

/* The text of a number, terminated. */
static void number_text(struct parser *p, char text[LONGEST_NUMBER])
{
	if (p->token.kind != NUMBER)
		expected(p, "a number");
	if (p->token.length >= LONGEST_NUMBER)
		fail(p, NULL, "a number of %zu characters", p->token.length);
	memcpy(text, p->token.text, p->token.length);
	text[p->token.length] = 0;
}

static int64_t in_range(struct parser *p, int64_t value, int64_t low, int64_t high)
{
	if (value < low || value > high)
		fail(p, NULL, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value, low, high);
	return value;
}

static int64_t integer(struct parser *p, int64_t low, int64_t high)
{
	char text[LONGEST_NUMBER], *end;
	bool negative = accept(p, "-");
	number_text(p, text);
	int64_t value = strtoll(text, &end, 10);
	if (*end)
		expected(p, "an integer");
	in_range(p, value, 0, largest); /* strtoll saturates */
	value = in_range(p, negative ? -value : value, low, high);
	next(p);
	return value;
}

static ilir_expr number(struct parser *p, bool negative)
{
	char text[LONGEST_NUMBER];
	number_text(p, text);
	size_t last = strlen(text) - 1;
	bool is_float = strpbrk(text, ".e");
	int64_t value = is_float ? 0 : strtoll(text, NULL, 10);
	ilir_expr e;
	if (is_float && text[last] == 'i')
		expected(p, "a float or an integer");
	if (is_float)
		e = ilir_float(p->m, negative ? -str_read_float(text) : str_read_float(text));
	else if (text[last] == 'i')
		e = ilir_i32(p->m, in_range(p, negative ? -value : value, INT32_MIN, INT32_MAX));
	else
		e = ilir_index(p->m, in_range(p, negative ? -value : value, -largest, largest));
	next(p);
	return e;
}

/* (7ff), right behind nan: the mantissa in hexadecimal; without it that of the default NaN. */
static uint32_t nan_mantissa(struct parser *p)
{
	uint32_t bits = 0;
	if (p->at == p->end || *p->at != '(')
		return 0x400000;
	for (p->at++; p->at < p->end && hex_digit(*p->at) >= 0 && bits < 0x80000; p->at++)
		bits = bits * 16 + hex_digit(*p->at);
	next(p);
	if (!bits || bits > 0x7fffff || !sees(p, ")"))
		expected(p, "the mantissa of a NaN");
	return bits;
}

static ilir_expr nan_constant(struct parser *p, bool negative)
{
	uint32_t bits = nan_mantissa(p) | 0x7f800000 | (uint32_t)negative << 31;
	float f;
	memcpy(&f, &bits, sizeof f);
	next(p);
	return ilir_float(p->m, f);
}

/* --- expressions --- */

static ilir_expr expr(struct parser *p);

/* Refuses operands that the constructors would type as nothing. */
static void check(struct parser *p, const struct ilir_node *n, const ilir_expr *args)
{
	const char *problem;
	if (!ilir_infer_type(p->m, n, args, &problem).lanes)
		fail(p, NULL, "%s: %s", n->op == ILIR_LOAD ? "load" : ilir_op_spelling(n->op), problem);
}

static int list(struct parser *p, ilir_expr *at, int most, const char *end)
{
	int n = 0;
	if (accept(p, end))
		return 0;
	do {
		if (n == most)
			fail(p, NULL, "more than %d in a list", most);
		at[n++] = expr(p);
	} while (accept(p, ","));
	expect(p, end);
	return n;
}

static ilir_expr spread_call(struct parser *p, enum ilir_op op)
{
	int lanes = integer(p, 2, ILIR_MAX_LANES);
	expect(p, ",");
	ilir_expr e = expr(p);
	struct ilir_type t = ilir_type_of(p->m, e);
	if (t.lanes != 1 || (op == ILIR_RAMP && t.dtype != ILIR_INDEX))
		fail(p, NULL, "%s wants a scalar%s", ilir_op_spelling(op), op == ILIR_RAMP ? " index" : "");
	expect(p, ")");
	return ilir_spread(p->m, op, e, lanes);
}

static ilir_expr call(struct parser *p, enum ilir_op op)
{
	ilir_expr a[3];
	next(p);
	expect(p, "(");
	if (op == ILIR_BROADCAST || op == ILIR_RAMP)
		return spread_call(p, op);
	int n = list(p, a, 3, ")"), arity = ilir_op_arity(op);
	if (n != arity)
		fail(p, NULL, "%s takes %d operands, not %d", ilir_op_spelling(op), arity, n);
	check(p, &(struct ilir_node){.op = op, .args = n}, a);
	return n == 1	? ilir_unary(p->m, op, a[0])
	       : n == 2 ? ilir_binary(p->m, op, a[0], a[1])
			: ilir_ternary(p->m, op, a[0], a[1], a[2]);
}

/* What a name stands for: 2 * id, + 1 for a buffer. */
static int known_name(struct parser *p)
{
	int id = map_get(&p->names, p->token.text, p->token.length);
	if (id < 0)
		fail(p,
		     "variables come from for and let, buffers from buffer and alloc, before they are used",
		     "'%.*s' is not defined", (int)p->token.length, p->token.text);
	next(p);
	return id;
}

static ilir_expr reference(struct parser *p)
{
	int id = known_name(p);
	if (id % 2 == 0)
		return ilir_var_ref(p->m, (ilir_var){id / 2});
	ilir_expr index[ILIR_MAX_RANK];
	ilir_buffer b = {id / 2};
	expect(p, "[");
	int n = list(p, index, ILIR_MAX_RANK, "]");
	check(p, &(struct ilir_node){.op = ILIR_LOAD, .args = n, .buffer = b}, index);
	return ilir_load(p->m, b, index, n);
}

static ilir_expr word(struct parser *p)
{
	for (int i = 0; i < IMAGE_SIZES; i++)
		if (accept(p, ilir_size_word[i]))
			return ilir_size(p->m, i);
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_op_arity(i) > 0 && !ilir_is_infix(i) && sees(p, ilir_op_spelling(i)))
			return call(p, i);
	if (!at_name(p))
		expected(p, "an expression");
	return reference(p);
}

static ilir_expr operand(struct parser *p)
{
	bool negative = accept(p, "-");
	if (p->token.kind == NUMBER)
		return number(p, negative);
	if (sees(p, "nan"))
		return nan_constant(p, negative);
	if (accept(p, "inf"))
		return ilir_float(p->m, negative ? -__builtin_inff() : __builtin_inff());
	if (negative)
		expected(p, "a number");
	if (accept(p, "?"))
		return ilir_inferred(p->m);
	if (!accept(p, "("))
		return word(p);
	ilir_expr e = expr(p);
	expect(p, ")");
	return e;
}

static ilir_expr expr(struct parser *p)
{
	enter(p);
	ilir_expr a[2] = {operand(p)};
	for (int i = 0; i < ILIR_OPS; i++)
		if (ilir_is_infix(i) && accept(p, ilir_op_spelling(i))) {
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
	p->token.from = from;
	fail(p, "each variable and buffer has one definition in the module", "'%s' is defined already", text);
}

static int dim_name(struct parser *p)
{
	if (!at_name(p))
		expected(p, "a dimension");
	int id = map_get(&p->dims, p->token.text, p->token.length);
	if (id < 0)
		fail(p, "list it in the dim line", "'%.*s' is not a dimension", (int)p->token.length,
		     p->token.text);
	next(p);
	return id;
}

static struct ilir_dim dim(struct parser *p)
{
	struct ilir_dim d = {.rows = IMAGE_ONE};
	if (p->token.kind == NUMBER) {
		d.extent = integer(p, 0, largest);
	} else {
		d.rows = one_of(p, ilir_size_word, IMAGE_SIZES, "an extent");
		d.extent = accept(p, "+") ? integer(p, 0, largest) : 0;
	}
	d.padded = accept(p, "/") ? integer(p, d.extent, largest) : d.extent;
	expect(p, ":");
	d.name = dim_name(p);
	return d;
}

/* f32 [64:D, 8:lane] */
static void shape(struct parser *p, struct ilir_buffer_decl *b)
{
	b->dtype = one_of(p, ilir_dtype_word, ILIR_DTYPES, "an element type");
	expect(p, "[");
	if (accept(p, "]"))
		return;
	do {
		if (b->rank == ILIR_MAX_RANK)
			fail(p, NULL, "more than %d dimensions", ILIR_MAX_RANK);
		b->dim[b->rank++] = dim(p);
	} while (accept(p, ","));
	expect(p, "]");
}

static struct image_pack_dim pack_dim(struct parser *p)
{
	struct image_pack_dim d = {.extent = integer(p, 0, largest)};
	expect(p, "of");
	if (accept(p, "source")) {
		d.axis = IMAGE_PACK_SOURCE;
	} else {
		expect(p, "axis");
		d.axis = integer(p, 0, TENSOR_MAX_RANK - 1);
	}
	expect(p, "step");
	d.stride = integer(p, -largest, largest);
	return d;
}

static struct image_pack_source pack_source(struct parser *p)
{
	struct image_pack_source s = {.param = integer(p, 0, INT32_MAX)};
	int rank = 0;
	expect(p, "[");
	if (accept(p, "]"))
		return s;
	do {
		if (rank == TENSOR_MAX_RANK)
			fail(p, NULL, "more than %d axes", TENSOR_MAX_RANK);
		s.begin[rank] = integer(p, -largest, largest);
		expect(p, "..");
		s.end[rank++] = integer(p, -largest, largest);
	} while (accept(p, ","));
	expect(p, "]");
	return s;
}

static const struct image_recipe *recipe(struct parser *p)
{
	struct image_recipe r = {0};
	VEC(struct image_pack_source) sources = {0};
	expect(p, "[");
	while (!accept(p, "]")) {
		if (r.dims)
			expect(p, ",");
		if (r.dims == IMAGE_PACK_DIMS)
			fail(p, NULL, "more than %d packed dimensions", IMAGE_PACK_DIMS);
		r.dim[r.dims++] = pack_dim(p);
	}
	expect(p, "from");
	do {
		struct image_pack_source s = pack_source(p);
		vec_push(p->m->arena, &sources, s);
	} while (accept(p, ","));
	r.sources = sources.n;
	r.source = sources.at;
	return arena_copy(p->m->arena, &r, sizeof r);
}

static void buffer(struct parser *p)
{
	const char *from = p->token.from;
	struct ilir_buffer_decl b = {.name = name(p, "the buffer's name")};
	define(p, b.name, from, 2 * p->m->buffers.n + 1);
	expect(p, ":");
	b.kind = one_of(p, ilir_kind_word, ILIR_REGISTER, "a kind of buffer");
	b.which = integer(p, 0, INT32_MAX);
	shape(p, &b);
	if (accept(p, "packed"))
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
	expect(p, "in");
	*begin = expr(p);
	expect(p, "..");
	*end = expr(p);
}

static struct ilir_stmt *for_stmt(struct parser *p)
{
	ilir_expr begin, end;
	int64_t step = 1;
	const char *from = p->token.from, *text = name(p, "the loop's variable");
	expect(p, ":");
	int walked = dim_name(p);
	bounds(p, &begin, &end);
	if (accept(p, "step"))
		step = integer(p, 1, largest);
	ilir_var v = new_var(p, text, from, (struct ilir_type){ILIR_INDEX, 1});
	enum ilir_loop_kind kind =
	    sees(p, "{") ? ILIR_SERIAL
			 : one_of(p, ilir_loop_word, ILIR_UNROLLED + 1, "a kind of loop or '{'");
	return ilir_for(p->m, v, begin, end, step, walked, kind, block(p));
}

static struct ilir_stmt *if_stmt(struct parser *p)
{
	ilir_expr condition = expr(p);
	struct ilir_stmt *then = block(p);
	return ilir_if(p->m, condition, then, accept(p, "else") ? block(p) : NULL);
}

static struct ilir_stmt *let_stmt(struct parser *p)
{
	const char *from = p->token.from, *text = name(p, "the variable");
	expect(p, "=");
	ilir_expr value = expr(p);
	return ilir_let(p->m, new_var(p, text, from, ilir_type_of(p->m, value)), value);
}

static struct ilir_stmt *alloc_stmt(struct parser *p)
{
	const char *from = p->token.from;
	struct ilir_buffer_decl b = {.kind = ILIR_REGISTER, .name = name(p, "the register's name")};
	define(p, b.name, from, 2 * p->m->buffers.n + 1);
	expect(p, ":");
	shape(p, &b);
	b.parked = accept(p, "parked");
	return ilir_alloc(p->m, ilir_new_buffer(p->m, b));
}

static int group_number(struct parser *p)
{
	return accept(p, "group") ? integer(p, 1, INT32_MAX) : 0;
}

/* of case 0 2 3 */
static unsigned case_mask(struct parser *p)
{
	unsigned mask = 0;
	if (!accept(p, "of"))
		return 0;
	expect(p, "case");
	do
		mask |= 1u << integer(p, 0, IMAGE_MAX_CASES - 1);
	while (p->token.kind == NUMBER);
	return mask;
}

static struct ilir_stmt *step_stmt(struct parser *p)
{
	ilir_expr begin, end;
	const char *text = name(p, "the step's name");
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
	if (!at_name(p))
		expected(p, "a statement");
	int id = known_name(p);
	if (id % 2 == 0)
		fail(p, "let introduces a new variable", "a variable is stored to as if it were a buffer");
	expect(p, "[");
	int n = list(p, index, ILIR_MAX_RANK, "]");
	expect(p, "=");
	return ilir_store(p->m, (ilir_buffer){id / 2}, index, n, expr(p));
}

static const struct {
	const char *word;
	struct ilir_stmt *(*parse)(struct parser *);
} statements[] = {
    {"for", for_stmt},	   {"if", if_stmt},	{"let", let_stmt},
    {"alloc", alloc_stmt}, {"step", step_stmt}, {"barrier", barrier_stmt},
    {"prefetch", prefetch_stmt},
};

static struct ilir_stmt *stmt(struct parser *p)
{
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (accept(p, statements[i].word))
			return statements[i].parse(p);
	return store_stmt(p);
}

static struct ilir_stmt *block(struct parser *p)
{
	struct ilir_stmt *first = NULL, **end = &first;
	enter(p);
	expect(p, "{");
	while (!accept(p, "}")) {
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
		const char *text = name(p, "a dimension");
		if (!map_add(&p->dims, text, strlen(text), p->m->dims.n))
			fail(p, NULL, "dimension '%s' is listed twice", text);
		ilir_dim_name(p->m, text);
	} while (accept(p, ","));
}

static void kernel(struct parser *p)
{
	struct ilir_kernel k = {.name = name(p, "the kernel's name")};
	expect(p, "in");
	k.domain = one_of(p, ilir_domain_word, ILIR_DOMAINS, "a domain");
	k.group = group_number(p);
	k.cases = case_mask(p);
	if (accept(p, "part")) {
		k.part = integer(p, 1, INT32_MAX);
		expect(p, "of");
		k.parts = integer(p, 1, INT32_MAX);
	}
	k.body = block(p);
	vec_push(p->m->arena, &p->m->kernels, k);
}

static void module(struct parser *p)
{
	next(p);
	expect(p, "module");
	p->m->name = name(p, "the module's name");
	define(p, "begin", p->at, 2 * ilir_begin.i);
	define(p, "end", p->at, 2 * ilir_end.i);
	if (accept(p, "dim"))
		dim_line(p);
	while (accept(p, "buffer"))
		buffer(p);
	while (accept(p, "kernel"))
		kernel(p);
	if (p->token.kind != END)
		expected(p, "a kernel or the end");
}

struct ilir_module *ilir_parse(struct arena *a, struct diags *d, const char *file, const char *text,
			       size_t length)
{
	struct parser *p = ARENA_NEW(a, struct parser);
	*p = (struct parser){.diags = d, .file = file, .names = map_in(a), .dims = map_in(a)};
	p->m = ARENA_NEW(a, struct ilir_module);
	ilir_init(p->m, a, "");
	p->begin = p->at = arena_text(a, text, length);
	p->end = p->begin + length;
	if (setjmp(p->failed))
		return NULL;
	module(p);
	return p->m;
}
