/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds functions: chains of products of which each reads what the one before computes, alone, as far as they have room in the
 * memory of the accelerator and end in time. */
#include "split/target_split.h"

/* A function's activations and weights take less than half of the accelerator's memory, and its segments are few. */
enum { MOST_COLUMNS = UINT16_MAX, MOST_PRODUCTS = 64 };
static const double MOST_BYTES = 0x1p27;
/* Products of a vector and a block of weights in a function.  A step loads what it multiplies in 34 cycles at most, and an image
 * file may have functions of 2^36. */
static const double MOST_STEPS = 0x1p30;

/* By value: the last value that uses it. */
static uint32_t *find_users(const struct split_products *s, const int *uses)
{
	uint32_t *user = ARENA_ARRAY(s->arena, uint32_t, s->p->values.n);
	for (uint32_t i = 1; i < s->p->values.n; i++)
		for (int a = 0; uses[i] && a < s->p->values.at[i].args; a++)
			user[s->p->values.at[i].arg[a].value.i] = i;
	return user;
}

/* Whether only one product needs the result of another: each value up to its sums has one user. */
static bool is_chain(const int *uses, const uint32_t *user, sub_ref result, sub_ref sum)
{
	uint32_t i = result.i;
	while (i && i < sum.i && uses[i] == 1)
		i = user[i];
	return i == sum.i;
}

int64_t split_count_sums(const struct split_product *q, int a)
{
	return (q->size[a] + q->before[a] + q->after[a] - q->kernel[a]) / q->stride[a] + 1;
}

/* The bytes of what a product reads and computes. */
static double count_bytes(const struct split_product *q)
{
	double in = (double)vta_blocks(q->channels), out = (double)vta_blocks(q->outputs), image[2] = {1, 1};
	for (int a = 0; a < 2; a++) {
		image[0] *= (double)q->size[a];
		image[1] *= (double)split_count_sums(q, a);
	}
	double activations = (double)q->images * (in * image[0] + out * image[1] * (q->requantised ? 4 : 1)) * VTA_BLOCK;
	return activations + in * out * (double)(q->kernel[0] * q->kernel[1]) * VTA_BLOCK * VTA_BLOCK;
}

/* Products of a vector of an image and a block of weights. */
static double count_steps(const struct split_product *q)
{
	double blocks = (double)vta_blocks(q->outputs) * (q->depthwise ? 1 : (double)vta_blocks(q->channels));
	return (double)q->images * blocks * (double)(q->kernel[0] * q->kernel[1]) * (double)split_count_sums(q, 0) * (double)split_count_sums(q, 1);
}

struct vta_operation split_operation_of(const struct split_product *q)
{
	static const enum vta_rounding roundings[] = {[SPLIT_EVEN] = VTA_HALF_EVEN, [SPLIT_TWICE] = VTA_HALF_TWICE};
	const struct split_tail *t = &q->tail;
	struct vta_operation op = {.images = q->images, .in_blocks = vta_blocks(q->channels), .out_blocks = vta_blocks(q->outputs),
				   .groups = q->depthwise ? vta_blocks(q->channels) : 1, .bound = true, .low = INT8_MIN, .high = INT8_MAX, .planes = q->requantised ? 4 : 1};
	memcpy(op.size, q->size, sizeof op.size);
	memcpy(op.kernel, q->kernel, sizeof op.kernel);
	memcpy(op.stride, q->stride, sizeof op.stride);
	memcpy(op.before, q->before, sizeof op.before);
	memcpy(op.after, q->after, sizeof op.after);
	if (q->requantised)
		return op;
	op.rounding = roundings[t->rounding];
	op.shift = t->shift;
	op.offset = (int)t->zero - q->result_zero;
	op.low = (int)t->low - q->result_zero;
	op.high = (int)t->high - q->result_zero;
	return op;
}

static double count_insns(const struct split_product *q)
{
	const struct vta_operation op = split_operation_of(q);
	return (double)vta_bound_insns(&op);
}

const char *split_check_limits(const struct split_product *q)
{
	if (q->size[1] > MOST_COLUMNS || split_count_sums(q, 1) > MOST_COLUMNS)
		return "its rows are too long for the accelerator";
	if (count_bytes(q) > MOST_BYTES)
		return "its images are too large for the accelerator's memory";
	if (count_steps(q) > MOST_STEPS)
		return "it would take the accelerator too long";
	return count_insns(q) >= VTA_INSNS_LIMIT ? "its stream would have more than 2^21 instructions" : NULL;
}

/* Gives a product the zero of the one before it, where no border depends on its own; whether they are the same then. */
static bool match_zeros(const struct split_product *before, struct split_product *q)
{
	if (!q->bordered)
		q->zero = before->result_zero;
	return q->zero == before->result_zero;
}

/* What a function has so far. */
struct size {
	double bytes, steps, insns;
	int products;
};

static bool has_room(const struct size *so_far, const struct split_product *q)
{
	return so_far->bytes + count_bytes(q) <= MOST_BYTES && so_far->steps + count_steps(q) <= MOST_STEPS &&
	       so_far->insns + count_insns(q) < VTA_INSNS_LIMIT && so_far->products < MOST_PRODUCTS;
}

/* Whether a product reads what another one computes, as it lies there, and nobody else does. */
static bool is_next(const struct split_products *s, const struct split_product *before, const struct split_product *q, const int *uses,
		    const uint32_t *user)
{
	return !q->copied && !before->refused && !before->requantised && split_reads_layout(s, q) && is_chain(uses, user, before->result, q->sum);
}

static void add_product(struct size *to, const struct split_product *q)
{
	to->bytes += count_bytes(q);
	to->steps += count_steps(q);
	to->insns += count_insns(q);
	to->products++;
}

void split_find_functions(struct split_products *s)
{
	struct size *of = ARENA_ARRAY(s->arena, struct size, s->all.n + 1);
	const int *uses = sub_count_uses(s->p, s->arena);
	const uint32_t *user = find_users(s, uses);
	for (size_t i = 0; i < s->all.n; i++) {
		struct split_product *q = &s->all.at[i];
		int from = q->refused ? 0 : s->of_result[q->input.i];
		struct split_product *before = from ? &s->all.at[from - 1] : NULL;
		if (q->refused)
			continue;
		bool joins = before && is_next(s, before, q, uses, user) && has_room(&of[before->function], q) && match_zeros(before, q);
		q->from = joins ? from - 1 : -1;
		q->in_blocks = !joins && split_reads_layout(s, q);
		q->function = joins ? before->function : s->functions++;
		add_product(&of[q->function], q);
	}
}
