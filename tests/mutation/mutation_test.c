/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The harness of random models must notice each fault of mutations.def in a bounded number of programs.
 * See README.md. */
#include "tests/models/checked.h"
#include "tests/models/generate.h"
#include "tests/mutation/loops.h"
#include "tests/mutation/programs.h"
#include "tests/mutation/runs.h"
#include "tests/sample.h"

enum { SEEDS = 150, CONTROLS = 3 };

enum stage { STAGE_PROGRAM, STAGE_LOOPS, STAGE_IMAGE, STAGE_RUN, STAGE_CODE };

typedef bool change_program(struct sub_program *, struct choice *);
typedef bool change_loops(struct ilir_module *, struct choice *);
typedef bool change_image(struct image *, struct choice *);
typedef bool change_run(const struct image *, struct image_frame *, struct image_range *);

/* The member named by the stage is set. */
union change {
	change_program *PROGRAM;
	change_loops *LOOPS, *CODE;
	change_image *IMAGE;
	change_run *RUN;
};

static const struct mutation {
	enum stage stage;
	const char *after, *name, *meaning;
	union change change;
} mutations[] = {
#define MUTATION(stage, after, name, meaning) {STAGE_##stage, #after, #name, meaning, {.stage = name}},
#include "tests/mutation/mutations.def"
#undef MUTATION
};
enum { MUTATIONS = sizeof mutations / sizeof *mutations };

/* Controls: the same stages without a change, in which nothing must be noticed. */
static bool keep_program(struct sub_program *p, struct choice *c)
{
	(void)p;
	return c->done = true;
}

static bool keep_loops(struct ilir_module *m, struct choice *c)
{
	(void)m;
	return c->done = true;
}

static bool keep_image(struct image *image, struct choice *c)
{
	(void)image;
	return c->done = true;
}

static bool keep_run(const struct image *image, struct image_frame *f, struct image_range *r)
{
	(void)image, (void)f, (void)r;
	return true;
}

static const struct mutation controls[] = {
    {STAGE_PROGRAM, "optimize", "keep", "nothing", {.PROGRAM = keep_program}},
    {STAGE_LOOPS, "clean", "keep", "nothing", {.LOOPS = keep_loops}},
    {STAGE_IMAGE, "share", "keep", "nothing", {.IMAGE = keep_image}},
    {STAGE_RUN, "split", "keep", "nothing", {.RUN = keep_run}},
    {STAGE_CODE, "clean", "keep", "nothing", {.CODE = keep_loops}}};
enum { CONTROL_STAGES = sizeof controls / sizeof *controls };
static int quiet, controlled; /* number of controls in which nothing was noticed, and of all */

/* What noticed a fault. */
enum verdict { UNCHANGED, MISSED, VERIFIER, BOUNDS, ORACLE, BITS, VERDICTS };
static const char *const verdicts[] = {[VERIFIER] = "the verifier",
				       [BOUNDS] = "the check of bounds",
				       [ORACLE] = "the oracle",
				       [BITS] = "the comparison of bits"};

/* The state of each mutation. */
static struct {
	int programs; /* number of programs that it changed */
	enum verdict verdict;
} found[MUTATIONS];

/* --- a wrong compilation --- */

struct mutant {
	const struct mutation *mutation;
	struct choice choice;
	struct compilation compilation;
	struct test_run run;
	bool changed;
	struct image_code code;
};

static bool is_after(const struct mutant *m, enum stage stage, const char *what)
{
	return m->mutation->stage == stage && strcmp(m->mutation->after, what) == 0;
}

static bool program_is_legal(struct mutant *m, struct sub_program *p, const char *part)
{
	if (is_after(m, STAGE_PROGRAM, part))
		m->changed = m->mutation->change.PROGRAM(p, &m->choice);
	return sub_verify(p, &m->run.diags);
}

/* Runs the compile leg up to the schedule, with the change in between. */
static bool plan_mutant(struct mutant *m)
{
	struct compilation *c = &m->compilation;
	if (!compile_to_written(c) || !compile_begin_passes(c, &c->written))
		return false;
	c->fusion.refactoring = c->fusion.hoisting = MOVE_ALL;
	for (int i = 0; program_pass_at(i); i++)
		if (program_pass_at(i)->when(c) &&
		    !(compile_run_program_pass(c, program_pass_at(i)) &&
		      program_is_legal(m, &c->program, program_pass_at(i)->name)))
			return false;
	c->fusion = (struct sched_fusion){0};
	sched_make_plan(&c->plan, c->arena, &c->program, c->options->target, &c->fusion);
	sched_choose(&c->sched, &c->plan, c->plan.target);
	return sched_verify(&c->plan, c->diags);
}

static bool loops_are_legal(struct mutant *m, const char *pass)
{
	struct compilation *c = &m->compilation;
	if (is_after(m, STAGE_LOOPS, pass))
		m->changed = m->mutation->change.LOOPS(&c->module, &m->choice);
	return ilir_verify(&c->module, c->properties, pass, c->diags);
}

static bool lower_mutant(struct mutant *m)
{
	struct compilation *c = &m->compilation;
	if (!compile_to_loops(c) || !loops_are_legal(m, "lower"))
		return false;
	for (int i = 0; ilir_pass_at(i); i++) {
		ilir_pass_at(i)->run(&c->module, &c->tiling);
		c->properties |= ilir_pass_at(i)->establishes;
		if (!loops_are_legal(m, ilir_pass_at(i)->name))
			return false;
	}
	return true;
}

/* Makes tables from the unchanged loops if only the code is to be wrong. */
static bool make_mutant(struct mutant *m)
{
	struct compilation *c = &m->compilation;
	struct image *image = &m->run.image;
	ilir_describe(&c->module, image);
	compile_describe_steps(c, image);
	compile_describe_interface(c, image);
	if (m->mutation->stage == STAGE_IMAGE)
		m->changed = m->mutation->change.IMAGE(image, &m->choice);
	if (m->mutation->stage == STAGE_CODE)
		m->changed = m->mutation->change.CODE(&c->module, &m->choice), check_indices(&c->module);
	return compile_to_code(c, image) && compile_load(&allocator_default, c->diags, image, NULL);
}

static bool compile_mutant(struct mutant *m, const struct test_model *t)
{
	static jmp_buf jump;
	arena_init(&m->run.arena, &allocator_default);
	diags_init(&m->run.diags, &allocator_default);
	if (arena_guard(&m->run.arena, &jump))
		return false;
	bool code = m->mutation->stage == STAGE_CODE;
	struct option_texts texts = {.backend = code ? usual_backend() : "interpreter",
				     .target = code ? "native" : "avx2"};
	m->compilation = (struct compilation){.arena = &m->run.arena,
					      .diags = &m->run.diags,
					      .model = t->model,
					      .sizes = t->sizes,
					      .options = read_option_texts(&m->run.arena, &m->run.diags, &texts)};
	return m->compilation.options && plan_mutant(m) && lower_mutant(m) && make_mutant(m);
}

/* --- a wrong run --- */

static bool call_wrong(void *self, int kernel, const struct image_frame *f, const struct image_range *range,
		       struct diags *d)
{
	struct mutant *m = self;
	struct image_frame frame = *f;
	struct image_range r = *range;
	bool binding = kernel < m->run.image.folds;
	if (!binding && !m->choice.done)
		m->choice.done = m->mutation->change.RUN(&m->run.image, &frame, &r);
	m->changed |= m->choice.done || memcmp(&r, range, sizeof r) != 0;
	return m->code.call(m->code.self, kernel, &frame, &r, d);
}

static void release_wrong(struct image_code *code)
{
	struct mutant *m = code->self;
	m->code.release(&m->code);
}

static void break_calls(struct mutant *m)
{
	m->code = m->run.image.code;
	m->run.image.code = (struct image_code){.call = call_wrong, .release = release_wrong, .self = m};
}

/* --- verdicts --- */

static bool open_mutant(struct mutant *m)
{
	struct test_run *r = &m->run;
	struct rt_source source = {read_weight, &r->image};
	if (m->mutation->stage == STAGE_RUN)
		break_calls(m);
	else
		cut_columns(r);
	r->bound = rt_bind(&r->binding, &allocator_default, &r->image, &source, NULL, &r->diags);
	r->open = r->bound && rt_session_init(&r->session, &allocator_default, &r->image, &r->diags);
	return r->open;
}

/* Compares outputs with those without the fault; a changed program is compared with the oracle only. */
static enum verdict compare_outputs(const struct mutant *m, const struct setting *s)
{
	struct setting own = *s;
	double worst;
	own.expected =
	    gather_outputs(&m->run, s->forest.nodes, s->forest.minibatch.forest.inputs, &own.count);
	bool same = m->mutation->stage == STAGE_PROGRAM
			? near_oracle(&own, &m->run, 1e-3, &worst)
			: memcmp(own.expected, s->expected, s->count * sizeof *s->expected) == 0;
	free(own.expected);
	return same ? MISSED : m->mutation->stage == STAGE_PROGRAM ? ORACLE : BITS;
}

static enum verdict judge_mutant(struct mutant *m, const struct setting *s)
{
	if (!compile_mutant(m, s->model))
		return VERIFIER;
	if (m->mutation->stage != STAGE_RUN && !m->changed)
		return UNCHANGED;
	bool ran = open_mutant(m) && rt_session_run(&m->run.session, &m->run.binding, NULL,
						    &s->forest.minibatch, &m->run.diags);
	return !m->changed ? UNCHANGED : ran ? compare_outputs(m, s) : BOUNDS;
}

static enum verdict try_one(const struct mutation *mutation, const struct setting *s, bool *changed)
{
	static struct mutant m;
	m = (struct mutant){.mutation = mutation, .choice = {.skip = random_below(2) ? 0 : random_below(4)}};
	enum verdict verdict = judge_mutant(&m, s);
	*changed = m.changed;
	end_run(&m.run);
	return verdict;
}

static void try_mutation(int i, const struct setting *s)
{
	bool changed;
	enum verdict verdict = try_one(&mutations[i], s, &changed);
	found[i].programs += changed;
	if (changed && verdict >= VERIFIER)
		found[i].verdict = verdict;
}

static void try_control(int i, const struct setting *s)
{
	bool changed;
	controlled++;
	quiet += try_one(&controls[i], s, &changed) == MISSED && changed;
}

/* --- programs --- */

static bool is_tried(int mutation, bool compiler)
{
	return mutation % SAMPLE == 0 && (compiler || mutations[mutation].stage != STAGE_CODE);
}

static bool is_bounded(const struct setting *s)
{
	for (int64_t i = 0; i < s->count; i++)
		if (!(fabs(s->expected[i]) < 1e5))
			return false;
	return true;
}

static bool compute_expected(struct setting *s, struct test_run *r)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	if (!start_run(r, s->model, &o))
		return false;
	make_shaped_forest(&s->forest, &r->image, 3, 9, FOREST_ANY);
	if (!run_forest(r, &s->forest.minibatch))
		return false;
	s->expected = gather_outputs(r, s->forest.nodes, s->forest.minibatch.forest.inputs, &s->count);
	return is_bounded(s);
}

static void try_seed(uint64_t seed, bool compiler)
{
	static struct generator g;
	static struct test_model t;
	struct setting s = {.model = &t};
	struct test_run r;
	char sizes[64];
	random_state = seed * 0x9E3779B97F4A7C15u;
	const char *text = draw_model(&g, false, 17, 800, sizes);
	if (!load_text(&t, "mutated", text, strlen(text), sizes))
		return;
	bool ready = compute_expected(&s, &r);
	for (int i = 0; ready && seed <= CONTROLS && i < CONTROL_STAGES; i++)
		if (compiler || controls[i].stage != STAGE_CODE)
			try_control(i, &s);
	for (int i = 0; ready && i < MUTATIONS; i++)
		if (is_tried(i, compiler) && found[i].verdict < VERIFIER)
			try_mutation(i, &s);
	free(s.expected);
	free_forest(&s.forest);
	end_run(&r);
	free_model(&t);
}

static bool all_found(bool compiler)
{
	int n = 0;
	for (int i = 0; i < MUTATIONS; i++)
		n += found[i].verdict >= VERIFIER || !is_tried(i, compiler);
	return n == MUTATIONS;
}

int main(void)
{
	bool compiler = backend_at(0) != NULL;
	for (uint64_t seed = 1; seed <= SEEDS && (seed <= CONTROLS || !all_found(compiler)); seed++)
		try_seed(seed, compiler);
	tap_ok(controlled && quiet == controlled, "nothing is noticed where nothing is changed: %d of %d",
	       quiet, controlled);
	for (int i = 0; i < MUTATIONS; i += SAMPLE)
		if (!is_tried(i, compiler))
			tap_skip("no back end", "%s", mutations[i].meaning);
		else
			tap_ok(found[i].verdict >= VERIFIER, "%s: %s: %s notices in %d programs",
			       mutations[i].after, mutations[i].meaning,
			       found[i].verdict >= VERIFIER ? verdicts[found[i].verdict] : "nothing",
			       found[i].programs);
	return tap_done();
}
