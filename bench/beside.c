/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* beside [HIDDEN [RUNS]]: what runs of one structure take beside processes that compute all the time, with
 * one thread and with two.
 *
 * A run is that of a binary TreeLSTM over one tree of 37 nodes.  Threads are not bound to processors.  The
 * two contexts run by turns, some hundred runs at a time, so that they meet the same disturbances.  The table
 * has microseconds, and the ratios of two threads to one. */
#include "bench/library.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { WORDS = 64, INNER = 18, NODES = 2 * INNER + 1, TURN = 500, MOST_BUSY = 2 };

static const char model[] =
    "model treelstm\n"
    "structure tree(left, right)\n"
    "input word : token\n"
    "param E[V, D], C[V, D], U_{i, fl, fr, o, u}_{left, right}[D, D]\n"
    "state h[D], c[D]\n"
    "def gate(G_left, G_right) = G_left @ left.h + G_right @ right.h\n"
    "leaf:\n"
    "    h = E[word]\n"
    "    c = C[word]\n"
    "inner:\n"
    "    i = sigmoid(gate(U_i_left, U_i_right))\n"
    "    fl = sigmoid(gate(U_fl_left, U_fl_right))\n"
    "    fr = sigmoid(gate(U_fr_left, U_fr_right))\n"
    "    o = sigmoid(gate(U_o_left, U_o_right))\n"
    "    u = tanh(gate(U_u_left, U_u_right))\n"
    "    c = i * u + fl * left.c + fr * right.c\n"
    "    h = o * tanh(c)\n"
    "output top = h at root\n";

/* --- weights --- */

static const char *const gates[] = {"i", "fl", "fr", "o", "u"};

/* Adds a tensor to the header of a safetensors file; returns where the next one begins. */
static size_t describe_tensor(char *header, const char *name, long rows, long columns, size_t begin)
{
	size_t end = begin + 4ul * rows * columns;
	sprintf(header + strlen(header),
		"%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%ld,%ld],\"data_offsets\":[%zu,%zu]}",
		begin ? ',' : '{', name, rows, columns, begin, end);
	return end;
}

static void put_zero_mean(FILE *f, void *bytes)
{
	uint32_t state = 1;
	for (size_t i = 0; i < *(size_t *)bytes / 4; i++) {
		state = state * 1664525u + 1013904223u;
		float x = ((int32_t)(state >> 8) - (1 << 23)) * 1e-8f;
		fwrite(&x, sizeof x, 1, f);
	}
}

static esp_weights *make_random_weights(esp_context *context, long hidden)
{
	char header[4096] = "", name[16];
	size_t bytes = describe_tensor(header, "E", WORDS, hidden, 0);
	bytes = describe_tensor(header, "C", WORDS, hidden, bytes);
	for (size_t i = 0; i < sizeof gates / sizeof *gates * 2; i++) {
		snprintf(name, sizeof name, "U_%s_%s", gates[i / 2], i % 2 ? "right" : "left");
		bytes = describe_tensor(header, name, hidden, hidden, bytes);
	}
	strcat(header, "}");
	return make_weights(context, header, put_zero_mean, &bytes);
}

/* --- the library --- */

/* A random binary tree, numbered in post order: nodes that have no parent yet lie on a stack. */
static void add_tree(esp_forest *forest)
{
	int32_t begin[NODES + 1], children[NODES], word[NODES], stack[NODES], depth = 0, n = 0, leaves = 0;
	uint32_t state = 7;
	const void *data = word;
	for (int32_t i = 0; i < NODES; i++) {
		state = state * 1664525u + 1013904223u;
		bool leaf = depth < 2 || (leaves <= INNER && state >> 30);
		begin[i] = n;
		word[i] = leaf ? (int32_t)(state >> 16) % WORDS : -1;
		if (!leaf) {
			children[n++] = stack[depth - 2];
			children[n++] = stack[depth - 1];
			depth -= 2;
		}
		leaves += leaf;
		stack[depth++] = i;
	}
	begin[NODES] = n;
	esp_structure tree = {.size = sizeof tree,
			      .nodes = NODES,
			      .child_begin = begin,
			      .children = children,
			      .root = NODES - 1,
			      .data = &data};
	check_status(esp_forest_add(forest, &tree, &error));
}

static struct server open_tree(int threads, long hidden)
{
	esp_context *context = create_context(threads);
	struct server s = open_text(context, model, make_random_weights(context, hidden), NULL);
	add_tree(s.forest);
	return s;
}

/* --- measuring --- */

static pid_t start_busy_process(void)
{
	pid_t parent = getpid(), child = fork();
	if (child < 0)
		give_up("cannot make a process");
	while (!child && getppid() == parent)
		for (volatile int i = 0; i < 1000000; i++)
			;
	if (!child)
		_exit(0);
	return child;
}

struct times {
	double median, most; /* the latter of 99 of 100 runs */
};

static struct times summarize_times(double *seconds, long n)
{
	qsort(seconds, n, sizeof *seconds, compare_doubles);
	return (struct times){seconds[n / 2] * 1e6, seconds[n * 99 / 100] * 1e6};
}

static void time_runs(const struct server *s, double *seconds, long runs)
{
	for (long i = 0; i < runs; i++)
		seconds[i] = time_run(s);
}

static void measure_beside(const struct server server[2], int busy, double *seconds, long runs)
{
	struct times t[2];
	pid_t child[MOST_BUSY];
	for (int i = 0; i < busy; i++)
		child[i] = start_busy_process();
	for (long done = 0; done < runs; done += TURN)
		for (int i = 0; i < 2; i++)
			time_runs(&server[i], seconds + i * runs + done,
				  runs - done < TURN ? runs - done : TURN);
	for (int i = 0; i < busy; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	for (int i = 0; i < 2; i++)
		t[i] = summarize_times(seconds + i * runs, runs);
	printf("%d busy %10.1f %10.1f %7.3f %10.1f %10.1f %7.3f\n", busy, t[0].median, t[1].median,
	       t[1].median / t[0].median, t[0].most, t[1].most, t[1].most / t[0].most);
}

int main(int argc, char **argv)
{
	long hidden = argc > 1 ? atol(argv[1]) : 256, runs = argc > 2 ? atol(argv[2]) : 10000;
	if (hidden < 1 || hidden > 4096 || runs < 1)
		give_up("HIDDEN is a number from 1 to 4096, RUNS one from 1");
	double *seconds = malloc(2 * runs * sizeof *seconds);
	if (!seconds)
		give_up("no memory");
	const struct server server[2] = {open_tree(1, hidden), open_tree(2, hidden)};
	for (int i = 0; i < 2; i++)
		time_runs(&server[i], seconds, runs < 1000 ? runs : 1000);
	printf("%6s %21s %18s %18s\n%6s %10s %10s %7s %10s %10s %7s\n", "", "median [us]", "",
	       "99 of 100 [us]", "", "1 thread", "2 threads", "ratio", "1 thread", "2 threads", "ratio");
	for (int busy = 0; busy <= MOST_BUSY; busy++)
		measure_beside(server, busy, seconds, runs);
	return 0;
}
