/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* algebra: what rewriting and fusion save, for the example models.
 *
 *   usage: algebra [ROUNDS [MODEL.ra]...]
 *
 * For each model it counts the bodies as written and as computed. Then it runs a minibatch in every round
 * with all rules, with none, and with all but one family of rules, so that all variants see the same
 * machine. Times are ratios to the time with all rules: above 1, the family is profitable. Last it times
 * the rewriting of generated models of many operators. Models are read from $srcdir/examples. */
#include "api/read_options.h"
#include "bench/library.h"
#include "compile/explain.h"

enum { TREES = 10, LEAVES = 19, MOST_NODES = 4 * LEAVES, WORDS = 2000, WIDTH = 256, CLASSES = 5 };
enum { OPERATORS_OF_BLOCK = 16 /* plus one that adds the block to the sum */ };
enum { VARIANTS = REWRITE_FAMILIES + 2 }; /* all, none, all but each */

/* --- models --- */

struct subject {
	struct arena arena;
	struct diags diags;
	const struct ra_model *model;
	int64_t sizes[16];
};

static const struct ra_model *parse_model(struct subject *s, const char *path)
{
	static char text[1 << 24];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;
	if (f)
		fclose(f);
	return n ? ra_parse(&s->arena, &s->diags, path, text, n) : NULL;
}

/* Ends the process when memory is out, so that arenas need no error handler. */
static void *resize_block(void *context, void *p, size_t old_size, size_t new_size)
{
	void *block = allocator_default.resize(context, p, old_size, new_size);
	if (new_size && !block)
		give_up("no memory");
	return block;
}

static const struct allocator allocator = {resize_block, NULL};

static void open_arena(struct subject *s)
{
	arena_init(&s->arena, &allocator);
	diags_init(&s->diags, &allocator);
}

/* Sets V (words) and C (classes) as the examples name them, and all other dimensions to the width of
 * states. */
static void open_subject(struct subject *s, const char *path)
{
	open_arena(s);
	s->model = parse_model(s, path);
	if (!s->model || s->model->symbols.n > sizeof s->sizes / sizeof *s->sizes)
		give_up(path);
	for (size_t i = 0; i < s->model->symbols.n; i++) {
		const char *name = s->model->symbols.at[i].name;
		s->sizes[i] = strcmp(name, "V") == 0 ? WORDS : strcmp(name, "C") == 0 ? CLASSES : WIDTH;
	}
}

static void close_subject(struct subject *s)
{
	diags_free(&s->diags);
	arena_free(&s->arena);
}

static void print_counts(const struct sched_plan *plan, const char *when)
{
	for (int d = 0; explain_domain(d); d++) {
		double count[EXPLAIN_COUNTS];
		if (!explain_count(plan, d, count))
			continue;
		printf("  %-12s %s", explain_domain(d), when);
		for (int c = 0; c < EXPLAIN_COUNTS; c++)
			printf("  %*.0f", (int)strlen(explain_columns[c].heading), count[c]);
		puts("");
	}
}

static void print_plan(struct subject *s, const char *rules, const char *when)
{
	esp_program_options texts = {.backend = "llvm", .target = TARGET_NATIVE, .rules = rules};
	struct compile_options o = {0};
	struct sub_program p;
	struct sched_plan plan;
	if (!api_read_options(&s->arena, &s->diags, &texts, &o) ||
	    !compile_plan(&s->arena, &s->diags, s->model, s->sizes, &o, &p, &plan, NULL))
		give_up("a model cannot be planned");
	print_counts(&plan, when);
}

static void print_bodies(const char *path)
{
	struct subject s;
	open_subject(&s, path);
	printf("%s, width %d\n%-26s", s.model->name, WIDTH, "");
	for (int c = 0; c < EXPLAIN_COUNTS; c++)
		printf("  %s", explain_columns[c].heading);
	puts("");
	print_plan(&s, "none", "as written ");
	print_plan(&s, "all", "as computed");
	close_subject(&s);
}

/* --- weights --- */

static int64_t count_elements(const struct subject *s, const struct ra_shape *shape)
{
	int64_t n = 1;
	for (int d = 0; d < shape->rank; d++)
		n *= ra_dim_value(&shape->dim[d], s->sizes);
	return n;
}

static void put_header(const struct subject *s, struct str *header)
{
	int64_t begin = 0;
	for (size_t i = 0; i < s->model->params.n; i++) {
		const struct ra_param *p = &s->model->params.at[i];
		int64_t end = begin + count_elements(s, &p->shape) * 4;
		str_printf(header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? "," : "{", p->name);
		for (int d = 0; d < p->shape.rank; d++)
			str_printf(header, "%s%lld", d ? "," : "",
				   (long long)ra_dim_value(&p->shape.dim[d], s->sizes));
		str_printf(header, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
		begin = end;
	}
	str_puts(header, "}");
}

/* A random number near 0, so that no value becomes infinite, NaN or denormal. */
static float random_weight(void)
{
	return (rand() / (float)RAND_MAX - 0.5f) * 0.1f;
}

static void put_weights(FILE *f, void *user)
{
	const struct subject *s = user;
	for (size_t i = 0; i < s->model->params.n; i++)
		for (int64_t n = count_elements(s, &s->model->params.at[i].shape); n-- > 0;)
			fwrite(&(float){random_weight()}, 4, 1, f);
}

static esp_weights *weights_of(esp_context *context, struct subject *s)
{
	struct str header = str_in(&s->arena);
	put_header(s, &header);
	return make_weights(context, str_text(&header), put_weights, s);
}

/* --- structures --- */

struct tree {
	int32_t begin[MOST_NODES + 1], children[MOST_NODES], nodes;
};

/* Appends a tree with `leaves` leaves; its root comes last. */
static int32_t add_tree(struct tree *t, int leaves)
{
	int left = leaves > 1 ? 1 + rand() % (leaves - 1) : 0;
	int32_t a = left ? add_tree(t, left) : -1, b = left ? add_tree(t, leaves - left) : -1;
	t->begin[t->nodes + 1] = t->begin[t->nodes];
	if (left) {
		t->children[t->begin[t->nodes + 1]++] = a;
		t->children[t->begin[t->nodes + 1]++] = b;
	}
	return t->nodes++;
}

static void add_chain(struct tree *t, int nodes)
{
	for (t->nodes = 0; t->nodes < nodes; t->nodes++) {
		t->begin[t->nodes + 1] = t->nodes;
		t->children[t->nodes] = t->nodes;
	}
}

/* Adds the same structures to every forest: trees as large as those of the Stanford Sentiment Treebank, or
 * sequences as long. */
static void fill_forest(esp_forest *forest, esp_program *program, bool sequence)
{
	static float x[MOST_NODES * WIDTH];
	static int32_t word[MOST_NODES];
	srand(7);
	for (int i = 0; i < TREES; i++) {
		struct tree t = {0};
		if (sequence)
			add_chain(&t, 2 * LEAVES - 1);
		else
			add_tree(&t, LEAVES);
		for (int n = 0; n < t.nodes; n++)
			word[n] = rand() % WORDS;
		for (int n = 0; n < t.nodes * WIDTH; n++)
			x[n] = random_weight();
		const void *data[] = {esp_program_input(program, 0)->is_token ? (void *)word : (void *)x};
		esp_structure s = {sizeof s, t.nodes, t.begin, t.children, t.nodes - 1, data};
		check_status(esp_forest_add(forest, &s, &error));
	}
}

/* --- measuring --- */

struct variant {
	char rules[40];
	struct server server;
	double *seconds;
};

static void make_variant(struct variant *v, int i, const esp_model *m, const esp_weights *w, long rounds)
{
	esp_program_options o = {.size = sizeof o, .rules = v->rules};
	snprintf(v->rules, sizeof v->rules, "%s%s", i < 2 ? "" : "-",
		 i == 0	  ? "all"
		 : i == 1 ? "none"
			  : rewrite_family_spelling(i - 2));
	v->server = open_server(m, w, &o);
	fill_forest(v->server.forest, v->server.program,
		    strcmp(esp_model_describe(m)->structure, "sequence") == 0);
	v->seconds = malloc(rounds * sizeof *v->seconds);
	if (!v->seconds)
		give_up("no memory");
}

static void free_variant(struct variant *v)
{
	close_server(&v->server);
	free(v->seconds);
}

static void run_variants(struct variant *v, long rounds)
{
	for (long r = -3; r < rounds; r++)
		for (int i = 0; i < VARIANTS; i++) {
			double took = time_run(&v[i].server);
			if (r >= 0)
				v[i].seconds[r] = took;
		}
}

static void print_times(struct variant *v, long rounds)
{
	for (int i = 0; i < VARIANTS; i++)
		qsort(v[i].seconds, rounds, sizeof *v[i].seconds, compare_doubles);
	double least = v[0].seconds[0], median = v[0].seconds[rounds / 2];
	printf("%-26s  minimum  median   of %.3f and %.3f ms\n", "rules", least * 1e3, median * 1e3);
	for (int i = 0; i < VARIANTS; i++)
		printf("  %-24s  %7.3f %7.3f\n", v[i].rules, v[i].seconds[0] / least,
		       v[i].seconds[rounds / 2] / median);
	puts("");
}

static void measure_model(const char *path, long rounds)
{
	struct variant v[VARIANTS];
	struct subject s;
	esp_context *context;
	esp_model *m;
	open_subject(&s, path);
	check_status(esp_context_create(
	    &(esp_context_options){.size = sizeof(esp_context_options), .cache = ESP_CACHE_OFF}, &context,
	    &error));
	check_status(esp_model_read(context, path, &m, &error));
	esp_weights *w = weights_of(context, &s);
	for (int i = 0; i < VARIANTS; i++)
		make_variant(&v[i], i, m, w, rounds);
	run_variants(v, rounds);
	print_times(v, rounds);
	for (int i = 0; i < VARIANTS; i++)
		free_variant(&v[i]);
	esp_weights_free(w);
	esp_model_free(m);
	esp_context_free(context);
	close_subject(&s);
}

static void measure_examples(long rounds)
{
	static const char *const examples[] = {
	    "treelstm/treelstm.ra", "childsum/childsum.ra", "treegru/treegru.ra", "treefc/treefc.ra",
	    "lstm/lstm.ra",	    "gru/gru.ra",	    "gru/gru-before.ra"};
	const char *srcdir = getenv("srcdir");
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/examples/%s", srcdir ? srcdir : ".", examples[i]);
		print_bodies(path);
		measure_model(path, rounds);
	}
}

/* --- rewriting --- */

/* Writes the sum of `blocks` different blocks, added in pairs. */
static void put_blocks(struct str *s, int first, int blocks)
{
	if (blocks == 1) {
		str_printf(s,
			   "(sigmoid((left.h * %d.5 + P) * 0.25) + -(-(right.h * %d.25)) * 2 - "
			   "maximum(x + %d.125, P + %d.125) * 1)",
			   first, first, first, first);
		return;
	}
	str_puts(s, "(");
	put_blocks(s, first, blocks / 2);
	str_puts(s, " + ");
	put_blocks(s, first + blocks / 2, blocks - blocks / 2);
	str_puts(s, ")");
}

static size_t count_operators(const struct sub_program *p)
{
	size_t n = 0;
	for (size_t i = 1; i < p->values.n; i++)
		n += sub_class_of(p->values.at[i].op) != SUB_SOURCE;
	return n;
}

static void lower_blocks(struct subject *s, struct sub_program *p, int blocks)
{
	struct str text = str_in(&s->arena);
	str_puts(&text,
		 "model many\nstructure tree(left, right)\ninput x[D]\nparam P[D]\nstate h[D]\n"
		 "leaf:\n    h = x\ninner:\n    h = ");
	put_blocks(&text, 1, blocks);
	str_puts(&text, "\noutput y = h at root\n");
	s->model = ra_parse(&s->arena, &s->diags, "many.ra", str_text(&text), text.n);
	s->sizes[0] = WIDTH;
	sub_init(p, &s->arena, "many");
	if (!s->model || !sub_lower_model(p, s->model, s->sizes, SUB_AT_MODEL, &s->diags))
		give_up("the generated model is none");
}

static void measure_rewriting(int operators)
{
	double seconds[5];
	enum { REPEATS = sizeof seconds / sizeof *seconds };
	for (int i = 0; i < REPEATS; i++) {
		struct subject s;
		struct sub_program from, to;
		struct rewrite_trace trace = {0};
		open_arena(&s);
		lower_blocks(&s, &from, operators / OPERATORS_OF_BLOCK);
		sub_init(&to, &s.arena, "many");
		double begin = read_clock();
		rewrite_optimize(&to, &from, &(struct rewrite_options){.math = REWRITE_REASSOCIATE}, &trace);
		seconds[i] = read_clock() - begin;
		if (i == 0)
			printf("rewriting %zu operators to %zu, %zu times a rule, in %zu MiB: ",
			       count_operators(&from), count_operators(&to), trace.changes.n,
			       s.arena.bytes >> 20);
		close_subject(&s);
	}
	qsort(seconds, REPEATS, sizeof *seconds, compare_doubles);
	printf("%.1f ms (median %.1f)\n", seconds[0] * 1e3, seconds[REPEATS / 2] * 1e3);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 50;
	if (rounds < 1)
		give_up("ROUNDS is a number from 1");
	for (int i = 2; i < argc; i++) {
		print_bodies(argv[i]);
		measure_model(argv[i], rounds);
	}
	if (argc < 3) {
		measure_examples(rounds);
		measure_rewriting(10000);
		measure_rewriting(20000);
	}
	return 0;
}
