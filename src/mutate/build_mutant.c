/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A mutant as sub-operators.  Of the image x, whose dimensions are read by windows:
 *
 *     apart    x, each dimension with its parts or phases as a dimension of their own
 *     image    the same, with parts side by side where a dimension is joined
 *     windows  of the image
 *     kernel   with further channels in place of a window's elements
 *     sum      the original's operator, of these
 *     results  the sum, with parts that lie side by side apart again
 *     whole    with the dimensions of the original
 *
 * Steps that move nothing are left out. */
#include "mutate/image_mutant.h"

/* Variables of a value and of what it reduces, and six for each dimension. */
enum { MOST_NAMES = 2 * SUB_MAX_VARS + 6 * TENSOR_MAX_RANK };

struct builder {
	struct sub_program *p;
	const struct mutate_site *s;
	const struct mutate_layout *l;
	const struct mutate_shape *h;
	struct sub_value y, a; /* copies: values move when others are added */
	int used[MOST_NAMES], uses;
	bool crowded; /* a value has too many variables */
	/* Variables, by dimension: of the image's main and extra part, of joined dimensions; of results; of the kernel. */
	int main[TENSOR_MAX_RANK], extra[TENSOR_MAX_RANK], axis[TENSOR_MAX_RANK];
	int out[TENSOR_MAX_RANK], out_axis[TENSOR_MAX_RANK], kernel[TENSOR_MAX_RANK];
};

/* --- variables --- */

static bool is_used(const struct builder *b, int var)
{
	for (int i = 0; i < b->uses; i++)
		if (b->used[i] == var)
			return true;
	return false;
}

static int take_var(struct builder *b, int64_t extent)
{
	int ordinal = 0;
	while (is_used(b, sub_dim(b->p, extent, ordinal)))
		ordinal++;
	return b->used[b->uses++] = sub_dim(b->p, extent, ordinal);
}

static void note_vars(struct builder *b, const int *var, int n)
{
	for (int i = 0; i < n; i++)
		b->used[b->uses++] = var[i];
}

static bool is_extra(const struct builder *b, int i)
{
	return b->l->of[i].piece != MUTATE_WHOLE;
}

static bool is_placed(const struct builder *b, int i, enum mutate_place place)
{
	return is_extra(b, i) && b->l->of[i].place == place;
}

static bool is_changed(const struct builder *b, int i)
{
	return is_extra(b, i) || b->h[i].joined >= 0;
}

/* How far from each other parts lie in the results of a joined dimension. */
static int64_t pitch_of(const struct builder *b, int i)
{
	return b->h[i].main / b->h[i].step;
}

static int64_t joined_outs(const struct builder *b, int i)
{
	return (b->h[b->h[i].joined].extra - 1) * pitch_of(b, i) + b->h[i].outs;
}

static void name_parts(struct builder *b)
{
	const struct mutate_site *s = b->s;
	for (int i = 0; i < s->dims; i++) {
		const struct mutate_shape *h = &b->h[i];
		bool channels = is_placed(b, i, MUTATE_CHANNELS), joined = h->joined >= 0;
		b->main[i] = take_var(b, h->main);
		b->extra[i] = is_extra(b, i) ? take_var(b, h->extra) : -1;
		b->axis[i] = joined ? take_var(b, h->main * b->h[h->joined].extra) : b->main[i];
		b->out[i] = h->outs == s->dim[i].outs ? s->dim[i].out : take_var(b, h->outs);
		b->out_axis[i] = joined ? take_var(b, joined_outs(b, i)) : b->out[i];
		b->kernel[i] = channels ? take_var(b, h->kernel) : s->dim[i].reduced;
	}
}

/* --- values --- */

static void add_var(struct builder *b, struct sub_value *v, int var)
{
	if (v->vars == SUB_MAX_VARS)
		b->crowded = true;
	else
		v->var[v->vars++] = var;
}

static struct sub_map read_at(int var)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = 1};
}

static struct sub_map read_sum(int var, int64_t scale, int var2, int64_t scale2, int64_t offset)
{
	if (var2 < 0 || !scale2)
		return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = scale, .offset = offset};
	return (struct sub_map){
	    .function = SUB_AFFINE, .var = var, .var2 = var2, .scale = scale, .scale2 = scale2, .offset = offset};
}

static struct sub_map read_digit(int var, int64_t divisor, int64_t modulus)
{
	return (struct sub_map){.function = SUB_DIGIT, .var = var, .scale = 1, .divisor = divisor, .modulus = modulus};
}

static sub_ref add_move(struct builder *b, struct sub_value *v, const struct sub_map *map)
{
	v->op = SUB_ASSIGN;
	v->map = map;
	if (b->crowded || !v->arg[0].value.i)
		return (sub_ref){0};
	return sub_add(b->p, *v, NULL);
}

/* Leading dimensions, then parts that are images of their own; with those that are to be joined unless `joined`. */
static void add_leading(struct builder *b, struct sub_value *v, const struct sub_value *like, bool joined)
{
	for (int i = 0; i < like->vars && b->p->vars.at[like->var[i]].set != SUB_DIM; i++)
		add_var(b, v, like->var[i]);
	for (int i = 0; i < b->s->dims; i++)
		if (is_placed(b, i, MUTATE_BATCH) || (!joined && is_placed(b, i, MUTATE_BEFORE)))
			add_var(b, v, b->extra[i]);
}

/* Sets the maps of leading dimensions. */
static void map_leading(const struct builder *b, struct sub_map *map)
{
	for (int i = 0; i < b->s->leading; i++)
		map[i] = b->a.map[i];
}

static sub_ref build_apart(struct builder *b)
{
	struct sub_value v = {.arg = {b->a.arg[0]}, .fills = true};
	struct sub_map map[SUB_MAX_VARS];
	map_leading(b, map);
	add_leading(b, &v, &b->a, false);
	for (int i = 0; i < b->s->dims; i++) {
		const struct mutate_shape *h = &b->h[i];
		add_var(b, &v, b->main[i]);
		if (is_placed(b, i, MUTATE_CHANNELS))
			add_var(b, &v, b->extra[i]);
		map[b->s->leading + i] = read_sum(b->main[i], h->main_step, b->extra[i], h->extra_step, h->first);
	}
	return add_move(b, &v, map);
}

/* The dimension that a variable of `apart` is the main, or the extra, part of; -1 = of none. */
static int find_part(const struct builder *b, const int *part, int var)
{
	for (int i = 0; i < b->s->dims; i++)
		if (part[i] == var)
			return i;
	return -1;
}

static bool has_joined(const struct builder *b)
{
	bool any = false;
	for (int i = 0; i < b->s->dims; i++)
		any |= b->h[i].joined >= 0;
	return any;
}

/* The variables of `apart`, with one for each joined dimension. */
static sub_ref build_image(struct builder *b, sub_ref apart)
{
	const struct sub_value from = *sub_at(b->p, apart);
	struct sub_value v = {.arg = {sub_as_is(b->p, apart)}};
	struct sub_map map[SUB_MAX_VARS];
	for (int k = 0; k < from.vars; k++) {
		int main = find_part(b, b->main, from.var[k]), extra = find_part(b, b->extra, from.var[k]);
		bool joined = main >= 0 && b->h[main].joined >= 0, before = extra >= 0 && is_placed(b, extra, MUTATE_BEFORE);
		int into = before ? b->l->of[extra].before : main;
		map[k] = joined	  ? read_digit(b->axis[main], 1, b->h[main].main)
			 : before ? read_digit(b->axis[into], b->h[into].main, 0)
				  : read_at(from.var[k]);
		if (!before)
			add_var(b, &v, joined ? b->axis[main] : from.var[k]);
	}
	return has_joined(b) ? add_move(b, &v, map) : apart;
}

/* Adds what stands in place of a variable of the original, in windows or in the kernel. */
static void add_in_place(struct builder *b, struct sub_value *v, int var)
{
	for (int i = 0; i < b->s->dims; i++) {
		const struct mutate_dim *d = &b->s->dim[i];
		if (is_changed(b, i) && d->out == var) {
			add_var(b, v, b->out_axis[i]);
			return;
		}
		if (is_placed(b, i, MUTATE_CHANNELS) && d->reduced == var) {
			add_var(b, v, b->kernel[i]);
			add_var(b, v, b->extra[i]);
			return;
		}
	}
	add_var(b, v, var);
}

static struct sub_map read_window(const struct builder *b, int i)
{
	const struct mutate_dim *d = &b->s->dim[i];
	const struct mutate_shape *h = &b->h[i];
	if (!is_changed(b, i) && !b->l->of[i].border)
		return d->map;
	return read_sum(b->out_axis[i], h->step, b->kernel[i], h->dilation, h->offset);
}

static sub_ref build_windows(struct builder *b, sub_ref image)
{
	const struct sub_value from = *sub_at(b->p, image);
	struct sub_value v = {.arg = {sub_as_is(b->p, image)}, .fills = true};
	struct sub_map map[SUB_MAX_VARS];
	const struct sub_use *u = &b->y.arg[b->s->operand];
	for (int k = 0; k < from.vars; k++) {
		int i = find_part(b, b->axis, from.var[k]);
		map[k] = i >= 0 ? read_window(b, i) : read_at(from.var[k]);
	}
	add_leading(b, &v, &b->a, true);
	for (int k = 0; k < u->vars; k++)
		if (b->p->vars.at[u->var[k]].set == SUB_DIM)
			add_in_place(b, &v, u->var[k]);
	return add_move(b, &v, map);
}

/* The dimension whose window's elements become channels by a variable of the kernel; -1 = none. */
static int find_split(const struct builder *b, int var)
{
	for (int i = 0; i < b->s->dims; i++)
		if (is_placed(b, i, MUTATE_CHANNELS) && b->s->dim[i].reduced == var)
			return i;
	return -1;
}

static struct sub_use build_kernel(struct builder *b)
{
	const struct sub_use *u = &b->y.arg[3 - b->s->operand];
	struct sub_value v = {.arg = {sub_as_is(b->p, u->value)}, .fills = true};
	struct sub_map map[SUB_MAX_VARS];
	for (int k = 0; k < u->vars; k++) {
		int i = find_split(b, u->var[k]);
		map[k] = read_at(u->var[k]);
		if (i >= 0)
			map[k] = read_sum(b->kernel[i], b->l->of[i].by, b->extra[i], 1, -b->h[i].shift);
		add_in_place(b, &v, u->var[k]);
	}
	return mutate_changes_kernel(b->s, b->l) ? sub_as_is(b->p, add_move(b, &v, map)) : *u;
}

static sub_ref build_sum(struct builder *b, sub_ref windows)
{
	struct sub_value v = b->y, reduced = {0};
	v.arg[b->s->operand] = sub_as_is(b->p, windows);
	v.arg[3 - b->s->operand] = build_kernel(b);
	for (int i = 0; i < b->y.reduced.n; i++)
		add_in_place(b, &reduced, b->y.reduced.var[i]);
	v.reduced.n = reduced.vars;
	memcpy(v.reduced.var, reduced.var, sizeof reduced.var);
	if (b->crowded || !windows.i || !v.arg[3 - b->s->operand].value.i)
		return (sub_ref){0};
	return sub_add(b->p, v, NULL);
}

static sub_ref build_results(struct builder *b, sub_ref sum)
{
	const struct sub_value from = *sub_at(b->p, sum);
	struct sub_value v = {.arg = {sub_as_is(b->p, sum)}};
	struct sub_map map[SUB_MAX_VARS];
	if (!sum.i || !has_joined(b))
		return sum;
	for (int k = 0; k < from.vars; k++) {
		int i = find_part(b, b->out_axis, from.var[k]);
		bool joined = i >= 0 && b->h[i].joined >= 0;
		map[k] = joined ? read_sum(b->extra[b->h[i].joined], pitch_of(b, i), b->out[i], 1, 0) : read_at(from.var[k]);
	}
	add_leading(b, &v, &b->y, false);
	for (int k = 0; k < b->y.vars; k++)
		if (b->p->vars.at[b->y.var[k]].set == SUB_DIM) {
			int i = 0;
			while (i < b->s->dims && (!is_changed(b, i) || b->s->dim[i].out != b->y.var[k]))
				i++;
			add_var(b, &v, i < b->s->dims ? b->out[i] : b->y.var[k]);
		}
	return add_move(b, &v, map);
}

/* Which digit of a result's position a variable is: the main part's, or the extra one's. */
static struct sub_map read_place(const struct builder *b, int i, bool extra)
{
	const struct mutate_shape *h = &b->h[i];
	int out = b->s->dim[i].out;
	if (!is_extra(b, i) || is_placed(b, i, MUTATE_CHANNELS))
		return read_at(out);
	if (h->divisor)
		return extra ? read_digit(out, 1, h->divisor) : read_digit(out, h->divisor, 0);
	return extra ? read_digit(out, h->modulus, 0) : read_digit(out, 1, h->modulus);
}

static sub_ref build_whole(struct builder *b, sub_ref results)
{
	const struct sub_value from = *sub_at(b->p, results);
	struct sub_value v = {.arg = {sub_as_is(b->p, results)}, .vars = b->y.vars};
	struct sub_map map[SUB_MAX_VARS];
	memcpy(v.var, b->y.var, sizeof v.var);
	for (int k = 0; k < from.vars; k++) {
		int main = find_part(b, b->out, from.var[k]), extra = find_part(b, b->extra, from.var[k]);
		map[k] = extra >= 0 ? read_place(b, extra, true) : main >= 0 ? read_place(b, main, false) : read_at(from.var[k]);
	}
	return results.i ? add_move(b, &v, map) : results;
}

sub_ref mutate_build(struct sub_program *p, const struct mutate_site *s, const struct mutate_layout *l,
		     const struct mutate_shape *h)
{
	struct builder b = {.p = p, .s = s, .l = l, .h = h, .y = *sub_at(p, s->value)};
	b.a = *sub_at(p, b.y.arg[s->operand].value);
	note_vars(&b, b.y.var, b.y.vars);
	note_vars(&b, b.y.reduced.var, b.y.reduced.n);
	name_parts(&b);
	sub_ref apart = build_apart(&b);
	sub_ref image = apart.i ? build_image(&b, apart) : apart;
	sub_ref windows = image.i ? build_windows(&b, image) : image;
	sub_ref sum = windows.i ? build_sum(&b, windows) : windows;
	return build_whole(&b, build_results(&b, sum));
}
