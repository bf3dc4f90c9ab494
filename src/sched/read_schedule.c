/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads a schedule from text, one directive a line. */
#include "sched/words.h"

#include <ctype.h>
#include <stdio.h>

/* --- directives that change a schedule --- */

static bool read_switch(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)plan;
	const struct sched_switch *w = &sched_switches[l->directive];
	int yes = line_word(l, 1, w->words);
	if (yes < 0 || !line_ends(l, 2))
		return false;
	*(bool *)((char *)s + w->offset) = yes;
	return true;
}

/* Without batches there are no levels to unroll. */
static bool read_batch(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	if (!read_switch(l, s, plan))
		return false;
	s->unroll = s->dynamic_batch ? s->unroll : 1;
	return true;
}

static bool read_unroll(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int levels = line_number(l, 1, 1, SCHED_MAX_SPAN);
	if (levels < 0)
		return false;
	if (l->words > 2)
		return line_refuse(l, 2, "expects one number");
	if (levels > 1 && !s->dynamic_batch)
		return line_refuse(l, 1, "without dynamic_batch there are no levels to unroll");
	if (levels > 1 && !plan->p->tree)
		return line_refuse(
		    l, 1,
		    "a node of this structure may have several parents, and so belong to several "
		    "subtrees, which must not wait for each other");
	s->unroll = levels;
	return true;
}

/* Properties of a tile that are a single number; most 0: a dimension of the group. */
static const struct {
	const char *word;
	size_t offset;
	int most;
} tile_words[] = {
    {"columns", offsetof(struct sched_tile, columns), SCHED_MAX_COLUMNS},
    {"unroll", offsetof(struct sched_tile, unroll), SCHED_MAX_UNROLL},
    {"along", offsetof(struct sched_tile, along), 0},
    {"across", offsetof(struct sched_tile, across), 0},
    {"block", offsetof(struct sched_tile, block), SCHED_MAX_BLOCK},
    {"cut", offsetof(struct sched_tile, cut), SCHED_MAX_CUT},
};
enum { TILE_WORDS = sizeof tile_words / sizeof *tile_words };

static int tile_word(const struct line *l, int word)
{
	int i = 0;
	while (i < TILE_WORDS && !line_is(l, word, tile_words[i].word))
		i++;
	return i;
}

static bool names_word(const struct line *l, const char *word)
{
	int i = 0;
	while (i < l->words && !line_is(l, i, word))
		i++;
	return i < l->words;
}

/* Whether a property of a tile begins at a word. */
static bool is_property(const struct line *l, int word)
{
	return tile_word(l, word) < TILE_WORDS || line_is(l, word, "by") || line_is(l, word, "outside");
}

/* Reads the sizes after `nodes` or `rows`, up to the next property, of at most so many rows. */
static bool read_sizes(struct line *l, int *word, struct sched_tile *t, int most)
{
	t->sizes = 0;
	for (; *word < l->words && !is_property(l, *word); ++*word) {
		int n = line_number(l, *word, 1, most);
		if (n < 0)
			return false;
		if (t->sizes == SCHED_MAX_SIZES || (t->sizes && n >= t->nodes[t->sizes - 1]))
			return line_refuse(l, *word, "at most eight sizes, each smaller than the one before");
		t->nodes[t->sizes++] = n;
	}
	if (!t->sizes || t->nodes[t->sizes - 1] != 1)
		return line_refuse(l, *word, "the last size must be 1, or some rows would never run");
	return true;
}

static bool read_sweep(struct line *l, int *word, struct sched_tile *t)
{
	t->by_rows = line_is(l, *word + 1, "rows");
	*word += 2;
	return t->by_rows || line_is(l, *word - 1, "columns") ||
	       line_refuse(l, *word - 1, "expects rows or columns here");
}

static bool read_outside(struct line *l, int *word, struct sched_tile *t)
{
	t->rows_outside = line_is(l, *word + 1, "rows");
	*word += 2;
	return t->rows_outside || line_is(l, *word - 1, "columns") ||
	       line_refuse(l, *word - 1, "expects rows or columns here");
}

static bool read_number(struct line *l, int *word, struct sched_tile *t, int dims)
{
	int which = tile_word(l, *word);
	if (which == TILE_WORDS)
		return line_refuse(
		    l, *word, "expects nodes, rows, columns, unroll, along, across, block, cut, outside or by here");
	int most = tile_words[which].most;
	int n = line_number(l, *word + 1, most > 0, most ? most : dims ? dims - 1 : 0);
	*word += 2;
	*(int *)((char *)t + tile_words[which].offset) = n;
	return n >= 0;
}

/* The rows of a tile are no nodes, and run across the first dimension that columns do not run along. */
enum { SOME_DIMENSION = SCHED_NODES - 1 };

/* Reads a property of a tile and its arguments. */
static bool read_property(struct line *l, int *word, struct sched_tile *t, int dims, int most_rows)
{
	bool nodes = line_is(l, *word, "nodes");
	if (line_is(l, *word, "by"))
		return read_sweep(l, word, t);
	if (line_is(l, *word, "outside"))
		return read_outside(l, word, t);
	if (!nodes && !line_is(l, *word, "rows"))
		return read_number(l, word, t, dims);
	t->block = nodes ? 0 : t->block;
	t->cut = names_word(l, "cut") ? t->cut : 0;
	t->across = nodes ? SCHED_NODES : t->across == SCHED_NODES ? SOME_DIMENSION : t->across;
	++*word;
	return read_sizes(l, word, t, most_rows);
}

/* The group that a line names, or -1 after a diagnostic. */
static int read_group(struct line *l, const struct sched_plan *plan)
{
	for (size_t g = 0; g < plan->groups.n; g++)
		if (line_is(l, 1, plan->groups.at[g].name))
			return g;
	line_refuse(l, 1, "the program has no group of this name");
	return -1;
}

/* The number of lanes at a word; -1 after a diagnostic. */
static int read_lanes(struct line *l, int word)
{
	int lanes = line_is(l, word, "off") ? 1 : line_number(l, word, 4, 16);
	if (lanes > 0 && lanes & (lanes - 1)) {
		line_refuse(l, word, "the number of lanes must be a power of two");
		return -1;
	}
	if (lanes > 0 && l->words > word + 1) {
		line_refuse(l, word + 1, "expects lanes, or a group and its lanes");
		return -1;
	}
	return lanes;
}

/* Drops sizes of more rows than a tile of a group may have, which only matrix registers hold, with such lanes; and does not
 * pipeline tiles of vectors unasked. */
static void limit_rows(const struct sched *s, const struct sched_plan *plan, int group)
{
	struct sched_tile *t = &s->tiles.at[group];
	int most = sched_most_rows(s->target, &plan->groups.at[group], t->lanes), first = 0;
	while (t->nodes[first] > most)
		first++;
	t->sizes -= first;
	memmove(t->nodes, t->nodes + first, t->sizes * sizeof *t->nodes);
	t->pipelined &= sched_fills_matrices(s->target, &plan->groups.at[group], t);
}

/* Sets the lanes of the group that the line names, or of all groups. */
static bool read_vectorize(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	bool all = l->words < 2 || line_is(l, 1, "off") || isdigit((unsigned char)*l->word[1]);
	int g = all ? -1 : read_group(l, plan);
	if (!all && g < 0)
		return false;
	if (!all && !plan->groups.at[g].dims)
		return line_refuse(l, 1, "the group has no columns that could run along vectors");
	int lanes = read_lanes(l, all ? 1 : 2);
	if (lanes < 0)
		return false;
	for (size_t i = 0; i < s->tiles.n; i++)
		if (all || (int)i == g) {
			s->tiles.at[i].lanes = lanes;
			limit_rows(s, plan, (int)i);
		}
	s->lanes = all ? lanes : s->lanes;
	return true;
}

/* The loop over a dimension of a group, by its name. */
static const char *loop_name(const struct sched_plan *plan, const struct sched_group *g, int dim)
{
	const struct sub_value *v = sub_at(plan->p, g->targets.at[0]);
	return plan->p->vars.at[v->var[v->vars - g->dims + dim]].name;
}

/* Refuses a tile because of the loop that its rows run along. */
static bool refuse_loop(struct line *l, const struct sched_plan *plan, const struct sched_group *g,
			const struct sched_tile *t, const char *why)
{
	char text[160];
	snprintf(text, sizeof text, "loop '%s' of %lld rows: %s", loop_name(plan, g, t->across),
		 (long long)g->extent[t->across], why);
	return line_refuse(l, 1, text);
}

/* Whether a tile's rows can be elements along a dimension of the group. */
static bool check_across(struct line *l, const struct sched_plan *plan, const struct sched_group *g,
			 const struct sched_tile *t)
{
	if (t->across == SCHED_NODES)
		return !t->block ||
		       line_refuse(l, 1, "nodes are in no blocks: give rows, and the loop that they run across");
	if (t->across >= g->dims)
		return line_refuse(l, 1, "the group has no other dimension than that of its columns");
	if (t->across == t->along)
		return refuse_loop(l, plan, g, t, "columns run along it");
	if (t->by_rows)
		return refuse_loop(l, plan, g, t, "by rows each row is computed on its own");
	return t->block <= g->extent[t->across] || refuse_loop(l, plan, g, t, "the blocks are larger than it");
}

/* Gives rows a dimension where the line names none: one that columns do not run along.  Where columns take
 * that of the rows, rows get what was that of the columns.  Blocks of another dimension are forgotten. */
static void settle_across(const struct line *l, struct sched_tile *t, const struct sched_tile *before)
{
	if (t->across == SOME_DIMENSION)
		t->across = t->along == 0;
	if (t->across != before->across && !names_word(l, "block"))
		t->block = 0;
	if (t->across != t->along || names_word(l, "across"))
		return;
	t->across = before->along;
	t->block = names_word(l, "block") ? t->block : 0;
}

/* Whether a tile may cut the reduction of its group; refuses it by the loop. */
static bool check_cut(struct line *l, const struct sched_plan *plan, const struct sched_group *g, const struct sched_tile *t)
{
	const char *why = t->cut ? sched_why_uncut(plan, g, t) : NULL;
	char text[200];
	if (!why || !g->loops.n)
		return !why || line_refuse(l, 1, why);
	const struct sub_var *v = &plan->p->vars.at[g->loops.at[0].first];
	snprintf(text, sizeof text, "loop '%s' of %lld cannot be cut: %s", v->name, (long long)v->extent, why);
	return line_refuse(l, 1, text);
}

static bool read_tile(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int g = read_group(l, plan);
	if (g < 0)
		return false;
	const struct sched_group *group = &plan->groups.at[g];
	struct sched_tile t = s->tiles.at[g];
	for (int word = 2; word < l->words;)
		if (!read_property(l, &word, &t, group->dims, sched_most_rows(s->target, group, t.lanes)))
			return false;
	settle_across(l, &t, &s->tiles.at[g]);
	if (!check_across(l, plan, group, &t) || !check_cut(l, plan, group, &t))
		return false;
	if (t.by_rows && (!group->rows || !group->dims))
		return line_refuse(l, 1, "the group has no rows, or they have no columns");
	if (!t.by_rows && group->local)
		return line_refuse(l, 1, "each thread computes this local group for itself, row by row");
	if (t.rows_outside && t.across == SCHED_NODES && !names_word(l, "outside"))
		t.rows_outside = false;
	if (t.rows_outside && t.across == SCHED_NODES)
		return line_refuse(l, 1, "nodes are inside of all blocks: give rows, and the loop that they run across");
	if (t.by_rows && t.nodes[0] > 1)
		return line_refuse(l, 1, "by rows there is one node at a time");
	if (t.by_rows && s->strategies.at[g] == IMAGE_COLUMNS)
		return line_refuse(l, 1,
				   "another line divides its columns among threads, and by rows there are no "
				   "blocks of them");
	s->tiles.at[g] = t;
	return true;
}

/* The order of the tensor that a layout names, and its state if it is one; NULL = no such tensor. */
static struct sched_order *find_order(const struct line *l, struct sched *s, const struct sched_plan *plan,
				      struct sched_state **state)
{
	const struct sub_program *p = plan->p;
	*state = NULL;
	for (size_t i = 0; i < p->states.n; i++)
		if (line_is(l, 1, p->states.at[i].name))
			return *state = &s->states.at[i], &s->states.at[i].order;
	for (size_t i = 0; i < p->params.n; i++)
		if (s->tables.at[i].rank && line_is(l, 1, p->params.at[i].name))
			return &s->tables.at[i];
	for (size_t i = 0; i < s->intermediates.n; i++)
		if (line_is(l, 1, s->intermediates.at[i].name))
			return &s->intermediates.at[i].order;
	return NULL;
}

/* Reads the rest of the line, which must name each dimension once. */
static bool read_order(struct line *l, int first, struct sched_order *order)
{
	struct sched_order read = {.rank = 0};
	unsigned named = 0;
	for (int word = first; word < l->words; word++) {
		int dim = line_number(l, word, 0, order->rank - 1);
		if (dim < 0)
			return false;
		if (named >> dim & 1)
			return line_refuse(l, word, "names a dimension twice");
		named |= 1u << dim;
		read.dim[read.rank++] = dim;
	}
	if (read.rank != order->rank)
		return line_refuse(l, first, "expects each dimension once, counted from 0");
	*order = read;
	return true;
}

static bool read_rows(struct line *l, struct sched_state *state, const struct sched_plan *plan)
{
	bool parent = line_is(l, 2, words_layout[IMAGE_BY_PARENT]);
	if (!parent && !line_is(l, 2, words_layout[IMAGE_BY_NODE]))
		return line_refuse(l, 2, "rows of a state are by node or by parent");
	if (parent && !plan->p->tree)
		return line_refuse(
		    l, 2, "a node of this structure may have several parents, and its row only one place");
	if (parent && !plan->p->children)
		return line_refuse(l, 2, "without a structure there are no parents");
	state->layout = parent ? IMAGE_BY_PARENT : IMAGE_BY_NODE;
	return true;
}

static bool read_layout(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	struct sched_state *state;
	struct sched_order *order = find_order(l, s, plan, &state);
	int word = 2 + (state != NULL);
	if (!order)
		return line_refuse(l, 1, "the program keeps nothing of this name whose layout can be chosen");
	if (state && !read_rows(l, state, plan))
		return false;
	return (state && l->words == word) || read_order(l, word, order);
}

static bool read_leaves(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	size_t state = 0;
	struct sched_look_up up;
	while (state < plan->p->states.n && !line_is(l, 1, plan->p->states.at[state].name))
		state++;
	if (state == plan->p->states.n)
		return line_refuse(l, 1, "the program has no state of this name");
	int table = line_word(l, 2, words_leaves);
	if (table < 0 || !line_ends(l, 3))
		return false;
	const char *why = table || !sched_looks_up(plan, state, &up) ? sched_copies_leaves(s, plan, state) : NULL;
	if (why)
		return line_refuse(l, 1, why);
	s->states.at[state].in_table = table;
	return true;
}

static bool read_vectors(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	size_t input = 0;
	while (input < plan->p->inputs.n && !line_is(l, 1, plan->p->inputs.at[input].name))
		input++;
	if (input == plan->p->inputs.n || !sched_is_vector_of_nodes(plan->p, input))
		return line_refuse(l, 1, "nodes carry no vector of this name");
	int given = line_word(l, 2, words_vectors);
	if (given < 0 || !line_ends(l, 3))
		return false;
	const char *why = given ? sched_copies_vector(plan, input) : NULL;
	if (why)
		return line_refuse(l, 1, why);
	s->given.at[input] = given;
	return true;
}

static bool read_pipeline(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int g = read_group(l, plan), on = g < 0 ? -1 : line_word(l, 2, words_switch);
	if (on < 0 || !line_ends(l, 3))
		return false;
	if (on && !plan->groups.at[g].reductions)
		return line_refuse(l, 1, "the group has no sums, between whose steps something could run");
	s->tiles.at[g].pipelined = on;
	return true;
}

static bool read_parallel(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int g = read_group(l, plan), strategy = g < 0 ? -1 : line_word(l, 2, words_strategy);
	if (strategy < 0 || !line_ends(l, 3))
		return false;
	const struct sched_group *group = &plan->groups.at[g];
	if (group->local)
		return line_refuse(l, 1, "the groups that read this local group compute it");
	if ((strategy == IMAGE_ROWS || strategy == IMAGE_SUBTREES) && !group->rows)
		return line_refuse(l, 2, "the group has no rows");
	if (strategy == IMAGE_COLUMNS && (!group->dims || s->tiles.at[g].by_rows))
		return line_refuse(l, 2,
				   "the group has no blocks of columns: it has no columns, or goes by rows");
	s->strategies.at[g] = strategy;
	return true;
}

static bool read_accumulators(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)plan;
	return (s->accumulators = line_number(l, 1, 1, SCHED_MAX_ACCUMULATORS)) > 0;
}

static bool read_specialize(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	return sched_read_cases(l, s, plan->p);
}

/* --- directives that the plan depends on --- */

static bool read_fuse(struct line *l, struct sched_fusion *to)
{
	int planner = line_word(l, 1, words_planner), profit = SCHED_PROFIT_MEASURED;
	if (planner < 0)
		return false;
	if (l->words > 2 && planner != SCHED_GROW)
		return line_refuse(l, 2, "only grow takes this argument");
	if (l->words > 2)
		profit = line_word(l, 2, words_profit);
	if (profit < 0 || !line_ends(l, 3))
		return false;
	to->planner = planner;
	to->profit = profit;
	return true;
}

/* The name is not copied: it stays in the schedule's text. */
static bool read_store(struct line *l, struct sched_fusion *to)
{
	if (l->words != 2)
		return line_refuse(l, 1, "expects the name of one value");
	if (to->stores == SCHED_MAX_STORES)
		return line_refuse(l, 0, "too many values");
	to->store[to->stores++] = (struct sched_store){l->from + l->column[1] - 1, strlen(l->word[1])};
	return true;
}

static bool read_moving(struct line *l, struct sched_fusion *to)
{
	int how = line_word(l, 1, words_moving);
	if (how < 0 || !line_ends(l, 2))
		return false;
	*(enum move_extent *)((char *)to + sched_movers[l->directive].offset) = how;
	return true;
}

static bool read_planned(struct line *l, struct sched_fusion *to)
{
	int how = line_word(l, 1, words_moving);
	if (how < 0 || !line_ends(l, 2))
		return false;
	*(enum move_extent *)((char *)to + sched_planned[l->directive].offset) = how;
	return true;
}

/* Once the plan is made, a directive may only repeat what the plan was made by. */
static bool repeat_fuse(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)s;
	struct sched_fusion f;
	if (!read_fuse(l, &f))
		return false;
	return (f.planner == plan->fusion.planner && f.profit == plan->fusion.profit) ||
	       line_refuse(l, 1, "another line contradicts this one");
}

static bool repeat_store(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)s;
	struct sched_fusion f = {.stores = 0};
	if (!read_store(l, &f))
		return false;
	const char *problem = sched_not_stored(plan, f.store);
	return !problem || line_refuse(l, 1, problem);
}

/* Whether a line says another extent than the plan was made by.  A plan that found nothing to move is one that moves nothing; one
 * that was to move nothing may still look as if something was moved, where the model itself is written so. */
static bool contradicts_plan(enum move_extent line, enum move_extent plan, bool moved)
{
	return line != plan && (line != MOVE_OFF || moved);
}

static bool repeat_planned(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)s;
	struct sched_fusion f;
	const struct sched_planned *d = &sched_planned[l->directive];
	bool any = d->any(plan);
	if (!read_planned(l, &f))
		return false;
	enum move_extent how = sched_planned_extent(d, &f);
	if (contradicts_plan(how, sched_planned_extent(d, &plan->fusion), any))
		return line_refuse(l, 1, "another line contradicts this one");
	return how == MOVE_OFF || any || line_refuse(l, 1, d->nothing);
}

/* Why a mover finds nothing to move. */
static const char *why_nothing_moves(const struct sched_mover *m, enum move_extent how,
				     const struct sub_program *p)
{
	struct str s = str_in(p->arena);
	if (how == MOVE_ON)
		return m->worthless;
	str_printf(&s, "%s%s", m->cannot, m->details ? m->details(p) : "");
	return str_text(&s);
}

static bool repeat_moving(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	(void)s;
	const struct sched_mover *m = &sched_movers[l->directive];
	struct sched_fusion f;
	bool moved = m->moved(plan->p);
	if (!read_moving(l, &f))
		return false;
	enum move_extent how = sched_extent_of(m, &f);
	if (contradicts_plan(how, sched_extent_of(m, &plan->fusion), moved))
		return line_refuse(l, 1, "another line contradicts this one");
	return how == MOVE_OFF || moved || line_refuse(l, 1, why_nothing_moves(m, how, plan->p));
}

/* --- directives --- */

/* The readers of each directive: `fusion` before the plan is made, if the plan depends on it, and
 * `schedule` after it. */
static const struct {
	bool (*schedule)(struct line *, struct sched *, const struct sched_plan *);
	bool (*fusion)(struct line *, struct sched_fusion *);
} readers[SCHED_DIRECTIVES] = {
    [SCHED_FUSE] = {repeat_fuse, read_fuse},
    [SCHED_STORE] = {repeat_store, read_store},
    [SCHED_MUTATE] = {sched_repeat_mutant, sched_read_mutant},
    [SCHED_LOCAL] = {repeat_planned, read_planned},
    [SCHED_SORT] = {repeat_planned, read_planned},
    [SCHED_ARRANGE] = {repeat_planned, read_planned},
    [SCHED_WORDS] = {repeat_planned, read_planned},
    [SCHED_REFACTOR] = {repeat_moving, read_moving},
    [SCHED_HOIST] = {repeat_moving, read_moving},
    [SCHED_UNSTACK] = {repeat_moving, read_moving},
    [SCHED_PAD] = {repeat_moving, read_moving},
    [SCHED_DYNAMIC_BATCH] = {.schedule = read_batch},
    [SCHED_DENSE_INDEX] = {.schedule = read_switch},
    [SCHED_PEEL] = {.schedule = read_switch},
    [SCHED_ALIGN] = {.schedule = read_switch},
    [SCHED_PERSIST] = {.schedule = read_switch},
    [SCHED_BARRIER] = {.schedule = read_switch},
    [SCHED_UNROLL] = {.schedule = read_unroll},
    [SCHED_SPECIALIZE] = {.schedule = read_specialize},
    [SCHED_VECTORIZE] = {.schedule = read_vectorize},
    [SCHED_TILE] = {.schedule = read_tile},
    [SCHED_PIPELINE] = {.schedule = read_pipeline},
    [SCHED_PARALLEL] = {.schedule = read_parallel},
    [SCHED_LAYOUT] = {.schedule = read_layout},
    [SCHED_LEAVES] = {.schedule = read_leaves},
    [SCHED_VECTORS] = {.schedule = read_vectors},
    [SCHED_ACCUMULATORS] = {.schedule = read_accumulators},
};

bool sched_read_fusion(struct sched_fusion *f, const char *file, const char *text, size_t length,
		       struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	*f = (struct sched_fusion){.planner = SCHED_GROW,
				   .profit = SCHED_PROFIT_MEASURED,
				   .refactoring = MOVE_ON,
				   .hoisting = MOVE_ON,
				   .unstacking = MOVE_ON,
				   .padding = MOVE_ON,
				   .local = MOVE_ON,
				   .sorting = MOVE_ON,
				   .arranging = MOVE_ON,
				   .words = MOVE_ON};
	for (const char *end = text + length; text < end;) {
		if (!line_next(&l, &text, end))
			return false;
		bool steers = l.directive < SCHED_DIRECTIVES && readers[l.directive].fusion;
		if (steers && !readers[l.directive].fusion(&l, f))
			return false;
	}
	return true;
}

bool sched_read(struct sched *s, const struct sched_plan *plan, const char *file, const char *text,
		size_t length, struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	for (const char *end = text + length; text < end;) {
		if (!line_next(&l, &text, end))
			return false;
		if (l.words && l.directive == SCHED_DIRECTIVES)
			return line_refuse(&l, 0, "");
		if (l.words && !readers[l.directive].schedule(&l, s, plan))
			return false;
	}
	return true;
}
