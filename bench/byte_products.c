/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* byte_products: products of matrices of bytes, unsigned by signed, in a node, beside the peak of the instruction for them.
 *
 *   usage: byte_products [-t THREADS] [-r REPEATS] [SIZE...]
 *
 * For each SIZE (256, 512 and 1024) the node multiplies a matrix that a run brings by weights, by a second matrix of the run,
 * and by weights where a run has so many rows as nodes of their own; it quantises the sums to numbers of a byte.  Prints the
 * least and the median time of a run, billions of multiply-adds a second, and their share of the peak of THREADS cores: what a
 * loop of independent vpdpbusd reaches in this process, where the compiler makes code with that instruction (AVX-512 VNNI). */
#include "bench/library.h"
#include "bench/timing.h"

#include <getopt.h>
#include <math.h>

#ifdef __AVX512VNNI__
#include <immintrin.h>

/* Multiply-adds of bytes in a nanosecond of one core, from registers to registers. */
static double measure_peak(void)
{
	enum { TIMES = 200000, SUMS = 16, BYTES = 64 };
	__m512i sum[SUMS] = {{0}}, a = _mm512_set1_epi32(1), b = a;
	double best = 0;
#pragma GCC unroll 16 /* each sum is one of its own to the compiler */
	for (int s = 0; s < SUMS; s++)
		__asm__ volatile("" : "+v"(sum[s]));
	for (int repeat = 0; repeat < 20; repeat++) {
		double begin = read_clock();
		for (int i = 0; i < TIMES; i++) {
			__asm__ volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 16 /* SUMS */
			for (int s = 0; s < SUMS; s++)
				sum[s] = _mm512_dpbusd_epi32(sum[s], a, b);
		}
		best = fmax(best, (double)SUMS * BYTES * TIMES / (read_clock() - begin) * 1e-9);
	}
#pragma GCC unroll 16
	for (int i = 0; i < SUMS; i++)
		__asm__ volatile("" : : "v"(sum[i]));
	return best;
}
#else
static double measure_peak(void)
{
	return 0;
}
#endif

enum kind { WEIGHTS, MATRICES, ROWS };

static const char *const kinds[] = {"by weights", "of a run", "rows by weights"};

static void write_model(enum kind kind, int n, char *text, size_t size)
{
	char given[200], element[40];
	if (kind == ROWS)
		snprintf(given, sizeof given, "input x[%d] : u8\nparam W[%d, %d] : i8\n", n, n, n);
	else
		snprintf(given, sizeof given, "input x[%d, %d] : u8\n%s W[%d, %d] : i8\n", n, n, kind == WEIGHTS ? "param" : "input", n,
			 n);
	if (kind == ROWS)
		snprintf(element, sizeof element, "j in %d", n);
	else
		snprintf(element, sizeof element, "i in %d, j in %d", n, n);
	snprintf(text, size,
		 "model product\nstructure none\n%snode:\n    a[%s] = sum(%s * W[c, j] for c)\n"
		 "    y[%s] = cast(minimum(maximum(round(cast(a[%s], f32) * 0.001) + 128, 0), 255), i32)\noutput r = y\n",
		 given, element, kind == ROWS ? "x[c]" : "x[i, c]", element, kind == ROWS ? "j" : "i, j");
}

struct bytes {
	const int8_t *at;
	size_t n;
};

static void put_bytes(FILE *f, void *user)
{
	const struct bytes *b = user;
	fwrite(b->at, 1, b->n, f);
}

static int8_t *make_bytes(size_t n, uint32_t state)
{
	int8_t *b = malloc(n);
	for (size_t i = 0; i < n; i++) {
		state = state * 1664525u + 1013904223u;
		b[i] = (int8_t)(state >> 24);
	}
	return b;
}

static struct server open_product(enum kind kind, int n, int threads, const uint8_t *x, const int8_t *w)
{
	char text[1000], header[200];
	esp_context *context = create_context(threads);
	struct bytes all = {w, kind == MATRICES ? 1 : (size_t)n * n};
	const void *data[] = {x, w};
	static const int32_t begin[2];
	write_model(kind, n, text, sizeof text);
	if (kind == MATRICES)
		snprintf(header, sizeof header, "{\"none\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
	else
		snprintf(header, sizeof header, "{\"W\":{\"dtype\":\"I8\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]}}", n, n,
			 all.n);
	struct server s = open_text(context, text, make_weights(context, header, put_bytes, &all), NULL);
	for (int i = 0; i < (kind == ROWS ? n : 1); i++) {
		data[0] = x + (size_t)i * n;
		check_status(esp_forest_add(
		    s.forest, &(esp_structure){.size = sizeof(esp_structure), .nodes = 1, .child_begin = begin, .data = data},
		    &error));
	}
	return s;
}

static void measure_product(enum kind kind, int n, int threads, int repeats, double peak)
{
	size_t elements = (size_t)n * n;
	int8_t *x = make_bytes(elements, 1), *w = make_bytes(elements, 2);
	struct server s = open_product(kind, n, threads, (const uint8_t *)x, w);
	double *time = malloc(repeats * sizeof *time);
	for (int i = -3; i < repeats; i++) {
		double took = time_run(&s);
		time[i < 0 ? 0 : i] = took;
	}
	qsort(time, repeats, sizeof *time, compare_doubles);
	double rate = (double)elements * n / time[0] * 1e-9;
	printf("%5d %-16s %d %9.1f %9.1f %8.1f", n, kinds[kind], threads, time[0] * 1e6, time[repeats / 2] * 1e6, rate);
	if (peak > 0)
		printf(" %4.0f %%", 100 * rate / (peak * threads));
	puts("");
	close_server(&s);
	free(time);
	free(x);
	free(w);
}

int main(int argc, char **argv)
{
	static const int usual[] = {256, 512, 1024, 0};
	int threads = 1, repeats = 200, c;
	while ((c = getopt(argc, argv, "t:r:")) != -1)
		if (c == 't')
			threads = atoi(optarg);
		else if (c == 'r')
			repeats = atoi(optarg);
		else
			give_up("usage: byte_products [-t THREADS] [-r REPEATS] [SIZE...]");
	if (threads < 1 || repeats < 1)
		give_up("THREADS and REPEATS are numbers from 1");
	double peak = measure_peak();
	printf("peak of a core %.0f multiply-adds of bytes a nanosecond\n%5s %-16s t %9s %9s %8s\n", peak, "size", "product",
	       "least us", "median us", "10^9/s");
	for (int i = 0; optind < argc ? i < argc - optind : usual[i]; i++)
		for (int kind = WEIGHTS; kind <= ROWS; kind++)
			measure_product((enum kind)kind, optind < argc ? atoi(argv[optind + i]) : usual[i], threads, repeats, peak);
	return 0;
}
