/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/word_products.h"

#include "rewrite/expressions.h"

static const struct sub_use none;

/* A variable of an extent that is not in a list. */
static int find_free_var(struct sub_program *p, int64_t extent, const int *var, int vars)
{
	for (int ordinal = 0;; ordinal++) {
		int v = sub_dim(p, extent, ordinal), i = 0;
		while (i < vars && var[i] != v)
			i++;
		if (i == vars)
			return v;
	}
}

/* The words that hold so many numbers; where they are summed by blocks, words of zeros make all blocks as long. */
static int64_t count_words(int64_t extent, const struct rewrite_parts *parts)
{
	int64_t words = (extent + parts->count - 1) / parts->count, blocks = (words + SUB_MOST_BLOCK - 1) / SUB_MOST_BLOCK;
	return parts->blocks ? ((words + blocks - 1) / blocks + 3) / 4 * 4 * blocks : words;
}

/* The parts of a number's words that stand at `place` in each, along its dimension d, whose variable becomes
 * `word`. */
static struct sub_use take_part(struct sub_program *p, sub_ref number, int d, int word,
				const struct rewrite_parts *parts, int place)
{
	const struct sub_value *x = sub_at(p, number);
	int64_t extent = p->vars.at[x->var[d]].extent;
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN,
			      .args = 1,
			      .arg = {sub_as_is(p, number)},
			      .vars = x->vars,
			      .map = map,
			      .fills = p->vars.at[word].extent * parts->count > extent};
	for (int i = 0; i < x->vars; i++) {
		v.var[i] = i == d ? word : x->var[i];
		map[i] = (struct sub_map){.function = SUB_AFFINE,
					  .var = v.var[i],
					  .scale = i == d ? parts->count : 1,
					  .offset = i == d ? place : 0};
	}
	return sub_as_is(p, sub_add(p, v, NULL));
}

/* The words of a value along its dimension d. */
static sub_ref append_parts(struct sub_program *p, sub_ref number, int d, int64_t extent,
			    const struct rewrite_parts *parts)
{
	const struct sub_value x = *sub_at(p, number);
	int word = find_free_var(p, extent, x.var, x.vars);
	struct sub_use words = take_part(p, number, d, word, parts, parts->count - 1);
	for (int place = parts->count - 1; place-- > 0;)
		words = rewrite_add_operator(p, parts->append, words, take_part(p, number, d, word, parts, place), none);
	return words.value;
}

/* The word of which all parts are a number. */
static double repeat_number(double number, const struct rewrite_parts *parts)
{
	int bits = parts->count == 4 ? 8 : 16;
	uint32_t word = 0;
	for (int i = 0; i < parts->count; i++)
		word = word << bits | ((uint32_t)(int32_t)number & ((1u << bits) - 1));
	return (int32_t)word;
}

/* Whether windows, or whatever repeats elements of its argument, leave a dimension of the value as it is:
 * that of the argument, or -1. */
static int find_kept(const struct sub_program *p, const struct sub_value *v, int d)
{
	const struct sub_value *x = sub_at(p, v->arg[0].value);
	int kept = -1;
	for (int i = 0; i < x->vars; i++) {
		const struct sub_map *m = &v->map[i];
		if (m->function != SUB_AFFINE)
			return -1;
		if (m->var != v->var[d] && (!m->scale2 || m->var2 != v->var[d]))
			continue;
		if (kept >= 0 || m->scale2 || m->scale != 1 || m->offset)
			return -1;
		kept = i;
	}
	bool whole = kept >= 0 && p->vars.at[x->var[kept]].extent == p->vars.at[v->var[d]].extent;
	return whole && sub_row_elements(p, x) <= sub_row_elements(p, v) ? kept : -1;
}

/* The words of a value along its dimension d.  Words of windows are windows of words, which are made once for
 * all windows that have them. */
static sub_ref make_words(struct sub_program *p, sub_ref number, int d, int64_t extent,
			  const struct rewrite_parts *parts)
{
	struct sub_value v = *sub_at(p, number);
	struct sub_map map[SUB_MAX_VARS];
	int kept = v.op == SUB_ASSIGN ? find_kept(p, &v, d) : -1;
	if (kept < 0)
		return append_parts(p, number, d, extent, parts);
	sub_ref words = make_words(p, v.arg[0].value, kept, extent, parts);
	if (!words.i)
		return words;
	v.var[d] = find_free_var(p, extent, v.var, v.vars);
	memcpy(map, v.map, sizeof *map * sub_at(p, words)->vars);
	map[kept].var = v.var[d];
	v.map = map;
	v.arg[0] = sub_as_is(p, words);
	v.fill = v.fills ? repeat_number(v.fill, parts) : v.fill;
	return sub_add(p, v, NULL);
}

/* The words of a number along the variable k, under its names with `q` instead of k. */
static struct sub_use add_words(struct sub_program *p, struct sub_use number, int k, int q,
				const struct rewrite_parts *parts)
{
	int d = 0;
	while (number.var[d] != k)
		d++;
	number.value = make_words(p, number.value, d, p->vars.at[q].extent, parts);
	number.var[d] = q;
	return number;
}

/* Whether words of a number along the variable k, which it has, are made for each window: it repeats elements
 * of its argument, and does so along k. */
static bool makes_windows(const struct sub_program *p, const struct sub_use *number, int k)
{
	const struct sub_value *v = sub_at(p, number->value);
	int d = 0;
	while (number->var[d] != k)
		d++;
	return v->op == SUB_ASSIGN && find_kept(p, v, d) < 0 &&
	       sub_row_elements(p, sub_at(p, v->arg[0].value)) < sub_row_elements(p, v);
}

/* The dot products of words along k that are summed, for each element of the last variable.  Words that are
 * made for each window count twice, as they are stored. */
static double count_dots(const struct sub_program *p, const struct sub_vars *reduced,
			 const struct sub_use *number, int k, const struct rewrite_parts *parts)
{
	double dots = makes_windows(p, number, k) ? 2 : 1;
	for (int i = 0; i < reduced->n; i++) {
		int64_t extent = p->vars.at[reduced->var[i]].extent;
		dots *= reduced->var[i] == k ? (extent + parts->count - 1) / parts->count : extent;
	}
	return dots;
}

/* The reduced variable that words are made along: that of the fewest dot products. */
static int choose_reduced(const struct sub_program *p, const struct sub_vars *reduced,
			  const struct sub_use *number, const struct rewrite_parts *parts)
{
	int k = reduced->var[0];
	for (int i = 1; i < reduced->n; i++)
		if (count_dots(p, reduced, number, reduced->var[i], parts) <
		    count_dots(p, reduced, number, k, parts))
			k = reduced->var[i];
	return k;
}

double rewrite_count_readers(const struct sub_program *p, const struct sub_use *x, const struct sub_use *w)
{
	double n = 1;
	for (int i = 0; i < w->vars; i++)
		n *= sub_use_has(x, w->var[i]) ? 1 : (double)p->vars.at[w->var[i]].extent;
	return n;
}

bool rewrite_makes_single_words(const struct sub_program *p, const struct sub_vars *reduced, const struct sub_use *x,
				const struct sub_use *w, const struct rewrite_parts *parts)
{
	return rewrite_count_readers(p, x, w) == 1 && makes_windows(p, x, choose_reduced(p, reduced, x, parts));
}

/* Writes the names of a sum's arguments; returns their number. */
static int list_names(const struct sub_use *x, const struct sub_use *w, const struct sub_use *start, int *names)
{
	const struct sub_use *all[] = {x, w, start};
	int n = 0;
	for (int a = 0; a < 3; a++)
		for (int i = 0; i < all[a]->vars; i++)
			names[n++] = all[a]->var[i];
	return n;
}

struct sub_use rewrite_sum_words(struct sub_program *p, const struct sub_vars *reduced, struct sub_use x,
				 struct sub_use w, struct sub_use start, const struct rewrite_parts *parts)
{
	int k = choose_reduced(p, reduced, &x, parts), names[3 * SUB_MAX_VARS], n = list_names(&x, &w, &start, names);
	int q = find_free_var(p, count_words(p->vars.at[k].extent, parts), names, n);
	struct sub_value v = {.op = parts->accumulate, .reduced = *reduced};
	v.reduced.var[sub_position_in(&v.reduced, k)] = q;
	v.arg[0] = start;
	v.arg[1] = add_words(p, x, k, q, parts);
	v.arg[2] = add_words(p, w, k, q, parts);
	return rewrite_use_value(p, v);
}

/* --- words of blocks --- */

/* The numbers of a dimension in blocks of 2 * words. */
struct blocks {
	int64_t blocks, words;
};

/* As few blocks as there can be, of a multiple of four words each. */
static struct blocks find_blocks(int64_t extent)
{
	int64_t words = (extent + 1) / 2, blocks = (words + SUB_MOST_BF16_BLOCK - 1) / SUB_MOST_BF16_BLOCK;
	return (struct blocks){blocks, ((words + blocks - 1) / blocks + 3) / 4 * 4};
}

/* A value whose dimension d has become two, of the blocks and of the words of one; its argument and maps are to be set. */
static struct sub_value cut_dimension(struct sub_program *p, const struct sub_value *x, int d, const struct blocks *b)
{
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .vars = x->vars + 1};
	for (int i = 0; i < x->vars; i++)
		v.var[i + (i > d)] = x->var[i];
	int block = find_free_var(p, b->blocks, x->var, x->vars), others[SUB_MAX_VARS + 1];
	memcpy(others, x->var, x->vars * sizeof *others);
	others[x->vars] = block;
	v.var[d] = block;
	v.var[d + 1] = find_free_var(p, b->words, others, x->vars + 1);
	return v;
}

/* The lower numbers of the words of all blocks, or the upper ones, which are those behind them in the block. */
static struct sub_use take_half(struct sub_program *p, sub_ref number, int d, const struct blocks *b, bool upper)
{
	const struct sub_value x = *sub_at(p, number);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = cut_dimension(p, &x, d, b);
	for (int i = 0; i < x.vars; i++)
		map[i] = (struct sub_map){.function = SUB_AFFINE, .var = v.var[i + (i > d)], .scale = 1};
	map[d].scale = 2 * b->words;
	map[d].var2 = v.var[d + 1];
	map[d].scale2 = 1;
	map[d].offset = upper ? b->words : 0;
	v.arg[0] = sub_as_is(p, number);
	v.map = map;
	v.fills = 2 * b->blocks * b->words > p->vars.at[x.var[d]].extent;
	return sub_as_is(p, sub_add(p, v, NULL));
}

/* The words of a value along its dimension d.  As in make_words, what only repeats elements repeats words. */
static sub_ref make_block_words(struct sub_program *p, sub_ref number, int d, const struct blocks *b)
{
	const struct sub_value x = *sub_at(p, number);
	struct sub_map map[SUB_MAX_VARS];
	int kept = x.op == SUB_ASSIGN ? find_kept(p, &x, d) : -1;
	if (kept < 0) {
		struct sub_use upper = take_half(p, number, d, b, true), lower = take_half(p, number, d, b, false);
		return rewrite_add_operator(p, SUB_APPEND16, upper, lower, none).value;
	}
	if (sub_at(p, x.arg[0].value)->vars == SUB_MAX_VARS)
		return (sub_ref){0};
	sub_ref words = make_block_words(p, x.arg[0].value, kept, b);
	if (!words.i)
		return words;
	struct sub_value v = cut_dimension(p, &x, d, b);
	for (int i = 0; i < sub_at(p, x.arg[0].value)->vars; i++)
		map[i + (i > kept)] = x.map[i];
	for (int i = 0; i < 2; i++)
		map[kept + i] = (struct sub_map){.function = SUB_AFFINE, .var = v.var[d + i], .scale = 1};
	v.map = map;
	v.arg[0] = sub_as_is(p, words);
	v.fills = x.fills;
	v.fill = x.fills ? repeat_number(x.fill, &(struct rewrite_parts){.count = 2}) : 0;
	return sub_add(p, v, NULL);
}

/* The words of a number along the variable k, under its names with `block` and `word` instead of k. */
static struct sub_use add_block_words(struct sub_program *p, struct sub_use number, int k, int block, int word, const struct blocks *b)
{
	int d = 0;
	while (number.var[d] != k)
		d++;
	number.value = make_block_words(p, number.value, d, b);
	memmove(&number.var[d + 2], &number.var[d + 1], (number.vars - d - 1) * sizeof *number.var);
	number.var[d] = block;
	number.var[d + 1] = word;
	number.vars++;
	return number;
}

struct sub_use rewrite_sum_blocks(struct sub_program *p, int k, struct sub_use x, struct sub_use w, struct sub_use start)
{
	const struct blocks b = find_blocks(p->vars.at[k].extent);
	int names[3 * SUB_MAX_VARS + 1];
	if (x.vars == SUB_MAX_VARS || w.vars == SUB_MAX_VARS || !start.value.i)
		return none;
	int n = list_names(&x, &w, &start, names);
	int block = find_free_var(p, b.blocks, names, n);
	names[n++] = block;
	int word = find_free_var(p, b.words, names, n);
	struct sub_value v = {.op = SUB_ACCUMULATE_BF16_BLOCK, .reduced = {2, {block, word}}};
	v.arg[0] = start;
	v.arg[1] = add_block_words(p, x, k, block, word, &b);
	v.arg[2] = add_block_words(p, w, k, block, word, &b);
	return v.arg[1].value.i && v.arg[2].value.i ? rewrite_use_value(p, v) : none;
}
