/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* No bit depends on what is known of the machine: models compiled, and divided among threads, for machines as
 * different as can be give the same results, though by other schedules. */
#include "tests/models/agree.h"

#include "runtime/team.h"

enum { MACHINES = 3 };

/* A usual one; one that computes fast out of tiny, slow caches; one that computes slowly out of huge, fast
 * ones. */
static void make_machines(struct machine_known machine[MACHINES])
{
	static const struct {
		int number;
		double value[MACHINES - 1];
	} changes[] = {{TARGET_AT_l1_bytes, {4096, 1 << 22}},	 {TARGET_AT_l2_bytes, {1 << 15, 1 << 26}},
		       {TARGET_AT_l3_bytes, {1 << 16, 1 << 28}}, {TARGET_AT_peak, {9000, 5}},
		       {TARGET_AT_multiply_add, {0.1, 40}},	 {TARGET_AT_l1_rate, {50, 9000}},
		       {TARGET_AT_l2_rate, {5, 9000}},		 {TARGET_AT_l3_rate, {1, 9000}},
		       {TARGET_AT_memory_rate, {0.1, 9000}},	 {TARGET_AT_barrier, {5, 40000}},
		       {TARGET_AT_create, {1000, 10000000}},	 {TARGET_AT_wake, {100, 10000000}},
		       {TARGET_AT_skew, {0, 40000}},		 {TARGET_AT_exchange_rate, {0.1, 9000}},
		       {TARGET_AT_kept_share, {0, 1}},
		       {TARGET_AT_line_bytes, {1024, 16}}};
	for (int i = 0; i < MACHINES; i++) {
		machine[i] = (struct machine_known){*target_find(TARGET_NATIVE), "made up"};
		for (size_t k = 0; i && k < sizeof changes / sizeof *changes; k++)
			if (!target_set(&machine[i].target, changes[k].number, changes[k].value[i - 1]))
				printf("# a number is out of bounds\n");
	}
}

/* Whether a run for a machine gives what is expected, alone and with a team that is described so. */
static bool same_on(struct setting *s, const struct option_texts *o)
{
	struct test_run r;
	bool ok = start_run(&r, s->model, o) && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r);
	for (int threads = 2; ok && threads <= 3; threads++) {
		struct rt_team team;
		rt_team_init(&team, &allocator_default, threads);
		rt_team_describe(&team, &o->machine->target);
		divide_all(&r);
		ok = rt_session_run(&r.session, &r.binding, &team, &s->forest.minibatch, &r.diags) &&
		     same_bits(s, &r);
		rt_team_stop(&team);
	}
	end_run(&r);
	return ok;
}

static bool schedule_of(struct arena *a, const struct test_model *t, const struct option_texts *o,
			struct str *text)
{
	struct diags diags;
	diags_init(&diags, &allocator_default);
	*text = str_in(a);
	bool ok = compile_dump_as(a, &diags, t->model, t->sizes, o, "sched", text);
	diags_free(&diags);
	return ok;
}

static void test_schedules(const struct test_model *t, const struct machine_known *machine, const char *name)
{
	struct arena a;
	struct str one, other;
	arena_init(&a, &allocator_default);
	struct option_texts o = {.backend = "interpreter", .target = TARGET_NATIVE, .machine = &machine[1]};
	struct option_texts p = {.backend = "interpreter", .target = TARGET_NATIVE, .machine = &machine[2]};
	bool ok = schedule_of(&a, t, &o, &one) && schedule_of(&a, t, &p, &other);
	tap_ok(ok && strcmp(one.text, other.text) != 0, "%s: other machines have other schedules", name);
	p.target = o.target = target_find(TARGET_NATIVE)->name;
	ok = schedule_of(&a, t, &o, &one) && schedule_of(&a, t, &p, &other);
	tap_ok(ok && strcmp(one.text, other.text) == 0,
	       "%s: a target by name has one, whatever this machine is", name);
	arena_free(&a);
}

static void test_model(const char *path, const char *sizes)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run base;
	struct machine_known machine[MACHINES];
	const char *name = strrchr(path, '/') + 1;
	make_machines(machine);
	random_state = 7;
	if (!tap_ok(load_model(&t, path, sizes), "%s: parsed", name))
		return;
	struct option_texts o = {.backend = "interpreter", .target = TARGET_NATIVE};
	if (tap_ok(start_run(&base, &t, &o), "%s: compiled", name)) {
		make_forest(&s.forest, &base.image, 7, 40);
		tap_ok(begin_setting(&s, &base), "%s: interpreted", name);
		for (int i = 0; i < MACHINES; i++) {
			o.machine = &machine[i];
			o.backend = "interpreter";
			tap_ok(same_on(&s, &o), "%s: the same bits for machine %d, interpreted", name, i);
			o.backend = usual_backend();
			tap_ok(same_on(&s, &o), "%s: and compiled", name);
		}
		test_schedules(&t, machine, name);
		end_setting(&s);
	}
	end_run(&base);
	free_model(&t);
}

/* Whether the schedule for a machine has a line that begins so. */
static bool chooses(const struct target *target, const char *path, const char *sizes, const char *tile)
{
	struct test_model t = {0};
	struct arena a;
	struct str text;
	struct machine_known machine = {*target, "made up"};
	struct option_texts o = {.backend = "interpreter", .target = TARGET_NATIVE, .machine = &machine};
	arena_init(&a, &allocator_default);
	bool ok = load_model(&t, path, sizes) && schedule_of(&a, &t, &o, &text) && strstr(text.text, tile);
	arena_free(&a);
	free_model(&t);
	return ok;
}

static struct target processor_of(const char *target, enum target_processor processor)
{
	struct target t = *target_find(target);
	target_set_processor(&t, processor);
	return t;
}

static void test_tiles(void)
{
	const char *few = "tile inner.0 nodes 6 3 2 1 columns 4",
		   *many = "tile inner.1 nodes 8 3 2 1 columns 1";
	const char *treefc = "examples/treefc/treefc.ra", *childsum = "examples/childsum/childsum.ra";
	struct target intel = processor_of("avx512", TARGET_SAPPHIRE_RAPIDS),
		      zen = processor_of("avx512", TARGET_ZEN4);
	memset(intel.iteration, 0, sizeof intel.iteration);
	tap_ok(chooses(&intel, treefc, "D=256 V=30", few) && !chooses(&zen, treefc, "D=256 V=30", few),
	       "more rows where reading weights from the second level is not hidden");
	tap_ok(chooses(&intel, childsum, "D=1024 E=64 V=30 C=5", many) &&
		   !chooses(&zen, childsum, "D=1024 E=64 V=30 C=5", many),
	       "as many as registers hold where weights come from beyond it");
}

/* What a Zen 3 takes for tiles of 16 registers is known; of a processor that is not, it is estimated. */
static void test_measured_tiles(void)
{
	const struct target *usual = target_find("avx2");
	const char *model = "bench/models/lstm.ra", *sizes = "D=256 E=256",
		   *narrow = "tile inner.0 nodes 4 2 1 columns 1";
	struct target zen = processor_of("avx2", TARGET_ZEN3);
	tap_ok(chooses(&zen, model, sizes, narrow) && !chooses(usual, model, sizes, narrow),
	       "measured times of tiles decide where estimates would choose others");
	struct target rapids = processor_of("avx512", TARGET_SAPPHIRE_RAPIDS);
	tap_ok(chooses(&rapids, "examples/treefc/treefc.ra", "D=256 V=30", "tile inner.0 nodes 4 3 2 1 columns 4"),
	       "on a Sapphire Rapids, too");
	tap_ok(!chooses(&rapids, "examples/gru/gru.ra", "D=256 E=256 V=30 C=5", "tile hoist.0 nodes 9 5 2 1 columns 3"),
	       "sums leave registers to operands, however few of these the measured loops need");
}

/* Blocks of a node's rows are for other threads. */
static void test_blocks(void)
{
	const char *model = "examples/mvrnn/mvrnn.ra", *block = "across 1 block";
	struct target t = *target_find("avx2");
	tap_ok(!chooses(&t, model, "D=64 V=30 C=5", block) && chooses(&t, model, "D=128 V=30 C=5", block),
	       "rows of a node are divided where a block is work enough for another thread");
	t.barrier = 5, t.skew = 0;
	tap_ok(chooses(&t, model, "D=64 V=30 C=5", block), "as the machine's barrier says");
}

int main(void)
{
	test_tiles();
	test_measured_tiles();
	test_blocks();
	test_model("examples/treelstm/treelstm.ra", "D=80 E=40 V=30");
	test_model("examples/gru/gru.ra", "D=72 E=40 V=30");
	test_model("examples/dagrnn/dagrnn.ra", "D=96 E=33 C=5");
	return tap_done();
}
