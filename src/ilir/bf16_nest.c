/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads loops over blocks of words of bf16 that matrix registers can compute (matrix_nest.h):
 *
 *     for b in 0..8 {
 *       lower[0, ramp(16, 0)] = 0                                         zeros, in any order
 *       upper[0, ramp(16, 0)] = 0
 *       for q in 0..16 {
 *         lower[..] = dot_bf16(low half of x[n, b, q], low half of w[b, q, 0, ramp(16, 0)], lower[..])
 *         upper[..] = dot_bf16(high half of x[n, b, q], high half of w[b, q, 0, ramp(16, 0)], upper[..])
 *       }
 *       sum[..] = flushed(flushed(sum[..]) + flushed(lower[..] + upper[..]))
 *     }
 *
 * where halves and flushed are what lower_half_dot and lower_block_sum make, and both halves are registers that are allocated in the
 * loop, so that nothing else uses them; words come by rising index.  Then the loop is one product of matrix registers for each block. */
#include "ilir/matrix_nest.h"

#include <math.h>

/* The sums of a block while they are read, by the loads of their places. */
struct block_sum {
	ilir_expr half[2];	       /* of the lower and of the upper halves */
	const struct ilir_stmt *store; /* behind the block */
	bool zero[2];
	int row, column;
	int64_t words[2]; /* whose products have been read, of each half: from the loop's variable on */
};

struct block_sums {
	struct matrix_nest *t;
	VEC(struct block_sum) sums;
};

/* --- expressions --- */

static bool has_op(const struct ilir_module *m, ilir_expr e, enum ilir_op op)
{
	return ilir_at(m, e)->op == op;
}

/* Whether all lanes are an i32. */
static bool is_word(const struct ilir_module *m, ilir_expr e, uint32_t word)
{
	const struct ilir_node *n = ilir_at(m, has_op(m, e, ILIR_BROADCAST) ? ilir_arg(m, e, 0) : e);
	return n->op == ILIR_CONST_I && n->type.dtype == ILIR_I32 && (uint32_t)n->i == word;
}

/* The word of which `e` has the bits of a mask, and the others of `rest`; none = it has not. */
static ilir_expr find_masked(const struct ilir_module *m, ilir_expr e, uint32_t mask, uint32_t rest)
{
	const ilir_expr none = {0};
	if (rest && (!has_op(m, e, ILIR_BIT_OR) || !is_word(m, ilir_arg(m, e, 1), rest)))
		return none;
	e = rest ? ilir_arg(m, e, 0) : e;
	return has_op(m, e, ILIR_BIT_AND) && is_word(m, ilir_arg(m, e, 1), mask) ? ilir_arg(m, e, 0) : none;
}

/* The number of which `e` is the one that has zeros for denormal numbers; none = it is not. */
static ilir_expr find_flushed(const struct ilir_module *m, ilir_expr e)
{
	bool flushed = has_op(m, e, ILIR_DOT_BF16) && is_word(m, ilir_arg(m, e, 0), 0x80008000) &&
		       is_word(m, ilir_arg(m, e, 1), 0);
	return flushed ? ilir_arg(m, e, 2) : (ilir_expr){0};
}

/* --- statements --- */

/* Reads `half = dot_bf16(half of a row, half of a weight, half)`. */
static bool read_half(struct matrix_nest *t, const struct ilir_stmt *s, struct matrix_product *p, bool *upper)
{
	struct ilir_module *m = t->m;
	if (!ilir_adds_to_sum(m, s) || !has_op(m, s->store.value, ILIR_DOT_BF16))
		return false;
	ilir_expr a = ilir_arg(m, s->store.value, 0), b = ilir_arg(m, s->store.value, 1);
	if (!has_op(m, a, ILIR_BROADCAST))
		return false;
	a = ilir_arg(m, a, 0);
	*upper = !find_masked(m, a, 0xffff, 0x80000000).i;
	ilir_expr x = *upper ? find_masked(m, a, 0xffff0000, 0x8000) : find_masked(m, a, 0xffff, 0x80000000),
		  w = find_masked(m, b, *upper ? 0xffff0000 : 0xffff, 0);
	return x.i && w.i && ilir_read_factors(t, x, w, p);
}

/* Whether a register is allocated in the loop over blocks. */
static bool is_allocated(const struct block_sums *b, ilir_buffer buffer)
{
	for (const struct ilir_stmt *s = b->t->blocks->loop.body; s != b->t->loop; s = s->next)
		if (s->kind == ILIR_ALLOC && s->alloc.i == buffer.i)
			return true;
	return false;
}

/* Whether a statement stores to a register that is the same in each block, and not the block's own. */
static bool stores_sum(const struct block_sums *b, const struct ilir_stmt *s)
{
	const struct ilir_module *m = b->t->m;
	bool same = ilir_type_of(m, s->store.value).lanes == ILIR_MATRIX_WORDS &&
		    ilir_buffer_at(m, s->store.buffer)->kind == ILIR_REGISTER && !is_allocated(b, s->store.buffer);
	for (int d = 0; d < s->store.indices; d++)
		same &= !ilir_uses_var(m, s->store.index[d], b->t->blocks->loop.var);
	return same;
}

/* Reads the statement behind the block that adds two halves to a sum. */
static bool read_close(struct block_sums *b, const struct ilir_stmt *s)
{
	struct ilir_module *m = b->t->m;
	struct block_sum sum = {.store = s};
	ilir_expr total = find_flushed(m, s->store.value);
	if (!stores_sum(b, s) || !total.i || !has_op(m, total, ILIR_ADD))
		return false;
	ilir_expr before = find_flushed(m, ilir_arg(m, total, 0)), block = find_flushed(m, ilir_arg(m, total, 1)),
		  own = ilir_load(m, s->store.buffer, s->store.index, s->store.indices);
	if (!block.i || !has_op(m, block, ILIR_ADD) || before.i != own.i)
		return false;
	for (int h = 0; h < 2; h++) {
		sum.half[h] = ilir_arg(m, block, h);
		if (!has_op(m, sum.half[h], ILIR_LOAD) || !is_allocated(b, ilir_at(m, sum.half[h])->buffer))
			return false;
	}
	vec_push(m->arena, &b->sums, sum);
	return true;
}

/* The sum one of whose halves is at a place; NULL = there is none. */
static struct block_sum *find_sum(const struct block_sums *b, ilir_expr place, bool upper)
{
	struct block_sum *found = NULL;
	for (size_t i = 0; i < b->sums.n && !found; i++)
		found = b->sums.at[i].half[upper].i == place.i ? &b->sums.at[i] : NULL;
	return found;
}

/* Reads a zero that a half begins with. */
static bool read_open(struct block_sums *b, const struct ilir_stmt *s)
{
	struct ilir_module *m = b->t->m;
	ilir_expr place = ilir_load(m, s->store.buffer, s->store.index, s->store.indices), zero = s->store.value;
	zero = has_op(m, zero, ILIR_BROADCAST) ? ilir_arg(m, zero, 0) : zero;
	if (!has_op(m, zero, ILIR_CONST_F) || ilir_at(m, zero)->f != 0 || signbit(ilir_at(m, zero)->f))
		return false;
	for (int h = 0; h < 2; h++) {
		struct block_sum *sum = find_sum(b, place, h);
		if (sum && !sum->zero[h])
			return sum->zero[h] = true;
	}
	return false;
}

/* Whether no two of the places that begin with zeros have a lane in common. */
static bool halves_are_apart(const struct block_sums *b)
{
	for (const struct ilir_stmt *s = b->t->blocks->loop.body; s != b->t->loop; s = s->next)
		for (const struct ilir_stmt *other = b->t->blocks->loop.body; s->kind == ILIR_STORE && other != s; other = other->next)
			if (other->kind == ILIR_STORE && !ilir_stores_are_apart(b->t->m, s, other))
				return false;
	return true;
}

/* Reads the statements before and behind the loop over words: those behind it first, which tell the halves apart. */
static bool read_ends(struct block_sums *b)
{
	for (const struct ilir_stmt *s = b->t->loop->next; s; s = s->next)
		if (s->kind != ILIR_STORE || !read_close(b, s))
			return false;
	for (const struct ilir_stmt *s = b->t->blocks->loop.body; s != b->t->loop; s = s->next)
		if (s->kind != ILIR_ALLOC && (s->kind != ILIR_STORE || !read_open(b, s)))
			return false;
	for (size_t i = 0; i < b->sums.n; i++)
		if (!b->sums.at[i].zero[0] || !b->sums.at[i].zero[1])
			return false;
	return b->sums.n && halves_are_apart(b);
}

/* Adds half a product to what a sum has; false unless it is that of the next word, and of the row and the column of the others. */
static bool add_half(struct block_sum *sum, const struct matrix_product *p, bool upper)
{
	if (!sum->words[0] && !sum->words[1]) {
		sum->row = p->row;
		sum->column = p->column;
	}
	return p->ahead == sum->words[upper]++ && p->row == sum->row && p->column == sum->column;
}

/* Reads the statements of the loop over words: the lower halves make the products. */
static bool read_halves(struct block_sums *b)
{
	for (const struct ilir_stmt *s = b->t->loop->loop.body; s; s = s->next) {
		struct matrix_product p;
		bool upper;
		if (!read_half(b->t, s, &p, &upper))
			return false;
		struct block_sum *sum = find_sum(b, ilir_arg(b->t->m, s->store.value, 2), upper);
		if (!sum || !add_half(sum, &p, upper))
			return false;
		p.store = sum->store;
		if (!upper && !ilir_add_product(b->t, p))
			return false;
	}
	return true;
}

/* Whether each sum has the products of all words of an iteration. */
static bool is_complete(const struct block_sums *b)
{
	int64_t words = b->t->loop->loop.step;
	bool complete = true;
	for (size_t i = 0; i < b->sums.n; i++)
		complete &= b->sums.at[i].words[0] == words && b->sums.at[i].words[1] == words;
	return complete;
}

bool ilir_read_bf16_products(struct matrix_nest *t)
{
	struct block_sums b = {.t = t};
	return read_ends(&b) && read_halves(&b) && is_complete(&b);
}
