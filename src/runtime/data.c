/* Data that nodes carry: checked against what the cases read, then permuted. */
#include "runtime/internal.h"

#include <string.h>

/* The caller's own name of a node. */
static struct lin_name name_node(const struct lin_forest *f, int32_t id)
{
	int64_t low = 0, high = f->input_begin ? f->inputs : 0;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (f->input_begin[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	return lin_name_of(f, high ? low : -1, id);
}

static bool missing(const struct image_input *in, const struct lin_forest *f, int32_t id, struct diags *diags)
{
	struct lin_name name = name_node(f, id);
	diag_add(diags, DIAG_MISSING_DATA, (struct diag_at){0},
		 "give the node a value, or read this input in the other case only", "%s carries no '%s'",
		 name.text, in->name);
	return diag_about(diags, name.input, name.node);
}

static bool bad_token(const struct image_input *in, const struct lin_forest *f, int32_t id, int32_t token,
		      struct diags *diags)
{
	if (token == -1)
		return missing(in, f, id, diags);
	struct lin_name name = name_node(f, id);
	diag_add(diags, DIAG_TOKEN_OUT_OF_RANGE, (struct diag_at){0},
		 "do the vocabulary and the weights belong together?",
		 "'%s' of %s is %d, but the model has rows 0 .. %lld", in->name, name.text, token,
		 (long long)in->limit - 1);
	return diag_about(diags, name.input, name.node);
}

/* The range of numbers at which an input is read. */
static void read_range(const struct image_input *in, const struct lin_order *o, int32_t *begin, int32_t *end)
{
	*begin = in->at_leaf ? 0 : o->leaves;
	*end = in->at_inner ? o->nodes : in->at_leaf ? o->leaves : *begin;
}

bool rt_check_data(const struct image *image, const struct lin_order *o, const struct rt_minibatch *m,
		   int which, struct diags *diags)
{
	const struct image_input *in = &image->input[which];
	const int32_t *token = in->token ? m->data[which] : NULL;
	int32_t begin, end;
	read_range(in, o, &begin, &end);
	if (begin < end && !m->data[which])
		return missing(in, &m->forest, o->order[begin], diags);
	for (int32_t n = begin; token && n < end; n++)
		if (token[o->order[n]] < 0 || token[o->order[n]] >= in->limit)
			return bad_token(in, &m->forest, o->order[n], token[o->order[n]], diags);
	return true;
}

void rt_permute_tokens(const struct image_input *in, const struct lin_order *o, const int32_t *from,
		       int32_t *to)
{
	int32_t begin, end;
	read_range(in, o, &begin, &end);
	for (int32_t n = 0; n < o->nodes; n++)
		to[n] = n >= begin && n < end ? from[o->order[n]] : 0;
}

void rt_permute_vectors(const struct image_input *in, const struct lin_order *o, const float *from,
			int64_t row_elements, float *to)
{
	int32_t begin, end;
	read_range(in, o, &begin, &end);
	for (int32_t n = begin; n < end; n++)
		memcpy(to + n * row_elements, from + o->order[n] * in->elements, in->elements * sizeof *to);
}
