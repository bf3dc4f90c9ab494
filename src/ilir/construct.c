/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Constructors: hash-consing, type inference, folding of index arithmetic. */
#include "ilir/ilir.h"

enum rule { LEAF, EACH, SCALAR, SELECT, WORDS, BYTES, SPREAD, PAIR, LOAD };

static const struct {
	const char *spelling;
	int arity;
	enum rule rule;
	uint8_t result[ILIR_DTYPES]; /* by type of the operands: the type of the result + 1; 0 = not taken */
} ops[] = {
#define ILIR_ROW(name, operand, result, expression) [ILIR_##operand] = 1 + ILIR_##result,
#define ILIR_OP(name, spelling, arity, rule, meaning, ...) {spelling, arity, rule, {__VA_ARGS__}},
#include "ilir/ilir_ops.def"
};

const char *ilir_op_spelling(enum ilir_op op)
{
	return ops[op].spelling;
}

int ilir_op_arity(enum ilir_op op)
{
	return ops[op].arity;
}

void ilir_init(struct ilir_module *m, struct arena *a, const char *name)
{
	*m = (struct ilir_module){.arena = a, .name = name, .table_size = 256};
	m->table = ARENA_ARRAY(a, uint32_t, m->table_size);
	m->tables = ARENA_NEW(a, struct ilir_tables *);
	m->names = map_in(a);
	map_add(&m->names, "begin", 5, 1);
	map_add(&m->names, "end", 3, 1);
	struct ilir_type index = {ILIR_INDEX, 1};
	vec_push(a, &m->nodes, (struct ilir_node){0});
	vec_push(a, &m->buffers, (struct ilir_buffer_decl){0});
	vec_push(a, &m->vars, (struct ilir_var_decl){0});
	vec_push(a, &m->vars, (struct ilir_var_decl){"begin", index});
	vec_push(a, &m->vars, (struct ilir_var_decl){"end", index});
}

/* --- types --- */

static struct ilir_type reject_operands(const char **problem, const char *why)
{
	*problem = why;
	return (struct ilir_type){0, 0};
}

static struct ilir_type infer_load(const struct ilir_module *m, const struct ilir_node *n,
				   const ilir_expr *args, const char **problem)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, n->buffer);
	if (n->args != b->rank)
		return reject_operands(problem, "the number of indices is not the buffer's rank");
	uint8_t lanes = 1;
	for (int i = 0; i < n->args; i++) {
		struct ilir_type t = ilir_type_of(m, args[i]);
		if (t.dtype != ILIR_INDEX)
			return reject_operands(problem, "an index is not of type index");
		if (t.lanes != 1 && i + 1 < n->args)
			return reject_operands(problem, "only the last index may be a vector");
		lanes = t.lanes;
	}
	return (struct ilir_type){b->dtype, lanes};
}

static struct ilir_type infer_select(struct ilir_type condition, struct ilir_type yes, struct ilir_type no,
				     const char **problem)
{
	if (condition.dtype != ILIR_BOOL || condition.lanes != yes.lanes)
		return reject_operands(problem, "select needs a bool of as many lanes as its sides");
	if (!ilir_same_type(yes, no))
		return reject_operands(problem, "the sides of select differ in type");
	return yes;
}

static struct ilir_type infer_words(struct ilir_type a, struct ilir_type b, struct ilir_type c, const char **problem)
{
	if (a.dtype != ILIR_I32 || !ilir_same_type(a, b) || c.dtype != ILIR_F32 || c.lanes != a.lanes)
		return reject_operands(problem, "operands are not two i32 and an f32 of as many lanes");
	return c;
}

static struct ilir_type infer_pair(const struct ilir_module *m, const struct ilir_node *n, const ilir_expr *args,
				   const char **problem)
{
	static const struct ilir_type index = {ILIR_INDEX, 1};
	struct ilir_type t = ilir_type_of(m, args[0]);
	if (!ilir_same_type(t, ilir_type_of(m, args[1])))
		return reject_operands(problem, "operands differ in type");
	for (int i = 2; i < n->args; i++)
		if (!ilir_same_type(index, ilir_type_of(m, args[i])))
			return reject_operands(problem, "what follows the first two operands is no index");
	return t;
}

static struct ilir_type infer_word(struct ilir_type t, const char **problem)
{
	if ((t.dtype != ILIR_U8 && t.dtype != ILIR_I8) || t.lanes != 4)
		return reject_operands(problem, "the operand is not four bytes");
	return (struct ilir_type){ILIR_I32, 1};
}

struct ilir_type ilir_infer_type(const struct ilir_module *m, const struct ilir_node *n,
				 const ilir_expr *args, const char **problem)
{
	enum rule rule = ops[n->op].rule;
	*problem = NULL;
	if (rule == LEAF || rule == SPREAD)
		return n->type;
	if (rule == LOAD)
		return infer_load(m, n, args, problem);
	for (int i = 0; i < n->args; i++)
		if (!ilir_type_of(m, args[i]).lanes)
			return reject_operands(problem, "an operand has no type");
	struct ilir_type t = ilir_type_of(m, args[0]);
	if (rule == SELECT)
		return infer_select(t, ilir_type_of(m, args[1]), ilir_type_of(m, args[2]), problem);
	if (rule == PAIR)
		return infer_pair(m, n, args, problem);
	if (rule == WORDS)
		return infer_words(t, ilir_type_of(m, args[1]), ilir_type_of(m, args[2]), problem);
	if (rule == BYTES)
		return infer_word(t, problem);
	for (int i = 1; i < n->args; i++)
		if (!ilir_same_type(t, ilir_type_of(m, args[i])))
			return reject_operands(problem, "operands differ in type");
	if (!ops[n->op].result[t.dtype])
		return reject_operands(problem, "operands have a type that this operator does not take");
	if (rule == SCALAR && t.lanes != 1)
		return reject_operands(problem, "operands must be scalar");
	return (struct ilir_type){ops[n->op].result[t.dtype] - 1, t.lanes};
}

/* --- hash-consing --- */

/* The value that identifies a leaf of an op and type.  Floats are compared by their bits: 0 and -0
 * differ, a NaN equals itself. */
static int64_t payload_of(const struct ilir_node *n)
{
	switch (n->op) {
	case ILIR_CONST_F: {
		int32_t bits;
		memcpy(&bits, &n->f, sizeof bits);
		return bits;
	}
	case ILIR_CONST_I:
	case ILIR_RAMP:
		return n->i;
	case ILIR_VAR:
		return n->var.i;
	case ILIR_SIZE:
		return n->size;
	case ILIR_LOAD:
		return n->buffer.i;
	default:
		return 0;
	}
}

static unsigned long hash_node(const struct ilir_node *n, const ilir_expr *args)
{
	int64_t head[] = {n->op, n->type.dtype, n->type.lanes, payload_of(n)};
	return hash_bytes(hash_bytes(HASH_START, head, sizeof head), args, n->args * sizeof *args);
}

static bool same_node(const struct ilir_module *m, uint32_t at, const struct ilir_node *n,
		      const ilir_expr *args)
{
	const struct ilir_node *o = &m->nodes.at[at];
	return o->op == n->op && o->args == n->args && ilir_same_type(o->type, n->type) &&
	       payload_of(o) == payload_of(n) &&
	       (!n->args || memcmp(&m->args.at[o->arg], args, n->args * sizeof *args) == 0);
}

static uint32_t *find_slot(struct ilir_module *m, const struct ilir_node *n, const ilir_expr *args)
{
	for (size_t i = hash_node(n, args);; i++) {
		uint32_t *slot = &m->table[i & (m->table_size - 1)];
		if (!*slot || same_node(m, *slot, n, args))
			return slot;
	}
}

static void grow_table(struct ilir_module *m)
{
	m->table_size *= 2;
	m->table = ARENA_ARRAY(m->arena, uint32_t, m->table_size);
	for (uint32_t i = 1; i < m->nodes.n; i++) {
		const struct ilir_node *n = &m->nodes.at[i];
		*find_slot(m, n, n->args ? &m->args.at[n->arg] : NULL) = i;
	}
}

static ilir_expr intern_node(struct ilir_module *m, struct ilir_node n, const ilir_expr *args)
{
	const char *problem;
	ilir_expr copy[ILIR_MAX_RANK] = {{0}}; /* args may point into the pool, which grows below */
	for (int i = 0; i < n.args; i++)
		copy[i] = args[i];
	n.type = ilir_infer_type(m, &n, copy, &problem);
	if (2 * m->nodes.n > m->table_size)
		grow_table(m);
	uint32_t *slot = find_slot(m, &n, copy);
	if (*slot)
		return (ilir_expr){*slot};
	*slot = m->nodes.n;
	n.arg = m->args.n;
	for (int i = 0; i < n.args; i++)
		vec_push(m->arena, &m->args, copy[i]);
	vec_push(m->arena, &m->nodes, n);
	return (ilir_expr){*slot};
}

/* --- leaves --- */

ilir_expr ilir_float(struct ilir_module *m, float f)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_CONST_F, .type = {ILIR_F32, 1}, .f = f}, NULL);
}

ilir_expr ilir_index(struct ilir_module *m, int64_t i)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_CONST_I, .type = {ILIR_INDEX, 1}, .i = i}, NULL);
}

ilir_expr ilir_i32(struct ilir_module *m, int32_t i)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_CONST_I, .type = {ILIR_I32, 1}, .i = i}, NULL);
}

ilir_expr ilir_i64(struct ilir_module *m, int64_t i)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_CONST_I, .type = {ILIR_I64, 1}, .i = i}, NULL);
}

ilir_expr ilir_bool(struct ilir_module *m, bool b)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_CONST_I, .type = {ILIR_BOOL, 1}, .i = b}, NULL);
}

ilir_expr ilir_var_ref(struct ilir_module *m, ilir_var v)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_VAR, .type = m->vars.at[v.i].type, .var = v},
			   NULL);
}

ilir_expr ilir_size(struct ilir_module *m, enum image_size size)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_SIZE, .type = {ILIR_INDEX, 1}, .size = size},
			   NULL);
}

ilir_expr ilir_inferred(struct ilir_module *m)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_INFERRED, .type = {ILIR_INDEX, 1}}, NULL);
}

ilir_expr ilir_load(struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int n)
{
	return intern_node(m, (struct ilir_node){.op = ILIR_LOAD, .args = n, .buffer = b}, index);
}

ilir_expr ilir_load_index(struct ilir_module *m, ilir_buffer b, const ilir_expr *index, int n)
{
	return ilir_unary(m, ILIR_TO_INDEX, ilir_load(m, b, index, n));
}

ilir_expr ilir_loaded_index(const struct ilir_module *m, ilir_expr e)
{
	if (ilir_at(m, e)->op != ILIR_TO_INDEX || ilir_at(m, ilir_arg(m, e, 0))->op != ILIR_LOAD)
		return (ilir_expr){0};
	return ilir_arg(m, e, 0);
}

/* --- operators --- */

static bool fold_constants(enum ilir_op op, int64_t a, int64_t b, int64_t *result)
{
	switch (op) {
	case ILIR_ADD:
		return !__builtin_add_overflow(a, b, result);
	case ILIR_SUB:
		return !__builtin_sub_overflow(a, b, result);
	case ILIR_MUL:
		return !__builtin_mul_overflow(a, b, result);
	case ILIR_DIV:
		*result = b > 0 ? a / b - (a % b < 0) : 0;
		return b > 0;
	case ILIR_MOD:
		*result = b > 0 ? (a % b + b) % b : 0;
		return b > 0;
	case ILIR_MIN:
		*result = a < b ? a : b;
		return true;
	case ILIR_MAX:
		*result = a > b ? a : b;
		return true;
	default:
		return false;
	}
}

/* Simplifies index arithmetic: moves constants to the right, folds them, drops neutral elements.  None = it
 * is as simple as can be. */
static ilir_expr fold_index(struct ilir_module *m, enum ilir_op op, ilir_expr a, ilir_expr b)
{
	int64_t x, y, r;
	bool left = ilir_constant(m, a, &x), right = ilir_constant(m, b, &y);
	if (left && right && fold_constants(op, x, y, &r))
		return ilir_index(m, r);
	if (left && !right && (op == ILIR_ADD || op == ILIR_MUL))
		return ilir_binary(m, op, b, a);
	if (!right)
		return (ilir_expr){0};
	if (op == ILIR_SUB)
		return ilir_binary(m, ILIR_ADD, a, ilir_index(m, -y));
	if ((op == ILIR_ADD && y == 0) || ((op == ILIR_MUL || op == ILIR_DIV) && y == 1))
		return a;
	if ((op == ILIR_MUL && y == 0) || (op == ILIR_MOD && y == 1))
		return ilir_index(m, 0);
	if (op == ILIR_ADD && ilir_at(m, a)->op == ILIR_ADD && ilir_constant(m, ilir_arg(m, a, 1), &x))
		return ilir_binary(m, ILIR_ADD, ilir_arg(m, a, 0), ilir_index(m, x + y));
	return (ilir_expr){0};
}

ilir_expr ilir_unary(struct ilir_module *m, enum ilir_op op, ilir_expr a)
{
	return intern_node(m, (struct ilir_node){.op = op, .args = 1}, &a);
}

ilir_expr ilir_binary(struct ilir_module *m, enum ilir_op op, ilir_expr a, ilir_expr b)
{
	struct ilir_type t = ilir_type_of(m, a);
	if (t.dtype == ILIR_INDEX && t.lanes == 1) {
		ilir_expr folded = fold_index(m, op, a, b);
		if (folded.i)
			return folded;
	}
	return intern_node(m, (struct ilir_node){.op = op, .args = 2}, (ilir_expr[]){a, b});
}

/* Whether a condition is one of constant indices; sets its value. */
static bool is_known(const struct ilir_module *m, ilir_expr condition, bool *holds)
{
	const struct ilir_node *n = ilir_at(m, condition);
	int64_t x, y;
	bool left, right;
	if (n->args != 2)
		return false;
	ilir_expr a = ilir_arg(m, condition, 0), b = ilir_arg(m, condition, 1);
	if (n->op == ILIR_AND || n->op == ILIR_OR) {
		if (!is_known(m, a, &left) || !is_known(m, b, &right))
			return false;
		*holds = n->op == ILIR_AND ? left && right : left || right;
		return true;
	}
	if (!ilir_constant(m, a, &x) || !ilir_constant(m, b, &y))
		return false;
	*holds = n->op == ILIR_LT ? x < y : n->op == ILIR_LE ? x <= y : x == y;
	return n->op == ILIR_LT || n->op == ILIR_LE || n->op == ILIR_EQ;
}

ilir_expr ilir_ternary(struct ilir_module *m, enum ilir_op op, ilir_expr a, ilir_expr b, ilir_expr c)
{
	bool holds;
	if (op == ILIR_SELECT && b.i == c.i)
		return b;
	if (op == ILIR_SELECT && is_known(m, a, &holds))
		return holds ? b : c;
	return intern_node(m, (struct ilir_node){.op = op, .args = 3}, (ilir_expr[]){a, b, c});
}

ilir_expr ilir_spread(struct ilir_module *m, enum ilir_op op, ilir_expr a, int lanes)
{
	struct ilir_type t = ilir_type_of(m, a);
	if (op == ILIR_RAMP)
		return ilir_ramp(m, a, lanes, 1);
	t.lanes = lanes;
	return intern_node(m, (struct ilir_node){.op = op, .args = 1, .type = t}, &a);
}

ilir_expr ilir_ramp(struct ilir_module *m, ilir_expr a, int lanes, int64_t step)
{
	struct ilir_type t = {ilir_type_of(m, a).dtype, lanes};
	return intern_node(m, (struct ilir_node){.op = ILIR_RAMP, .args = 1, .type = t, .i = step}, &a);
}

ilir_expr ilir_splice(struct ilir_module *m, ilir_expr a, ilir_expr b, int64_t first, int64_t step, int64_t apart)
{
	ilir_expr args[] = {a, b, ilir_index(m, first), ilir_index(m, step), ilir_index(m, apart)};
	if (step == 1 && first == 0)
		return a;
	if (step == 1 && first == apart && apart == ilir_type_of(m, a).lanes)
		return b;
	if (a.i == b.i && ilir_at(m, a)->op == ILIR_BROADCAST)
		return a;
	return intern_node(m, (struct ilir_node){.op = ILIR_SPLICE, .args = 5}, args);
}

ilir_expr ilir_keep(struct ilir_module *m, ilir_expr a, ilir_expr b, int64_t begin, int64_t end)
{
	ilir_expr args[] = {a, b, ilir_index(m, begin), ilir_index(m, end)};
	if (begin == 0 && end == ilir_type_of(m, a).lanes)
		return a;
	return begin == end ? b : intern_node(m, (struct ilir_node){.op = ILIR_KEEP, .args = 4}, args);
}

int ilir_paired_lane(const struct ilir_module *m, ilir_expr e, int t)
{
	int64_t by[3] = {0}, lanes = ilir_type_of(m, e).lanes;
	for (int i = 2; i < ilir_at(m, e)->args; i++)
		by[i - 2] = ilir_at(m, ilir_arg(m, e, i))->i;
	if (ilir_at(m, e)->op == ILIR_KEEP)
		return (int)(t >= by[0] && t < by[1] ? t : lanes + t);
	int64_t at = by[0] + t * by[1], last = by[2] + lanes - 1;
	at = at < 0 ? 0 : at > last ? last : at;
	return (int)(at < lanes ? at : at - by[2] + lanes);
}

ilir_expr ilir_with_args(struct ilir_module *m, ilir_expr like, const ilir_expr *args)
{
	struct ilir_node n = *ilir_at(m, like);
	switch (n.args) {
	case 0:
		return like;
	case 2:
		if (n.op != ILIR_LOAD)
			return ilir_binary(m, n.op, args[0], args[1]);
		break;
	case 3:
		if (n.op != ILIR_LOAD)
			return ilir_ternary(m, n.op, args[0], args[1], args[2]);
		break;
	}
	return intern_node(m, n, args);
}
