/* Random models, each run in many ways: the oracle, the interpreter after every pass, compiled code, other
 * schedules.
 *
 *     random_test [FIRST COUNT [EACH]]     seeds FIRST .. FIRST+COUNT-1; one in EACH is compiled, else all
 * are */
#include "ilir/passes.h"
#include "tests/models/generate.h"
#include "tests/models/ways.h"

#include <stdlib.h>

enum { SCHEDULES = 4, SEEDS = 60, COMPILE_EACH = 12 };

static int programs; /* that ran */
/* Models of which something left the recursion, or went to the children. */
static int hoisted, refactored;

struct subject {
	struct setting setting;
	struct test_model model;
	const char *text, *sizes;
	uint64_t seed;
	int failures;
};

static void print_lines(const char *title, const char *text)
{
	printf("# --- %s\n# ", title);
	for (; *text; text++)
		printf(*text == '\n' && text[1] ? "\n# " : "%c", *text);
	printf("\n");
}

static void report(struct subject *s, const struct compile_options *o)
{
	printf("# seed %llu, %s: backend %s, target %s, last pass %s\n", (unsigned long long)s->seed,
	       s->sizes, o->backend, o->target, o->last_pass ? o->last_pass : "none");
	if (!s->failures++)
		print_lines("model", s->text);
	if (o->schedule)
		print_lines("schedule", o->schedule);
}

static void check(struct subject *s, struct compile_options o)
{
	programs++;
	if (!agrees(&s->setting, &o))
		report(s, &o);
}

/* --- random schedules --- */

static void put_tile(struct text *t, const char *group, int length, const char *along, bool rows)
{
	static const int sizes[][4] = {{1},    {2, 1},	     {3, 2, 1}, {4, 2, 1},
				       {5, 1}, {8, 4, 2, 1}, {7, 3, 1}, {6, 1}};
	bool by_rows = rows && random_below(3) == 0;
	const int *nodes = sizes[by_rows ? 0 : random_below(8)];
	put(t, "tile %.*s nodes", length, group);
	for (int i = 0; i == 0 || nodes[i - 1] > 1; i++)
		put(t, " %d", nodes[i]);
	put(t, " columns %d unroll %d", 1 + random_below(8), 1 + random_below(random_below(2) ? 4 : 16));
	put(t, along, random_below(2));
	put(t, " by %s\n", by_rows ? "rows" : "columns");
}

/* The dimensions of the line in another order. */
static void put_layout(struct text *t, const char *line, bool tree)
{
	int name = strcspn(line, " "), length = strcspn(line, "\n"), dims = 0, at[8];
	bool state = strncmp(line + name, " node", 5) == 0 || strncmp(line + name, " parent", 7) == 0;
	put(t, "layout %.*s", name, line);
	if (state)
		put(t, tree && random_below(2) ? " parent" : " node");
	for (const char *c = line + name; c < line + length; c++)
		if (*c >= '0' && *c <= '9') {
			int other = random_below(++dims);
			at[dims - 1] = at[other];
			at[other] = dims - 1;
		}
	for (int d = 0; d < dims; d++)
		put(t, " %d", at[d]);
	put(t, "\n");
}

/* Whether a line has a word. */
static bool has(const char *line, const char *word)
{
	const char *found = strstr(line, word);
	return found && found < line + strcspn(line, "\n");
}

/* The tile of another line; the comment before it says what there is in its group. */
static void put_tile_of(struct text *t, const char *line, const char *comment)
{
	bool columns = has(comment, " x ");
	put_tile(t, line + 5, strcspn(line + 5, " "), has(line, " along") ? " along %d" : "",
		 columns && (has(comment, ": rows") || has(comment, ": edges of rows")));
}

/* A schedule for the groups that stand in the printed one. */
static void make_schedule(struct text *t, const char *fuse, const char *printed, bool tree)
{
	static const char *const lanes[] = {"4", "8", "16", "off", "8"};
	t->n = 0;
	put(t, "%s", fuse);
	put(t, "dynamic_batch %s\n", random_below(3) ? "on" : "off");
	put(t, "specialize %s\n", random_below(3) ? "leaf" : "none");
	put(t, "vectorize %s\n", lanes[random_below(5)]);
	put(t, "accumulators %d\n", 1 + random_below(20));
	const char *before = printed;
	for (const char *line = printed; line; before = line, line = strchr(line, '\n'), line += line != NULL)
		if (strncmp(line, "tile ", 5) == 0 && random_below(4))
			put_tile_of(t, line, before);
		else if (strncmp(line, "layout ", 7) == 0)
			put_layout(t, line + 7, tree);
}

/* One schedule, of the plan that is made for the target as the directive `fuse` says. */
static void check_schedule(struct subject *s, const char *fuse, const char *target, bool compile)
{
	static struct text schedule;
	struct compile_options o = {.backend = "interpreter", .target = target, .schedule = fuse};
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	struct str printed = str_in(&a);
	if (!arena_guard(&a, &jump) &&
	    compile_dump(&a, &s->model.diags, s->model.model, s->model.sizes, &o, "sched", &printed)) {
		make_schedule(&schedule, fuse, str_text(&printed), s->model.model->structure.kind != RA_DAG);
		o.schedule = schedule.at;
		check(s, o);
		o.backend = "llvm";
		if (compile && target_runs_here(target_find(target)))
			check(s, o);
	}
	arena_free(&a);
}

/* The schedule that is chosen, and n others. */
static void check_schedules(struct subject *s, const char *fuse, int n, bool compile)
{
	check(s, (struct compile_options){.backend = "interpreter", .target = "avx2", .schedule = fuse});
	for (int i = 0; i < n; i++)
		check_schedule(s, fuse, i % 2 ? "avx512" : i % 4 ? "generic" : "avx2", compile);
}

/* Whether a directive finds anything to move: after the stage of its name there is a declaration of that. */
static bool can_move(struct subject *s, const char *schedule, const char *stage, const char *declared)
{
	struct compile_options o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct arena a;
	jmp_buf jump;
	volatile bool can = false;
	arena_init(&a, &allocator_default);
	struct str text = str_in(&a);
	if (!arena_guard(&a, &jump))
		can = compile_dump(&a, &s->model.diags, s->model.model, s->model.sizes, &o, stage, &text) &&
		      strstr(str_text(&text), declared);
	arena_free(&a);
	return can;
}

/* --- one seed --- */

static void check_ways(struct subject *s, bool compile)
{
	for (int i = 1; ilir_pass_at(i); i++)
		check(s, (struct compile_options){.backend = "interpreter", .target = "avx2", .last_pass = ilir_pass_at(i)->name});
	check(s, (struct compile_options){.backend = "interpreter", .target = "avx512"});
	check(s, (struct compile_options){.backend = "interpreter", .target = "generic"});
	if (compile) {
		check(s, (struct compile_options){.backend = "llvm", .target = "native"});
		check(s, (struct compile_options){.backend = "llvm", .target = "generic"});
	}
	static const char *const planners[] = {"",
					       "fuse grow always\n",
					       "fuse grow never\n",
					       "fuse greedy\n",
					       "fuse none\n",
					       "hoist off\n",
					       "refactor off\n"};
	for (int i = 0; i < 7; i++)
		check_schedules(s, planners[i], i ? 1 : SCHEDULES, compile);
	if (can_move(s, "refactor all\n", "refactor", "\nderived ")) {
		refactored++;
		check_schedules(s, "refactor all\n", 1, compile);
		check_schedules(s, "refactor all\nfuse none\n", 1, compile);
	}
	if (can_move(s, "hoist all\n", "hoist", "\nhoisted ")) {
		hoisted++;
		check_schedules(s, "hoist all\n", 1, compile);
		check_schedules(s, "hoist all\nfuse none\n", 1, compile);
	}
}

/* What has become infinite or huge is no test of anything. */
static bool tame(const struct setting *s)
{
	for (int64_t i = 0; i < s->count; i++)
		if (!(fabs(s->expected[i]) < 1e5))
			return false;
	return true;
}

static void check_run(struct subject *s, bool compile)
{
	struct compile_options o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	struct setting *at = &s->setting;
	struct test_run r;
	double worst;
	programs++;
	if (!start_run(&r, &s->model, &o)) {
		report(s, &o);
		end_run(&r);
		return;
	}
	make_forest(&at->forest, &r.image, 3, 9);
	if (!run_forest(&r, &at->forest.minibatch)) {
		report(s, &o);
	} else {
		at->expected =
		    gather_outputs(&r, at->forest.nodes, at->forest.minibatch.forest.inputs, &at->count);
		if (!tame(at)) {
			printf("# seed %llu: values are not tame\n", (unsigned long long)s->seed);
		} else {
			if (!near_oracle(at, &r.session.order, 1e-3, &worst)) {
				printf("# error %g\n", worst);
				report(s, &o);
			}
			check_ways(s, compile);
		}
	}
	free(at->expected);
	free_forest(&at->forest);
	end_run(&r);
}

static bool check_seed(uint64_t seed, bool compile)
{
	static struct generator g;
	char sizes[64];
	struct subject s = {.seed = seed, .sizes = sizes};
	s.text = generate_model(&g, seed, sizes);
	s.setting.model = &s.model;
	if (load_text(&s.model, "random", s.text, strlen(s.text), sizes))
		check_run(&s, compile);
	else
		report(&s, &(struct compile_options){.backend = "none", .target = "none"});
	free_model(&s.model);
	return s.failures == 0;
}

static uint64_t number_or(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	uint64_t first = number_or(argc, argv, 1, 1), count = number_or(argc, argv, 2, SEEDS);
	uint64_t each = number_or(argc, argv, 3, argc > 1 ? 1 : COMPILE_EACH), right = 0;
	for (uint64_t i = first; i < first + count; i++)
		right += check_seed(i, i % (each ? each : 1) == 0);
	tap_ok(right == count, "%llu of %llu random models agree in all ways: %d programs ran",
	       (unsigned long long)right, (unsigned long long)count, programs);
	if (argc == 1)
		tap_ok(hoisted >= SEEDS / 20 && refactored >= SEEDS / 20,
		       "something leaves the recursion in %d of them, something goes to the children in %d",
		       hoisted, refactored);
	return tap_done();
}
