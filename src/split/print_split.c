/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The split as text: products as Q operators, and which function computes them or why the host does. */
#include <inttypes.h>

#include "split/target_split.h"

/* --- Q operators --- */

static void put_value(const struct split_products *s, sub_ref r, struct str *to)
{
	sub_print_name(s->p, r, to);
}

static void put_windows(const struct split_product *q, struct str *to)
{
	str_printf(to, ": %" PRId64 " x %" PRId64 " images of %" PRId64 " x %" PRId64 " channels, kernel %" PRId64 " x %" PRId64,
		   q->size[0], q->size[1], q->channels, q->outputs, q->kernel[0], q->kernel[1]);
	if (q->stride[0] != 1 || q->stride[1] != 1)
		str_printf(to, ", stride %" PRId64 " x %" PRId64, q->stride[0], q->stride[1]);
	if (q->bordered)
		str_printf(to, ", border %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, q->before[0], q->after[0], q->before[1], q->after[1]);
	if (q->depthwise)
		str_puts(to, ", depthwise");
	if (q->copied)
		str_puts(to, ", copied with a border by the host");
}

static void put_sums(const struct split_products *s, const struct split_product *q, struct str *to)
{
	str_puts(to, "  Q.conv2d ");
	put_value(s, q->sum, to);
	if (q->input.i) {
		str_puts(to, " of ");
		put_value(s, q->input, to);
		if (q->offset != 0)
			str_printf(to, " less %g", -q->offset);
	}
	if (!q->refused) {
		str_puts(to, " and ");
		put_value(s, q->weights, to);
		put_windows(q, to);
	}
	str_puts(to, "\n");
	if (q->bias.i) {
		str_puts(to, "  Q.bias_add ");
		put_value(s, q->bias, to);
		str_puts(to, "\n");
	}
}

static void put_tail(const struct split_product *q, struct str *to)
{
	static const char *const roundings[] = {[SPLIT_EVEN] = "halves to even", [SPLIT_TWICE] = "twice, halves away from zero"};
	const struct split_tail *t = &q->tail;
	if (!t->result.i)
		return;
	str_puts(to, "  Q.requantize times ");
	if (t->factor == t->factor)
		str_double(to, t->factor);
	else
		str_puts(to, "a scale of each output");
	str_printf(to, ", rounded %s, zero %g\n  Q.relu %g .. %g\n", roundings[t->rounding], t->zero, t->low, t->high);
}

static void put_none(const struct split_products *s, struct str *to)
{
	if (!s->all.n)
		str_puts(to, "no sums of products of integers with weights\n");
}

void split_print_products(const struct split_products *s, struct str *to)
{
	put_none(s, to);
	for (size_t i = 0; i < s->all.n; i++) {
		const struct split_product *q = &s->all.at[i];
		put_value(s, q->tail.result.i ? q->tail.result : q->sum, to);
		str_puts(to, " =\n");
		put_sums(s, q, to);
		put_tail(q, to);
	}
}

/* --- functions --- */

static void put_operators(const struct split_products *s, const struct split_product *q, struct str *to)
{
	put_value(s, q->result, to);
	str_printf(to, " = product %d: Q.conv2d%s", (int)(q - s->all.at), q->bias.i ? " + Q.bias_add" : "");
	str_puts(to, q->requantised ? "\n" : " + Q.requantize + Q.relu\n");
	if (q->requantised)
		str_printf(to, "    the host requantises %s\n", q->requantised);
}

static void put_function(const struct split_products *s, int function, struct str *to)
{
	const struct split_product *last = NULL;
	str_printf(to, "function %d on vta\n", function);
	for (size_t i = 0; i < s->all.n; i++) {
		const struct split_product *q = &s->all.at[i];
		if (q->function != function)
			continue;
		if (!last) {
			str_puts(to, "  reads ");
			put_value(s, q->input, to);
			str_puts(to, "\n");
		}
		str_puts(to, "  ");
		put_operators(s, q, to);
		last = q;
	}
}

void split_print_functions(const struct split_products *s, struct str *to)
{
	for (int f = 0; f < s->functions; f++)
		put_function(s, f, to);
	for (size_t i = 0; i < s->all.n; i++)
		if (s->all.at[i].refused) {
			put_value(s, s->all.at[i].sum, to);
			str_printf(to, " = product %d on host: %s\n", (int)i, s->all.at[i].refused);
		}
	put_none(s, to);
}

/* --- packing --- */

static bool is_first(const struct split_product *q)
{
	return q->function >= 0 && q->from < 0;
}

/* The last product of a function. */
static const struct split_product *find_last(const struct split_products *s, int function)
{
	const struct split_product *last = NULL;
	for (size_t i = 0; i < s->all.n; i++)
		last = s->all.at[i].function == function ? &s->all.at[i] : last;
	return last;
}

static void put_origin(const struct split_products *s, const struct split_product *q, struct str *to)
{
	int from = s->of_result[q->input.i];
	if (q->in_blocks)
		str_printf(to, " in blocks, %s", from ? "" : "where the host computes it");
	if (from)
		str_printf(to, q->in_blocks ? "as function %d left it" : ", which function %d unpacked", s->all.at[from - 1].function);
	if (q->copied)
		str_puts(to, ": the host copies it with a border");
}

static void put_packed(const struct split_products *s, const struct split_product *q, struct str *to)
{
	str_printf(to, "function %d %s ", q->function, q->in_blocks ? "reads" : "packs");
	put_value(s, q->input, to);
	if (q->zero)
		str_printf(to, " less %d", q->zero);
	put_origin(s, q, to);
	str_puts(to, "\n");
}

void split_print_packing(const struct split_products *s, struct str *to)
{
	for (size_t i = 0; i < s->all.n; i++) {
		const struct split_product *q = &s->all.at[i];
		if (is_first(q))
			put_packed(s, q, to);
		if (q->function < 0 || find_last(s, q->function) != q)
			continue;
		str_printf(to, "function %d %s ", q->function, q->unpacked ? "unpacks" : "leaves");
		put_value(s, q->result, to);
		str_puts(to, q->unpacked ? "" : " in blocks");
		str_puts(to, q->requantised ? ", from four planes of bytes\n" : "\n");
	}
	if (!s->functions)
		str_puts(to, "no functions\n");
}
