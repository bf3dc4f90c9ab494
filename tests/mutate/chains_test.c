/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random chains of convolutions, with elementwise operators and movement between them, of which mutants are
 * computed: the program with mutants, and the one whose reorganisations are cancelled, give the bits of the
 * program without them, by the evaluator of sub-operators and by the whole compiler.  Cancelling divides no
 * index more, and computes no element of an elementwise operator more.
 *
 *     chains_test [FIRST COUNT]     seeds; ESPALIER_SEEDS = another COUNT */
#include "compile/program_passes.h"
#include "mutate/mutant_lines.h"
#include "tests/backends.h"
#include "tests/models/agree.h"
#include "tests/sample.h"

#include <stdarg.h>

enum {
	ALL_SEEDS = 240,
	SEEDS = ALL_SEEDS / SAMPLE,
	MAX_LAYERS = 3,
	MAX_TENSORS = 24,
	TRIES = 8,	    /* layouts of a convolution that are tried */
	EACH_RUN = 10,	    /* one of so many is run by the interpreter, as all that cancel are */
	EACH_COMPILED = 20, /* one of so many is compiled by all back ends as well, if it is run */
	TEXT = 4000
};

/* --- the model --- */

struct chain {
	char params[TEXT], lines[TEXT], text[3 * TEXT];
	int batch;    /* 0 = images stand alone */
	int dilation; /* of most convolutions */
	int n, layers;
	struct {
		int channels, height, width;
	} of[MAX_TENSORS]; /* of values in their order, the input first */
};

__attribute__((format(printf, 2, 3))) static void append(char *to, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(to + strlen(to), TEXT - strlen(to), format, arguments);
	va_end(arguments);
}

/* Begins the line of a next value, which has the sizes of the last one. */
static int begin_value(struct chain *c)
{
	c->of[c->n] = c->of[c->n - 1];
	append(c->lines, "    t%d", c->n);
	return c->n++ - 1;
}

static void add_convolution(struct chain *c)
{
	int from = begin_value(c), to = c->n - 1, layer = c->layers++;
	int kernel = random_below(4) ? 3 : 1 + random_below(3),
	    dilation = random_below(4) ? c->dilation : 1 + random_below(3);
	int stride = random_below(8) ? 1 : 2, reach = (kernel - 1) * dilation;
	int pad = random_below(6) ? reach / 2 : random_below(3);
	if (c->of[from].height + 2 * pad <= reach || c->of[from].width + 2 * pad <= reach)
		pad = reach;
	c->of[to].channels = random_below(3) ? c->of[from].channels : 1 + random_below(3);
	c->of[to].height = (c->of[from].height + 2 * pad - reach - 1) / stride + 1;
	c->of[to].width = (c->of[from].width + 2 * pad - reach - 1) / stride + 1;
	append(c->params, "param W%d[%d, %d, %d, %d], b%d[%d]\n", layer, c->of[to].channels,
	       c->of[from].channels, kernel, kernel, layer, c->of[to].channels);
	append(c->lines, " = conv(t%d, W%d, stride=%d, pad=%d, dilation=%d", from, layer, stride, pad,
	       dilation);
	append(c->lines, random_below(4) ? ", bias=b%d)\n" : ") + 0 * b%d[0]\n", layer);
}

/* A value of the same sizes; the last one itself if there is no other. */
static int find_same_sizes(const struct chain *c, int value)
{
	int other = random_below(value + 1);
	return memcmp(&c->of[other], &c->of[value], sizeof c->of[0]) == 0 ? other : value;
}

/* Moves elements: rows become columns, or the first row or column goes. */
static void add_movement(struct chain *c, const char *batch)
{
	int from = begin_value(c), to = c->n - 1, kind = random_below(3);
	int height = c->of[from].height, width = c->of[from].width;
	c->of[to].height = kind == 0 ? width : height - (kind == 1 && height > 1);
	c->of[to].width = kind == 0 ? height : width - (kind == 2 && width > 1);
	append(c->lines, "[%sc, i in %d, j in %d] = t%d[%sc, ", batch, c->of[to].height, c->of[to].width,
	       from, batch);
	if (kind == 0)
		append(c->lines, "j, i]\n");
	else
		append(c->lines, "i + %d, j + %d]\n", height - c->of[to].height, width - c->of[to].width);
}

/* Adds a value of the same sizes, whose rows move by one, with a number before the first. */
static void add_shifted(struct chain *c, const char *batch)
{
	int last = begin_value(c), shifted = c->n - 1;
	append(c->lines, "[%sc, i in %d, j in %d] = t%d[%sc, i - 1, j] else 0.25\n", batch, c->of[shifted].height,
	       c->of[shifted].width, find_same_sizes(c, last), batch);
	begin_value(c);
	append(c->lines, " = t%d + t%d\n", last, shifted);
}

static void add_operator(struct chain *c)
{
	static const char *const one[] = {"relu(t%d)", "tanh(t%d)", "t%d * 0.5", "abs(t%d)"};
	static const char *const two[] = {"t%d + t%d", "maximum(t%d, t%d)", "t%d - t%d"};
	int kind = random_below(10);
	if (kind >= 8) {
		(kind == 8 ? add_movement : add_shifted)(c, c->batch ? "m, " : "");
		return;
	}
	int from = begin_value(c);
	append(c->lines, " = ");
	if (kind < 4)
		append(c->lines, one[kind], from);
	else
		append(c->lines, two[random_below(3)], from, find_same_sizes(c, from));
	append(c->lines, "\n");
}

static void write_chain(struct chain *c)
{
	*c = (struct chain){.batch = random_below(3) ? 0 : 1 + random_below(2), .n = 1};
	c->dilation = 2 + !random_below(4);
	c->of[0].channels = 1 + random_below(3);
	c->of[0].height = c->dilation * (2 + random_below(4)) + !random_below(6);
	c->of[0].width = c->dilation * (2 + random_below(4)) + !random_below(6);
	for (int layers = 2 + random_below(MAX_LAYERS - 1); layers > 0; layers--) {
		add_convolution(c);
		for (int between = random_below(4); between > 0; between--)
			add_operator(c);
	}
	char batch[20] = "";
	if (c->batch)
		snprintf(batch, sizeof batch, "%d, ", c->batch);
	snprintf(c->text, sizeof c->text,
		 "model m\nstructure none\ninput t0[%s%d, %d, %d]\n%snode:\n%soutput y = t%d\n", batch,
		 c->of[0].channels, c->of[0].height, c->of[0].width, c->params, c->lines, c->n - 1);
	if (random_below(3) == 0)
		snprintf(c->text + strlen(c->text), TEXT, "output z = t%d\n", 1 + random_below(c->n - 1));
}

/* --- programs, evaluated in binary32 --- */

struct trial {
	struct test_model model;
	struct sub_program p; /* contracted */
	const void *params[2 * MAX_LAYERS], *inputs[1];
	double *expected;
	struct mutate_choice choice[MAX_LAYERS]; /* in the order of the sums; without a name, it has none */
	char name[MAX_LAYERS][20];
	int sums, changed, dilation;
	bool cancels;
};

static const void *draw_numbers(struct arena *a, int64_t n)
{
	float *x = ARENA_ARRAY(a, float, n);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)random_below(1 << 20) / (1 << 20) - 0.5f;
	return x;
}

static int64_t count_results(const struct sub_program *p)
{
	int64_t n = 0;
	for (size_t i = 0; i < p->outputs.n; i++)
		n += elements_of(&p->outputs.at[i].row);
	return n;
}

static double *evaluate(const struct trial *t, const struct sub_program *p)
{
	const int32_t none[2] = {0, 0};
	struct sub_forest f = {.nodes = 1,
			       .inputs = 1,
			       .child_begin = none,
			       .children = none,
			       .root = none,
			       .order = none,
			       .data = t->inputs,
			       .input_begin = none};
	double *all = ARENA_ARRAY(p->arena, double, count_results(p)), *out[2] = {NULL, NULL};
	for (size_t i = 0; i < p->outputs.n; i++)
		out[i] = i ? out[i - 1] + elements_of(&p->outputs.at[i - 1].row) : all;
	return sub_evaluate_in(SUB_BINARY32, p, &f, t->params, NULL, out, p->arena) ? all : NULL;
}

static bool has_same_bits(struct trial *t, const struct sub_program *p)
{
	double *found = sub_verify(p, &t->model.diags) ? evaluate(t, p) : NULL;
	return found && memcmp(found, t->expected, (size_t)count_results(p) * sizeof *found) == 0;
}

static bool open_trial(struct trial *t, const struct chain *c)
{
	struct sub_program lowered;
	if (!load_text(&t->model, "m", c->text, strlen(c->text), ""))
		return false;
	sub_init(&lowered, &t->model.arena, "m");
	sub_init(&t->p, &t->model.arena, "m");
	if (!sub_lower_model(&lowered, t->model.model, t->model.sizes, SUB_AT_MODEL, &t->model.diags))
		return false;
	rewrite_contract(&t->p, &lowered, NULL, NULL);
	for (size_t i = 0; i < t->p.params.n; i++)
		t->params[i] = draw_numbers(&t->model.arena, elements_of(&t->p.params.at[i]));
	t->inputs[0] = draw_numbers(&t->model.arena, elements_of(&t->p.inputs.at[0].row));
	t->expected = evaluate(t, &t->p);
	return t->expected != NULL;
}

static bool *find_live(const struct sub_program *p)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	for (size_t b = 0; b < p->bodies.n; b++)
		sub_mark_live(p, &p->bodies.at[b], live);
	return live;
}

/* What cancelling lowers, and what it must not raise. */
static void count_work(const struct sub_program *p, int *digits, double *elements)
{
	const bool *live = find_live(p);
	*digits = 0;
	*elements = 0;
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		enum sub_class class = sub_class_of(v->op);
		if (live[i] && (class == SUB_UNARY || class == SUB_BINARY || class == SUB_TERNARY))
			*elements += sub_row_elements(p, v);
		for (int k = 0; live[i] && v->op == SUB_ASSIGN && k < sub_at(p, v->arg[0].value)->vars; k++)
			*digits += v->map[k].function == SUB_DIGIT;
	}
}

/* --- mutants --- */

/* One or two pieces; phases of rows or columns more often than anything else. */
static struct mutate_layout draw_layout(const struct mutate_site *s, int dilation)
{
	struct mutate_layout l = {{{false}}};
	for (int changes = 1 + random_below(2); changes > 0; changes--) {
		bool common = random_below(3) > 0;
		int at = common && s->dims > 1 ? s->dims - 1 - random_below(2) : random_below(s->dims);
		struct mutate_change *c = &l.of[at];
		c->border = random_below(8) == 0;
		c->piece = common ? MUTATE_PHASE : (enum mutate_piece)random_below(MUTATE_PIECES);
		c->by = random_below(4) ? dilation : 2 + random_below(2);
		c->place = common ? MUTATE_BATCH : (enum mutate_place)random_below(MUTATE_PLACES);
		c->before = c->place == MUTATE_BEFORE ? 1 + random_below(s->dims - 1) : 0;
	}
	return l;
}

static bool apply(struct trial *t, struct sub_program *to, const struct mutate_choice *choice, int n)
{
	int wrong;
	sub_init(to, &t->model.arena, "m");
	sub_ref *now = ARENA_ARRAY(&t->model.arena, sub_ref, t->p.values.n);
	return !mutate_apply(to, &t->p, choice, n, true, now, &wrong);
}

/* Chooses a layout of each sum, often that of the sum before. */
static void choose_mutants(struct trial *t)
{
	const bool *live = find_live(&t->p);
	struct mutate_layout last = {{{false}}};
	struct mutate_site site;
	struct sub_program to;
	for (uint32_t i = 1; i < t->p.values.n && t->sums < MAX_LAYERS; i++) {
		if (!live[i] || t->p.values.at[i].op != SUB_ACCUMULATE)
			continue;
		struct mutate_choice *c = &t->choice[t->sums];
		char *name = t->name[t->sums++];
		if (!mutate_find_site(&t->p, (sub_ref){i}, &site))
			continue;
		bool found = false;
		for (int k = 0; k < TRIES && !found; k++) {
			int length = snprintf(name, sizeof t->name[0], "output.v%u", i);
			*c = (struct mutate_choice){.value = {name, length}};
			c->layout = k == 0 && t->changed ? last : draw_layout(&site, t->dilation);
			found = apply(t, &to, c, 1);
		}
		if (found)
			last = c->layout;
		else
			c->value.text = NULL;
		t->changed += found;
	}
}

/* --- the whole compiler --- */

static struct option_texts options_of(const char *backend, const char *schedule)
{
	return (struct option_texts){
	    .backend = backend, .target = "avx2", .math = "exact", .rules = "none", .schedule = schedule};
}

/* Writes the lines of a schedule: sums have other names in the compiler, but the same order. */
static bool write_schedule(struct trial *t, struct str *lines)
{
	struct option_texts o = options_of("interpreter", NULL);
	struct test_model *m = &t->model;
	struct str text = str_in(&m->arena);
	int n = 0;
	if (!compile_dump_as(&m->arena, &m->diags, m->model, m->sizes, &o, "group", &text))
		return false;
	for (const char *at = strstr(str_text(&text), "\n  %"); at; at = strstr(at + 1, "\n  %")) {
		const char *sum = strstr(at, "= accumulate_");
		if (!sum || sum > at + 1 + strcspn(at + 1, "\n"))
			continue;
		if (n < t->sums && t->choice[n].value.text) {
			str_printf(lines, "mutate output.v%d ", atoi(at + 4));
			mutate_print_layout(&t->choice[n].layout, lines);
			str_printf(lines, "\n");
		}
		n++;
	}
	return n == t->sums;
}

static bool gives_same_bits(struct trial *t, const char *schedule, bool all)
{
	struct test_run base = {0};
	struct setting s = {.model = &t->model};
	struct option_texts plain = options_of("interpreter", NULL);
	bool ok = start_run(&base, &t->model, &plain);
	if (ok) {
		make_forest(&s.forest, &base.image, 2, 2);
		ok = begin_setting(&s, &base);
	}
	struct option_texts o = options_of("interpreter", schedule);
	ok = ok && agrees(&s, &o);
	for (int i = 0; ok && all && backend_at(i); i++) {
		o.backend = backend_at(i);
		ok = agrees(&s, &o);
	}
	end_run(&base);
	end_setting(&s);
	return ok;
}

/* --- trials --- */

static long applied, refused, cancelled, compiled, failed;

static bool check_programs(struct trial *t)
{
	struct mutate_choice chosen[MAX_LAYERS];
	struct sub_program mutants, to;
	int n = 0, before, after;
	double elements_before, elements_after;
	for (int i = 0; i < t->sums; i++)
		if (t->choice[i].value.text)
			chosen[n++] = t->choice[i];
	if (!n || !apply(t, &mutants, chosen, n)) {
		refused++;
		t->changed = 0;
		return true;
	}
	sub_init(&to, &t->model.arena, "m");
	mutate_cancel_moves(&to, &mutants);
	count_work(&mutants, &before, &elements_before);
	count_work(&to, &after, &elements_after);
	applied++;
	t->cancels = after < before;
	cancelled += t->cancels;
	if (after > before || elements_after > elements_before)
		printf("# digits: %d of %d, elements: %g of %g\n", after, before, elements_after,
		       elements_before);
	return has_same_bits(t, &mutants) && has_same_bits(t, &to) && after <= before &&
	       elements_after <= elements_before;
}

static bool check_compiled(struct trial *t, bool all)
{
	struct str lines = str_in(&t->model.arena);
	if (!write_schedule(t, &lines))
		return false;
	compiled++;
	if (gives_same_bits(t, str_text(&lines), all))
		return true;
	printf("# with the schedule\n# %s", str_text(&lines));
	return false;
}

static void try_seed(int seed)
{
	struct trial t = {.changed = 0};
	static struct chain c;
	random_state = 5000 + (uint64_t)seed * 77;
	write_chain(&c);
	t.dilation = c.dilation;
	bool ok = open_trial(&t, &c);
	if (ok) {
		choose_mutants(&t);
		ok = check_programs(&t);
	}
	if (ok && t.changed && (t.cancels || seed % EACH_RUN == 0))
		ok = check_compiled(&t, seed % EACH_COMPILED == 0);
	if (!ok) {
		print_diags(&t.model.diags);
		printf("# of seed %d:\n%s", seed, c.text);
		for (int i = 0; i < t.sums; i++)
			if (t.choice[i].value.text) {
				struct str s = str_in(&t.model.arena);
				mutate_print_layout(&t.choice[i].layout, &s);
				printf("# mutate %s %s\n", t.name[i], str_text(&s));
			}
		failed++;
	}
	free_model(&t.model);
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	int first = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2])
							  : seeds  ? atoi(seeds)
								   : SEEDS;
	for (int seed = first; seed < first + count; seed++)
		try_seed(seed);
	printf("# %ld chains with mutants, of which %ld cancel and %ld were run; %ld without\n", applied,
	       cancelled, compiled, refused);
	tap_is(failed, 0, "chains with mutants, cancelled or not, give the bits of those without");
	if (count >= ALL_SEEDS) /* fewer may have none */
		tap_ok(cancelled > 0 && compiled > 0, "and some of them cancel");
	return tap_done();
}
