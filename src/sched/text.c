/* The schedule as text: one directive a line, `#` begins a comment. */
#include "sched/sched.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *spelling, *arguments;
} directives[] = {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) {spelling, arguments},
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
};

static const char *const planners[] = {
#define SCHED_PLANNER(name, spelling, meaning) spelling,
#include "sched/sched.def"
#undef SCHED_PLANNER
};

static const char *const pays[] = {
    [SCHED_PAYS_MEASURED] = "measured", [SCHED_PAYS_ALWAYS] = "always", [SCHED_PAYS_NEVER] = "never"};

enum directive {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) SCHED_##name,
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
	SCHED_DIRECTIVES
};

static const char *const movings[] = {
    [SCHED_MOVE_ON] = "on", [SCHED_MOVE_ALL] = "all", [SCHED_MOVE_OFF] = "off"};

/* Directives that make another program of it: in the order in which they do. */
static const struct mover {
	enum directive directive;
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

static const char *const layout_words[] = {[IMAGE_BY_NODE] = "node", [IMAGE_BY_PARENT] = "parent"};

/* --- printing --- */

static void print_tile(const struct sched_tile *t, const struct sched_group *group, struct str *s)
{
	str_printf(s, "%s %s nodes", directives[SCHED_TILE].spelling, group->name);
	for (int i = 0; i < t->sizes; i++)
		str_printf(s, " %d", t->nodes[i]);
	str_printf(s, " columns %d unroll %d", t->columns, t->unroll);
	if (t->by_rows)
		str_puts(s, " by rows");
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
	str_printf(s, "%s %s%s%s", directives[SCHED_LAYOUT].spelling, name, rows ? " " : "",
		   rows ? rows : "");
	for (int d = 0; order->rank > 1 && d < order->rank; d++)
		str_printf(s, " %d", order->dim[d]);
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
		print_layout(sched_value_name(plan, v->body, v->value), NULL, &v->order, s);
	}
}

static void print_fusion(const struct sched_fusion *f, struct str *s)
{
	str_printf(s, "%s %s", directives[SCHED_FUSE].spelling, planners[f->planner]);
	str_printf(s, "%s%s\n", f->pays ? " " : "", f->pays ? pays[f->pays] : "");
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

void sched_print(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	str_printf(s, "# schedule of %s for %s: %d lanes, %d vector registers\n", plan->p->name,
		   sc->target->name, sc->target->lanes, sc->target->registers);
	print_fusion(&plan->fusion, s);
	for (int i = 0; i < MOVERS; i++)
		str_printf(
		    s, "%s %s\n", directives[movers[i].directive].spelling,
		    movings[movers[i].moved(plan->p) ? how_of(&movers[i], &plan->fusion) : SCHED_MOVE_OFF]);
	str_printf(s, "%s %s\n", directives[SCHED_DYNAMIC_BATCH].spelling, sc->dynamic_batch ? "on" : "off");
	str_printf(s, "%s %s\n", directives[SCHED_SPECIALIZE].spelling,
		   sc->specialize_leaf ? "leaf" : "none");
	if (sc->lanes > 1)
		str_printf(s, "%s %d\n", directives[SCHED_VECTORIZE].spelling, sc->lanes);
	else
		str_printf(s, "%s off\n", directives[SCHED_VECTORIZE].spelling);
	str_printf(s, "%s %d\n", directives[SCHED_ACCUMULATORS].spelling, sc->accumulators);
	print_layouts(sc, plan, s);
	print_counts(plan, s);
	for (size_t g = 0; g < plan->groups.n; g++) {
		print_group(&plan->groups.at[g], s);
		print_tile(&sc->tiles.at[g], &plan->groups.at[g], s);
	}
}

/* --- reading --- */

enum { MAX_WORDS = 20, MAX_LINE = 512 };

struct line {
	struct diags *diags;
	struct diag_at at;
	char text[MAX_LINE];
	char *word[MAX_WORDS];
	int column[MAX_WORDS];
	int words;
};

static bool refuse(struct line *l, int word, const char *why)
{
	struct diag_at at = l->at;
	at.column = word < l->words ? l->column[word] : 0;
	for (int d = 0; d < SCHED_DIRECTIVES; d++)
		if (strcmp(l->word[0], directives[d].spelling) == 0)
			return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at, directives[d].arguments,
					"%s: %s", l->word[0], why);
	return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, at,
			"directives are fuse, refactor, hoist, dynamic_batch, specialize, vectorize, layout, "
			"accumulators and tile",
			"'%s' is no directive", l->word[0]);
}

/* Splits a line into words; false when it is too long or has too many. */
static bool split(struct line *l, const char *text, size_t length)
{
	size_t end = 0;
	l->words = 0;
	while (end < length && text[end] != '#')
		end++;
	l->word[0] = l->text;
	if (end >= MAX_LINE)
		return diag_add(l->diags, DIAG_ILLEGAL_SCHEDULE, l->at, "write one directive a line",
				"the line is too long");
	memcpy(l->text, text, end);
	l->text[end] = 0;
	for (char *save, *w = strtok_r(l->text, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (l->words == MAX_WORDS)
			return refuse(l, 0, "too many words");
		l->column[l->words] = w - l->text + 1;
		l->word[l->words++] = w;
	}
	return true;
}

/* A number in low..high at a word, or -1 after a diagnostic. */
static int number(struct line *l, int word, int low, int high)
{
	char why[80], *end = "x";
	long n = word < l->words ? strtol(l->word[word], &end, 10) : 0;
	if (*end == 0 && n >= low && n <= high)
		return n;
	snprintf(why, sizeof why, "wants a number from %d to %d", low, high);
	refuse(l, word, why);
	return -1;
}

static bool is(const struct line *l, int word, const char *text)
{
	return word < l->words && strcmp(l->word[word], text) == 0;
}

static bool read_choice(struct line *l, bool *to, const char *yes, const char *no)
{
	if (l->words != 2 || (!is(l, 1, yes) && !is(l, 1, no)))
		return refuse(l, 1, "wrong argument");
	*to = is(l, 1, yes);
	return true;
}

static bool read_lanes(struct line *l, struct sched *s)
{
	int lanes = is(l, 1, "off") ? 1 : number(l, 1, 4, 16);
	if (lanes < 0)
		return false;
	if (lanes & (lanes - 1))
		return refuse(l, 1, "the number of lanes must be a power of two");
	s->lanes = lanes;
	return true;
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
	while (i < TILE_WORDS && !is(l, word, tile_words[i].word))
		i++;
	return i;
}

/* The sizes behind `nodes`, up to the next word that is none. */
static bool read_sizes(struct line *l, int *word, struct sched_tile *t)
{
	t->sizes = 0;
	for (; *word < l->words && tile_word(l, *word) == TILE_WORDS && !is(l, *word, "by"); ++*word) {
		int n = number(l, *word, 1, SCHED_MAX_NODES);
		if (n < 0)
			return false;
		if (t->sizes == SCHED_MAX_SIZES || (t->sizes && n >= t->nodes[t->sizes - 1]))
			return refuse(l, *word, "at most eight sizes, each smaller than the one before");
		t->nodes[t->sizes++] = n;
	}
	if (!t->sizes || t->nodes[t->sizes - 1] != 1)
		return refuse(l, *word, "the last size must be 1, or some nodes would never run");
	return true;
}

static bool read_sweep(struct line *l, int *word, struct sched_tile *t)
{
	t->by_rows = is(l, *word + 1, "rows");
	*word += 2;
	return t->by_rows || is(l, *word - 1, "columns") ||
	       refuse(l, *word - 1, "wants rows or columns here");
}

static bool read_number(struct line *l, int *word, struct sched_tile *t, int dims)
{
	int which = tile_word(l, *word);
	if (which == TILE_WORDS)
		return refuse(l, *word, "wants nodes, columns, unroll, along or by here");
	bool along = tile_words[which].offset == offsetof(struct sched_tile, along);
	int n = along ? number(l, *word + 1, 0, dims ? dims - 1 : 0)
		      : number(l, *word + 1, 1, tile_words[which].most);
	*word += 2;
	*(int *)((char *)t + tile_words[which].offset) = n;
	return n >= 0;
}

/* What a word of a tile begins, with its arguments. */
static bool read_part(struct line *l, int *word, struct sched_tile *t, int dims)
{
	if (is(l, *word, "by"))
		return read_sweep(l, word, t);
	if (!is(l, *word, "nodes"))
		return read_number(l, word, t, dims);
	++*word;
	return read_sizes(l, word, t);
}

static bool read_tile(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	size_t g = 0;
	while (g < plan->groups.n && !is(l, 1, plan->groups.at[g].name))
		g++;
	if (g == plan->groups.n)
		return refuse(l, 1, "the program has no group of this name");
	const struct sched_group *group = &plan->groups.at[g];
	struct sched_tile t = s->tiles.at[g];
	for (int word = 2; word < l->words;)
		if (!read_part(l, &word, &t, group->dims))
			return false;
	if (t.by_rows && (!group->rows || !group->dims))
		return refuse(l, 1, "the group has no rows, or they have no columns");
	if (t.by_rows && t.nodes[0] > 1)
		return refuse(l, 1, "by rows there is one node at a time");
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
		if (is(l, 1, p->states.at[i].name))
			return *state = &s->states.at[i], &s->states.at[i].order;
	for (size_t i = 0; i < p->params.n; i++)
		if (s->tables.at[i].rank && is(l, 1, p->params.at[i].name))
			return &s->tables.at[i];
	for (size_t i = 0; i < s->intermediates.n; i++)
		if (is(l, 1,
		       sched_value_name(plan, s->intermediates.at[i].body, s->intermediates.at[i].value)))
			return &s->intermediates.at[i].order;
	return NULL;
}

/* The rest of the line: each of the dimensions once. */
static bool read_order(struct line *l, int word, struct sched_order *order)
{
	struct sched_order read = {.rank = order->rank};
	unsigned seen = 0;
	if (l->words - word != order->rank)
		return refuse(l, word, "wants each dimension once, counted from 0, and has more or less");
	for (int d = 0; d < order->rank; d++) {
		read.dim[d] = number(l, word + d, 0, order->rank - 1);
		if (read.dim[d] < 0)
			return false;
		if (seen >> read.dim[d] & 1)
			return refuse(l, word + d, "names a dimension twice");
		seen |= 1u << read.dim[d];
	}
	*order = read;
	return true;
}

static bool read_rows(struct line *l, struct sched_state *state, const struct sched_plan *plan)
{
	bool parent = is(l, 2, layout_words[IMAGE_BY_PARENT]);
	const char *problem = parent ? sched_not_by_parent(plan) : NULL;
	if (!parent && !is(l, 2, layout_words[IMAGE_BY_NODE]))
		return refuse(l, 2, "rows of a state are by node or by parent");
	if (problem)
		return refuse(l, 2, problem);
	state->layout = parent ? IMAGE_BY_PARENT : IMAGE_BY_NODE;
	return true;
}

static bool read_layout(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	struct sched_state *state;
	struct sched_order *order = find_order(l, s, plan, &state);
	int word = 2 + (state != NULL);
	if (!order)
		return refuse(l, 1, "the program keeps nothing of this name whose layout can be chosen");
	if (state && !read_rows(l, state, plan))
		return false;
	return (state && l->words == word) || read_order(l, word, order);
}

/* The place of a word in a table, or the table's size. */
static int find_word(const struct line *l, int word, const char *const *table, int n)
{
	int i = 0;
	while (i < n && !is(l, word, table[i]))
		i++;
	return i;
}

static bool read_fuse(struct line *l, struct sched_fusion *to)
{
	int planner = find_word(l, 1, planners, SCHED_PLANNERS), how = SCHED_PAYS_MEASURED;
	enum { WAYS = sizeof pays / sizeof *pays };
	if (planner == SCHED_PLANNERS)
		return refuse(l, 1, "wrong argument");
	if (l->words > 2 && planner != SCHED_GROW)
		return refuse(l, 2, "only grow leaves anything open");
	if (l->words > 2)
		how = find_word(l, 2, pays, WAYS);
	if (how == WAYS || l->words > 3)
		return refuse(l, how == WAYS ? 2 : 3, "wrong argument");
	to->planner = planner;
	to->pays = how;
	return true;
}

/* What the line says of moving; -1 = it is no such line. */
static int mover_of(const struct line *l)
{
	for (int i = 0; i < MOVERS; i++)
		if (is(l, 0, directives[movers[i].directive].spelling))
			return i;
	return -1;
}

static bool read_moving(struct line *l, int mover, struct sched_fusion *to)
{
	enum { WAYS = sizeof movings / sizeof *movings };
	int how = find_word(l, 1, movings, WAYS);
	if (how == WAYS || l->words > 2)
		return refuse(l, how == WAYS ? 1 : 2, "wrong argument");
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
	       refuse(l, 1, "another line says otherwise");
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
		return refuse(l, 1, "another line says otherwise");
	return how == SCHED_MOVE_OFF || moved ||
	       refuse(l, 1, how == SCHED_MOVE_ALL ? m->cannot : m->worthless);
}

static bool read_directive(struct line *l, struct sched *s, const struct sched_plan *plan)
{
	if (is(l, 0, directives[SCHED_FUSE].spelling))
		return read_fuse_again(l, plan);
	if (mover_of(l) >= 0)
		return read_moving_again(l, mover_of(l), plan);
	if (is(l, 0, directives[SCHED_DYNAMIC_BATCH].spelling))
		return read_choice(l, &s->dynamic_batch, "on", "off");
	if (is(l, 0, directives[SCHED_SPECIALIZE].spelling))
		return read_choice(l, &s->specialize_leaf, "leaf", "none");
	if (is(l, 0, directives[SCHED_VECTORIZE].spelling))
		return read_lanes(l, s);
	if (is(l, 0, directives[SCHED_TILE].spelling))
		return read_tile(l, s, plan);
	if (is(l, 0, directives[SCHED_LAYOUT].spelling))
		return read_layout(l, s, plan);
	if (is(l, 0, directives[SCHED_ACCUMULATORS].spelling))
		return (s->accumulators = number(l, 1, 1, SCHED_MAX_ACCUMULATORS)) > 0;
	return refuse(l, 0, "");
}

/* The next line of a text, split; false after a diagnostic. */
static bool next_line(struct line *l, const char **text, const char *end)
{
	const char *newline = memchr(*text, '\n', end - *text);
	size_t n = (newline ? newline : end) - *text;
	const char *from = *text;
	l->at.line++;
	*text += n + 1;
	return split(l, from, n);
}

bool sched_read_fusion(struct sched_fusion *f, const char *file, const char *text, size_t length,
		       struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	*f = (struct sched_fusion){SCHED_GROW, SCHED_PAYS_MEASURED, SCHED_MOVE_ON, SCHED_MOVE_ON};
	for (const char *end = text + length; text < end;)
		if (!next_line(&l, &text, end) ||
		    (l.words && is(&l, 0, directives[SCHED_FUSE].spelling) && !read_fuse(&l, f)) ||
		    (l.words && mover_of(&l) >= 0 && !read_moving(&l, mover_of(&l), f)))
			return false;
	return true;
}

bool sched_read(struct sched *s, const struct sched_plan *plan, const char *file, const char *text,
		size_t length, struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	for (const char *end = text + length; text < end;)
		if (!next_line(&l, &text, end) || (l.words && !read_directive(&l, s, plan)))
			return false;
	return true;
}
