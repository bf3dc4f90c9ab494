/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* dnnl_rnn RAW [TYPE]: oneDNN's LSTM and GRU on the numbers that common.py wrote to RAW, computed in f32 (the default), bf16 or
 * int8.
 *
 * Like torch_rnn.py it finds the kind of model from the weights, reads requests from standard input, and
 * does not time the layout of a minibatch. The GRU is lbr_gru, as in PyTorch and here: the reset gate
 * multiplies the product. Weights are packed once, in the format that oneDNN chooses (format_tag any).
 * Inputs are given, and results read, in f32; what becomes of them in other types is not timed either.
 * Threads are OpenMP's: OMP_NUM_THREADS. */
#include "bench/timing.h"

#include <dnnl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "dnnl_rnn: %s\n", what);
	exit(1);
}

static void check_status(dnnl_status_t status)
{
	if (status != dnnl_success)
		give_up("oneDNN refuses");
}

static float *allocate_floats(size_t n)
{
	float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
	if (!x)
		give_up("no memory");
	return memset(x, 0, n * sizeof *x);
}

struct sequences {
	int32_t gates, hidden, inputs, steps, n;
	float *w_ih, *w_hh, *b_ih, *b_hh, *x;
};

static float *read_floats(FILE *from, size_t n)
{
	float *x = allocate_floats(n);
	if (fread(x, sizeof *x, n, from) != n)
		give_up("the file is too short");
	return x;
}

static void read_raw(struct sequences *s, const char *path)
{
	FILE *from = fopen(path, "rb");
	if (!from || fread(s, sizeof(int32_t), 5, from) != 5)
		give_up("usage: dnnl_rnn RAW [TYPE]");
	size_t rows = (size_t)s->gates * s->hidden;
	s->w_ih = read_floats(from, rows * s->inputs);
	s->w_hh = read_floats(from, rows * s->hidden);
	s->b_ih = read_floats(from, rows);
	s->b_hh = read_floats(from, rows);
	s->x = read_floats(from, (size_t)s->n * s->steps * s->inputs);
	fclose(from);
}

/* torch's index of oneDNN's gate g: LSTM i f g o in both; GRU u r o, in torch r z n. */
static int torch_gate(const struct sequences *s, int g)
{
	return s->gates == 4 || g == 2 ? g : 1 - g;
}

/* Makes [inputs][gates][hidden] from torch's [gates * hidden][inputs]. */
static float *transpose_weights(const struct sequences *s, const float *w, int inputs)
{
	float *to = allocate_floats((size_t)inputs * s->gates * s->hidden), *at = to;
	for (int i = 0; i < inputs; i++)
		for (int g = 0; g < s->gates; g++)
			for (int h = 0; h < s->hidden; h++)
				*at++ = w[((size_t)torch_gate(s, g) * s->hidden + h) * inputs + i];
	return to;
}

/* Adds both biases; that of the product which the reset gate multiplies stays separate and comes last. */
static float *joined_bias(const struct sequences *s)
{
	float *to = allocate_floats(4 * s->hidden), *at = to;
	for (int g = 0; g < s->gates; g++)
		for (int h = 0; h < s->hidden; h++) {
			int i = torch_gate(s, g) * s->hidden + h;
			*at++ = s->b_ih[i] + (s->gates == 3 && g == 2 ? 0 : s->b_hh[i]);
		}
	if (s->gates == 3)
		memcpy(at, s->b_hh + 2 * s->hidden, s->hidden * sizeof *at);
	return to;
}

/* --- types --- */

static const struct type {
	const char *name;
	dnnl_data_type_t source, weights, result;
} types[] = {
    {"f32", dnnl_f32, dnnl_f32, dnnl_f32},
    {"bf16", dnnl_bf16, dnnl_bf16, dnnl_bf16},
    {"int8", dnnl_u8, dnnl_s8, dnnl_f32},
};

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	give_up("a type is f32, bf16 or int8");
}

static float largest_weight(const float *w, int columns)
{
	float most = 0;
	for (int i = 0; i < columns; i++)
		most = fmaxf(most, fabsf(w[i]));
	return most;
}

/* How inputs and states between -1 and 1, and the weights of each unit of each gate, become bytes. */
static void set_scales(dnnl_primitive_attr_t attributes, const struct sequences *s)
{
	enum { GATES_AND_UNITS = 1 << 3 | 1 << 4 }; /* the dimensions of ldigo with scales of their own */
	float *scales = allocate_floats(s->gates * s->hidden), *at = scales;
	for (int g = 0; g < s->gates; g++)
		for (int h = 0; h < s->hidden; h++) {
			size_t row = (size_t)torch_gate(s, g) * s->hidden + h;
			*at++ = 127 / fmaxf(largest_weight(s->w_ih + row * s->inputs, s->inputs),
					    largest_weight(s->w_hh + row * s->hidden, s->hidden));
		}
	check_status(dnnl_primitive_attr_set_rnn_data_qparams(attributes, 127, 128));
	check_status(dnnl_primitive_attr_set_rnn_weights_qparams(attributes, s->gates * s->hidden,
								 GATES_AND_UNITS, scales));
	free(scales);
}

/* --- one size of minibatch --- */

enum { SOURCE, RESULT }; /* the first arguments, as open_unit passes them */
enum { MOST = 16 };

struct unit {
	const struct sequences *s;
	const struct type *type;
	dnnl_primitive_attr_t attributes;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	int count; /* sequences of its minibatch; 0 = not made yet */
	int arguments;
	dnnl_exec_arg_t argument[MOST];
	float *x, *y, *bias;
	dnnl_memory_t given, read; /* x and y as they are, in f32 */
};

static dnnl_memory_desc_t describe_array(int n, const int64_t *dims, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t d;
	dnnl_dims_t all = {0};
	memcpy(all, dims, n * sizeof *dims);
	check_status(dnnl_memory_desc_init_by_tag(&d, n, all, type, tag));
	return d;
}

#define DESCRIBE(type, tag, ...)                                                                             \
	describe_array(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, type, tag)

static dnnl_memory_t keep_memory(struct unit *u, const dnnl_memory_desc_t *d, void *data)
{
	dnnl_memory_t m;
	check_status(dnnl_memory_create(&m, d, u->engine, data));
	return m;
}

static void pass_memory(struct unit *u, int what, dnnl_memory_t m)
{
	u->argument[u->arguments++] = (dnnl_exec_arg_t){what, m};
}

/* Copies it into another format, or another type. */
static void reorder(struct unit *u, dnnl_memory_t from, dnnl_memory_t to)
{
	const dnnl_memory_desc_t *given, *wanted;
	dnnl_primitive_desc_t pd;
	dnnl_primitive_t primitive;
	check_status(dnnl_memory_get_memory_desc(from, &given));
	check_status(dnnl_memory_get_memory_desc(to, &wanted));
	const bool scaled = given->data_type != wanted->data_type;
	check_status(dnnl_reorder_primitive_desc_create(&pd, given, u->engine, wanted, u->engine,
							scaled ? u->attributes : NULL));
	check_status(dnnl_primitive_create(&primitive, pd));
	dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	check_status(dnnl_primitive_execute(primitive, u->stream, 2, arguments));
	check_status(dnnl_stream_wait(u->stream));
	dnnl_primitive_destroy(primitive);
	dnnl_primitive_desc_destroy(pd);
}

/* Passes row-major weights in oneDNN's format. */
static void pass_packed(struct unit *u, int what, const dnnl_memory_desc_t *plain,
			const dnnl_memory_desc_t *wanted, float *data)
{
	dnnl_memory_t from = keep_memory(u, plain, data), to = keep_memory(u, wanted, DNNL_MEMORY_ALLOCATE);
	reorder(u, from, to);
	dnnl_memory_destroy(from);
	pass_memory(u, what, to);
}

static void close_unit(struct unit *u)
{
	if (!u->count)
		return;
	for (int i = 0; i < u->arguments; i++)
		dnnl_memory_destroy(u->argument[i].memory);
	dnnl_memory_destroy(u->given);
	dnnl_memory_destroy(u->read);
	dnnl_primitive_destroy(u->primitive);
	free(u->x);
	free(u->y);
	free(u->bias);
	u->count = u->arguments = 0;
}

static void open_unit(struct unit *u, int count)
{
	const struct sequences *s = u->s;
	const int64_t T = s->steps, N = count, E = s->inputs, D = s->hidden, G = s->gates, B = 4;
	const struct type *type = u->type;
	dnnl_memory_desc_t none = {0}, x = DESCRIBE(type->source, dnnl_tnc, T, N, E),
			   y = DESCRIBE(type->result, dnnl_tnc, T, N, D),
			   given = DESCRIBE(dnnl_f32, dnnl_tnc, T, N, E),
			   read = DESCRIBE(dnnl_f32, dnnl_tnc, T, N, D);
	dnnl_memory_desc_t w = DESCRIBE(type->weights, dnnl_format_tag_any, 1, 1, E, G, D),
			   r = DESCRIBE(type->weights, dnnl_format_tag_any, 1, 1, D, G, D),
			   plain_w = DESCRIBE(dnnl_f32, dnnl_ldigo, 1, 1, E, G, D),
			   plain_r = DESCRIBE(dnnl_f32, dnnl_ldigo, 1, 1, D, G, D),
			   b = DESCRIBE(dnnl_f32, dnnl_ldgo, 1, 1, B, D);
	dnnl_rnn_desc_t desc;
	dnnl_primitive_desc_t pd;
	if (G == 4)
		check_status(dnnl_lstm_forward_desc_init(&desc, dnnl_forward_inference,
							 dnnl_unidirectional_left2right, &x, &none, &none, &w,
							 &r, &b, &y, &none, &none, 0));
	else
		check_status(dnnl_lbr_gru_forward_desc_init(&desc, dnnl_forward_inference,
							    dnnl_unidirectional_left2right, &x, &none, &w, &r,
							    &b, &y, &none, 0));
	check_status(dnnl_primitive_desc_create(&pd, &desc, u->attributes, u->engine, NULL));
	check_status(dnnl_primitive_create(&u->primitive, pd));
	u->count = count;
	u->x = allocate_floats(T * N * E);
	u->y = allocate_floats(T * N * D);
	u->bias = joined_bias(s);
	u->given = keep_memory(u, &given, u->x);
	u->read = keep_memory(u, &read, u->y);
	pass_memory(u, DNNL_ARG_SRC_LAYER, keep_memory(u, &x, DNNL_MEMORY_ALLOCATE));
	pass_memory(u, DNNL_ARG_DST_LAYER, keep_memory(u, &y, DNNL_MEMORY_ALLOCATE));
	float *layer = transpose_weights(s, s->w_ih, E), *state = transpose_weights(s, s->w_hh, D);
	pass_memory(u, DNNL_ARG_BIAS, keep_memory(u, &b, u->bias));
	pass_packed(u, DNNL_ARG_WEIGHTS_LAYER, &plain_w,
		    dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), layer);
	pass_packed(u, DNNL_ARG_WEIGHTS_ITER, &plain_r,
		    dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1), state);
	free(layer);
	free(state);
	dnnl_primitive_desc_destroy(pd);
}

static void prepare_minibatch(struct unit *u, int first, int count)
{
	const struct sequences *s = u->s;
	if (count != u->count) {
		close_unit(u);
		open_unit(u, count);
	}
	for (int t = 0; t < s->steps; t++)
		for (int i = 0; i < count; i++)
			memcpy(u->x + ((size_t)t * count + i) * s->inputs,
			       s->x + ((size_t)((first + i) % s->n) * s->steps + t) * s->inputs,
			       s->inputs * sizeof *u->x);
	reorder(u, u->given, u->argument[SOURCE].memory);
}

static void print_last(struct unit *u, int count)
{
	const struct sequences *s = u->s;
	reorder(u, u->argument[RESULT].memory, u->read);
	const float *last = u->y + (size_t)(s->steps - 1) * count * s->hidden;
	for (int i = 0; i < count * s->hidden; i++)
		printf("%s%.9g", i ? " " : "", last[i]);
}

static double run_unit(struct unit *u)
{
	double begin = read_clock();
	check_status(dnnl_primitive_execute(u->primitive, u->stream, u->arguments, u->argument));
	check_status(dnnl_stream_wait(u->stream));
	return read_clock() - begin;
}

int main(int argc, char **argv)
{
	struct sequences s;
	struct unit u = {.s = &s};
	char line[200];
	int first, count, repeats;
	if (argc < 2 || argc > 3)
		give_up("usage: dnnl_rnn RAW [TYPE]");
	u.type = find_type(argc > 2 ? argv[2] : "f32");
	read_raw(&s, argv[1]);
	check_status(dnnl_primitive_attr_create(&u.attributes));
	if (u.type->weights == dnnl_s8)
		set_scales(u.attributes, &s);
	check_status(dnnl_engine_create(&u.engine, dnnl_cpu, 0));
	check_status(dnnl_stream_create(&u.stream, u.engine, dnnl_stream_default_flags));
	const dnnl_version_t *v = dnnl_version();
	fprintf(stderr, "oneDNN %d.%d.%d\n", v->major, v->minor, v->patch);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "root %d %d", &first, &count) == 2 && first >= 0 && count > 0) {
			prepare_minibatch(&u, first, count);
			run_unit(&u);
			print_last(&u, count);
		} else if (sscanf(line, "run %d %d %d", &first, &count, &repeats) == 3 && first >= 0 &&
			   count > 0) {
			prepare_minibatch(&u, first, count);
			run_unit(&u);
			for (int i = 0; i < repeats; i++)
				printf("%s%.2f", i ? " " : "", run_unit(&u) * 1e6);
		} else {
			give_up("a request is 'run FIRST COUNT REPEATS' or 'root FIRST COUNT'");
		}
		putchar('\n');
		fflush(stdout);
	}
	close_unit(&u);
	dnnl_primitive_attr_destroy(u.attributes);
	return 0;
}
