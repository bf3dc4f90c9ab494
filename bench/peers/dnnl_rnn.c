/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* dnnl_rnn RAW: oneDNN's LSTM and GRU on the numbers that common.py wrote to RAW.
 *
 * Like torch_rnn.py it finds the kind of model from the weights, reads requests from standard input, and
 * does not time the layout of a minibatch. The GRU is lbr_gru, as in PyTorch and here: the reset gate
 * multiplies the product. Weights are packed once, in the format that oneDNN chooses (format_tag any).
 * Threads are OpenMP's: OMP_NUM_THREADS. */
#include "bench/timing.h"

#include <dnnl.h>
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
		give_up("usage: dnnl_rnn RAW");
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

/* --- one size of minibatch --- */

enum { MOST = 16 };

struct unit {
	const struct sequences *s;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	int count; /* sequences of its minibatch; 0 = not made yet */
	int arguments;
	dnnl_exec_arg_t argument[MOST];
	float *x, *y, *bias;
};

static dnnl_memory_desc_t describe_array(int n, const int64_t *dims, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t d;
	dnnl_dims_t all = {0};
	memcpy(all, dims, n * sizeof *dims);
	check_status(dnnl_memory_desc_init_by_tag(&d, n, all, dnnl_f32, tag));
	return d;
}

#define DESCRIBE(tag, ...)                                                                                   \
	describe_array(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}, tag)

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

/* Reorders row-major weights to oneDNN's format. */
static void pass_packed(struct unit *u, int what, const dnnl_memory_desc_t *plain,
			const dnnl_memory_desc_t *wanted, float *data)
{
	dnnl_primitive_desc_t reorder;
	dnnl_primitive_t primitive;
	dnnl_memory_t from = keep_memory(u, plain, data), to = keep_memory(u, wanted, DNNL_MEMORY_ALLOCATE);
	check_status(dnnl_reorder_primitive_desc_create(&reorder, plain, u->engine, wanted, u->engine, NULL));
	check_status(dnnl_primitive_create(&primitive, reorder));
	dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	check_status(dnnl_primitive_execute(primitive, u->stream, 2, arguments));
	check_status(dnnl_stream_wait(u->stream));
	dnnl_primitive_destroy(primitive);
	dnnl_primitive_desc_destroy(reorder);
	dnnl_memory_destroy(from);
	pass_memory(u, what, to);
}

static void close_unit(struct unit *u)
{
	if (!u->count)
		return;
	for (int i = 0; i < u->arguments; i++)
		dnnl_memory_destroy(u->argument[i].memory);
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
	dnnl_memory_desc_t none = {0}, x = DESCRIBE(dnnl_tnc, T, N, E), y = DESCRIBE(dnnl_tnc, T, N, D);
	dnnl_memory_desc_t w = DESCRIBE(dnnl_format_tag_any, 1, 1, E, G, D),
			   r = DESCRIBE(dnnl_format_tag_any, 1, 1, D, G, D),
			   plain_w = DESCRIBE(dnnl_ldigo, 1, 1, E, G, D),
			   plain_r = DESCRIBE(dnnl_ldigo, 1, 1, D, G, D), b = DESCRIBE(dnnl_ldgo, 1, 1, B, D);
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
	check_status(dnnl_primitive_desc_create(&pd, &desc, NULL, u->engine, NULL));
	check_status(dnnl_primitive_create(&u->primitive, pd));
	u->count = count;
	u->x = allocate_floats(T * N * E);
	u->y = allocate_floats(T * N * D);
	u->bias = joined_bias(s);
	pass_memory(u, DNNL_ARG_SRC_LAYER, keep_memory(u, &x, u->x));
	pass_memory(u, DNNL_ARG_DST_LAYER, keep_memory(u, &y, u->y));
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
	if (argc != 2)
		give_up("usage: dnnl_rnn RAW");
	read_raw(&s, argv[1]);
	check_status(dnnl_engine_create(&u.engine, dnnl_cpu, 0));
	check_status(dnnl_stream_create(&u.stream, u.engine, dnnl_stream_default_flags));
	const dnnl_version_t *v = dnnl_version();
	fprintf(stderr, "oneDNN %d.%d.%d\n", v->major, v->minor, v->patch);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "root %d %d", &first, &count) == 2 && first >= 0 && count > 0) {
			prepare_minibatch(&u, first, count);
			run_unit(&u);
			const float *last = u.y + (size_t)(s.steps - 1) * count * s.hidden;
			for (int i = 0; i < count * s.hidden; i++)
				printf("%s%.9g", i ? " " : "", last[i]);
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
	return 0;
}
