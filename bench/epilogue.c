/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* epilogue: the time of a cell without its products.
 *
 *   usage: epilogue [REPEATS]
 *
 * Runs a binary TreeLSTM whose gates are elementwise, over trees that all have one inner node a level: a level has as many
 * rows as there are trees.  Prints nanoseconds for 16 units of a row, the least of all repeats, for each kind of math and
 * of target; of the same cell with functions that cost nothing; and of a loop written by hand. */
#include "bench/library.h"

#include <immintrin.h>

enum { D = 256, LEVELS = 200, NODES = 2 * LEVELS + 1, GATES = 5, UNITS = 16, MOST_ROWS = 16 };

/* %s: sigmoid, tanh. */
static const char model[] = "model cell\n"
			    "structure tree(left, right)\n"
			    "param a_{i, fl, fr, o, u}[D], b_{i, fl, fr, o, u}[D]\n"
			    "state h[D], c[D]\n"
			    "def gate(a, b) = a * (left.h + right.h) + b\n"
			    "def s(x) = %s\n"
			    "def t(x) = %s\n"
			    "leaf:\n"
			    "    h = b_u\n"
			    "    c = b_i\n"
			    "inner:\n"
			    "    c = (s(gate(a_i, b_i)) * t(gate(a_u, b_u)) + s(gate(a_fl, b_fl)) * left.c +\n"
			    "        s(gate(a_fr, b_fr)) * right.c)\n"
			    "    h = s(gate(a_o, b_o)) * t(c)\n"
			    "output top = h at root\n";

static float weight_at(int i)
{
	return ((uint32_t)(i + 1) * 2654435761u >> 8) / (float)(1 << 23) - 1;
}

/* --- by hand --- */

#ifdef __AVX512F__
enum { LANES = 16 };
#define VEC_MIN _mm512_min_ps
#define VEC_MAX _mm512_max_ps
#else
enum { LANES = 8 };
#define VEC_MIN _mm256_min_ps
#define VEC_MAX _mm256_max_ps
#endif
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t veci __attribute__((vector_size(4 * LANES)));

/* e^-x, from 2^-30 to 2^30. */
static inline vec exponential(vec x)
{
	const float rounder = 0x1.8p23f + 127;
	x = VEC_MAX(VEC_MIN(x, (vec){0} + 20.7f), (vec){0} - 20.7f);
	vec sum = x * -1.44269504f + rounder, r = (sum - rounder) * 0.69314718f + x;
	vec p = r * -0.0082898289f + 0.0418982506f;
	p = p * r - 0.166676477f;
	p = p * r + 0.499991477f;
	p = p * r - 0.999999702f;
	p = p * r + 1.f;
	return p * (vec)((veci)sum << 23);
}

/* Two divisions: the gates of c share one, and those of h the other. */
static void run_cell(const float *a, const float *b, const float *h, const float *c, float *to_h, float *to_c)
{
	for (int j = 0; j < D; j += LANES) {
		vec gate[GATES], x = *(const vec *)(h + j) + *(const vec *)(b + 4 * D + j);
		for (int g = 0; g < GATES; g++)
			gate[g] = *(const vec *)(a + g * D + j) * x + *(const vec *)(b + g * D + j);
		vec left = *(const vec *)(c + j), right = *(const vec *)(b + j), one = (vec){0} + 1.f;
		vec i = one + exponential(gate[0]), fl = one + exponential(gate[1]);
		vec fr = one + exponential(gate[2]), o = one + exponential(gate[3]), u = exponential(gate[4] * 2.f);
		vec iu = i * (one + u), f = fl * fr;
		vec cell = ((one - u) * f + (left * fr + right * fl) * iu) / (iu * f);
		vec e = exponential(cell * 2.f);
		*(vec *)(to_c + j) = cell;
		*(vec *)(to_h + j) = (one - e) / (o * (one + e));
	}
}

static double time_by_hand(int rows, int repeats)
{
	static _Alignas(64) float weight[2 * GATES * D], state[2][2][MOST_ROWS * D];
	double least = 1;
	for (int i = 0; i < 2 * GATES * D; i++)
		weight[i] = weight_at(i);
	for (int i = 0; i < repeats; i++) {
		double begin = read_clock();
		for (int level = 0; level < LEVELS; level++)
			for (int row = 0; row < rows; row++)
				run_cell(weight, weight + GATES * D, state[level % 2][0] + row * D, state[level % 2][1] + row * D,
					 state[!(level % 2)][0] + row * D, state[!(level % 2)][1] + row * D);
		double took = read_clock() - begin;
		least = took < least ? took : least;
	}
	return least;
}

/* --- compiled --- */

static void put_weights(FILE *f, void *user)
{
	(void)user;
	for (int i = 0; i < 2 * GATES * D; i++) {
		float x = weight_at(i);
		fwrite(&x, sizeof x, 1, f);
	}
}

static esp_weights *cell_weights(esp_context *context)
{
	static const char *const names[] = {"a_i", "a_fl", "a_fr", "a_o", "a_u", "b_i", "b_fl", "b_fr", "b_o", "b_u"};
	char header[1000] = "{";
	for (int i = 0, n = 1; i < 2 * GATES; i++)
		n += snprintf(header + n, sizeof header - n,
			      "\"%s\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}%s", names[i], D, i * D * 4,
			      (i + 1) * D * 4, i + 1 < 2 * GATES ? "," : "}");
	return make_weights(context, header, put_weights, NULL);
}

/* Every inner node has the inner node below it and a leaf. */
static esp_structure make_tree(void)
{
	static int32_t begin[NODES + 1], children[NODES];
	int edges = 0;
	for (int i = 0; i < NODES; i++) {
		begin[i] = edges;
		if (i > LEVELS) {
			children[edges++] = i == LEVELS + 1 ? LEVELS : i - 1;
			children[edges++] = i - LEVELS - 1;
		}
	}
	begin[NODES] = edges;
	return (esp_structure){sizeof(esp_structure), NODES, begin, children, NODES - 1, NULL};
}

static double time_compiled(const char *sigmoid, const char *tanh, const char *math, const char *target, int rows, int repeats)
{
	char text[sizeof model + 64];
	esp_program_options o = {.size = sizeof o, .math = math, .target = target};
	esp_context *context = create_context(1);
	esp_structure tree = make_tree();
	snprintf(text, sizeof text, model, sigmoid, tanh);
	struct server s = open_text(context, text, cell_weights(context), &o);
	for (int i = 0; i < rows; i++)
		check_status(esp_forest_add(s.forest, &tree, &error));
	double seconds = time_least_run(&s, repeats);
	close_server(&s);
	return seconds;
}

static void print_row(const char *what, const char *target, const double *seconds, const double *by_hand)
{
	printf("%-12s %-8s", what, target);
	for (int i = 0; i < 2; i++)
		printf(" %8.1f %6.2f", seconds[i] * 1e9 / LEVELS / (i ? MOST_ROWS : 1) / (D / UNITS), seconds[i] / by_hand[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const char *const maths[] = {"exact", "reassociate", "fast"}, *const targets[] = {"avx2", "native"};
	int repeats = argc > 1 ? atoi(argv[1]) : 300;
	double by_hand[2], took[2];
	for (int i = 0; i < 2; i++)
		by_hand[i] = time_by_hand(i ? MOST_ROWS : 1, repeats);
	printf("%-12s %-8s %8s %6s %8s %6s\n", "math", "target", "1 row", "times", "16 rows", "times");
	print_row("by hand", "", by_hand, by_hand);
	for (int t = 0; t < 2; t++) {
		for (int k = 0; k < 3; k++) {
			for (int i = 0; i < 2; i++)
				took[i] = time_compiled("sigmoid(x)", "tanh(x)", maths[k], targets[t], i ? MOST_ROWS : 1, repeats);
			print_row(maths[k], targets[t], took, by_hand);
		}
		for (int i = 0; i < 2; i++)
			took[i] = time_compiled("x * 0.5", "x * 0.7", "exact", targets[t], i ? MOST_ROWS : 1, repeats);
		print_row("without", targets[t], took, by_hand);
	}
	return 0;
}
