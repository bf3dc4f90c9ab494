/* The schedule as text: one directive a line, `#` begins a comment. */
#include "sched/line.h"

#include <ctype.h>
#include <stddef.h>

static const char *const planners[] = {
#define SCHED_PLANNER(name, spelling, meaning) spelling,
#include "sched/sched.def"
#undef SCHED_PLANNER
};

static const char *const pays[] = {
    [SCHED_PAYS_MEASURED] = "measured", [SCHED_PAYS_ALWAYS] = "always", [SCHED_PAYS_NEVER] = "never"};

static const char *const movings[] = {
    [SCHED_MOVE_ON] = "on", [SCHED_MOVE_ALL] = "all", [SCHED_MOVE_OFF] = "off"};

/* Directives that make another program of it: in the order in which they do. */
static const struct mover {
	enum sched_directive directive;
	size_t offset; /* in struct sched_fusion */
	bool (*moved)(const struct sub_program *);
	const char *cannot, *worthless; /* why `all` and `on` are refused */
} movers[] = {
    {SCHED_REFACTOR, offsetof(struct sched_fusion, refactoring), sched_is_refactored,
     "each product with weights needs more than one child's states, or is but a part of one that does",
     "no product of weights and one child's states is worth it, at each child"},
    {SCHED_HOIST, offsetof(struct sched_fusion, hoisting), sched_is_hoisted,
     "each product with weights needs a state, or is but a part of one that does",
     "no product with weights can leave the recursion and is worth it"},
};
enum { MOVERS = sizeof movers / sizeof *movers };

static enum sched_moving how_of(const struct mover *m, const struct sched_fusion *f)
{
	return *(const enum sched_moving *)((const char *)f + m->offset);
}

/* Directives that are one of two words, in the order in which they are printed. */
static const struct choice {
	enum sched_directive directive;
	size_t offset; /* in struct sched */
	const char *yes, *no;
} choices[] = {
    {SCHED_DYNAMIC_BATCH, offsetof(struct sched, dynamic_batch), "on", "off"},
    {SCHED_DENSE_INDEX, offsetof(struct sched, dense_index), "on", "off"},
    {SCHED_PEEL, offsetof(struct sched, peel), "on", "off"},
    {SCHED_PERSIST, offsetof(struct sched, persist), "on", "off"},
    {SCHED_BARRIER, offsetof(struct sched, meet_each), "step", "level"},
};
enum { CHOICES = sizeof choices / sizeof *choices };

static const char *const ways[] = {
    [IMAGE_CHEAPEST] = "measured", [IMAGE_ALONE] = "off", [IMAGE_ROWS] = "rows", [IMAGE_COLUMNS] = "columns"};

static const char *const batch_orders[] = {
    [IMAGE_BATCH_DEPTH] = "depth", [IMAGE_BATCH_CASE] = "case", [IMAGE_BATCH_LEAST] = "least"};

static const char *const layout_words[] = {[IMAGE_BY_NODE] = "node", [IMAGE_BY_PARENT] = "parent"};

/* --- printing --- */

void sched_print_tile(const struct sched_tile *t, const struct sched_group *group, struct str *s)
{
	str_printf(s, "%s %s nodes", sched_spelling(SCHED_TILE), group->name);
	for (int i = 0; i < t->sizes; i++)
		str_printf(s, " %d", t->nodes[i]);
	str_printf(s, " columns %d unroll %d", t->columns, t->unroll);
	if (t->by_rows)
		str_puts(s, " by rows");
	else if (group->rows && group->dims && !group->gates)
		str_puts(s, " by columns"); /* by rows is what is chosen for it */
	if (group->dims > 1)
		str_printf(s, " along %d", t->along);
	str_puts(s, "\n");
}

static void print_group(const struct sched_group *g, struct str *s)
{
	str_printf(s, "# %s: ", g->name);
	if (g->rows)
		str_puts(s, g->edges ? "edges of rows" : "rows");
	for (int i = 0; i < g->dims; i++)
		str_printf(s, "%s%lld", i || g->rows ? " x " : "", (long long)g->extent[i]);
	str_printf(s, ", %zu results, %d reductions", g->targets.n, g->reductions);
	if (g->gates > 1)
		str_printf(s, ", %d side by side", g->gates);
	str_puts(s, "\n");
}

static void print_layout(const char *name, const char *rows, const struct sched_order *order, struct str *s)
{
	str_printf(s, "%s %s%s%s", sched_spelling(SCHED_LAYOUT), name, rows ? " " : "", rows ? rows : "");
	sched_print_order(order, s);
	str_puts(s, "\n");
}

static void print_layouts(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	const struct sub_program *p = plan->p;
	for (size_t i = 0; i < p->states.n; i++)
		print_layout(p->states.at[i].name, layout_words[sc->states.at[i].layout],
			     &sc->states.at[i].order, s);
	for (size_t i = 0; i < p->params.n; i++)
		if (sc->tables.at[i].rank > 1)
			print_layout(p->params.at[i].name, NULL, &sc->tables.at[i], s);
	for (size_t i = 0; i < sc->intermediates.n; i++) {
		const struct sched_intermediate *v = &sc->intermediates.at[i];
		if (v->order.parts > 1)
			print_layout(sched_value_name(plan, v->body, v->value), NULL, &v->order, s);
	}
}

static void print_fusion(const struct sched_fusion *f, struct str *s)
{
	str_printf(s, "%s %s", sched_spelling(SCHED_FUSE), planners[f->planner]);
	str_printf(s, "%s%s\n", f->pays ? " " : "", f->pays ? pays[f->pays] : "");
	for (int i = 0; i < f->stores; i++)
		str_printf(s, "%s %.*s\n", sched_spelling(SCHED_STORE), f->store[i].length, f->store[i].name);
}

/* The bodies, each with what its fusion comes to. */
static void print_counts(const struct sched_plan *plan, struct str *s)
{
	for (size_t b = 0; b < plan->p->bodies.n; b++) {
		struct sched_counts c = sched_count(plan, b);
		str_printf(s, "# %s: %d groups in %d stages, %d reductions, %d intermediates stored\n",
			   plan->p->bodies.at[b].name, c.groups, c.stages, c.reductions, c.stored);
	}
}

static void print_lanes(const char *group, int lanes, struct str *s)
{
	str_printf(s, "%s%s%s ", sched_spelling(SCHED_VECTORIZE), group ? " " : "", group ? group : "");
	if (lanes > 1)
		str_printf(s, "%d\n", lanes);
	else
		str_puts(s, "off\n");
}

/* What is said of a group, whose lanes need no word if they are these. */
static void print_said(const struct sched *sc, const struct sched_plan *plan, int group, int lanes,
		       struct str *s)
{
	const struct sched_group *g = &plan->groups.at[group];
	const struct sched_tile *t = &sc->tiles.at[group];
	sched_print_tile(t, g, s);
	if (g->dims && t->lanes != lanes)
		print_lanes(g->name, t->lanes, s);
	str_printf(s, "%s %s %s\n", sched_spelling(SCHED_PARALLEL), g->name, ways[sc->ways.at[group]]);
}

void sched_print_group(const struct sched *sc, const struct sched_plan *plan, int group, struct str *s)
{
	print_said(sc, plan, group, 0, s);
}

void sched_print(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	str_printf(s, "# schedule of %s for %s: %d lanes, %d vector registers\n", plan->p->name,
		   sc->target->name, sc->target->lanes, sc->target->registers);
	print_fusion(&plan->fusion, s);
	for (int i = 0; i < MOVERS; i++)
		str_printf(
		    s, "%s %s\n", sched_spelling(movers[i].directive),
		    movings[movers[i].moved(plan->p) ? how_of(&movers[i], &plan->fusion) : SCHED_MOVE_OFF]);
	for (int i = 0; i < CHOICES; i++) {
		bool yes = *(const bool *)((const char *)sc + choices[i].offset);
		str_printf(s, "%s %s\n", sched_spelling(choices[i].directive),
			   yes ? choices[i].yes : choices[i].no);
	}
	sched_print_cases(sc, plan->p, s);
	if (sched_has_inner_cases(plan->p))
		str_printf(s, "%s %s\n", sched_spelling(SCHED_BATCH_ORDER), batch_orders[sc->batch_order]);
	str_printf(s, "%s %d\n", sched_spelling(SCHED_UNROLL), sc->unroll);
	print_lanes(NULL, sc->lanes, s);
	str_printf(s, "%s %d\n", sched_spelling(SCHED_ACCUMULATORS), sc->accumulators);
	print_layouts(sc, plan, s);
	print_counts(plan, s);
	for (size_t g = 0; g < plan->groups.n; g++) {
		print_group(&plan->groups.at[g], s);
		print_said(sc, plan, g, sc->lanes, s);
	}
}

/* --- reading --- */

static bool read_choice(struct line *l, bool *to, const char *yes, const char *no)
{
	if (l->words != 2 || (!line_is(l, 1, yes) && !line_is(l, 1, no)))
		return line_refuse(l, 1, "wrong argument");
	*to = line_is(l, 1, yes);
	return true;
}

/* Node by node there are no levels. */
static bool read_batch(struct line *l, struct sched *s)
{
	if (!read_choice(l, &s->dynamic_batch, "on", "off"))
		return false;
	s->unroll = s->dynamic_batch ? s->unroll : 1;
	s->batch_order = s->dynamic_batch ? s->batch_order : IMAGE_BATCH_DEPTH;
	return true;
}

/* Why batches cannot be of one case each; NULL = they can. */
static const char *not_by_case(const struct sched *s, const struct sched_plan *plan)
{
	return !sched_has_inner_cases(plan->p) ? "inner nodes of this model have one case"
	       : !s->dynamic_batch	       ? "without dynamic_batch there are no batches, but nodes"
	       : s->unroll > 1		       ? "levels are unrolled, and a batch of one case is no level"
					       : NULL;
}

static bool read_batch_order(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int order = 0;
	while (order <= IMAGE_BATCH_LEAST && !line_is(l, 1, batch_orders[order]))
		order++;
	if (l->words != 2 || order > IMAGE_BATCH_LEAST)
		return line_refuse(l, l->words > 2 ? 2 : 1, "wrong argument");
	const char *problem = order == IMAGE_BATCH_DEPTH ? NULL : not_by_case(s, plan);
	s->batch_order = order;
	return !problem || line_refuse(l, 1, problem);
}

static bool read_unroll(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int levels = line_number(l, 1, 1, SCHED_MAX_SPAN);
	const char *problem = levels > 1 ? sched_not_unrolled(plan) : NULL;
	if (levels < 0)
		return false;
	if (l->words > 2)
		return line_refuse(l, 2, "wants one number");
	if (levels > 1 && !s->dynamic_batch)
		return line_refuse(l, 1, "without dynamic_batch there are no levels, but nodes");
	if (problem)
		return line_refuse(l, 1, problem);
	if (levels > 1 && s->batch_order == IMAGE_BATCH_CASE)
		return line_refuse(l, 1, "batches are of one case, and so are no levels");
	s->unroll = levels;
	s->batch_order = levels > 1 ? IMAGE_BATCH_DEPTH : s->batch_order;
	s->dense_index &= levels == 1;
	return true;
}

/* Levels of a span overlap in time: none may take the rows of another. */
static bool read_dense(struct line *l, struct sched *s)
{
	if (!read_choice(l, &s->dense_index, "on", "off"))
		return false;
	return !s->dense_index || s->unroll == 1 ||
	       line_refuse(
		   l, 1,
		   "levels that are unrolled are under way at once, and none can take the rows of another");
}

/* The numbers of a tile that are one each. */
static const struct {
	const char *word;
	size_t offset;
	int most;
} tile_words[] = {
    {"columns", offsetof(struct sched_tile, columns), SCHED_MAX_COLUMNS},
    {"unroll", offsetof(struct sched_tile, unroll), SCHED_MAX_UNROLL},
    {"along", offsetof(struct sched_tile, along), 0},
};
enum { TILE_WORDS = sizeof tile_words / sizeof *tile_words };

static int tile_word(const struct line *l, int word)
{
	int i = 0;
	while (i < TILE_WORDS && !line_is(l, word, tile_words[i].word))
		i++;
	return i;
}

/* The sizes behind `nodes`, up to the next word that is none. */
static bool read_sizes(struct line *l, int *word, struct sched_tile *t)
{
	t->sizes = 0;
	for (; *word < l->words && tile_word(l, *word) == TILE_WORDS && !line_is(l, *word, "by"); ++*word) {
		int n = line_number(l, *word, 1, SCHED_MAX_NODES);
		if (n < 0)
			return false;
		if (t->sizes == SCHED_MAX_SIZES || (t->sizes && n >= t->nodes[t->sizes - 1]))
			return line_refuse(l, *word, "at most eight sizes, each smaller than the one before");
		t->nodes[t->sizes++] = n;
	}
	if (!t->sizes || t->nodes[t->sizes - 1] != 1)
		return line_refuse(l, *word, "the last size must be 1, or some nodes would never run");
	return true;
}

static bool read_sweep(struct line *l, int *word, struct sched_tile *t)
{
	t->by_rows = line_is(l, *word + 1, "rows");
	*word += 2;
	return t->by_rows || line_is(l, *word - 1, "columns") ||
	       line_refuse(l, *word - 1, "wants rows or columns here");
}

static bool read_number(struct line *l, int *word, struct sched_tile *t, int dims)
{
	int which = tile_word(l, *word);
	if (which == TILE_WORDS)
		return line_refuse(l, *word, "wants nodes, columns, unroll, along or by here");
	bool along = tile_words[which].offset == offsetof(struct sched_tile, along);
	int n = along ? line_number(l, *word + 1, 0, dims ? dims - 1 : 0)
		      : line_number(l, *word + 1, 1, tile_words[which].most);
	*word += 2;
	*(int *)((char *)t + tile_words[which].offset) = n;
	return n >= 0;
}

/* What a word of a tile begins, with its arguments. */
static bool read_part(struct line *l, int *word, struct sched_tile *t, int dims)
{
	if (line_is(l, *word, "by"))
		return read_sweep(l, word, t);
	if (!line_is(l, *word, "nodes"))
		return read_number(l, word, t, dims);
	++*word;
	return read_sizes(l, word, t);
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

/* Lanes at a word; -1 after a diagnostic. */
static int read_lanes(struct line *l, int word)
{
	int lanes = line_is(l, word, "off") ? 1 : line_number(l, word, 4, 16);
	if (lanes > 0 && lanes & (lanes - 1)) {
		line_refuse(l, word, "the number of lanes must be a power of two");
		return -1;
	}
	if (lanes > 0 && l->words > word + 1) {
		line_refuse(l, word + 1, "wants lanes, or a group and its lanes");
		return -1;
	}
	return lanes;
}

/* Of a group, if the line begins with one; else of all. */
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
		if (all || (int)i == g)
			s->tiles.at[i].lanes = lanes;
	s->lanes = all ? lanes : s->lanes;
	return true;
}

static bool read_tile(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	int g = read_group(l, plan);
	if (g < 0)
		return false;
	const struct sched_group *group = &plan->groups.at[g];
	struct sched_tile t = s->tiles.at[g];
	for (int word = 2; word < l->words;)
		if (!read_part(l, &word, &t, group->dims))
			return false;
	if (t.by_rows && (!group->rows || !group->dims))
		return line_refuse(l, 1, "the group has no rows, or they have no columns");
	if (t.by_rows && t.nodes[0] > 1)
		return line_refuse(l, 1, "by rows there is one node at a time");
	if (t.by_rows && s->ways.at[g] == IMAGE_COLUMNS)
		return line_refuse(l, 1, "another line shares out its columns, which by rows are no blocks");
	s->tiles.at[g] = t;
	return true;
}

/* What a layout names: the order of its dimensions, and the state that it is, if it is one. */
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
		if (line_is(
			l, 1,
			sched_value_name(plan, s->intermediates.at[i].body, s->intermediates.at[i].value)))
			return &s->intermediates.at[i].order;
	return NULL;
}

/* The rest of the line.  Rows that are picked of a parameter are as the caller has them, but for their order.
 */
static bool read_order(struct line *l, int word, struct sched_order *order, bool table, struct arena *arena)
{
	int wrong = 0;
	for (int w = word; table && w < l->words; w++)
		if (strpbrk(l->word[w], "/%*"))
			return line_refuse(l, w, "the dimensions of a parameter stay whole, and apart");
	const char *problem = sched_read_order(order, l->word + word, l->words - word, &wrong, arena);
	return !problem || line_refuse(l, word + wrong, problem);
}

static bool read_rows(struct line *l, struct sched_state *state, const struct sched_plan *plan)
{
	bool parent = line_is(l, 2, layout_words[IMAGE_BY_PARENT]);
	const char *problem = parent ? sched_not_by_parent(plan) : NULL;
	if (!parent && !line_is(l, 2, layout_words[IMAGE_BY_NODE]))
		return line_refuse(l, 2, "rows of a state are by node or by parent");
	if (problem)
		return line_refuse(l, 2, problem);
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
	if (state && l->words == word)
		return true;
	bool table = order >= s->tables.at && order < s->tables.at + s->tables.n;
	return read_order(l, word, order, table, plan->p->arena);
}

static bool read_fuse(struct line *l, struct sched_fusion *to)
{
	int planner = line_find(l, 1, planners, SCHED_PLANNERS), how = SCHED_PAYS_MEASURED;
	enum { WAYS = sizeof pays / sizeof *pays };
	if (planner == SCHED_PLANNERS)
		return line_refuse(l, 1, "wrong argument");
	if (l->words > 2 && planner != SCHED_GROW)
		return line_refuse(l, 2, "only grow leaves anything open");
	if (l->words > 2)
		how = line_find(l, 2, pays, WAYS);
	if (how == WAYS || l->words > 3)
		return line_refuse(l, how == WAYS ? 2 : 3, "wrong argument");
	to->planner = planner;
	to->pays = how;
	return true;
}

static bool read_parallel(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	enum { WAYS = sizeof ways / sizeof *ways };
	int g = read_group(l, plan), way = line_find(l, 2, ways, WAYS);
	if (g < 0)
		return false;
	const struct sched_group *group = &plan->groups.at[g];
	if (way == WAYS || l->words > 3)
		return line_refuse(l, way == WAYS ? 2 : 3, "wrong argument");
	if (way == IMAGE_ROWS && !group->rows)
		return line_refuse(l, 2, "the group has no rows");
	if (way == IMAGE_COLUMNS && (!group->dims || s->tiles.at[g].by_rows))
		return line_refuse(l, 2,
				   "the group has no blocks of columns: it has no columns, or goes by rows");
	s->ways.at[g] = way;
	return true;
}

/* The name stays where it is, in the schedule's text. */
static bool read_store(struct line *l, struct sched_fusion *to)
{
	if (l->words != 2)
		return line_refuse(l, 1, "wants the name of one value");
	if (to->stores == SCHED_MAX_STORES)
		return line_refuse(l, 0, "too many values");
	to->store[to->stores++] = (struct sched_store){l->from + l->column[1] - 1, strlen(l->word[1])};
	return true;
}

static bool read_store_again(struct line *l, const struct sched_plan *plan)
{
	struct sched_fusion f = {.stores = 0};
	if (!read_store(l, &f))
		return false;
	const char *problem = sched_not_stored(plan, f.store);
	return !problem || line_refuse(l, 1, problem);
}

/* What the line says of moving; -1 = it is no such line. */
static int mover_of(const struct line *l)
{
	for (int i = 0; i < MOVERS; i++)
		if (line_is(l, 0, sched_spelling(movers[i].directive)))
			return i;
	return -1;
}

static bool read_moving(struct line *l, int mover, struct sched_fusion *to)
{
	enum { WAYS = sizeof movings / sizeof *movings };
	int how = line_find(l, 1, movings, WAYS);
	if (how == WAYS || l->words > 2)
		return line_refuse(l, how == WAYS ? 1 : 2, "wrong argument");
	*(enum sched_moving *)((char *)to + movers[mover].offset) = how;
	return true;
}

/* The plan is made: the directive can but repeat what it was made by. */
static bool read_fuse_again(struct line *l, const struct sched_plan *plan)
{
	struct sched_fusion f;
	if (!read_fuse(l, &f))
		return false;
	return (f.planner == plan->fusion.planner && f.pays == plan->fusion.pays) ||
	       line_refuse(l, 1, "another line says otherwise");
}

/* The program is what it is: the directive can but repeat what was made of it. */
static bool read_moving_again(struct line *l, int mover, const struct sched_plan *plan)
{
	const struct mover *m = &movers[mover];
	struct sched_fusion f;
	bool moved = m->moved(plan->p);
	if (!read_moving(l, mover, &f))
		return false;
	enum sched_moving how = how_of(m, &f);
	if (how == SCHED_MOVE_OFF ? moved : how != how_of(m, &plan->fusion))
		return line_refuse(l, 1, "another line says otherwise");
	return how == SCHED_MOVE_OFF || moved ||
	       line_refuse(l, 1, how == SCHED_MOVE_ALL ? m->cannot : m->worthless);
}

static bool read_directive(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	if (line_is(l, 0, sched_spelling(SCHED_FUSE)))
		return read_fuse_again(l, plan);
	if (line_is(l, 0, sched_spelling(SCHED_STORE)))
		return read_store_again(l, plan);
	if (mover_of(l) >= 0)
		return read_moving_again(l, mover_of(l), plan);
	if (line_is(l, 0, sched_spelling(SCHED_DYNAMIC_BATCH)))
		return read_batch(l, s);
	if (line_is(l, 0, sched_spelling(SCHED_BATCH_ORDER)))
		return read_batch_order(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_UNROLL)))
		return read_unroll(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_DENSE_INDEX)))
		return read_dense(l, s);
	for (int i = 0; i < CHOICES; i++)
		if (line_is(l, 0, sched_spelling(choices[i].directive)))
			return read_choice(l, (bool *)((char *)s + choices[i].offset), choices[i].yes,
					   choices[i].no);
	if (line_is(l, 0, sched_spelling(SCHED_SPECIALIZE)))
		return sched_read_cases(l, s, plan->p);
	if (line_is(l, 0, sched_spelling(SCHED_VECTORIZE)))
		return read_vectorize(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_TILE)))
		return read_tile(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_PARALLEL)))
		return read_parallel(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_LAYOUT)))
		return read_layout(l, s, plan);
	if (line_is(l, 0, sched_spelling(SCHED_ACCUMULATORS)))
		return (s->accumulators = line_number(l, 1, 1, SCHED_MAX_ACCUMULATORS)) > 0;
	return line_refuse(l, 0, "");
}

bool sched_read_fusion(struct sched_fusion *f, const char *file, const char *text, size_t length,
		       struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	*f = (struct sched_fusion){.planner = SCHED_GROW,
				   .pays = SCHED_PAYS_MEASURED,
				   .refactoring = SCHED_MOVE_ON,
				   .hoisting = SCHED_MOVE_ON};
	for (const char *end = text + length; text < end;)
		if (!line_next(&l, &text, end) ||
		    (l.words && line_is(&l, 0, sched_spelling(SCHED_FUSE)) && !read_fuse(&l, f)) ||
		    (l.words && line_is(&l, 0, sched_spelling(SCHED_STORE)) && !read_store(&l, f)) ||
		    (l.words && mover_of(&l) >= 0 && !read_moving(&l, mover_of(&l), f)))
			return false;
	return true;
}

bool sched_read(struct sched *s, const struct sched_plan *plan, const char *file, const char *text,
		size_t length, struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	for (const char *end = text + length; text < end;)
		if (!line_next(&l, &text, end) || (l.words && !read_directive(&l, s, plan)))
			return false;
	return true;
}
