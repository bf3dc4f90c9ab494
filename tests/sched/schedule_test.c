/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Plans and schedules: what is stored, what is fused, what the text says, what is refused. */
#include "sched/sched.h"
#include "tests/models/helper.h"

#include <limits.h>

struct planned {
	struct test_model model;
	struct sub_program program;
	struct sched_plan plan;
	struct sched sched;
};

static bool make(struct planned *p, const char *path, const char *sizes)
{
	struct rewrite_options options = {0};
	memset(p, 0, sizeof *p);
	if (!load_model(&p->model, path, sizes))
		return false;
	struct sub_program written, contracted;
	sub_init(&written, &p->model.arena, "test");
	sub_init(&contracted, &p->model.arena, "test");
	sub_init(&p->program, &p->model.arena, "test");
	if (!sub_lower_model(&written, p->model.model, p->model.sizes, SUB_AT_MODEL, &p->model.diags))
		return false;
	rewrite_contract(&contracted, &written, NULL, NULL);
	rewrite_fold(&p->program, &contracted, &options, NULL);
	sched_make_plan(&p->plan, &p->model.arena, &p->program, target_find("avx2"),
			&(struct sched_fusion){0});
	sched_choose(&p->sched, &p->plan, target_find("avx2"));
	return true;
}

/* Values that are stored and are no state or output: intermediates. */
static int intermediates(const struct planned *p)
{
	int n = 0;
	for (size_t g = 0; g < p->plan.groups.n; g++) {
		const struct sched_group *group = &p->plan.groups.at[g];
		for (size_t t = 0; t < group->targets.n; t++) {
			bool result = false;
			const struct sub_body *b = &p->program.bodies.at[group->body];
			for (size_t i = 0; i < b->stores.n; i++)
				result |= b->stores.at[i].value.value.i == group->targets.at[t].i;
			n += !result;
		}
	}
	return n;
}

static const struct sched_group *find_group(const struct planned *p, const char *name)
{
	for (size_t g = 0; g < p->plan.groups.n; g++)
		if (strcmp(p->plan.groups.at[g].name, name) == 0)
			return &p->plan.groups.at[g];
	return NULL;
}

static void test_plans(void)
{
	struct planned p;
	bool ok = make(&p, "tests/ra/good/treelstm.ra", "D=150 E=150 V=100");
	const struct sched_group *inner = ok ? find_group(&p, "inner.0") : NULL;
	tap_ok(inner && inner->targets.n == 2 && inner->reductions == 10 && inner->gates == 5 &&
		   !find_group(&p, "inner.1"),
	       "an N-ary TreeLSTM cell is one group of ten products, five of an operand");
	free_model(&p.model);

	ok = make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	tap_ok(ok && find_group(&p, "leaf.0") && !find_group(&p, "leaf.1") && !find_group(&p, "inner.1"),
	       "the example's cases are one group each");
	free_model(&p.model);

	ok = make(&p, "tests/ra/good/lstm.ra", "D=32 E=8 V=10 C=3");
	inner = ok ? find_group(&p, "inner.0") : NULL;
	tap_ok(inner && inner->gates == 4 && !find_group(&p, "inner.1"),
	       "slices of a fused product become gates, nothing is stored");
	free_model(&p.model);

	ok = make(&p, "tests/golden/gated.ra", "D=3 X=2");
	tap_ok(ok && find_group(&p, "inner.1") && intermediates(&p) > 0,
	       "a product of a product stores what is between");
	free_model(&p.model);

	ok = make(&p, "tests/models/mixed.ra", "D=11 X=5");
	tap_ok(ok && find_group(&p, "fold0.0") && find_group(&p, "fold0.0")->rows &&
		   !find_group(&p, "constants.0"),
	       "a product of parameters is computed at binding, over its rows");
	free_model(&p.model);
}

/* --- text --- */

static bool reads(struct planned *p, const char *text)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	bool ok = sched_read(&p->sched, &p->plan, "test", text, strlen(text), &d);
	print_diags(&d);
	diags_free(&d);
	return ok;
}

static bool refuses(struct planned *p, const char *text, const char *why)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	bool ok = !sched_read(&p->sched, &p->plan, "test", text, strlen(text), &d) && d.n == 1 &&
		  d.at[0].id == DIAG_ILLEGAL_SCHEDULE && strstr(d.at[0].message, why) && d.at[0].line == 1;
	if (!ok)
		print_diags(&d);
	diags_free(&d);
	return ok;
}

static bool prints(struct planned *p, const char *line)
{
	struct str s = str_in(&p->model.arena);
	sched_print(&p->sched, &p->plan, &s);
	return strstr(str_text(&s), line);
}

static void test_text(void)
{
	static const struct {
		const char *text, *why;
	} illegal[] = {
	    {"tyle inner.0", "is no directive"},
	    {"dynamic_batch perhaps", "wrong argument"},
	    {"specialize inner", "wrong argument"},
	    {"unroll", "from 1 to 64"},
	    {"unroll 0", "from 1 to 64"},
	    {"unroll 65", "from 1 to 64"},
	    {"unroll 2 3", "one number"},
	    {"vectorize 6", "power of two"},
	    {"vectorize 32", "from 4 to 16"},
	    {"vectorize", "from 4 to 16"},
	    {"vectorize 8 4", "expects lanes, or a group"},
	    {"vectorize inner.0", "from 4 to 16"},
	    {"vectorize inner.0 6", "power of two"},
	    {"vectorize inner.0 8 4", "expects lanes, or a group"},
	    {"vectorize inner.9 8", "no group of this name"},
	    {"tile inner.7 nodes 1", "no group of this name"},
	    {"tile", "no group of this name"},
	    {"tile inner.0 nodes 2", "last size must be 1"},
	    {"tile inner.0 nodes 2 4 1", "smaller than the one before"},
	    {"tile inner.0 nodes 99 1", "from 1 to 12"},
	    {"tile inner.0 nodes", "last size must be 1"},
	    {"tile inner.0 columns 0", "from 1 to 8"},
	    {"tile inner.0 unroll", "from 1 to 16"},
	    {"fuse", "wrong argument"},
	    {"fuse all", "wrong argument"},
	    {"fuse grow perhaps", "wrong argument"},
	    {"fuse grow always never", "wrong argument"},
	    {"fuse greedy always", "only grow takes this argument"},
	    {"fuse none", "another line contradicts this one"},
	    {"layout", "nothing of this name"},
	    {"layout x parent", "nothing of this name"},
	    {"layout node.b_i 0", "nothing of this name"},
	    {"layout h", "by node or by parent"},
	    {"layout h child", "by node or by parent"},
	    {"layout h node parent", "from 0 to 0"},
	    {"layout h node 0 1", "from 0 to 0"},
	    {"tile inner.0 along 1", "from 0 to 0"},
	    {"accumulators 0", "from 1 to 64"},
	    {"store", "store: expects the name of one value"},
	    {"store inner.v9999", "store: the program computes no value of this name"},
	    {"dense_index dense", "dense_index: wrong argument"},
	    {"peel", "peel: wrong argument"},
	    {"align", "align: wrong argument"},
	    {"align 16", "align: wrong argument: '16'"},
	    {"persist on off", "persist: wrong argument: 'off'"},
	    {"barrier on", "barrier: wrong argument"},
	    {"parallel inner.9 rows", "parallel: the program has no group of this name"},
	    {"parallel inner.0", "parallel: wrong argument"},
	    {"parallel inner.0 nodes", "parallel: wrong argument"},
	    {"parallel leaf.0 columns rows", "parallel: wrong argument"},
	    {"tile inner.0 lines 2", "expects nodes, rows, columns, unroll, along, across, block, cut, outside or by"},
	    {"tile inner.0 rows 2 1 outside", "expects rows or columns here"},
	    {"tile inner.0 rows 2 1", "no other dimension than that of its columns"},
	    {"tile inner.0 across 0", "loop 'j' of 64 rows: columns run along it"},
	    {"tile inner.0 block 4", "nodes are in no blocks"},
	    {"tile inner.0 by", "expects rows or columns"},
	    {"tile inner.0 nodes 2 1 by rows", "one node at a time"},
	    {"tile a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a", "too many words"},
	};
	struct planned p;
	struct str first, second;
	if (!tap_ok(make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100"), "planned"))
		return;
	first = str_in(&p.model.arena), second = str_in(&p.model.arena);
	sched_print(&p.sched, &p.plan, &first);
	tap_ok(reads(&p, str_text(&first)), "a printed schedule is read");
	sched_print(&p.sched, &p.plan, &second);
	tap_ok(strcmp(str_text(&first), str_text(&second)) == 0, "and is the same schedule");
	tap_ok(reads(&p, "# nothing\n\n  tile inner.0 columns 2 nodes 4 2 1\r\nvectorize off") &&
		   p.sched.lanes == 1,
	       "directives in any order, with comments");
	tap_ok(reads(&p, "vectorize leaf.0 4") && p.sched.lanes == 1 && p.sched.tiles.at[0].lanes == 4 &&
		   p.sched.tiles.at[1].lanes == 1 && prints(&p, "vectorize leaf.0 4\n") &&
		   !prints(&p, "vectorize inner.0"),
	       "lanes of one group, which are printed where they are not those of all");
	tap_ok(reads(&p, "vectorize 8") && p.sched.tiles.at[0].lanes == 8 && !prints(&p, "vectorize leaf.0"),
	       "and of all of them again");
	tap_ok(reads(&p, "unroll 3\ndense_index off") && !p.sched.dense_index &&
		   reads(&p, "dense_index on\nunroll 3") && p.sched.dense_index,
	       "levels that are unrolled may share rows");
	tap_ok(reads(&p, "unroll 3") && p.sched.unroll == 3 && reads(&p, "dynamic_batch off") && p.sched.unroll == 1,
	       "node by node nothing is unrolled");
	tap_ok(refuses(&p, "unroll 3", "there are no levels") && reads(&p, "unroll 1\ndynamic_batch on"),
	       "and cannot be");
	for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++)
		tap_ok(refuses(&p, illegal[i].text, illegal[i].why), "refused: %s", illegal[i].text);
	char line[2000];
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = 0;
	tap_ok(refuses(&p, line, "too long"), "refused: a line that is too long");
	free_model(&p.model);
}

static bool hints(struct planned *p, const char *text, const char *hint)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	bool ok = !sched_read(&p->sched, &p->plan, "test", text, strlen(text), &d) && d.n == 1 &&
		  strcmp(d.at[0].hint, hint) == 0;
	if (!ok)
		print_diags(&d);
	diags_free(&d);
	return ok;
}

static void test_hints(void)
{
	struct planned p;
	if (tap_ok(make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100"), "planned")) {
		tap_ok(hints(&p, "unroll many", "write 'unroll K', or take out the line"),
		       "a hint is a line that is legal");
		tap_ok(hints(&p, "hoist sometimes", "write 'hoist on | all | off', or take out the line"),
		       "with all its arguments");
		tap_ok(hints(&p, "unrol 2",
			     "directives are fuse, store, mutate, local, sort, arrange, words, refactor, hoist, unstack, pad, dynamic_batch, "
			     "dense_index, peel, align, persist, barrier, unroll, specialize, vectorize, tile, pipeline, parallel, layout, leaves, "
			     "vectors, accumulators"),
		       "or the directives that there are");
	}
	free_model(&p.model);
}

/* What a text says of fusion, as planner and the rest; -1 = refused. */
static int fusion(const char *text)
{
	struct sched_fusion f;
	struct diags d;
	diags_init(&d, &allocator_default);
	bool ok = sched_read_fusion(&f, "test", text, strlen(text), &d);
	ok |= d.n != 1 || d.at[0].id != DIAG_ILLEGAL_SCHEDULE;
	diags_free(&d);
	return ok ? 10 * (int)f.planner + (int)f.profit : -1;
}

/* The directive that is read before there is a plan. */
static void test_fusion(void)
{
	tap_ok(fusion("") == 0 && fusion("vectorize 8\n") == 0,
	       "without a word the planner is grow, by what was measured");
	tap_ok(fusion("fuse greedy\n") == 10 && fusion("# first\nfuse none") == 20, "another by its name");
	tap_ok(fusion("fuse grow measured") == 0 && fusion("fuse grow always") == 1 &&
		   fusion("fuse grow never") == 2,
	       "what may be fused is fused always, or never");
	tap_ok(fusion("fuse none\nfuse greedy\n") == 10, "the last line holds");
	tap_ok(fusion("vectorize 6\nfuse nothing") == -1 && fusion("fuse none never") == -1,
	       "what is no planner is refused");
	tap_ok(fusion("tyle inner.0\nfuse none") == 20, "other lines are for later");
}

/* Where ten products walk along the children, and their sums do not fit the registers. */
static void test_chosen_layouts(void)
{
	struct planned p;
	bool ok = make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	tap_ok(ok && p.sched.states.at[0].layout == IMAGE_BY_PARENT &&
		   p.sched.states.at[1].layout == IMAGE_BY_NODE,
	       "a state that sums walk along, child after child, is laid out by parent; one that is read by "
	       "element is not");
	sched_choose(&p.sched, &p.plan, target_find("avx512"));
	tap_ok(ok && p.sched.states.at[0].layout == IMAGE_BY_NODE, "nor where the registers hold all sums");
	free_model(&p.model);
	ok = make(&p, "bench/models/peephole.ra", "D=64 V=100");
	tap_ok(ok && p.sched.states.at[0].layout == IMAGE_BY_NODE,
	       "nor where a product reads one child alone, which would lose those that it shares its operand with");
	free_model(&p.model);
	ok = make(&p, "tests/models/transposed.ra", "D=8 V=30");
	tap_ok(
	    ok && p.sched.states.at[0].order.dim[1] == 0 && p.sched.tables.n &&
		p.sched.tables.at[0].dim[1] == 0,
	    "what the dominant groups read across is stored across, and so is the table that it comes from");
	free_model(&p.model);
}

/* Weights that a label picks are read by each row for itself, whole cache lines at a time. */
static void test_own_weights(void)
{
	struct planned p;
	bool ok = make(&p, "examples/treelstm/treelstm.ra", "D=256 E=256 V=100");
	const struct sched_group *inner = ok ? find_group(&p, "inner.0") : NULL;
	tap_ok(inner && inner->loops.n && !inner->loops.at[0].own, "rows share the weights of a cell");
	free_model(&p.model);
	ok = make(&p, "examples/labelled/matrix.ra", "D=256 E=256 V=100 R=8 C=5");
	inner = ok ? find_group(&p, "inner.0") : NULL;
	tap_ok(inner && inner->sort && inner->loops.n && !inner->loops.at[0].own,
	       "and sorted edges those of their label");
	free_model(&p.model);
	ok = make(&p, "tests/models/labels.ra", "V=30 D=256 R=4 F=5");
	inner = ok ? find_group(&p, "inner.0") : NULL;
	bool own = false;
	for (size_t i = 0; inner && i < inner->loops.n; i++)
		own |= inner->loops.at[i].own;
	tap_ok(own && !inner->sort && p.sched.tiles.at[inner - p.plan.groups.at].columns >= 2,
	       "but not those of two labels, of which a whole line is used at once");
	free_model(&p.model);
	ok = make(&p, "examples/mvrnn/mvrnn.ra", "D=16 V=100 C=5");
	inner = ok ? find_group(&p, "inner.1") : NULL;
	tap_ok(inner && inner->loops.n && !inner->loops.at[0].own,
	       "a product of matrices reads that of a row again for each of its own rows");
	free_model(&p.model);
}

/* The rows of a tile may be elements along any dimension but that of the columns. */
static void test_rows_across(void)
{
	struct planned p;
	bool ok = make(&p, "tests/models/products.ra", "A=7 B=19 C=33 V=9");
	tap_ok(ok && reads(&p, "tile inner.2 rows 4 2 1 columns 2 across 0 along 1") &&
		   prints(&p, "tile inner.2 rows 4 2 1 columns 2 unroll 1 across 0 along 1\n"),
	       "rows across the first dimension");
	tap_ok(reads(&p, "tile inner.2 block 7") && prints(&p, " across 0 block 7 along 1\n") &&
		   reads(&p, "tile inner.2 nodes 2 1") &&
		   prints(&p, "tile inner.2 nodes 2 1 columns 2 unroll 1 along 1\n"),
	       "in blocks, and nodes again, which are in none");
	tap_ok(reads(&p, "tile inner.2 rows 2 1 along 0") && prints(&p, " across 1 along 0\n"),
	       "across the dimension that is left, unless the line says which");
	tap_ok(reads(&p, "tile inner.2 block 11") && reads(&p, "tile inner.2 along 1") &&
		   prints(&p, "tile inner.2 rows 2 1 columns 2 unroll 1 across 0 along 1\n"),
	       "columns along the dimension of the rows change places with them");
	tap_ok(
	    refuses(&p, "tile inner.2 rows 2 1 across 0 along 0",
		    "loop 'j' of 7 rows: columns run along it") &&
		refuses(&p, "tile inner.2 rows 2 1 across 1 along 0 block 34",
			"loop 'l' of 33 rows: the blocks are larger than it") &&
		refuses(&p, "tile inner.2 rows 1 across 0 along 1 by rows", "loop 'j' of 7 rows: by rows") &&
		refuses(&p, "tile inner.2 rows 2 1 across 2", "from 0 to 1"),
	    "an illegal tile is refused by its loop's name");
	free_model(&p.model);
}

/* A reduction that is cut is one that its tile runs at each element, and pieces are smaller than it. */
static void test_cuts(void)
{
	struct planned p, cell;
	bool ok = make(&p, "tests/models/products.ra", "A=7 B=19 C=33 V=9");
	tap_ok(ok && reads(&p, "tile inner.2 rows 4 2 1 columns 2 cut 5 across 0 along 1") &&
		   prints(&p, "tile inner.2 rows 4 2 1 columns 2 unroll 1 across 0 cut 5 along 1\n"),
	       "a reduction is cut");
	tap_ok(reads(&p, "tile inner.2 columns 1") && prints(&p, " cut 5 along 1\n") &&
		   reads(&p, "tile inner.2 rows 2 1") && !prints(&p, " cut 5"),
	       "until a line has sizes");
	tap_ok(refuses(&p, "tile inner.2 cut 0", "from 1 to 1048576") &&
		   refuses(&p, "tile inner.2 cut 19",
			   "loop 'k' of 19 cannot be cut: the pieces are no smaller than it") &&
		   refuses(&p, "tile inner.1 nodes 1 cut 5 by rows",
			   "cannot be cut: by rows nothing of it is used again") &&
		   refuses(&p, "tile inner.0 cut 5", "the group reduces nothing"),
	       "pieces of nothing, of all, by rows, and of no reduction are refused by the loop's name");
	free_model(&p.model);
	ok = make(&cell, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	tap_ok(ok && refuses(&cell, "tile inner.0 cut 16", "another reduction of the group follows or precedes it"),
	       "a sum that another one continues is not cut");
	free_model(&cell.model);
}

static const struct sched_tile *tile_of(const struct planned *p, const char *group)
{
	const struct sched_group *g = find_group(p, group);
	return g ? &p->sched.tiles.at[g - p->plan.groups.at] : NULL;
}

/* The rows that share what columns run along are the rows of a tile. */
static void test_chosen_rows(void)
{
	static const struct {
		const char *path, *sizes, *group;
		int across;
		bool blocks;
	} cases[] = {{"tests/golden/matrix.ra", "D=256 V=3", "inner.0", 0, true},
		     {"tests/golden/matrix.ra", "D=64 V=3", "inner.0", 0, false},
		     {"examples/mvrnn/mvrnn.ra", "D=256 V=9 C=5", "inner.1", 1, true},
		     {"examples/mvrnn/mvrnn.ra", "D=64 V=9 C=5", "inner.1", 1, false},
		     {"examples/mvrnn/mvrnn.ra", "D=64 V=9 C=5", "inner.0", SCHED_NODES, false},
		     {"examples/treelstm/treelstm.ra", "D=64 E=64 V=9", "inner.0", SCHED_NODES, false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct planned p;
		bool ok = make(&p, cases[i].path, cases[i].sizes);
		const struct sched_tile *t = ok ? tile_of(&p, cases[i].group) : NULL;
		tap_ok(t && t->across == cases[i].across && t->nodes[0] >= 2 && !t->block == !cases[i].blocks,
		       "%s, %s: %d rows across %d in blocks of %d", cases[i].path, cases[i].group,
		       t ? t->nodes[0] : 0, t ? t->across : 0, t ? t->block : 0);
		free_model(&p.model);
	}
}

/* Rows of the caller's are in its order, and none may be read beyond its elements. */
static void test_vectors(void)
{
	struct planned p;
	bool ok = make(&p, "examples/gru/gru.ra", "D=64 E=64");
	tap_ok(ok && reads(&p, "vectors x copy") && refuses(&p, "vectors h given", "no vector of this name") &&
		   refuses(&p, "vectors x", "wrong argument") && refuses(&p, "vectors x copy 1", ""),
	       "vectors are read by one word, and states are none");
	free_model(&p.model);
	ok = make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	tap_ok(ok && refuses(&p, "vectors word copy", "no vector of this name"), "tokens are no vectors");
	free_model(&p.model);
	ok = make(&p, "tests/golden/gated.ra", "D=3 X=2");
	tap_ok(ok && !sched_reads_given(&p.sched, &p.plan, 0) &&
		   refuses(&p, "vectors x given", "not only a body over all nodes ahead of the recursion reads it"),
	       "what the recursion reads itself is copied");
	free_model(&p.model);
}

/* A row has one place, so a node must have one parent. */
static void test_layouts(void)
{
	struct planned p;
	bool ok = make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	tap_ok(ok && reads(&p, "layout c parent") && p.sched.states.at[1].layout == IMAGE_BY_PARENT &&
		   reads(&p, "layout c node") && p.sched.states.at[1].layout == IMAGE_BY_NODE,
	       "a state of a tree is laid out as the schedule says");
	free_model(&p.model);
	ok = make(&p, "tests/ra/good/matrix.ra", "D=5 V=30");
	tap_ok(ok && reads(&p, "layout M parent 1 0\nlayout matrices 0 1\ntile leaf.1 along 1") &&
		   p.sched.states.at[1].order.dim[0] == 1 && p.sched.states.at[1].order.dim[1] == 0,
	       "and so are the dimensions of a row");
	tap_ok(refuses(&p, "layout M node 1 1", "twice") && refuses(&p, "layout M node 1 2", "from 0 to 1") &&
		   refuses(&p, "layout M node 1", "expects each dimension once") &&
		   refuses(&p, "layout WM 1 0", "nothing of this name") &&
		   refuses(&p, "layout matrices", "expects each dimension once"),
	       "each of them once, and only of what is kept");
	tap_ok(refuses(&p, "layout M node 0*1", "from 0 to 1") &&
		   refuses(&p, "layout M node 0/5 1 0%5", "from 0 to 1") &&
		   refuses(&p, "layout rows 1 0", "nothing of this name"),
	       "whole, and outputs as the caller has them");
	free_model(&p.model);
	ok = make(&p, "tests/ra/good/dag.ra", "D=9 E=10");
	tap_ok(ok && refuses(&p, "layout h parent", "several parents") && reads(&p, "layout h node"),
	       "one of a DAG only by node");
	free_model(&p.model);
	ok = make(&p, "tests/models/scan.ra", "T=3 B=2 D=5 S=2");
	tap_ok(ok && refuses(&p, "layout h parent", "no parents") && reads(&p, "layout h node"),
	       "and so one of a scan");
	free_model(&p.model);
}

static void test_cost_model(void)
{
	for (int i = 0; target_at(i); i++) {
		const struct target *t = target_at(i);
		struct planned p;
		if (!make(&p, "examples/treelstm/treelstm.ra", "D=256 E=64 V=100"))
			continue;
		sched_choose(&p.sched, &p.plan, t);
		bool fits = true;
		for (size_t g = 0; g < p.plan.groups.n; g++) {
			const struct sched_tile *tile = &p.sched.tiles.at[g];
			int accumulators = tile->nodes[0] * tile->columns;
			fits &= accumulators <= p.sched.accumulators && p.sched.accumulators < t->registers &&
				tile->nodes[tile->sizes - 1] == 1;
		}
		tap_ok(fits, "tiles fit the registers of %s", t->name);
		free_model(&p.model);
	}
}

/* Groups without products go by rows, all vectors of a short one at once, those of a long one without much
 * that is past its end. */
static void test_rows(void)
{
	static const struct {
		const char *sizes;
		int columns;
	} cases[] = {{"D=8 X=2", 1}, {"D=24 X=2", 3}, {"D=40 X=2", 3}, {"D=150 X=2", 4}, {"D=256 X=2", 4}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct planned p;
		bool ok = make(&p, "tests/golden/gated.ra", cases[i].sizes);
		const struct sched_group *elements = ok ? find_group(&p, "inner.1") : NULL,
					 *products = ok ? find_group(&p, "inner.0") : NULL;
		const struct sched_tile *t = elements ? &p.sched.tiles.at[elements - p.plan.groups.at] : NULL;
		tap_ok(t && t->by_rows && t->columns == cases[i].columns && products &&
			   !p.sched.tiles.at[products - p.plan.groups.at].by_rows,
		       "%s: elements by rows, %d vectors at once", cases[i].sizes, t ? t->columns : 0);
		free_model(&p.model);
	}
}

/* A row alone, of whose sums each is used once in a turn, must have as many as a multiply-add takes cycles. */
static void test_single_rows(void)
{
	static const char *const models[][2] = {{"examples/gru/gru.ra", "D=256 E=256"},
						{"examples/childsum/childsum.ra", "D=256 E=64 V=100 C=5"},
						{"examples/treernn/treernn.ra", "D=256 E=64 V=100 C=5"},
						{"examples/treelstm/treelstm.ra", "D=256 E=64 V=100"}};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct planned p;
		int least = INT_MAX;
		bool ok = make(&p, models[i][0], models[i][1]);
		for (size_t g = 0; ok && g < p.plan.groups.n; g++) {
			const struct sched_group *group = &p.plan.groups.at[g];
			int sums = group->gates * p.sched.tiles.at[g].columns;
			if (group->products && p.plan.p->bodies.at[group->body].domain == SUB_INNER && sums < least)
				least = sums;
		}
		tap_ok(ok && least >= 4 && least < INT_MAX, "%s: %d sums of a row at once", models[i][0], least);
		if (ok)
			free_model(&p.model);
	}
}

static void test_sharing(void)
{
	static const int fine[] = {4, 3, 2, 1}, halves[] = {4, 2, 1}, wide[] = {6, 4, 3, 1};
	tap_ok(sched_shares_last(fine, 4, 0), "five are three and two");
	tap_ok(sched_shares_last(fine, 4, 1) && !sched_shares_last(fine, 4, 2),
	       "four are two and two, three are two and one");
	tap_ok(!sched_shares_last(halves, 3, 0), "five are four and one where there is no three");
	tap_ok(sched_shares_last(wide, 4, 0) && !sched_shares_last(wide, 4, 3), "seven are four and three");
	tap_ok(sched_gates_at_once(13, 5, 2) == 5 && sched_gates_at_once(13, 5, 4) == 3 &&
		   sched_gates_at_once(13, 5, 6) == 2 && sched_gates_at_once(13, 5, 40) == 1,
	       "gates that share registers are shared out evenly");
}

/* Products of the children's states are tiled by edges, those of a node by nodes. */
static void test_edges(void)
{
	struct planned p;
	int over_edges = 0, over_nodes = 0;
	bool ok = make(&p, "examples/childsum/childsum.ra", "D=64 E=64 V=100 C=5");
	for (size_t g = 0; ok && g < p.plan.groups.n; g++) {
		const struct sched_group *group = &p.plan.groups.at[g];
		bool per_edge = false;
		for (size_t i = 0; i < group->loops.n; i++)
			per_edge |= group->loops.at[i].per_edge;
		over_edges += group->over_edges && per_edge;
		over_nodes += group->products && !per_edge && !group->over_edges;
	}
	tap_ok(over_edges == 1 && over_nodes > 0, "of %d groups with products one is over edges",
	       over_edges + over_nodes);
	free_model(&p.model);
}

/* Ten products of a vector and a matrix, five for each child, and what is done with their sums. */
static void test_work(void)
{
	struct planned p;
	bool ok = make(&p, "tests/ra/good/treelstm.ra", "D=150 E=150 V=100");
	const double products = 10 * 2 * 150.0 * 150;
	if (ok) {
		int g = find_group(&p, "inner.0") - p.plan.groups.at;
		struct sched_work w = sched_work_of(&p.sched, &p.plan, g);
		tap_ok(w.operations > products && w.operations < 1.1 * products,
		       "a row of a TreeLSTM cell: %d operations", w.operations);
		tap_ok(w.rows == p.sched.tiles.at[g].nodes[0], "in tiles of %d", w.rows);
	}
	free_model(&p.model);
	ok = make(&p, "tests/ra/good/treelstm.ra", "D=100000 E=150 V=100");
	if (ok)
		tap_ok(sched_work_of(&p.sched, &p.plan, find_group(&p, "inner.0") - p.plan.groups.at)
			       .operations == INT_MAX,
		       "more than can be counted");
	free_model(&p.model);
}

/* What is tried is tried on a copy, of all that a schedule has. */
static void test_choices(void)
{
	struct planned p;
	bool ok = make(&p, "examples/treelstm/treelstm.ra", "D=64 E=64 V=100");
	struct str before = str_in(&p.model.arena), after = before, choices = before;
	if (ok) {
		sched_print(&p.sched, &p.plan, &before);
		sched_print_choices(&p.sched, &p.plan, &choices);
		sched_print(&p.sched, &p.plan, &after);
	}
	tap_ok(ok && choices.n > 1000 && strcmp(str_text(&before), str_text(&after)) == 0,
	       "listing what a schedule may say leaves it as it is");
	free_model(&p.model);
}

int main(void)
{
	test_plans();
	test_text();
	test_hints();
	test_fusion();
	test_own_weights();
	test_chosen_layouts();
	test_rows_across();
	test_cuts();
	test_chosen_rows();
	test_vectors();
	test_layouts();
	test_cost_model();
	test_rows();
	test_single_rows();
	test_sharing();
	test_edges();
	test_work();
	test_choices();
	return tap_done();
}
