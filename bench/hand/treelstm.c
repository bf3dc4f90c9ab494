/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* treelstm HIDDEN BATCH THREADS TREES [--model MODEL.ra] [--schedule FILE] [--repeats N] [--vectors 256|512]
 *
 * An N-ary TreeLSTM run by kernels written by hand (kernels.h) and, with --model bench/hand/treelstm.ra, by
 * this library: the same weights and trees, one after the other, results compared.  The kernels use the
 * longest vectors that the processor has, or those of --vectors.  TREES is a file of bracketed binary trees,
 * a tree a line.  Prints the mean over minibatches of the least milliseconds, and
 * floor / time: the floor is the sum over levels of the greater of operations / peak and weight bytes /
 * bandwidth, both measured here; non-linearities are not counted.
 *
 * Rows are written where they are read: a node stores h and c into its parent's row, [left | right].  Columns
 * are split over the threads, levels are separated by a spinning barrier, sweeps over the blocks alternate in
 * direction. */
#include "bench/hand/kernels.h"
#include "bench/library.h"
#include "bench/timing.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MOST_NODES = 1 << 16, MOST_BATCHES = 64, MOST_THREADS = 16, WORDS = 5000, PARAMS = 17 };
static const double TOLERANCE = 1e-3;

static float *allocate_zeros(size_t floats)
{
	size_t page = 1 << 21, n = (4 * floats + page - 1) & ~(page - 1);
	void *p = aligned_alloc(page, n);
	if (!p)
		give_up("no memory");
	madvise(p, n, MADV_HUGEPAGE);
	return memset(p, 0, n);
}

/* --- trees --- */

/* A minibatch: children come before parents; leaves have words. */
struct forest {
	int nodes, roots;
	int32_t *left, *right, *word, *level, *parent, *slot;
	int32_t *root, *first; /* root and first node of each tree */
	/* inner nodes in the order of levels, with their rows in x and c */
	int levels, inner;
	int32_t *level_begin, *row;
};

static void *allocate_numbers(int n)
{
	return calloc(n + 1, sizeof(int32_t));
}

static struct forest new_forest(void)
{
	return (struct forest){.left = allocate_numbers(MOST_NODES),
			       .right = allocate_numbers(MOST_NODES),
			       .word = allocate_numbers(MOST_NODES),
			       .level = allocate_numbers(MOST_NODES),
			       .parent = allocate_numbers(MOST_NODES),
			       .slot = allocate_numbers(MOST_NODES),
			       .root = allocate_numbers(MOST_NODES),
			       .first = allocate_numbers(MOST_NODES),
			       .row = allocate_numbers(MOST_NODES)};
}

static int add_node(struct forest *f, int left, int right, int word)
{
	int n = f->nodes++;
	if (n >= MOST_NODES - 1)
		give_up("too many nodes");
	f->left[n] = left, f->right[n] = right, f->word[n] = word;
	f->level[n] =
	    left < 0 ? 0 : 1 + (f->level[left] > f->level[right] ? f->level[left] : f->level[right]);
	f->parent[n] = -1;
	for (int side = 0; left >= 0 && side < 2; side++) {
		f->parent[side ? right : left] = n;
		f->slot[side ? right : left] = side;
	}
	return n;
}

/* "(label child child)" or "(label word)". */
static int read_node(struct forest *f, const char **at)
{
	int child[2] = {-1, -1}, children = 0;
	unsigned hash = 0;
	*at += strcspn(*at, " \n");
	*at += **at == ' ';
	if (**at != '(')
		for (; **at && **at != ')'; ++*at)
			hash = hash * 31 + (unsigned char)**at;
	while (**at == '(' && children < 2) {
		child[children++] = read_node(f, at);
		*at += **at == ' ';
	}
	*at += **at == ')';
	if (children == 1)
		give_up("a tree is not binary");
	return add_node(f, child[0], child[1], hash % WORDS);
}

static void add_tree(struct forest *f, const char *line)
{
	f->first[f->roots] = f->nodes;
	f->root[f->roots] = read_node(f, &line);
	f->roots++;
}

static void order_levels(struct forest *f)
{
	for (int i = 0; i < f->nodes; i++)
		f->levels = f->level[i] > f->levels ? f->level[i] : f->levels;
	f->level_begin = allocate_numbers(f->levels + 1);
	for (int l = 1; l <= f->levels; l++) {
		f->level_begin[l - 1] = f->inner;
		for (int i = 0; i < f->nodes; i++)
			if (f->level[i] == l)
				f->row[i] = f->inner++;
	}
	f->level_begin[f->levels] = f->inner;
}

static int read_forests(const char *path, int batch, int limit, struct forest *forests)
{
	static char line[1 << 16];
	FILE *in = fopen(path, "r");
	int n = 0, trees = 0;
	while (in && n < limit && fgets(line, sizeof line, in)) {
		if (trees % batch == 0)
			forests[n] = new_forest();
		add_tree(&forests[n], line);
		if (++trees % batch == 0)
			order_levels(&forests[n++]);
	}
	if (in)
		fclose(in);
	return n;
}

/* --- weights --- */

static long hidden;
static const struct level_kernels *kernels;

struct param {
	char name[16];
	long rows, columns;
	float *at;
};

static struct param params[PARAMS]; /* H, C, then for each gate: left, right, bias */

static void make_params(void)
{
	static const char *const gates[GATES] = {"i", "u", "fl", "fr", "o"}, *const kinds[3] = {"U_%s_left",
												"U_%s_right",
												"b_%s"};
	params[0] = (struct param){"H", WORDS, hidden, NULL};
	params[1] = (struct param){"C", WORDS, hidden, NULL};
	for (int i = 2; i < PARAMS; i++) {
		params[i] = (struct param){.rows = (i - 2) % 3 < 2 ? hidden : 1, .columns = hidden};
		snprintf(params[i].name, sizeof params[i].name, kinds[(i - 2) % 3], gates[(i - 2) / 3]);
	}
	for (struct param *p = params; p < params + PARAMS; p++) {
		p->at = allocate_zeros(p->rows * p->columns);
		for (long i = 0; i < p->rows * p->columns; i++)
			p->at[i] = (rand() % 2001 - 1000) * (p - params < 2 ? 1e-3f : 6e-5f);
	}
}

/* The safetensors header for the library. */
static const char *params_header(void)
{
	static char header[4096];
	long at = 0, n = 0;
	for (const struct param *p = params; p < params + PARAMS; p++) {
		char rows[16] = "";
		bool matrix = p->name[0] != 'b';
		snprintf(rows, sizeof rows, "%ld,", p->rows);
		long end = at + 4 * p->rows * p->columns;
		n += snprintf(header + n, sizeof header - n,
			      "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s%ld],\"data_offsets\":[%ld,%ld]}",
			      p == params ? "{" : ",", p->name, matrix ? rows : "", p->columns, at, end);
		at = end;
	}
	return strcat(header, "}");
}

static void put_params(FILE *f, void *unused)
{
	(void)unused;
	for (const struct param *p = params; p < params + PARAMS; p++)
		fwrite(p->at, 4 * p->rows * p->columns, 1, f);
}

static float *panels, *biases;

/* Packs the weights as struct level_kernels describes; k runs over the left child, then over the right
 * one. */
static void pack_weights(void)
{
	long k_end = 2 * hidden, lanes = kernels->lanes, wide = kernels->wide;
	for (long j = 0; j < hidden; j++)
		for (int g = 0; g < GATES; g++) {
			const struct param *p = &params[2 + 3 * g];
			bool first = g < wide;
			long gate = first ? g : g - wide, gates = first ? wide : GATES - wide;
			float *panel =
			    panels + j / lanes * k_end * GATES * lanes + (first ? 0 : k_end * wide * lanes);
			biases[(j / lanes * GATES + g) * lanes + j % lanes] = p[2].at[j];
			for (long k = 0; k < k_end; k++)
				panel[(k * gates + gate) * lanes + j % lanes] =
				    p[k / hidden].at[j * hidden + k % hidden];
		}
}

/* --- running --- */

static float *x, *cell, *top; /* rows of inner nodes, [left | right]; states of roots, [h | c] */

static void look_up(const struct forest *f, long begin, long end)
{
	for (int i = 0; i < f->nodes; i++) {
		if (f->level[i] || f->parent[i] < 0)
			continue;
		long to = 2 * hidden * f->row[f->parent[i]] + hidden * f->slot[i] + begin,
		     from = hidden * f->word[i] + begin;
		memcpy(x + to, params[0].at + from, 4 * (end - begin));
		memcpy(cell + to, params[1].at + from, 4 * (end - begin));
	}
}

/* Where the states of each row's node are stored; made once for a forest. */
struct route {
	float **h, **c;
};

static struct route make_route(const struct forest *f)
{
	struct route r = {calloc(f->inner + 1, sizeof *r.h), calloc(f->inner + 1, sizeof *r.c)};
	int root = 0;
	for (int i = 0; i < f->nodes; i++) {
		if (!f->level[i])
			continue;
		bool is_root = f->parent[i] < 0;
		long to =
		    is_root ? 2 * hidden * root++ : 2 * hidden * f->row[f->parent[i]] + hidden * f->slot[i];
		r.h[f->row[i]] = is_root ? top + to : x + to;
		r.c[f->row[i]] = is_root ? top + to + hidden : cell + to;
	}
	return r;
}

/* Nodes of the next tile. The last two tiles are about equal: a tile of a single node is the costliest per
 * node. */
static int nodes_of_tile(int left)
{
	int most = kernels->most_nodes;
	return left <= most ? left : left >= 2 * most ? most : (left + 1) / 2;
}

static void run_block(const struct route *r, int begin, int end, long block)
{
	long lanes = kernels->lanes;
	for (int n = begin, m; n < end; n += m) {
		struct level_tile t = {.panel = panels + block * 2 * hidden * GATES * lanes,
				       .bias = biases + block * GATES * lanes};
		m = nodes_of_tile(end - n);
		for (int i = 0; i < m; i++) {
			t.x[i] = x + 2 * hidden * (n + i), t.cell[i] = cell + 2 * hidden * (n + i);
			t.h[i] = r->h[n + i], t.c[i] = r->c[n + i];
		}
		kernels->tile[m](&t, hidden, block * lanes);
	}
}

static _Alignas(64) atomic_uint arrived;
static _Alignas(64) atomic_uint generation;

static void wait_at_barrier(unsigned threads, bool asleep)
{
	unsigned g = atomic_load_explicit(&generation, memory_order_acquire);
	if (threads == 1)
		return;
	if (atomic_fetch_add(&arrived, 1) == threads - 1) {
		atomic_store(&arrived, 0);
		atomic_store_explicit(&generation, g + 1, memory_order_release);
		return;
	}
	while (atomic_load_explicit(&generation, memory_order_acquire) == g)
		if (asleep)
			usleep(500);
		else
			__builtin_ia32_pause();
}

static void wait_for_all(unsigned threads)
{
	wait_at_barrier(threads, false);
}

/* Waits without spinning, while the first thread times the library. */
static void sleep_for_all(unsigned threads)
{
	wait_at_barrier(threads, true);
}

struct share {
	int threads, which;
	long begin, end; /* blocks */
	unsigned sweeps;
};

static void run_share(struct share *s, const struct forest *f, const struct route *r)
{
	look_up(f, s->begin * kernels->lanes, s->end * kernels->lanes);
	wait_for_all(s->threads);
	for (int l = 0; l < f->levels; l++) {
		bool down = s->sweeps++ & 1;
		for (long i = s->begin; i < s->end; i++)
			run_block(r, f->level_begin[l], f->level_begin[l + 1],
				  down ? s->begin + s->end - 1 - i : i);
		wait_for_all(s->threads);
	}
}

/* --- the machine --- */

static double measure_peak(void)
{
	double best = 0;
	for (int i = 0; i < 20; i++) {
		double begin = read_clock(), operations = kernels->multiply_add();
		best = fmax(best, operations / (read_clock() - begin));
	}
	return best;
}

static long floats_of(const struct share *s)
{
	return (s->end - s->begin) * 2 * hidden * GATES * kernels->lanes;
}

/* Bytes per second when reading the share repeatedly in alternating directions. */
static double measure_bandwidth(const struct share *s)
{
	double best = 0;
	for (int i = 0; i < 30; i++) {
		wait_for_all(s->threads);
		double begin = read_clock();
		kernels->read(panels + s->begin * 2 * hidden * GATES * kernels->lanes, floats_of(s), i & 1);
		double rate = 4. * floats_of(s) / (read_clock() - begin);
		best = i ? fmax(best, rate) : best;
	}
	return best;
}

static double floor_of(const struct forest *f, double operations, double bytes)
{
	double sum = 0;
	for (int l = 0; l < f->levels; l++) {
		int nodes = f->level_begin[l + 1] - f->level_begin[l];
		sum += fmax(nodes * operations, bytes);
	}
	return sum;
}

/* --- the library --- */

struct library {
	esp_context *context;
	esp_program *program;
	esp_session *session;
	esp_forest *forest[MOST_BATCHES];
};

static void give_tree(struct library *l, esp_forest *to, const struct forest *f, int first, int end)
{
	static int32_t begin[MOST_NODES], child[2 * MOST_NODES];
	int children = 0;
	for (int i = first; i < end; i++) {
		begin[i - first] = children;
		if (f->left[i] >= 0) {
			child[children++] = f->left[i] - first;
			child[children++] = f->right[i] - first;
		}
	}
	begin[end - first] = children;
	const void *word = f->word + first;
	esp_structure s = {sizeof s, end - first, begin, child, end - first - 1, &word};
	(void)l;
	check_status(esp_forest_add(to, &s, &error));
}

static void give_forests(struct library *l, const struct forest *f, int n)
{
	for (int i = 0; i < n; i++) {
		check_status(esp_forest_create(l->program, &l->forest[i], &error));
		for (int t = 0; t < f[i].roots; t++)
			give_tree(l, l->forest[i], &f[i], f[i].first[t],
				  t + 1 < f[i].roots ? f[i].first[t + 1] : f[i].nodes);
	}
}

static const char *read_text(const char *path)
{
	static char text[1 << 16];
	FILE *f = path ? fopen(path, "r") : NULL;
	if (f) {
		text[fread(text, 1, sizeof text - 1, f)] = 0;
		fclose(f);
	}
	return f ? text : NULL;
}

static void open_library(struct library *l, const char *model, const char *schedule, int threads,
			 const struct forest *f, int n)
{
	esp_context_options options = {.size = sizeof options, .threads = threads, .cache = ESP_CACHE_OFF};
	esp_program_options how = {.size = sizeof how, .schedule = read_text(schedule)};
	esp_model *m;
	esp_weights *w;
	esp_binding *b;
	check_status(esp_context_create(&options, &l->context, &error));
	check_status(esp_model_read(l->context, model, &m, &error));
	w = make_weights(l->context, params_header(), put_params, NULL);
	check_status(esp_program_create(m, w, &how, &l->program, &error));
	check_status(esp_program_prepare(l->program, &error));
	check_status(esp_binding_create(l->program, w, &b, &error));
	check_status(esp_session_create(b, &l->session, &error));
	esp_model_free(m);
	esp_weights_free(w);
	esp_binding_free(b);
	give_forests(l, f, n);
}

/* The largest difference between states of roots in the last runs of both. */
static double largest_difference(const struct library *l, const struct forest *f)
{
	double most = 0;
	for (int t = 0; t < f->roots; t++) {
		const float *row = esp_session_root(l->session, 0, t);
		for (long j = 0; f->level[f->root[t]] && j < hidden; j++)
			most = fmax(most, fabs(row[j] - top[2 * hidden * t + j]));
	}
	return most;
}

/* --- measuring --- */

struct work {
	struct share share;
	const struct forest *forests;
	const struct route *routes;
	struct library *library;
	int n, repeats;
	double bytes_a_second, hand, ours, floor, wrong; /* sums over minibatches, seconds */
	double operations_a_second;
};

static void pin_thread(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Times one minibatch. All threads run their shares; the first one also times the library. */
static void measure_minibatch(struct work *w, int which)
{
	const struct forest *f = &w->forests[which];
	double hand = INFINITY, ours = INFINITY;
	for (int i = 0; i < w->repeats; i++) {
		sleep_for_all(w->share.threads);
		wait_for_all(w->share.threads); /* all are awake */
		double begin = read_clock();
		run_share(&w->share, f, &w->routes[which]);
		hand = fmin(hand, read_clock() - begin);
		if (w->share.which || !w->library)
			continue;
		begin = read_clock();
		check_status(esp_session_run(w->library->session, w->library->forest[which], &error));
		ours = fmin(ours, read_clock() - begin);
		if (i == 0)
			w->wrong = fmax(w->wrong, largest_difference(w->library, f));
	}
	w->hand += hand, w->ours += ours;
	w->floor += floor_of(f, 20. * hidden * hidden / (w->share.threads * w->operations_a_second),
			     4. * floats_of(&w->share) / w->bytes_a_second);
}

static void *run_thread(void *argument)
{
	struct work *w = argument;
	if (w->share.threads > 1)
		pin_thread(w->share.which);
	w->operations_a_second = measure_peak();
	w->bytes_a_second = measure_bandwidth(&w->share);
	for (int i = 0; i < w->n; i++)
		measure_minibatch(w, i);
	return NULL;
}

static void print_result(const struct work *w, int batch)
{
	printf("hidden %ld batch %d threads %d, vectors of %d bits: %.1f GFLOP/s, %.1f GB/s a core\n", hidden,
	       batch, w->share.threads, 32 * kernels->lanes, w->operations_a_second * 1e-9,
	       w->bytes_a_second * 1e-9);
	printf("  hand    %8.4f ms, floor / time %.2f\n", w->hand / w->n * 1e3, w->floor / w->hand);
	if (w->library)
		printf("  library %8.4f ms, floor / time %.2f, time / hand %.3f, difference %.1e\n",
		       w->ours / w->n * 1e3, w->floor / w->ours, w->ours / w->hand, w->wrong);
}

static const char *option_of(int argc, char **argv, const char *name, const char *otherwise)
{
	for (int i = 5; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return otherwise;
}

static int compare_times(int argc, char **argv)
{
	static struct forest forests[MOST_BATCHES];
	static struct route routes[MOST_BATCHES];
	static struct work each[MOST_THREADS];
	static struct library library;
	const char *model = option_of(argc, argv, "--model", NULL),
		   *schedule = option_of(argc, argv, "--schedule", NULL);
	int repeats = atoi(option_of(argc, argv, "--repeats", "20")), most_inner = 0, most_roots = 0;
	if (argc < 5)
		give_up(
		    "usage: treelstm HIDDEN BATCH THREADS TREES [--model MODEL.ra] [--schedule FILE] "
		    "[--repeats N] [--vectors 256|512]");
	hidden = atol(argv[1]);
	int batch = atoi(argv[2]), threads = atoi(argv[3]);
	if (hidden < 1 || hidden % kernels->lanes || threads < 1 || threads > MOST_THREADS || batch < 1)
		give_up("hidden is a multiple of 8, or of 16 for AVX-512; there are 1 to 16 threads");
	int n = read_forests(argv[4], batch, batch == 1 ? MOST_BATCHES : 10, forests);
	if (!n)
		give_up("too few trees");
	for (int i = 0; i < n; i++) {
		most_inner = forests[i].inner > most_inner ? forests[i].inner : most_inner;
		most_roots = forests[i].roots > most_roots ? forests[i].roots : most_roots;
	}
	make_params();
	panels = allocate_zeros(2 * hidden * hidden * GATES), biases = allocate_zeros(hidden * GATES);
	x = allocate_zeros(2 * hidden * most_inner), cell = allocate_zeros(2 * hidden * most_inner),
	top = allocate_zeros(2 * hidden * most_roots);
	pack_weights();
	for (int i = 0; i < n; i++)
		routes[i] = make_route(&forests[i]);
	if (model)
		open_library(&library, model, schedule, threads, forests, n);
	if (model) /* creates the library's threads before this thread is pinned, which they would inherit */
		for (int i = 0; i < n; i++)
			check_status(esp_session_run(library.session, library.forest[i], &error));
	pthread_t thread[MOST_THREADS];
	for (int t = threads - 1; t >= 0; t--) {
		long blocks = hidden / kernels->lanes;
		each[t] =
		    (struct work){.share = {threads, t, blocks * t / threads, blocks * (t + 1) / threads, 0},
				  .forests = forests,
				  .routes = routes,
				  .library = model ? &library : NULL,
				  .n = n,
				  .repeats = repeats};
		if (t)
			pthread_create(&thread[t], NULL, run_thread, &each[t]);
	}
	run_thread(&each[0]);
	for (int t = 1; t < threads; t++)
		pthread_join(thread[t], NULL);
	print_result(&each[0], batch);
	if (!(each[0].wrong <= TOLERANCE))
		give_up("the kernels and the library compute different states");
	return 0;
}

/* NULL = the processor has no such vectors. */
static const struct level_kernels *choose_kernels(int bits)
{
	bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		      __builtin_cpu_supports("avx512dq");
	if (avx512 && bits != 256)
		return &kernels_avx512;
	return avx2 && bits != 512 ? &kernels_avx2 : NULL;
}

int main(int argc, char **argv)
{
	enum { SKIPPED = 77 };
	kernels = choose_kernels(atoi(option_of(argc, argv, "--vectors", "0")));
	if (!kernels) {
		fprintf(stderr,
			"treelstm: these kernels are for processors with AVX2 and FMA, or with AVX-512, "
			"which this one is not\n");
		return SKIPPED;
	}
	return compare_times(argc, argv);
}
