/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds quantised products, and what of them the accelerator computes: sums of products with weights over rectangular windows
 * of images, between activations of bytes.  A product of matrices has windows of one element. */
#include "split/target_split.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_TERMS = 1 << 14, MOST_SHIFT = 15, MOST_KERNEL = 16, MOST_ADDED = 256 };

struct finder {
	struct split_products *s;
	const struct sub_program *p;
	const bool *constant;
	const struct rewrite_range *range;
	const char *on_host; /* as struct rewrite_options has it */
	int *of_sum; /* by value: the number + 1 of the product whose sums it is */
};

/* --- sums of products --- */

/* The constant factor of a sum of products of integers; -1 = it is none. */
static int find_weights(const struct finder *f, const struct sub_value *v)
{
	const struct sub_value *m = v->args ? sub_at(f->p, v->arg[0].value) : NULL;
	if (!m || v->op != SUB_SUM || v->dtype != DTYPE_I32 || m->op != SUB_MULTIPLY || sub_reduces_ragged(f->p, v))
		return -1;
	for (int a = 0; a < 2; a++)
		if (f->constant[m->arg[a].value.i] && !f->constant[m->arg[!a].value.i])
			return a;
	return -1;
}

static void find_sums(struct finder *f, const bool *live)
{
	for (uint32_t i = 1; i < f->p->values.n; i++)
		if (live[i] && find_weights(f, &f->p->values.at[i]) >= 0) {
			struct split_product q = {.sum = {i}, .function = -1, .from = -1};
			vec_push(f->s->arena, &f->s->all, q);
			f->of_sum[i] = (int)f->s->all.n;
		}
}

/* --- what follows them --- */

/* The sums that a value is, perhaps with a constant added for each output; NULL = it is none. */
static struct split_product *find_added(struct finder *f, struct sub_use u, struct sub_use *sums, struct sub_use *bias)
{
	const struct sub_value *v = sub_at(f->p, u.value);
	*bias = (struct sub_use){.vars = 0};
	*sums = u;
	for (int a = 0; v->op == SUB_ADD && a < 2; a++)
		if (f->constant[v->arg[!a].value.i]) {
			*sums = split_see_through(f->p, sub_rename_use(v, &u, v->arg[a]));
			*bias = split_see_through(f->p, sub_rename_use(v, &u, v->arg[!a]));
		}
	int number = f->of_sum[sums->value.i];
	return number ? &f->s->all.at[number - 1] : NULL;
}

/* Notes the dimension of outputs of what is added; false if it differs along others. */
static bool read_bias(const struct finder *f, struct split_product *q, const struct sub_use *bias, int outputs)
{
	q->bias = bias->value;
	q->bias_dim = -1;
	for (int d = 0; d < bias->vars; d++) {
		if (bias->var[d] == outputs && outputs >= 0)
			q->bias_dim = d;
		else if (bias->var[d] != -1 && f->p->vars.at[sub_at(f->p, bias->value)->var[d]].extent != 1)
			return false;
	}
	return true;
}

/* --- windows --- */

/* The index of a dimension of the activations, by variables of the sum: scale*var + scale2*var2 + offset. */
struct window {
	int var, var2;
	int64_t scale, scale2, offset;
};

struct windows {
	const struct finder *f;
	struct split_product *q;
	const struct sub_value *sum;
	struct sub_use weights;
	struct window of[SUB_MAX_VARS];
	double added; /* to what is read so far */
	int out[SPLIT_AXES]; /* variables of the sum: image, output, row, column; -1 = there is one */
	int in[SPLIT_AXES];  /* reduced: channels, rows and columns of kernels */
};

static bool is_plain(const struct window *w)
{
	return w->var >= 0 && w->scale == 1 && !w->scale2 && !w->offset;
}

static const struct window *window_of(const struct sub_value *v, const struct window *of, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return &of[i];
	return NULL;
}

/* The window of a dimension of what is moved; false if it is no such sum. */
static bool compose_window(const struct sub_value *v, const struct window *of, const struct sub_map *m, struct window *to)
{
	*to = (struct window){.var = -1, .var2 = -1, .offset = m->offset};
	if (m->function != SUB_AFFINE)
		return false;
	if (m->var < 0)
		return true;
	const struct window *first = window_of(v, of, m->var);
	if (!m->scale2) {
		*to = *first;
		bool moved = m->scale == 1 && !m->offset;
		to->offset += m->offset, to->scale *= m->scale;
		return moved || is_plain(first);
	}
	const struct window *second = window_of(v, of, m->var2);
	*to = (struct window){first->var, second->var, m->scale, m->scale2, m->offset};
	return is_plain(first) && is_plain(second);
}

/* Whether windows go beyond a dimension: a border was there. */
static bool reads_beyond(const struct windows *w, const struct sub_value *v, int d)
{
	const struct window *of = &w->of[d];
	struct sub_map index = {.function = SUB_AFFINE, .var = of->var, .var2 = of->var2, .scale = of->scale, .scale2 = of->scale2, .offset = of->offset};
	return sub_index_leaves(w->f->p, &index, v->var[d]);
}

/* Whether a dimension of a move has one of its argument as a whole, so that what is beyond it is beyond the argument. */
static bool has_whole_argument(const struct sub_program *p, const struct sub_value *v, int var)
{
	for (int d = 0; d < v->arg[0].vars; d++) {
		const struct sub_map *m = &v->map[d];
		int64_t extent = p->vars.at[sub_at(p, v->arg[0].value)->var[d]].extent;
		if (m->function == SUB_AFFINE && m->var == var && m->scale == 1 && !m->scale2 && m->offset <= 0 &&
		    p->vars.at[var].extent + m->offset >= extent)
			return true;
	}
	return false;
}

/* Whether a border around a move is one around its argument: it crops none of the dimensions that windows go beyond. */
static bool keeps_border(const struct windows *w, const struct sub_value *v)
{
	for (int d = 0; d < v->vars; d++)
		if (reads_beyond(w, v, d) && !has_whole_argument(w->f->p, v, v->var[d]))
			return false;
	return true;
}

/* Steps through a move whose indices are windows, and whose border is the number 0; false if it is another. */
static bool step_through_move(struct windows *w, sub_ref *at)
{
	const struct sub_program *p = w->f->p;
	const struct sub_value *v = sub_at(p, *at);
	struct window to[SUB_MAX_VARS] = {{0}};
	bool leaves = false;
	if (!keeps_border(w, v))
		return false;
	for (int d = 0; d < v->arg[0].vars; d++) {
		if (!compose_window(v, w->of, &v->map[d], &to[d]))
			return false;
		leaves |= v->fills && sub_map_leaves(p, v, d);
	}
	if (leaves && v->fill + w->added != 0)
		return false;
	w->q->bordered |= leaves;
	memcpy(w->of, to, sizeof to);
	*at = v->arg[0].value;
	return true;
}

static bool step_through_sum(struct windows *w, sub_ref *at)
{
	const struct sub_value *v = sub_at(w->f->p, *at);
	double number;
	for (int a = 0; a < 2; a++) {
		const struct sub_use *u = &v->arg[!a];
		if (!split_find_number(w->f->p, v->arg[a].value, &number) || u->vars != v->vars ||
		    memcmp(u->var, v->var, v->vars * sizeof *v->var) != 0)
			continue;
		w->added += number;
		*at = u->value;
		return true;
	}
	return false;
}

/* Finds the activations that are read, down from the factor of the products. */
static void find_input(struct windows *w, struct sub_use factor)
{
	sub_ref at = factor.value;
	bool on = true;
	for (int d = 0; d < factor.vars; d++)
		w->of[d] = (struct window){.var = factor.var[d], .var2 = -1, .scale = 1};
	while (on && !w->f->s->of_result[at.i]) {
		enum sub_op op = sub_at(w->f->p, at)->op;
		on = op == SUB_ASSIGN ? step_through_move(w, &at) : op == SUB_ADD && step_through_sum(w, &at);
	}
	w->q->input = at;
	w->q->offset = w->added;
}

static bool is_reduced(const struct windows *w, int var)
{
	return sub_position_in(&w->sum->reduced, var) >= 0;
}

static int64_t extent_of(const struct windows *w, int var)
{
	return var < 0 ? 1 : w->f->p->vars.at[var].extent;
}

static int64_t extent_of_input(const struct windows *w, int dim)
{
	return dim < 0 ? 1 : w->f->p->vars.at[sub_at(w->f->p, w->q->input)->var[dim]].extent;
}

/* Whether a dimension is that of channels: one that is summed up as a whole, and has weights. */
static bool is_channels(const struct windows *w, int d)
{
	const struct window *of = &w->of[d];
	return is_plain(of) && is_reduced(w, of->var) && sub_use_has(&w->weights, of->var) &&
	       extent_of(w, of->var) == extent_of_input(w, d);
}

/* Whether a dimension is that of channels each of which has weights of its own, and is an output. */
static bool is_depthwise(const struct windows *w, int d)
{
	return is_plain(&w->of[d]) && w->q->input_axis[SPLIT_CHANNEL] < 0 && extent_of(w, w->of[d].var) == extent_of_input(w, d);
}

/* Whether weights differ along a dimension that is not summed up. */
static bool has_own_weights(const struct windows *w, int d)
{
	return w->of[d].var >= 0 && !is_reduced(w, w->of[d].var) && sub_use_has(&w->weights, w->of[d].var);
}

/* Reads a dimension of space, or of images: an index of the result, of the kernel, or of both. */
static const char *read_axis(struct windows *w, int axis, int d)
{
	struct window of = w->of[d];
	if (of.scale2 && is_reduced(w, of.var))
		of = (struct window){of.var2, of.var, of.scale2, of.scale, of.offset};
	bool kernel = of.scale2 || (of.var >= 0 && is_reduced(w, of.var));
	int out = kernel && !of.scale2 ? -1 : of.var, in = !kernel ? -1 : of.scale2 ? of.var2 : of.var;
	int64_t step = of.scale2 ? of.scale2 : kernel ? of.scale : 1;
	if ((out >= 0 && is_reduced(w, out)) || (in >= 0 && !is_reduced(w, in)))
		return "its windows are no rectangles of an image";
	if (step != 1 && extent_of(w, in) > 1)
		return "its windows have holes (a dilation)";
	w->out[axis] = out;
	w->in[axis] = in;
	w->q->input_axis[axis] = d;
	if (axis == SPLIT_IMAGE)
		return kernel || !is_plain(&of) ? "its windows have more than two dimensions" : NULL;
	int a = axis - SPLIT_ROW;
	w->q->stride[a] = out >= 0 ? of.scale : 1;
	w->q->before[a] = -of.offset;
	return of.offset > 0 || w->q->stride[a] < 1 ? "its windows do not begin at the image" : NULL;
}

/* Dimensions from the last one on are columns, rows and images. */
static const char *read_axes(struct windows *w)
{
	const struct sub_value *x = sub_at(w->f->p, w->q->input);
	int axis = SPLIT_COLUMN;
	const char *fault = NULL;
	for (int d = x->vars; d-- > 1 && !fault;) {
		if (w->q->input_axis[SPLIT_CHANNEL] < 0 && is_channels(w, d)) {
			w->q->input_axis[SPLIT_CHANNEL] = d;
			w->in[SPLIT_CHANNEL] = w->of[d].var;
		} else if (has_own_weights(w, d)) {
			fault = is_depthwise(w, d) ? NULL : "its channels are in groups";
			w->q->depthwise = true;
			w->q->input_axis[SPLIT_CHANNEL] = d;
			w->out[SPLIT_CHANNEL] = w->of[d].var;
		} else if (w->of[d].var >= 0 || extent_of_input(w, d) > 1) {
			int to = axis == SPLIT_ROW ? SPLIT_ROW : axis == SPLIT_COLUMN ? SPLIT_COLUMN : SPLIT_IMAGE;
			fault = axis < SPLIT_CHANNEL ? "its windows have more than two dimensions" : read_axis(w, to, d);
			axis--;
		}
	}
	return fault ? fault : w->q->input_axis[SPLIT_CHANNEL] < 0 ? "it sums up no channels" : NULL;
}

/* Whether the index of an activation depends on a variable. */
static bool reads_by(const struct windows *w, int var)
{
	bool reads = false;
	for (int d = 0; d < sub_at(w->f->p, w->q->input)->vars; d++)
		reads |= w->of[d].var == var || (w->of[d].scale2 && w->of[d].var2 == var);
	return reads;
}

static int dim_of_weights(const struct windows *w, int var)
{
	for (int d = 0; var >= 0 && d < w->weights.vars; d++)
		if (w->weights.var[d] == var)
			return d;
	return -1;
}

/* Finds the dimension of outputs, and checks that weights have no others than that, channels and the kernel's. */
static const char *read_weights(struct windows *w)
{
	struct split_product *q = w->q;
	for (int i = 0; i < w->weights.vars; i++) {
		int var = w->weights.var[i];
		if (is_reduced(w, var) || extent_of(w, var) == 1 || (q->depthwise && var == w->out[SPLIT_CHANNEL]))
			continue;
		if (reads_by(w, var))
			return "its channels are in groups";
		if (w->out[SPLIT_CHANNEL] >= 0)
			return "its outputs have more than one dimension";
		w->out[SPLIT_CHANNEL] = var;
	}
	for (int i = 0; i < w->sum->reduced.n; i++)
		if (!reads_by(w, w->sum->reduced.var[i]) && extent_of(w, w->sum->reduced.var[i]) > 1)
			return "it sums up weights alone";
	q->weights = w->weights.value;
	q->weight_dim[SPLIT_IMAGE] = dim_of_weights(w, w->out[SPLIT_CHANNEL]);
	for (int axis = SPLIT_CHANNEL; axis < SPLIT_AXES; axis++)
		q->weight_dim[axis] = dim_of_weights(w, w->in[axis]);
	return NULL;
}

static const char *read_sizes(struct windows *w)
{
	struct split_product *q = w->q;
	q->images = extent_of_input(w, q->input_axis[SPLIT_IMAGE]);
	q->channels = extent_of(w, q->depthwise ? w->out[SPLIT_CHANNEL] : w->in[SPLIT_CHANNEL]);
	q->outputs = extent_of(w, w->out[SPLIT_CHANNEL]);
	for (int a = 0; a < 2; a++) {
		int axis = SPLIT_ROW + a;
		int64_t out = extent_of(w, w->out[axis]);
		q->size[a] = extent_of_input(w, q->input_axis[axis]);
		q->kernel[a] = extent_of(w, w->in[axis]);
		q->stride[a] = q->input_axis[axis] < 0 ? 1 : q->stride[a];
		q->after[a] = (out - 1) * q->stride[a] + q->kernel[a] - q->size[a] - q->before[a];
		q->after[a] = q->after[a] < 0 ? 0 : q->after[a];
		if (q->kernel[a] > MOST_KERNEL || q->before[a] >= q->kernel[a] || q->after[a] >= q->kernel[a])
			return "its kernel is longer than 16, or its border as long as the kernel";
		if ((q->size[a] + q->before[a] + q->after[a] - q->kernel[a]) / q->stride[a] + 1 != out)
			return "its windows do not go through the whole image";
	}
	return q->channels * q->kernel[0] * q->kernel[1] > MOST_TERMS ? "it has more than 16384 terms" : NULL;
}

static struct windows begin_windows(struct finder *f, struct split_product *q)
{
	struct windows w = {.f = f, .q = q, .sum = sub_at(f->p, q->sum)};
	const struct sub_value *m = sub_at(f->p, w.sum->arg[0].value);
	int a = find_weights(f, w.sum);
	for (int i = 0; i < SPLIT_AXES; i++)
		w.out[i] = w.in[i] = q->input_axis[i] = q->weight_dim[i] = q->result_axis[i] = -1;
	w.weights = sub_rename_use(m, &w.sum->arg[0], m->arg[a]);
	find_input(&w, sub_rename_use(m, &w.sum->arg[0], m->arg[!a]));
	return w;
}

static const char *read_product(struct windows *w)
{
	const char *fault = read_axes(w);
	fault = fault ? fault : read_weights(w);
	return fault ? fault : read_sizes(w);
}

/* --- results --- */

/* The dimension of the result that a variable of the sum is; -1 = there is one; -2 = none. */
static int dim_of_result(const struct windows *w, const struct sub_use *sums, int var)
{
	const struct sub_value *y = sub_at(w->f->p, w->q->result);
	for (int d = 0; var >= 0 && d < sums->vars; d++)
		if (w->sum->var[d] == var)
			for (int i = 0; i < y->vars; i++)
				if (y->var[i] == sums->var[d])
					return i;
	return extent_of(w, var) == 1 ? -1 : -2;
}

static const char *read_result(struct windows *w, const struct sub_use *sums)
{
	struct split_product *q = w->q;
	double elements = (double)q->images * (double)q->outputs;
	for (int axis = 0; axis < SPLIT_AXES; axis++) {
		q->result_axis[axis] = dim_of_result(w, sums, w->out[axis]);
		if (q->result_axis[axis] == -2)
			return "its result has other dimensions than its sums";
		elements *= axis >= SPLIT_ROW ? (double)extent_of(w, w->out[axis]) : 1;
	}
	return sub_row_elements(w->f->p, sub_at(w->f->p, q->result)) == elements
		   ? NULL
		   : "its result has other dimensions than its sums";
}

/* --- numbers --- */

static bool is_byte(double low, double high)
{
	return (low >= 0 && high <= UINT8_MAX) || (low >= INT8_MIN && high <= INT8_MAX);
}

static bool fits_signed_bytes(double low, double high, double zero)
{
	return low - zero >= INT8_MIN && high - zero <= INT8_MAX;
}

/* Lets the host copy the input with its border, which has the zero point there. */
static void copy_border(struct split_product *q)
{
	q->copied = true;
	q->bordered = false;
	q->low = fmin(q->low, -q->offset);
	q->high = fmax(q->high, -q->offset);
	for (int a = 0; a < 2; a++) {
		q->margin[a] = q->before[a];
		q->size[a] += q->before[a] + q->after[a];
		q->before[a] = q->after[a] = 0;
	}
}

/* Chooses what the accelerator takes off the input: its zero point, or what makes bytes signed.  The accelerator reads 0 around
 * an image, so the host copies it with a border where that is not the zero point. */
static const char *choose_input_zero(const struct finder *f, struct split_product *q)
{
	struct rewrite_range r = f->range[q->input.i];
	q->low = r.low, q->high = r.high;
	if (q->bordered && !fits_signed_bytes(r.low, r.high, -q->offset))
		copy_border(q);
	if (sub_at(f->p, q->input)->dtype != DTYPE_I32 || !is_byte(q->low, q->high))
		return "its input is no byte";
	q->zero = fits_signed_bytes(q->low, q->high, -q->offset) ? (int)-q->offset : q->low < 0 ? 0 : 128;
	return NULL;
}

/* Why the accelerator cannot requantise sums; NULL = it can. */
static const char *choose_result_zero(struct split_product *q)
{
	const struct split_tail *t = &q->tail;
	if (!t->result.i)
		return "by a formula that is not known";
	if (isnan(t->factor))
		return "by scales of each output, which are known when weights are bound";
	if (t->shift < 0)
		return "by a factor that is no power of two";
	if (t->shift > MOST_SHIFT)
		return "by less than 2^-15";
	if (!is_byte(t->low, t->high))
		return "to what is no byte";
	int zero = fits_signed_bytes(t->low, t->high, t->zero) ? (int)t->zero : t->low < 0 ? 0 : 128;
	if (t->zero != floor(t->zero) || fabs(t->zero - zero) > MOST_ADDED)
		return "to what is no byte";
	q->result_zero = zero;
	return NULL;
}

/* --- all --- */

/* Whether the model has one body, over nodes without neighbours. */
static bool has_structure(const struct sub_program *p)
{
	return p->bodies.n != 1 || p->bodies.at[0].domain != SUB_EVERY_NODE || p->children || p->states.n;
}

/* Checks what the function is to compute of a product: a result that is made of sums. */
static const char *read_function(struct finder *f, struct windows *w, sub_ref result, struct sub_use added)
{
	struct sub_use sums, bias;
	struct split_product *q = w->q;
	q->result = result;
	find_added(f, added, &sums, &bias);
	const char *fault = read_result(w, &sums);
	int axis = q->result_axis[SPLIT_CHANNEL], outputs = axis < 0 ? -1 : sub_at(f->p, result)->var[axis];
	if (!fault && bias.value.i && !read_bias(f, q, &bias, outputs))
		return "what is added to its sums differs within an image";
	return fault;
}

/* The next part ",-NUMBER" of the list of what the host keeps. */
static const char *skip_number(const char *at)
{
	return at + strcspn(at + 1, ",") + 1;
}

static long read_number(const char *at)
{
	return strtol(at + 2, NULL, 10);
}

/* Whether the options keep a product on the host. */
static bool is_kept(const struct finder *f, long number)
{
	for (const char *at = f->on_host; *at; at = skip_number(at))
		if (read_number(at) == number)
			return true;
	return false;
}

static void read_one(struct finder *f, struct split_product *q)
{
	struct windows w = begin_windows(f, q);
	sub_ref sums = q->tail.result.i ? q->tail.sums.value : q->sum;
	const char *fault = read_product(&w);
	if (!fault && !fits_signed_bytes(f->range[q->weights.i].low, f->range[q->weights.i].high, 0))
		fault = "its weights less their zero points may be no signed bytes";
	fault = fault ? fault : choose_input_zero(f, q);
	q->requantised = choose_result_zero(q);
	if (!fault && q->requantised)
		fault = read_function(f, &w, sums, sub_as_is(f->p, sums));
	else if (!fault)
		fault = read_function(f, &w, q->tail.result, q->tail.sums);
	fault = fault ? fault : split_check_limits(q);
	fault = fault ? fault : has_structure(f->p) ? "the model has a structure, or a scan" : NULL;
	q->refused = fault ? fault : is_kept(f, q - f->s->all.at) ? "as it was asked for" : NULL;
}

/* Finds the formula of each product, and then reads them in the order of values, so that those that it reads were read. */
static void find_tails(struct finder *f, const bool *live)
{
	struct split_tail t;
	struct sub_use sums, bias;
	for (uint32_t i = 1; i < f->p->values.n; i++) {
		if (!live[i] || !split_match_tail(f->p, f->s->arena, (sub_ref){i}, &t))
			continue;
		struct split_product *q = find_added(f, t.sums, &sums, &bias);
		if (q && !q->tail.result.i)
			q->tail = t;
	}
	for (size_t k = 0; k < f->s->all.n; k++) {
		struct split_product *q = &f->s->all.at[k];
		read_one(f, q);
		if (!q->refused)
			f->s->of_result[q->result.i] = (int)k + 1;
	}
}

void split_find_products(struct split_products *s, struct arena *a, const struct sub_program *p, const struct rewrite_options *options)
{
	static const struct rewrite_options exact = {.math = REWRITE_EXACT};
	struct finder f = {.s = s, .p = p, .on_host = options->on_host ? options->on_host : "", .constant = sub_find_constants(p), .range = rewrite_find_ranges(p, &exact, a)};
	bool *live = ARENA_ARRAY(a, bool, p->values.n);
	*s = (struct split_products){.p = p, .arena = a, .constant = f.constant, .of_result = ARENA_ARRAY(a, int, p->values.n)};
	f.of_sum = ARENA_ARRAY(a, int, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		sub_mark_live(p, &p->bodies.at[b], live);
	find_sums(&f, live);
	find_tails(&f, live);
	split_find_layouts(s);
	split_find_functions(s);
}

long split_find_unknown(const struct sub_program *p, const struct rewrite_options *options, struct arena *a, size_t *products)
{
	struct split_products s;
	if (!options->on_host || !*options->on_host)
		return -1;
	split_find_products(&s, a, p, options);
	*products = s.all.n;
	for (const char *at = options->on_host; *at; at = skip_number(at))
		if (read_number(at) >= (long)s.all.n)
			return read_number(at);
	return -1;
}
