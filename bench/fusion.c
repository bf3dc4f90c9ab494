/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* fusion [of PROCESSOR]      the rows of src/sched/fusion_cost.def, measured on this machine, for a processor of targets.h
 * fusion MODEL.ra SIZE=N...  a model under every planner
 *
 * For each pair of mapping types that may be fused there is a model, in which the operand is computed
 * inside its consumer (fuse grow always) or stored (never). Figures are nanoseconds per node: the least of
 * many runs over one minibatch, on one thread. Weights are random numbers. */
#include "api/read_options.h"
#include "bench/timing.h"
#include "compile/compile.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCES = 30, LENGTH = 12, NODES = SEQUENCES * LENGTH, MAX_INPUTS = 4, MAX_SYMBOLS = 16 };

static _Noreturn void give_up(const struct diags *d)
{
	fprintf(stderr, "fusion: %s\n", d->n ? d->at[0].message : "no memory");
	exit(1);
}

static float weight_at(uint64_t x)
{
	x = (x + 1) * 0x9E3779B97F4A7C15u;
	x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
	return ((x >> 40) / (float)(1 << 24) - 0.5f) * 0.8f;
}

static bool read_weight(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	float *values = to;
	(void)context, (void)d;
	for (int64_t i = 0; i < count; i++)
		values[i] = weight_at(((uint64_t)param << 32) + first + i);
	return true;
}

/* --- one program --- */

struct trial {
	struct arena arena;
	struct diags diags;
	const struct ra_model *model;
	int64_t sizes[MAX_SYMBOLS];
	struct image image;
	struct rt_binding binding;
	struct rt_session session;
	struct lin_collect collect;
	const void *data[MAX_INPUTS];
};

/* Sets sizes from words NAME=N; dimensions that are not named have the size 1. */
static void set_sizes(struct trial *t, char *const *words, int n)
{
	for (size_t i = 0; i < t->model->symbols.n && i < MAX_SYMBOLS; i++) {
		const char *name = t->model->symbols.at[i].name;
		t->sizes[i] = 1;
		for (int k = 0; k < n; k++)
			if (strncmp(words[k], name, strlen(name)) == 0 && words[k][strlen(name)] == '=')
				t->sizes[i] = atoll(words[k] + strlen(name) + 1);
	}
}

/* Adds a sequence, which is a chain, or a tree, whose new nodes join the last subtrees; children come
 * first. */
static void add_structure(struct trial *t)
{
	int32_t begin[2 * LENGTH + 1], children[2 * LENGTH], open[2 * LENGTH];
	int arity = t->image.children < 0 ? 2 : t->image.children, nodes = 0, edges = 0, n = 0;
	while (nodes < LENGTH || (arity > 1 && n > 1 && nodes < 2 * LENGTH)) {
		bool join = n >= arity && (arity == 1 || nodes >= LENGTH || weight_at(nodes) > 0);
		begin[nodes] = edges;
		for (int i = 0; join && i < arity; i++)
			children[edges++] = open[n - arity + i];
		n -= join ? arity : 0;
		open[n++] = nodes++;
	}
	begin[nodes] = edges;
	if (!lin_collect_add(&t->collect, nodes, begin, children, &t->diags))
		give_up(&t->diags);
}

static void make_inputs(struct trial *t)
{
	for (int i = 0; i < t->image.inputs && i < MAX_INPUTS; i++) {
		const struct image_input *in = &t->image.input[i];
		int64_t n = t->collect.nodes * (in->token ? 1 : in->elements);
		float *vector = ARENA_ARRAY(&t->arena, float, n + 1);
		int32_t *token = (int32_t *)vector;
		for (int64_t k = 0; k < n; k++)
			if (in->token)
				token[k] = k % in->limit;
			else
				vector[k] = weight_at(k);
		t->data[i] = vector;
	}
}

static void open_trial(struct trial *t, const char *name, const char *text, char *const *sizes, int n,
		       const char *schedule)
{
	esp_program_options texts = {.backend = "llvm", .target = TARGET_NATIVE, .schedule = schedule};
	struct compile_options o = {0};
	struct rt_source source = {read_weight, NULL};
	t->model = ra_parse(&t->arena, &t->diags, name, text, strlen(text));
	if (!t->model)
		give_up(&t->diags);
	set_sizes(t, sizes, n);
	if (!api_read_options(&t->arena, &t->diags, &texts, &o) ||
	    !compile_image(&t->arena, &t->diags, t->model, t->sizes, &o, &t->image, NULL) ||
	    !rt_bind(&t->binding, &allocator_default, &t->image, &source, NULL, &t->diags) ||
	    !rt_session_init(&t->session, &allocator_default, &t->image, &t->diags))
		give_up(&t->diags);
	lin_collect_init(&t->collect, &allocator_default);
	for (int i = 0; i < SEQUENCES; i++)
		add_structure(t);
	make_inputs(t);
}

static double least_run(struct trial *t)
{
	struct rt_minibatch m = {lin_collect_forest(&t->collect), t->data};
	double least = 1e30, end = 1e9 * read_clock() + 5e7;
	for (int i = 0; i < 5 || 1e9 * read_clock() < end; i++) {
		double start = 1e9 * read_clock();
		if (!rt_session_run(&t->session, &t->binding, NULL, &m, &t->diags))
			give_up(&t->diags);
		double took = 1e9 * read_clock() - start;
		least = took < least ? took : least;
	}
	return least / (double)t->collect.nodes;
}

/* Returns nanoseconds per node. */
static double measure_schedule(const char *name, const char *text, char *const *sizes, int n,
			       const char *schedule)
{
	struct trial *t = calloc(1, sizeof *t);
	jmp_buf jump;
	arena_init(&t->arena, &allocator_default);
	diags_init(&t->diags, &allocator_default);
	if (arena_guard(&t->arena, &jump))
		give_up(&t->diags);
	open_trial(t, name, text, sizes, n, schedule);
	double least = least_run(t);
	rt_session_free(&t->session);
	rt_binding_free(&t->binding);
	t->image.code.release(&t->image.code);
	lin_collect_free(&t->collect);
	arena_free(&t->arena);
	diags_free(&t->diags);
	free(t);
	return least;
}

/* --- pairs --- */

/* `volume`: elements of the consumer per row and per element of D. E is 4; A or F is 1 to make a variable
 * with a single value. */
static const struct pair {
	const char *first, *second, *declare, *state, *value;
	int a, volume;
} pairs[] = {
    {"ONE_TO_ONE", "MANY_TO_MANY", "param W[D, E]", "h[E]", "relu(x) @ W", 1, 4},
    {"REORGANIZE", "ONE_TO_MANY", "param Q[A, D], T[E, A, D]", "h[E, A, D]", "(relu(x) + Q) * T", 1, 4},
    {"REORGANIZE", "MANY_TO_MANY", "param Q[A, D], T[D, E]", "h[A, E]", "(relu(x) + Q) @ T", 1, 4},
    {"SHUFFLE", "ONE_TO_MANY", "param R[A, D], T[E, D, A]", "h[E, D, A]", "transpose(relu(R * x)) * T", 4,
     16},
    {"SHUFFLE", "MANY_TO_MANY", "param R[A, D], T[E, D]", "h[E, A]", "T @ transpose(relu(R * x))", 4, 16},
    {"ONE_TO_MANY", "REORGANIZE", "param R[A, D], T[F, A, D]", "h[F, A, D]", "relu(x) * R + T", 4, 4},
    {"ONE_TO_MANY", "SHUFFLE", "param R[A, D], Q[D, A]", "h[D, A]", "transpose(relu(x) * R) + Q", 4, 4},
    {"ONE_TO_MANY", "ONE_TO_MANY", "param R[A, D], T[E, A, D]", "h[E, A, D]", "relu(x) * R * T", 4, 16},
    {"MANY_TO_MANY", "REORGANIZE", "param W[D, D], Q[A, D]", "h[A, D]", "W @ x + Q", 1, 1},
    {"MANY_TO_MANY", "SHUFFLE", "param R[A, D], W[D, D], Q[D, A]", "h[D, A]", "transpose((R * x) @ W) + Q", 4,
     4},
    {"MANY_TO_MANY", "ONE_TO_MANY", "", "h[D]", "x * sum(x * x)", 1, 1},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };
static const int extents[] = {4, 8, 16, 32, 64};
enum { EXTENTS = sizeof extents / sizeof *extents, ROUNDS = 3 };

/* Costs so close to 1 are ties: measurements repeat no better. */
static const double tie = 0.02;

static double round_tie(double cost)
{
	return fabs(cost - 1) <= tie ? 1 : cost;
}

static double least_of(double a, double b)
{
	return a < b ? a : b;
}

/* Alternates between both, so that other work of the machine affects them equally. */
static void measure_pair(const struct pair *p, const char *processor)
{
	char text[600], d[32], a[32], *sizes[] = {d, a, "E=4"};
	int lanes = target_find(TARGET_NATIVE)->lanes;
	snprintf(text, sizeof text,
		 "model pair\nstructure sequence\ninput x[D]\n%s\nstate %s\nnode:\nh = previous.h + "
		 "%s\noutput y = h\n",
		 p->declare, p->state, p->value);
	for (int i = 0; i < EXTENTS; i++) {
		snprintf(d, sizeof d, "D=%d", extents[i]);
		snprintf(a, sizeof a, "A=%d", p->a);
		double fused = 1e30, stored = 1e30;
		for (int round = 0; round < ROUNDS; round++) {
			fused =
			    least_of(fused, measure_schedule("pair", text, sizes, 3, "fuse grow always\n"));
			stored =
			    least_of(stored, measure_schedule("pair", text, sizes, 3, "fuse grow never\n"));
		}
		printf("SCHED_FUSION_COST(%s, %s, %s, %g, %.3f) /* %.1f and %.1f ns */\n", processor, p->first, p->second,
		       (double)p->volume * extents[i] / lanes, round_tie(fused / stored), fused, stored);
		fflush(stdout);
	}
}

/* --- models --- */

static char *read_file(const char *path)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	return text;
}

static void measure_model(const char *path, char *const *sizes, int n)
{
	static const char *const planners[] = {"grow", "grow always", "grow never", "greedy", "none"};
	for (int i = 0; i < 5; i++) {
		char schedule[40];
		snprintf(schedule, sizeof schedule, "fuse %s\n", planners[i]);
		printf("%-12s %10.1f ns a node\n", planners[i],
		       measure_schedule(path, read_file(path), sizes, n, schedule));
	}
}

int main(int argc, char **argv)
{
	bool pairs_of = argc == 3 && strcmp(argv[1], "of") == 0;
	if (argc > 1 && !pairs_of)
		measure_model(argv[1], argv + 2, argc - 2);
	for (int i = 0; (argc == 1 || pairs_of) && i < PAIRS; i++)
		measure_pair(&pairs[i], argc > 2 ? argv[2] : "PROCESSORS");
	return 0;
}
