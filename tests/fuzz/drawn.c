/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/drawn.h"

#include "compile/compilation.h"
#include "tests/models/agree.h"
#include "tests/models/schedules.h"

#include <stdlib.h>

enum { MOST_VARIANTS = 20, WEIGHTS = 4 };

/* One variant of compiling and running the program. */
struct variant {
	struct compile_options options;
	struct compilation half; /* with its schedule */
	struct test_run run;
};

struct drawn {
	struct fuzz *fuzz;
	struct generator generator;
	struct text schedule;
	char sizes[64];
	struct test_model model;
	struct setting setting;
	struct variant variant[MOST_VARIANTS];
	int variants;
	const void **params; /* of the oracle */
	struct arena values;  /* of one of its evaluations */
};

/* An execution is one program over one structure with one weights, in all variants and by the oracle. */
static struct {
	long programs, executions, runs, oracles;
	enum fuzz_variants variants;
} totals;

static void print_totals(void)
{
	fprintf(stderr, "stat::drawn: %ld programs %ld executions %ld runs %ld oracles\n", totals.programs,
		totals.executions, totals.runs, totals.oracles);
	if (totals.variants != FUZZ_BACKENDS)
		return;
	for (int i = 0; backend_at(i); i++)
		fprintf(stderr, "stat::back end: %s\n", backend_at(i));
	if (!backend_at(0))
		fprintf(stderr, "stat::back end: none can be loaded\n");
}

/* --- reporting a finding --- */

static void show_variant(const struct drawn *d, const struct compile_options *o)
{
	print_diags(&d->fuzz->diags);
	fflush(stdout);
	fprintf(stderr, "%s\nsizes %s\nbackend %s target %s math %s last pass %s\nschedule\n%s\n",
		d->generator.body.at, d->sizes, o->backend, o->target ? o->target->name : "none",
		rewrite_math_spelling(o->math), o->last_pass ? o->last_pass : "none", o->schedule);
	fprintf(stderr, "nodes %d inputs %d weights %llu special %d\n", d->setting.forest.nodes,
		(int)d->setting.forest.minibatch.forest.inputs, (unsigned long long)weights_drawn,
		special_each);
}

static void promise(const struct drawn *d, const struct variant *w, bool kept, const char *what)
{
	if (!kept)
		show_variant(d, &w->options);
	fuzz_check(d->fuzz, kept, what);
}

/* --- compiling --- */

static const char *const maths[] = {"reassociate", "exact", "fast"};

/* Schedules the program again with other options; false = they are refused. */
static bool schedule_again(struct variant *w, const struct compilation *first)
{
	w->half = *first;
	w->half.options = &w->options;
	return compile_run_steered_passes(&w->half) && compile_to_schedule(&w->half);
}

static void add_variant(struct drawn *d, const struct compilation *half, struct compile_options o)
{
	struct variant *w = &d->variant[d->variants++];
	w->options = o;
	w->half = *half;
	w->half.options = &w->options;
	memset(&w->run, 0, sizeof w->run);
	arena_init(&w->run.arena, &allocator_default);
	diags_init(&w->run.diags, &d->fuzz->allocator);
	jmp_buf jump;
	if (arena_guard(&w->run.arena, &jump))
		fuzz_check(d->fuzz, false, "there is memory for a small program");
	struct image *image = &w->run.image;
	promise(d, w,
		compile_finish(&w->half, &w->run.arena, &d->fuzz->diags, image, NULL) &&
		    compile_load(&allocator_default, &d->fuzz->diags, image, NULL),
		"what is scheduled can be compiled");
}

/* Whether its schedule is legal; an illegal one must add a diagnostic. */
static bool is_taken(struct drawn *d, struct variant *w, const struct compilation *first)
{
	struct diags *diags = &d->fuzz->diags;
	if (schedule_again(w, first))
		return true;
	promise(d, w, diags->n == 1 && diags->at[0].id == DIAG_ILLEGAL_SCHEDULE,
		"illegal schedules are refused");
	diags_free(diags);
	diags_init(diags, &d->fuzz->allocator);
	return false;
}

/* A planner, then lines for its plan: legal ones, or one of the table of directives, or nothing. */
static const char *draw_schedule(struct drawn *d, struct variant *w, const struct compilation *first)
{
	static const char *const planners[] = {"",
					       "",
					       "",
					       "fuse grow always\n",
					       "fuse grow never\n",
					       "fuse none\n",
					       "fuse greedy\n",
					       "hoist all\n",
					       "local all\n",
					       "refactor all\nfuse none\n",
					       "hoist off\nrefactor off\n"};
	int kind = random_below(4);
	d->schedule.n = 0;
	put(&d->schedule, "%s", planners[random_below(sizeof planners / sizeof *planners)]);
	w->options.schedule = d->schedule.at;
	if (!is_taken(d, w, first)) /* there is nothing to hoist, or to refactor */
		d->schedule.at[d->schedule.n = 0] = 0;
	promise(d, w, schedule_again(w, first), "what is chosen is legal");
	struct str printed = str_in(&d->fuzz->arena);
	sched_print(&w->half.sched, &w->half.plan, &printed);
	if (kind > 1)
		put_schedule(&d->schedule, str_text(&printed), d->model.model);
	else if (kind == 1)
		put_drawn(&d->schedule, str_text(&printed));
	return d->schedule.at;
}

/* What is drawn from the table may be refused; the plan goes without it then. */
static const struct compilation *scheduled(struct drawn *d, struct variant *w,
					   const struct compilation *first)
{
	draw_schedule(d, w, first);
	if (is_taken(d, w, first))
		return &w->half;
	d->schedule.at[d->schedule.n = 0] = 0;
	promise(d, w, schedule_again(w, first), "what is chosen is legal");
	return &w->half;
}

static const char *pass_name(int i)
{
	return ilir_pass_at(i)->name;
}

static int passes(void)
{
	int n = 0;
	while (ilir_pass_at(n))
		n++;
	return n;
}

static void add_passes(struct drawn *d, const struct compilation *half, struct compile_options o)
{
	int first = 1 + random_below(passes() - 1), last = first;
	if (getenv("ESPALIER_FUZZ_DEEP"))
		first = 1, last = passes() - 1;
	for (int i = first; i <= last; i++) {
		o.last_pass = pass_name(i);
		add_variant(d, half, o);
	}
	o.last_pass = NULL;
	add_variant(d, half, o);
}

static void add_backends(struct drawn *d, const struct compilation *half, struct compile_options o)
{
	add_variant(d, half, o);
	for (int i = 0; (o.backend = backend_at(i)); i++)
		add_variant(d, half, o);
}

static bool compile_variants(struct drawn *d, enum fuzz_variants variants)
{
	static const char *const targets[] = {"avx2", "generic", "avx512", "avx2"}, *const here[] = {
											"native", "generic"};
	static struct variant scratch;
	struct fuzz *f = d->fuzz;
	struct image image;
	struct option_texts texts = {.backend = "interpreter",
				     .target = variants == FUZZ_BACKENDS ? here[random_below(2)]
									 : targets[random_below(4)],
				     .math = maths[random_below(3)],
				     .last_pass = "infer_bounds"};
	const struct compile_options *asked = read_option_texts(&f->arena, &f->diags, &texts);
	fuzz_check(f, asked, "options are read");
	struct compile_options o = *asked;
	const struct compilation *first =
	    compile_begin(&f->arena, &f->diags, d->model.model, d->model.sizes, &o, &image, NULL);
	scratch.options = o;
	promise(d, &scratch, first, "what is drawn compiles");
	add_variant(d, first, o);
	const struct compilation *half = scheduled(d, &scratch, first);
	o = scratch.options;
	o.last_pass = NULL;
	(variants == FUZZ_BACKENDS ? add_backends : add_passes)(d, half, o);
	return true;
}

/* --- weights and structures --- */

/* One in so many weights is no ordinary number.  Under `fast` all are, and parameters are finite unless
 * arithmetic is exact. */
static void draw_weights(struct drawn *d)
{
	static const int each[] = {0, 0, 0, 6, 40, 300};
	const struct sub_program *p = &d->variant[0].half.written;
	weights_drawn = random_bits();
	special_each = each[random_below(6)];
	finite_weights = d->variant[0].options.math != REWRITE_EXACT;
	if (d->variant[0].options.math == REWRITE_FAST)
		special_each = 0;
	d->params = ARENA_ARRAY(&d->fuzz->arena, const void *, p->params.n + 1);
	for (size_t i = 0; i < p->params.n; i++) {
		int64_t n = elements_of(&p->params.at[i]);
		d->params[i] = make_param(&d->fuzz->arena, p->params.at[i].dtype, i, n);
	}
}

static void bind_variants(struct drawn *d)
{
	for (struct variant *w = d->variant; w < d->variant + d->variants; w++) {
		struct test_run *r = &w->run;
		struct rt_source source = {read_weight, &r->image};
		if (r->bound)
			rt_binding_free(&r->binding);
		r->bound =
		    rt_bind(&r->binding, &d->fuzz->allocator, &r->image, &source, NULL, &d->fuzz->diags);
		promise(d, w, r->bound, "what is compiled can be bound");
	}
}

static void open_variants(struct drawn *d)
{
	for (struct variant *w = d->variant; w < d->variant + d->variants; w++) {
		struct test_run *r = &w->run;
		cut_columns(r);
		r->open = rt_session_init(&r->session, &d->fuzz->allocator, &r->image, &d->fuzz->diags);
	}
}

/* One node, chains, stars, anything; few nodes, because there are many programs. */
static void draw_forest(struct test_forest *f, const struct image *image)
{
	static const struct {
		int inputs, size;
		enum forest_shape shape;
	} forests[] = {{1, 1, FOREST_ANY},  {1, 7, FOREST_DEEP}, {1, 8, FOREST_WIDE}, {2, 3, FOREST_ANY},
		       {1, 4, FOREST_ANY},  {3, 1, FOREST_ANY},	 {1, 10, FOREST_ANY}, {2, 4, FOREST_WIDE},
		       {2, 3, FOREST_DEEP}, {1, 3, FOREST_ANY}};
	int i = random_below(sizeof forests / sizeof *forests);
	make_shaped_forest(f, image, forests[i].inputs, forests[i].size, forests[i].shape);
}

/* --- against the oracle --- */

static double *evaluate(struct drawn *d, enum sub_arithmetic arithmetic)
{
	const struct sub_program *p = &d->variant[0].half.written;
	const struct lin_forest *f = &d->setting.forest.minibatch.forest;
	struct arena *a = &d->values;
	double **states = ARENA_ARRAY(a, double *, p->states.n),
	       **outputs = ARENA_ARRAY(a, double *, p->outputs.n + 1),
	       *all = ARENA_ARRAY(a, double, d->setting.count + 1);
	int64_t at = 0;
	for (size_t i = 0; i < p->states.n; i++)
		states[i] = ARENA_ARRAY(a, double, f->nodes *elements_of(&p->states.at[i]));
	for (size_t i = 0; i < p->outputs.n; i++) {
		outputs[i] = all + at;
		at += (p->outputs.at[i].at_root ? f->inputs : f->nodes) * elements_of(&p->outputs.at[i].row);
	}
	fuzz_check(d->fuzz, at == d->setting.count, "outputs have the size that the model says");
	struct sub_forest forest = {f->nodes,
				    f->inputs,
				    f->child_begin,
				    f->children,
				    f->root,
				    d->variant[0].run.session.order.order,
				    d->setting.forest.data,
				    f->input_begin};
	sub_evaluate_in(arithmetic, p, &forest, d->params, states, outputs, a);
	return all;
}

static bool is_near(double wanted, double slack, double found)
{
	if (isnan(wanted) || isnan(found))
		return isnan(wanted) && isnan(found);
	if (isinf(wanted) || isinf(found))
		return wanted == found;
	return fabs(found - wanted) < 1e-3 * (1 + fabs(wanted)) + slack;
}

/* What is no number, or infinite, is so exactly; else the error is within rounding, of which the oracle's own
 * in binary32 is a measure where a result is what is left of large numbers.  Where that vanishes or overflows
 * and binary64 does not, as of a denormal number times a small one, times infinity, binary32 is right. */
static bool is_close(double exact, double rounded, double found)
{
	double slack = 64 * fabs(rounded - exact);
	return is_near(exact, isfinite(slack) ? slack : 0, found) || is_near(rounded, 0, found);
}

static bool is_float(const struct drawn *d, int64_t element)
{
	const struct test_forest *f = &d->setting.forest;
	return type_of_result(&d->variant[0].run, f->nodes, f->minibatch.forest.inputs, element) == DTYPE_F32;
}

static int64_t first_far(const struct drawn *d, const double *exact, const double *rounded)
{
	const double *found = d->setting.expected;
	int64_t i = 0;
	while (i < d->setting.count && (is_float(d, i) ? is_close(exact[i], rounded[i], found[i])
						       : sub_integer(exact[i]) == sub_integer(found[i])))
		i++;
	return i;
}

static void check_oracle(struct drawn *d)
{
	struct setting *s = &d->setting;
	struct arena *a = &d->values;
	jmp_buf jump;
	arena_init(a, &d->fuzz->allocator);
	if (arena_guard(a, &jump))
		fuzz_check(d->fuzz, false, "the oracle needs a modest amount of memory");
	const double *exact = evaluate(d, SUB_BINARY64);
	int64_t i = first_far(d, exact, exact);
	if (i < s->count) {
		const double *rounded = evaluate(d, SUB_BINARY32);
		i = first_far(d, exact, rounded);
		if (i < s->count)
			fprintf(
			    stderr,
			    "element %lld is %.9g or %lld, to the oracle %.17g or %lld, in binary32 %.9g\n",
			    (long long)i, s->expected[i], (long long)sub_integer(s->expected[i]), exact[i],
			    (long long)sub_integer(exact[i]), rounded[i]);
	}
	promise(d, &d->variant[0], i == s->count, "the loops compute what the model says");
	arena_free(a);
	totals.oracles++;
}

/* --- executions --- */

/* Which NaN it is may be chosen by the host's own instructions. */
static bool agree(const struct drawn *d, const double *b)
{
	const double *a = d->setting.expected;
	if (memcmp(a, b, d->setting.count * sizeof *a) == 0)
		return true;
	for (int64_t i = 0; i < d->setting.count; i++)
		if (sub_integer(a[i]) != sub_integer(b[i]) &&
		    !(isnan(a[i]) && isnan(b[i]) && is_float(d, i))) {
			fprintf(stderr, "element %lld is %.9g or %lld, not %.9g or %lld\n", (long long)i,
				b[i], (long long)sub_integer(b[i]), a[i], (long long)sub_integer(a[i]));
			return false;
		}
	return true;
}

static void run_variant(struct drawn *d, struct variant *w)
{
	const struct rt_minibatch *m = &d->setting.forest.minibatch;
	int64_t count;
	promise(d, w, rt_session_run(&w->run.session, &w->run.binding, NULL, m, &d->fuzz->diags),
		"what is drawn runs");
	double *all = gather_outputs(&w->run, d->setting.forest.nodes, m->forest.inputs, &count);
	totals.runs++;
	if (w == d->variant) {
		d->setting.expected = all;
		d->setting.count = count;
		return;
	}
	promise(d, w, count == d->setting.count && agree(d, all), "all variants give the same bits");
	free(all);
}

static void execute(struct drawn *d)
{
	draw_forest(&d->setting.forest, &d->variant[0].run.image);
	for (int i = 0; i < d->variants; i++)
		run_variant(d, &d->variant[i]);
	if (!d->generator.jumps)
		check_oracle(d);
	free(d->setting.expected);
	free_forest(&d->setting.forest);
	totals.executions++;
}

/* Compiling takes as long as many executions of what is small. */
static int executions_of(const struct drawn *d, enum fuzz_variants variants)
{
	const struct image *image = &d->variant[0].run.image;
	int64_t operations = 0;
	for (int i = 0; i < image->steps; i++)
		operations += image->step[i].operations;
	if (variants == FUZZ_BACKENDS)
		return operations < 3000 ? 16 : 4;
	return operations < 300 ? 32 : operations < 3000 ? 8 : 2;
}

static void close_variants(struct drawn *d)
{
	for (struct variant *w = d->variant; w < d->variant + d->variants; w++)
		end_run(&w->run);
}

/* --- the target --- */

/* Models for back ends are short: they take seconds for long ones.  Types are for one input in three, and models without a
 * structure for one in four, by the input's hash: the others mean what they did before there were any. */
static void draw(struct fuzz *f, struct drawn *d, enum fuzz_variants variants, const uint8_t *bytes, size_t n)
{
	static const int sizes[] = {1, 2, 2, 3, 3, 4, 5, 10},
			 lengths[] = {100, 150, 200, 250, 300, 400, 600, 1500};
	random_state = fuzz_hash(bytes, n);
	chosen_bytes = bytes;
	chosen_end = bytes + n;
	d->fuzz = f;
	d->variants = 0;
	d->schedule.at[d->schedule.n = 0] = 0;
	d->setting = (struct setting){.model = &d->model};
	int largest = sizes[random_below(8)],
	    longest = lengths[random_below(variants == FUZZ_BACKENDS ? 3 : 8)];
	uint64_t hash = fuzz_hash(bytes, n);
	const char *text = (hash / 3 % 4 ? draw_model : draw_rows)(&d->generator, hash % 3 == 0, largest, longest, d->sizes);
	d->model.model = ra_parse(&f->arena, &f->diags, "drawn", text, strlen(text));
	promise(d, &(struct variant){.options = {.backend = "none", .schedule = ""}}, d->model.model,
		"what is drawn is a model");
	set_sizes(&d->model, d->sizes);
}

static bool run_passes(struct fuzz *f, const uint8_t *bytes, size_t n, enum fuzz_variants variants)
{
	static struct drawn d;
	draw(f, &d, variants, bytes, n);
	compile_variants(&d, variants);
	open_variants(&d);
	for (int w = 0; w < WEIGHTS; w++) {
		draw_weights(&d);
		bind_variants(&d);
		for (int i = executions_of(&d, variants); i > 0; i--)
			execute(&d);
	}
	close_variants(&d);
	totals.programs++;
	return true;
}

static bool run_some(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	return run_passes(f, bytes, n, FUZZ_SOME_PASSES);
}

static bool run_backends(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	return run_passes(f, bytes, n, FUZZ_BACKENDS);
}

int fuzz_drawn(enum fuzz_variants variants, const uint8_t *bytes, size_t n)
{
	static bool counted;
	if (!counted)
		atexit(print_totals);
	counted = true;
	totals.variants = variants;
	return fuzz_run_once(variants == FUZZ_BACKENDS ? run_backends : run_some, bytes, n);
}
