/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* denormals: the cost of numbers below 2^-126.
 *
 *   usage: denormals [REPEATS]
 *
 * Runs a tree RNN over a perfect tree with normal embeddings and with embeddings that make sums, products
 * and states denormal, for each kind of math. Prints microseconds of a run, the least of all repeats. */
#include "bench/library.h"

enum { D = 256, V = 16, LEAVES = 64, NODES = 2 * LEAVES - 1 };

static const char model[] =
    "model small\n"
    "structure tree(left, right)\n"
    "input word : token\n"
    "param E[V, D]\n"
    "param W[D, D]\n"
    "state h[D]\n"
    "leaf:\n"
    "    h = E[word]\n"
    "inner:\n"
    "    h = W @ (left.h + right.h)\n"
    "output top = h at root\n";

/* Writes random numbers between -scale and scale. */
static void put_values(FILE *f, size_t n, float scale)
{
	uint32_t state = 1;
	for (size_t i = 0; i < n; i++) {
		state = state * 1664525 + 1013904223;
		float x = scale * ((float)(state >> 8) / (1 << 23) - 1);
		fwrite(&x, sizeof x, 1, f);
	}
}

/* `user`: the scale of embeddings. */
static void put_weights(FILE *f, void *user)
{
	put_values(f, V * D, *(const float *)user);
	put_values(f, D * D, 0.1f);
}

static esp_weights *scaled_weights(esp_context *context, float scale)
{
	char header[300];
	snprintf(header, sizeof header,
		 "{\"E\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]},"
		 "\"W\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%d,%d]}}",
		 V, D, V * D * 4, D, D, V * D * 4, (V + D) * D * 4);
	return make_weights(context, header, put_weights, &scale);
}

/* A perfect tree: leaves first, then level by level. */
static esp_structure make_tree(void)
{
	static int32_t begin[NODES + 1], children[NODES], words[NODES];
	static const void *data[] = {words};
	for (int i = 0, n = 0; i < NODES; i++) {
		words[i] = i < LEAVES ? i % V : -1;
		for (int k = 0; i >= LEAVES && k < 2; k++, n++)
			children[n] = n;
		begin[i + 1] = n;
	}
	return (esp_structure){sizeof(esp_structure), NODES, begin, children, NODES - 1, data};
}

static double time_of(float scale, const char *math, int repeats)
{
	esp_program_options o = {.size = sizeof o, .math = math, .rules = "-tables"};
	esp_context *context = create_context(1);
	struct server s = open_text(context, model, scaled_weights(context, scale), &o);
	esp_structure tree = make_tree();
	check_status(esp_forest_add(s.forest, &tree, &error));
	double seconds = time_least_run(&s, repeats);
	close_server(&s);
	return seconds;
}

int main(int argc, char **argv)
{
	static const char *const maths[] = {"exact", "reassociate", "fast"};
	int repeats = argc > 1 ? atoi(argv[1]) : 2000;
	printf("%-12s %10s %10s %8s\n", "math", "usual us", "denormal", "times");
	for (int i = 0; i < 3; i++) {
		double usual = time_of(1, maths[i], repeats), small = time_of(1e-39f, maths[i], repeats);
		printf("%-12s %10.1f %10.1f %8.2f\n", maths[i], usual * 1e6, small * 1e6, small / usual);
	}
	return 0;
}
