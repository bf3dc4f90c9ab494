/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* convolution: layers of image networks in index notation, at a batch of one, and products of two matrices of a node.
 *
 *   usage: convolution [-t THREADS] [-r REPEATS] [-c TARGET] [-s SCHEDULE] [-n] [-d] [-m] [LAYER...]
 *
 * Each layer of the table (or each whose name begins with a LAYER) is a model of its own, made of a template: a
 * structure with one leaf, which computes it.  Prints the least time of the layer's steps, the copies that it makes
 * for itself included, and of a whole run, which copies the image to the program and the result to the caller; of the
 * layer GFLOP/s and the share of the processor's peak, or GB/s of input and output and the share of what a copy
 * reaches between buffers of these sizes.  Then by how much results differ from those of a loop (not with -n); and
 * with -d, where oneDNN was found, the least time of its own layer in the formats that it chooses, without the time to
 * bring images to them, by as many threads as OMP_NUM_THREADS says.  -c compiles for another target than the machine's
 * own, such as avx2 (for oneDNN set ONEDNN_MAX_CPU_ISA).  -m prints the models instead. */
#include "bench/library.h"
#include "bench/timing.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#ifdef HAVE_DNNL
#include <dnnl.h>
#endif

enum kind { CONVOLUTION, PRODUCT, DEPTHWISE, MAX_POOL, MEAN_POOL };

struct layer {
	const char *name;
	enum kind kind;
	int from, to, size, window, stride; /* channels, rows and columns of an image, of the window */
};

static const struct layer layers[] = {
    {"first", CONVOLUTION, 3, 64, 224, 7, 2},
    {"56.64.64.1", CONVOLUTION, 64, 64, 56, 1, 1},
    {"56.64.64.3", CONVOLUTION, 64, 64, 56, 3, 1},
    {"56.64.256.1", CONVOLUTION, 64, 256, 56, 1, 1},
    {"56.256.64.1", CONVOLUTION, 256, 64, 56, 1, 1},
    {"56.256.128.1", CONVOLUTION, 256, 128, 56, 1, 1},
    {"56.128.128.3/2", CONVOLUTION, 128, 128, 56, 3, 2},
    {"56.256.512.1/2", CONVOLUTION, 256, 512, 56, 1, 2},
    {"28.128.128.3", CONVOLUTION, 128, 128, 28, 3, 1},
    {"28.128.512.1", CONVOLUTION, 128, 512, 28, 1, 1},
    {"28.512.128.1", CONVOLUTION, 512, 128, 28, 1, 1},
    {"28.512.256.1", CONVOLUTION, 512, 256, 28, 1, 1},
    {"28.256.256.3/2", CONVOLUTION, 256, 256, 28, 3, 2},
    {"28.512.1024.1/2", CONVOLUTION, 512, 1024, 28, 1, 2},
    {"14.256.256.3", CONVOLUTION, 256, 256, 14, 3, 1},
    {"14.256.1024.1", CONVOLUTION, 256, 1024, 14, 1, 1},
    {"14.1024.256.1", CONVOLUTION, 1024, 256, 14, 1, 1},
    {"14.1024.512.1", CONVOLUTION, 1024, 512, 14, 1, 1},
    {"14.512.512.3/2", CONVOLUTION, 512, 512, 14, 3, 2},
    {"14.1024.2048.1/2", CONVOLUTION, 1024, 2048, 14, 1, 2},
    {"7.512.512.3", CONVOLUTION, 512, 512, 7, 3, 1},
    {"7.512.2048.1", CONVOLUTION, 512, 2048, 7, 1, 1},
    {"7.2048.512.1", CONVOLUTION, 2048, 512, 7, 1, 1},
    {"depth.112.32", DEPTHWISE, 32, 32, 112, 3, 1},
    {"depth.112.96/2", DEPTHWISE, 96, 96, 112, 3, 2},
    {"depth.56.144", DEPTHWISE, 144, 144, 56, 3, 1},
    {"depth.56.144/2", DEPTHWISE, 144, 144, 56, 3, 2},
    {"depth.28.192", DEPTHWISE, 192, 192, 28, 3, 1},
    {"depth.28.192/2", DEPTHWISE, 192, 192, 28, 3, 2},
    {"depth.14.384", DEPTHWISE, 384, 384, 14, 3, 1},
    {"depth.14.576/2", DEPTHWISE, 576, 576, 14, 3, 2},
    {"depth.7.960", DEPTHWISE, 960, 960, 7, 3, 1},
    {"max.112.64/2", MAX_POOL, 64, 64, 112, 3, 2},
    {"max.56.128/2", MAX_POOL, 128, 128, 56, 2, 2},
    {"mean.56.128/2", MEAN_POOL, 128, 128, 56, 2, 2},
    {"mean.28.512/2", MEAN_POOL, 512, 512, 28, 2, 2},
    {"product.128", PRODUCT, 2, 1, 128, 1, 1},
    {"product.256", PRODUCT, 2, 1, 256, 1, 1},
    {"product.512", PRODUCT, 2, 1, 512, 1, 1},
};

static int padding_of(const struct layer *l)
{
	return (l->window - 1) / 2;
}

static int result_size(const struct layer *l)
{
	return (l->size + 2 * padding_of(l) - l->window) / l->stride + 1;
}

static size_t input_elements(const struct layer *l)
{
	return (size_t)l->from * l->size * l->size;
}

static size_t output_elements(const struct layer *l)
{
	return (size_t)l->to * result_size(l) * result_size(l);
}

static size_t weight_elements(const struct layer *l)
{
	size_t window = (size_t)l->window * l->window;
	return l->kind == CONVOLUTION ? window * l->from * l->to
	       : l->kind == DEPTHWISE ? window * l->from
				      : (size_t)l->from;
}

static double operations_of(const struct layer *l)
{
	double window = (double)l->window * l->window;
	return 2.0 * output_elements(l) * window *
	       (l->kind == CONVOLUTION ? l->from : l->kind == PRODUCT ? l->size : 1);
}

static float *allocate_floats(size_t n)
{
	float *x = aligned_alloc(64, (n * sizeof *x + 127) / 64 * 64);
	if (!x)
		give_up("no memory");
	return memset(x, 0, n * sizeof *x);
}

/* Fills with numbers in [-scale, scale). */
static float *make_numbers(size_t n, float scale, uint32_t state)
{
	float *x = allocate_floats(n);
	for (size_t i = 0; i < n; i++) {
		state = state * 1664525u + 1013904223u;
		x[i] = ((int32_t)(state >> 8) - (1 << 23)) * (scale / (1 << 23));
	}
	return x;
}

/* --- the models --- */

/* A layer is computed at a leaf.  Its result is a state, which a network's next layer would read; an output of all of
 * it adds a copy in the order of C, and in the measured run is a small part. */
static const char model_text[] =
    "model layer\n"
    "structure tree(left, right)\n"
    "input x[%s, %d, %d]\n"
    "param W%s\n"
    "state y[%s, %d, %d]\n"
    "leaf:\n"
    "    y[k, i, j] = %s\n"
    "inner:\n"
    "    y = left.y + right.y\n"
    "output z%s at root\n";

/* A node multiplies its two matrices, and adds a number. */
static const char product_text[] =
    "model layer\n"
    "structure tree(left, right)\n"
    "input x[K, %d, %d]\n"
    "param W[K]\n"
    "state y[%d, %d]\n"
    "leaf:\n"
    "    y[i, j] = sum(x[0, i, c] * x[1, c, j] for c) + W[0]\n"
    "inner:\n"
    "    y = left.y + right.y\n"
    "output z = y%s at root\n";

static const char *const shapes[] = {"[K, C, %d, %d]", "", "[K, %d, %d]", "[K]", "[K]"};

static char *index_text(char *text, size_t size, const struct layer *l, const char *outer, const char *inner)
{
	int n = l->stride > 1 ? snprintf(text, size, "%d*%s + %s", l->stride, outer, inner)
			      : snprintf(text, size, "%s + %s", outer, inner);
	if (padding_of(l))
		snprintf(text + n, size - n, " - %d", padding_of(l));
	return text;
}

static void write_model(const struct layer *l, bool whole, char *text, size_t size)
{
	char row[40], column[40], value[200], shape[40];
	if (l->kind == PRODUCT) {
		snprintf(text, size, product_text, l->size, l->size, l->size, l->size, whole ? "" : "[0]");
		return;
	}
	snprintf(shape, sizeof shape, shapes[l->kind], l->window, l->window);
	index_text(row, sizeof row, l, "i", "u");
	index_text(column, sizeof column, l, "j", "v");
	if (l->kind == CONVOLUTION)
		snprintf(value, sizeof value, "sum(W[k, c, u, v] * x[c, %s, %s] for c, u, v)", row, column);
	else if (l->kind == DEPTHWISE)
		snprintf(value, sizeof value, "sum(W[k, u, v] * x[k, %s, %s] for u, v)", row, column);
	else if (l->kind == MAX_POOL)
		snprintf(value, sizeof value, "max(x[k, %s, %s] for u in %d, v in %d) + W[k]", row, column, l->window,
			 l->window);
	else
		snprintf(value, sizeof value, "sum(x[k, %s, %s] for u in %d, v in %d) * W[k]", row, column, l->window,
			 l->window);
	const char *channels = l->kind == CONVOLUTION ? "C" : "K";
	snprintf(text, size, model_text, channels, l->size, l->size, shape, "K", result_size(l), result_size(l), value,
		 whole ? " = y" : "[j] = y[0, 0, j]");
}

/* --- the library --- */

struct run {
	esp_context *context;
	esp_program *program;
	esp_binding *binding;
	esp_forest *forest;
	esp_session *session;
};

struct numbers {
	const float *at;
	size_t n;
};

static void put_numbers(FILE *f, void *user)
{
	const struct numbers *x = user;
	fwrite(x->at, sizeof *x->at, x->n, f);
}

static esp_weights *open_weights(esp_context *context, const struct layer *l, const float *w)
{
	char header[200], shape[100];
	struct numbers numbers = {w, weight_elements(l)};
	if (l->kind == CONVOLUTION)
		snprintf(shape, sizeof shape, "%d,%d,%d,%d", l->to, l->from, l->window, l->window);
	else if (l->kind == DEPTHWISE)
		snprintf(shape, sizeof shape, "%d,%d,%d", l->from, l->window, l->window);
	else
		snprintf(shape, sizeof shape, "%d", l->from);
	snprintf(header, sizeof header, "{\"W\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,%zu]}}", shape,
		 4 * numbers.n);
	return make_weights(context, header, put_numbers, &numbers);
}

/* A run over one leaf. */
static struct run open_run(const struct layer *l, bool whole, const float *x, const float *w, int threads,
			   const char *target, const char *schedule)
{
	struct run r;
	char text[1000];
	esp_model *model;
	esp_context_options how = {.size = sizeof how, .threads = threads};
	esp_program_options options = {.size = sizeof options, .target = target, .schedule = schedule};
	static const int32_t begin[2];
	const void *data = x;
	esp_structure leaf = {.size = sizeof leaf, .nodes = 1, .child_begin = begin, .data = &data};
	write_model(l, whole, text, sizeof text);
	check_status(esp_context_create(&how, &r.context, &error));
	check_status(esp_model_parse(r.context, "layer.ra", text, strlen(text), &model, &error));
	esp_weights *weights = open_weights(r.context, l, w);
	check_status(esp_program_create(model, weights, &options, &r.program, &error));
	check_status(esp_program_prepare(r.program, &error));
	check_status(esp_binding_create(r.program, weights, &r.binding, &error));
	check_status(esp_forest_create(r.program, &r.forest, &error));
	check_status(esp_forest_add(r.forest, &leaf, &error));
	check_status(esp_session_create(r.binding, &r.session, &error));
	esp_model_free(model);
	esp_weights_free(weights);
	return r;
}

static void close_run(struct run *r)
{
	esp_session_free(r->session);
	esp_forest_free(r->forest);
	esp_binding_free(r->binding);
	esp_program_free(r->program);
	esp_context_free(r->context);
}

/* --- a loop --- */

static void multiply_plainly(int n, const float *x, float w, float *y)
{
	const float *a = x, *b = x + (size_t)n * n;
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			y[(size_t)i * n + j] = w;
		for (int c = 0; c < n; c++)
			for (int j = 0; j < n; j++)
				y[(size_t)i * n + j] += a[(size_t)i * n + c] * b[(size_t)c * n + j];
	}
}

static void run_plainly(const struct layer *l, const float *x, const float *w, float *y)
{
	int result = result_size(l), window = l->window, padding = padding_of(l);
	if (l->kind == PRODUCT) {
		multiply_plainly(l->size, x, w[0], y);
		return;
	}
	for (int k = 0; k < l->to; k++)
		for (int i = 0; i < result; i++) {
			float *row = y + ((size_t)k * result + i) * result;
			for (int j = 0; j < result; j++)
				row[j] = l->kind == MAX_POOL ? -INFINITY : 0;
			int first = l->kind == CONVOLUTION ? 0 : k, last = l->kind == CONVOLUTION ? l->from : k + 1;
			for (int c = first; c < last; c++)
				for (int u = 0; u < window; u++)
					for (int v = 0; v < window; v++) {
						int at = i * l->stride + u - padding;
						if (at < 0 || at >= l->size)
							continue;
						const float *from = x + ((size_t)c * l->size + at) * l->size;
						size_t of =
						    l->kind == CONVOLUTION ? (size_t)k * l->from + c : (size_t)c;
						float by = l->kind > DEPTHWISE ? 1 : w[(of * window + u) * window + v];
						for (int j = 0; j < result; j++) {
							int column = j * l->stride + v - padding;
							float in = column >= 0 && column < l->size ? from[column] : 0;
							if (l->kind != MAX_POOL)
								row[j] += by * in;
							else if (column >= 0 && column < l->size && in > row[j])
								row[j] = in;
						}
					}
			for (int j = 0; j < result; j++)
				row[j] = l->kind == MAX_POOL	? row[j] + w[k]
					 : l->kind == MEAN_POOL ? row[j] * w[k]
								: row[j];
		}
}

/* The greatest difference, relative to the greatest number. */
static double compare_images(const float *a, const float *b, size_t n)
{
	double most = 0, differs = 0;
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fabs(b[i]));
		differs = isnan(a[i]) ? INFINITY : fmax(differs, fabs((double)a[i] - b[i]));
	}
	return differs / most;
}

/* --- limits of the machine --- */

/* The widest vector of the processor that compiles this, and as many as keep its multiply-adds busy in registers. */
#ifdef __AVX512F__
enum { VECTOR_BYTES = 64, VECTORS = 24 };
#else
enum { VECTOR_BYTES = 32, VECTORS = 12 };
#endif
typedef float vec __attribute__((vector_size(VECTOR_BYTES)));

/* Operations in a nanosecond of one core, multiply-adds of registers. */
static double measure_peak(void)
{
	enum { TIMES = 200000 };
	vec sum[VECTORS] = {{0}}, a = {1}, b = {1};
	double best = 0;
	for (int repeat = 0; repeat < 20; repeat++) {
		double begin = read_clock();
		for (int i = 0; i < TIMES; i++) {
			__asm__ volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 24 /* at least VECTORS */
			for (int v = 0; v < VECTORS; v++)
				sum[v] = sum[v] * a + b;
		}
		best = fmax(best, 2.0 * VECTORS * (VECTOR_BYTES / 4) * TIMES / (read_clock() - begin) * 1e-9);
	}
	for (int v = 0; v < VECTORS; v++)
		__asm__ volatile("" : : "x"(sum[v]));
	return best;
}

/* Bytes in a nanosecond that one core reads of one buffer and writes to another, in the least time. */
static double measure_copy(size_t from, size_t to)
{
	size_t n = from / sizeof(vec), m = to / sizeof(vec), most = n > m ? n : m;
	vec *x = (vec *)allocate_floats(from / 4 + 16), *y = (vec *)allocate_floats(to / 4 + 16);
	double least = 1;
	for (int repeat = 0; repeat < 200; repeat++) {
		vec sum = {0};
		double begin = read_clock();
		for (size_t i = 0; i < most; i++) {
			if (i < n)
				sum = x[i];
			if (i < m)
				y[i] = sum;
			__asm__ volatile("" : "+x"(sum) : : "memory");
		}
		least = fmin(least, read_clock() - begin);
	}
	free(x);
	free(y);
	return (double)(from + to) / least * 1e-9;
}

/* --- oneDNN --- */

#ifdef HAVE_DNNL
static void check_dnnl(dnnl_status_t status)
{
	if (status != dnnl_success)
		give_up("oneDNN refuses");
}

static dnnl_memory_desc_t describe_array(int n, const int64_t *dims)
{
	dnnl_memory_desc_t d;
	dnnl_dims_t all = {0};
	memcpy(all, dims, n * sizeof *dims);
	check_dnnl(dnnl_memory_desc_init_by_tag(&d, n, all, dnnl_f32, dnnl_format_tag_any));
	return d;
}

/* A layer's primitive, with memory of the formats that it chose. */
struct peer {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t argument[3];
};

static void pass_memory(struct peer *p, dnnl_primitive_desc_t of, int i, int what, dnnl_query_t query)
{
	dnnl_memory_t memory;
	void *data;
	const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(of, query, 0);
	check_dnnl(dnnl_memory_create(&memory, d, p->engine, DNNL_MEMORY_ALLOCATE));
	check_dnnl(dnnl_memory_get_data_handle(memory, &data));
	float *numbers = make_numbers(dnnl_memory_desc_get_size(d) / 4, 0.1f, 3);
	memcpy(data, numbers, dnnl_memory_desc_get_size(d));
	free(numbers);
	p->argument[i] = (dnnl_exec_arg_t){what, memory};
}

static void open_peer(struct peer *p, const struct layer *l)
{
	const int64_t size = l->size, result = result_size(l), window = l->window, channels = l->from, to = l->to;
	dnnl_memory_desc_t x = describe_array(4, (int64_t[]){1, channels, size, size}),
			   y = describe_array(4, (int64_t[]){1, to, result, result});
	dnnl_memory_desc_t w = l->kind == CONVOLUTION ? describe_array(4, (int64_t[]){to, channels, window, window})
						      : describe_array(5, (int64_t[]){channels, 1, 1, window, window});
	dnnl_dims_t strides = {l->stride, l->stride}, before = {padding_of(l), padding_of(l)}, after;
	dnnl_convolution_desc_t description;
	dnnl_primitive_desc_t pd;
	for (int d = 0; d < 2; d++)
		after[d] = (result - 1) * l->stride + window - size - padding_of(l);
	check_dnnl(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
	check_dnnl(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
	check_dnnl(dnnl_convolution_forward_desc_init(&description, dnnl_forward_inference, dnnl_convolution_direct, &x,
						      &w, NULL, &y, strides, before, after));
	check_dnnl(dnnl_primitive_desc_create(&pd, &description, NULL, p->engine, NULL));
	check_dnnl(dnnl_primitive_create(&p->primitive, pd));
	pass_memory(p, pd, 0, DNNL_ARG_SRC, dnnl_query_src_md);
	pass_memory(p, pd, 1, DNNL_ARG_WEIGHTS, dnnl_query_weights_md);
	pass_memory(p, pd, 2, DNNL_ARG_DST, dnnl_query_dst_md);
	dnnl_primitive_desc_destroy(pd);
}

static void close_peer(struct peer *p)
{
	for (int i = 0; i < 3; i++)
		dnnl_memory_destroy(p->argument[i].memory);
	dnnl_primitive_destroy(p->primitive);
	dnnl_stream_destroy(p->stream);
	dnnl_engine_destroy(p->engine);
}

/* The least time of oneDNN for a convolution [s]; its threads are OpenMP's. */
static double measure_peer(const struct layer *l, int repeats)
{
	struct peer p;
	double least = 1e9;
	open_peer(&p, l);
	for (int i = -2; i < repeats; i++) {
		double begin = read_clock();
		check_dnnl(dnnl_primitive_execute(p.primitive, p.stream, 3, p.argument));
		check_dnnl(dnnl_stream_wait(p.stream));
		least = i < 0 ? least : fmin(least, read_clock() - begin);
	}
	close_peer(&p);
	return least;
}
#endif

/* --- measuring --- */

struct times {
	double layer, run; /* the steps of the leaf; all */
};

/* The time of the steps of the last run that go over leaves. */
static double time_of_layer(const esp_profile *p)
{
	int64_t time = 0;
	const esp_range *range;
	for (size_t i = 0; (range = esp_profile_range(p, i)); i++)
		time += esp_profile_step(p, range->step)->over == ESP_OVER_LEAVES ? range->stop - range->start : 0;
	return (double)time * 1e-9;
}

/* The least times: those of a layer are recorded in runs of their own. */
static struct times measure_run(struct run *r, int repeats)
{
	struct times least = {1e9, 1e9};
	for (int i = -2; i < 2 * repeats; i++) {
		check_status(esp_session_record(r->session, i & 1, &error));
		double begin = read_clock();
		check_status(esp_session_run(r->session, r->forest, &error));
		double took = read_clock() - begin;
		if (i >= 0 && i & 1)
			least.layer = fmin(least.layer, time_of_layer(esp_session_profile(r->session)));
		else if (i >= 0)
			least.run = fmin(least.run, took);
	}
	return least;
}

static void measure_layer(const struct layer *l, int threads, int repeats, const char *target,
			  const char *schedule, double peak, bool check, bool peer)
{
	(void)peer; /* without oneDNN */
	float *x = make_numbers(input_elements(l), 1, 1), *w = make_numbers(weight_elements(l), 0.1f, 2);
	float *y = allocate_floats(output_elements(l));
	struct run run = open_run(l, true, x, w, threads, target, schedule);
	struct times t = measure_run(&run, repeats);
	double operations = operations_of(l), bytes = 4.0 * (input_elements(l) + output_elements(l));
	printf("%-17s %d %9.1f %9.1f", l->name, threads, t.layer * 1e6, t.run * 1e6);
	if (l->kind <= PRODUCT)
		printf(" %7.1f GFLOP/s %5.1f %%", operations / t.layer * 1e-9,
		       operations / t.layer * 1e-7 / (peak * threads));
	else
		printf(" %7.1f GB/s    %5.1f %%", bytes / t.layer * 1e-9,
		       bytes / t.layer * 1e-7 /
			   (threads * measure_copy(4 * input_elements(l), 4 * output_elements(l))));
	if (check) {
		run_plainly(l, x, w, y);
		double differs = compare_images(esp_session_output(run.session, 0, 0, 0), y, output_elements(l));
		printf("  %.0e%s", differs, differs < 1e-5 ? "" : " WRONG");
	}
#ifdef HAVE_DNNL
	if (peer && (l->kind == CONVOLUTION || l->kind == DEPTHWISE))
		printf("  oneDNN %9.1f", measure_peer(l, repeats) * 1e6);
#endif
	putchar('\n');
	fflush(stdout);
	close_run(&run);
	free(x);
	free(w);
	free(y);
}

static char *read_text(const char *path)
{
	static char text[10000];
	FILE *f = fopen(path, "rb");
	if (!f)
		give_up("cannot read the schedule");
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static bool is_wanted(const struct layer *l, char **names, int n)
{
	bool wanted = !n;
	for (int i = 0; i < n; i++)
		wanted |= strncmp(l->name, names[i], strlen(names[i])) == 0;
	return wanted;
}

int main(int argc, char **argv)
{
	int threads = 1, repeats = 20, option;
	const char *target = NULL, *schedule = NULL;
	bool check = true, peer = false, show = false;
	while ((option = getopt(argc, argv, "t:r:c:s:ndm")) >= 0)
		switch (option) {
		case 't':
			threads = atoi(optarg);
			break;
		case 'r':
			repeats = atoi(optarg);
			break;
		case 'c':
			target = optarg;
			break;
		case 's':
			schedule = read_text(optarg);
			break;
		case 'n':
			check = false;
			break;
		case 'd':
			peer = true;
			break;
		case 'm':
			show = true;
			break;
		default:
			give_up("usage: convolution [-t THREADS] [-r REPEATS] [-c TARGET] [-s SCHEDULE] [-n] [-d] [-m] "
				"[LAYER...]");
		}
	if (threads < 1 || repeats < 1)
		give_up("THREADS and REPEATS are numbers from 1");
	double peak = show ? 0 : measure_peak();
	if (!show)
		printf("peak of a core %.0f GFLOP/s\n%-17s %s %9s %9s\n", peak, "layer", "t", "layer us", "run us");
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
		char text[1000];
		if (!is_wanted(&layers[i], argv + optind, argc - optind))
			continue;
		write_model(&layers[i], true, text, sizeof text);
		if (show)
			printf("# %s\n%s\n", layers[i].name, text);
		else
			measure_layer(&layers[i], threads, repeats, target, schedule, peak, check, peer);
	}
	return 0;
}
