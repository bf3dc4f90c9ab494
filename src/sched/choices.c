/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The neighbours of a schedule: schedules that differ in one line, for programs that measure them.
 *
 * A directive is tried by reading it into a copy of the schedule.  It is not listed if it is illegal, or
 * if the copy prints as the schedule itself does; so rows of sched.def need not say for which programs
 * they make sense. */
#include "sched/sched.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sched_choice choices[] = {
#define SCHED_CHOICE(scope, spelling, arguments) {SCHED_SCOPE_##scope, spelling, arguments},
#include "sched/sched.def"
#undef SCHED_CHOICE
};

/* The directive whose choices include all tiles of the cost model. */
static const char TILE[] = "tile";

static const char *const scopes[] = {[SCHED_SCOPE_PLAN] = "plan",
				     [SCHED_SCOPE_PROGRAM] = "program",
				     [SCHED_SCOPE_STATE] = "state",
				     [SCHED_SCOPE_GROUP] = "group"};

const struct sched_choice *sched_choice_at(size_t i)
{
	return i < sizeof choices / sizeof *choices ? &choices[i] : NULL;
}

const char *sched_choice_line(struct arena *a, const struct sched_choice *c, const char *name, size_t i)
{
	const char *p = c->arguments;
	struct str s = str_in(a);
	for (; i && *p; i--) {
		p += strcspn(p, "|");
		p += *p == '|';
	}
	if (!*p)
		return NULL;
	str_printf(&s, "%s%s%s %.*s", c->spelling, name ? " " : "", name ? name : "", (int)strcspn(p, "|"),
		   p);
	return str_text(&s);
}

const char *sched_find_line(struct arena *a, const char *printed, const char *key)
{
	size_t n = strlen(key);
	for (const char *p = printed; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strncmp(p, key, n) == 0 && p[n] == ' ')
			return arena_text(a, p, strcspn(p, "\n"));
	return NULL;
}

void sched_begin_block(enum sched_scope scope, const char *key, const char *now, struct str *s)
{
	str_printf(s, "\n# %s %s\n%s", scopes[scope], key, now);
}

/* --- a block under construction --- */

struct option {
	const char *line;
	double predicted; /* NaN = no prediction */
};

struct block {
	const struct sched *s;
	const struct sched_plan *plan;
	struct arena *arena;
	const char *key;
	int group;		    /* -1 = not of a group */
	VEC(struct option) options; /* the first is the schedule's own line */
};

static const char *line_of_tile(const struct block *b, const struct sched_tile *t)
{
	struct str s = str_in(b->arena);
	sched_print_tile(t, &b->plan->groups.at[b->group], &s);
	return arena_text(b->arena, str_text(&s), s.n - 1);
}

static void add_option(struct block *b, const char *line, double predicted)
{
	for (size_t i = 0; i < b->options.n; i++)
		if (strcmp(b->options.at[i].line, line) == 0)
			return;
	vec_push(b->arena, &b->options, (struct option){line, predicted});
}

static void add_tile(void *user, const struct sched_tile *t, double predicted)
{
	struct block *b = user;
	add_option(b, line_of_tile(b, t), predicted);
}

#define COPY(a, v) ((v)->at = arena_copy(a, (v)->at, (v)->n * sizeof *(v)->at))

static struct sched copy_schedule(struct arena *a, const struct sched *from)
{
	struct sched s = *from;
	COPY(a, &s.tiles);
	COPY(a, &s.strategies);
	COPY(a, &s.states);
	COPY(a, &s.intermediates);
	COPY(a, &s.given);
	COPY(a, &s.tables);
	return s;
}

/* The schedule's line for the block's key; a group always has one, even if it agrees with that of the
 * program. */
static const char *find_printed(const struct block *b, const struct sched *s)
{
	struct str printed = str_in(b->arena);
	sched_print(s, b->plan, &printed);
	for (size_t g = 0; g < b->plan->groups.n; g++)
		sched_print_group(s, b->plan, g, &printed);
	return sched_find_line(b->arena, str_text(&printed), b->key);
}

/* Applies a line to a copy of the schedule; returns the copy's line for the block's key, NULL = the line
 * is illegal. */
static const char *apply_line(const struct block *b, const char *line, struct sched *s)
{
	struct diags diags;
	diags_init(&diags, b->arena->allocator);
	*s = copy_schedule(b->arena, b->s);
	bool ok = sched_read(s, b->plan, "", line, strlen(line), &diags);
	diags_free(&diags);
	if (!ok)
		return NULL;
	if (b->group >= 0)
		return line_of_tile(b, &s->tiles.at[b->group]);
	return find_printed(b, s);
}

/* Whether the copy differs only in the unrolling of a group without reductions. */
static bool changes_nothing(const struct block *b, const struct sched *s)
{
	return b->group >= 0 && !b->plan->groups.at[b->group].reductions &&
	       s->tiles.at[b->group].unroll != b->s->tiles.at[b->group].unroll;
}

static void try_line(struct block *b, const char *line)
{
	struct sched s;
	const char *printed = apply_line(b, line, &s);
	if (printed && !changes_nothing(b, &s))
		add_option(b, printed,
			   b->group < 0 ? NAN : sched_predict(&s, b->plan, b->group, &s.tiles.at[b->group]));
}

/* Options without a prediction come last, in the order in which they were found. */
static int compare_options(const void *x, const void *y)
{
	const struct option *a = x, *b = y;
	if (isnan(a->predicted) || isnan(b->predicted))
		return isnan(a->predicted) - isnan(b->predicted);
	return (a->predicted > b->predicted) - (a->predicted < b->predicted);
}

static void sort_options(struct option *o, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k && compare_options(&o[k - 1], &o[k]) > 0; k--) {
			struct option other = o[k];
			o[k] = o[k - 1];
			o[k - 1] = other;
		}
}

static void print_block(struct block *b, enum sched_scope scope, struct str *s)
{
	if (b->options.n < 2)
		return;
	sort_options(b->options.at + 1, b->options.n - 1);
	for (size_t i = 0; i < b->options.n; i++) {
		const struct option *o = &b->options.at[i];
		if (i == 0)
			sched_begin_block(scope, b->key, o->line, s);
		else
			str_puts(s, o->line);
		if (!isnan(o->predicted))
			str_printf(s, "  # %.4f", o->predicted);
		str_puts(s, "\n");
	}
}

/* --- blocks of each kind --- */

/* Tries all orders of the dimensions; `line` ends before them. */
static void try_orders(struct block *b, const char *line, int rank, unsigned used, int depth)
{
	for (int d = 0; d < rank && depth < rank; d++) {
		struct str s = str_in(b->arena);
		if (used >> d & 1)
			continue;
		str_printf(&s, "%s %d", line, d);
		if (depth + 1 == rank)
			try_line(b, str_text(&s));
		else
			try_orders(b, str_text(&s), rank, used | 1u << d, depth + 1);
	}
}

/* The number of dimensions that a printed layout ends with. */
static int rank_of(const char *line)
{
	int rank = 0;
	for (; *line; line++)
		if (*line == ' ' && line[1] >= '0' && line[1] <= '9' && rank <= line[1] - '0')
			rank = line[1] - '0' + 1;
	return rank;
}

/* Begins the block of choices for a group, a state or (`name` NULL) the program. */
static struct block begin_block(const struct block *like, const struct sched_choice *c, const char *name,
				int group)
{
	struct block b = {.s = like->s, .plan = like->plan, .arena = like->arena, .group = group};
	struct str key = str_in(b.arena);
	str_printf(&key, "%s%s%s", c->spelling, name ? " " : "", name ? name : "");
	b.key = str_text(&key);
	const char *now = find_printed(&b, b.s);
	if (now)
		try_line(&b, now);
	return b;
}

static void try_arguments(struct block *b, const struct sched_choice *c, const char *name)
{
	const char *line;
	for (size_t i = 0; b->options.n && (line = sched_choice_line(b->arena, c, name, i)); i++)
		try_line(b, line);
}

/* Prints the choices for the program (`name` NULL) or a group. */
static void print_one(const struct block *like, const struct sched_choice *c, const char *name, struct str *s)
{
	struct block b = begin_block(like, c, name, -1);
	try_arguments(&b, c, name);
	print_block(&b, c->scope, s);
}

static void print_tiles(const struct block *like, const struct sched_choice *c, int group, struct str *s)
{
	const char *name = like->plan->groups.at[group].name;
	struct block b = begin_block(like, c, name, group);
	sched_each_tile(b.s, b.plan, group, &b.s->tiles.at[group], add_tile, &b);
	try_arguments(&b, c, name);
	print_block(&b, c->scope, s);
}

static void print_groups(const struct block *like, const struct sched_choice *c, struct str *s)
{
	bool tiles = strcmp(c->spelling, TILE) == 0;
	for (size_t g = 0; g < like->plan->groups.n; g++)
		if (tiles)
			print_tiles(like, c, g, s);
		else
			print_one(like, c, like->plan->groups.at[g].name, s);
}

static void print_state(const struct block *like, const struct sched_choice *c, const char *name,
			struct str *s)
{
	struct block b = begin_block(like, c, name, -1);
	struct str prefix = str_in(b.arena);
	int rank = b.options.n ? rank_of(b.options.at[0].line) : 0;
	if (rank > 1) {
		const char *line;
		for (size_t i = 0; (line = sched_choice_line(b.arena, c, name, i)); i++)
			try_orders(&b, line, rank, 0, 0);
		str_printf(
		    &prefix, "%s",
		    b.key); /* intermediates and tables have an order of dimensions, but no choice of rows */
		try_orders(&b, str_text(&prefix), rank, 0, 0);
	} else
		try_arguments(&b, c, name);
	print_block(&b, c->scope, s);
}

static void print_states(const struct block *like, const struct sched_choice *c, struct str *s)
{
	const struct sub_program *p = like->plan->p;
	for (size_t i = 0; i < p->states.n; i++)
		print_state(like, c, p->states.at[i].name, s);
	for (size_t i = 0; i < p->inputs.n; i++)
		print_state(like, c, p->inputs.at[i].name, s);
	for (size_t i = 0; i < p->params.n; i++)
		print_state(like, c, p->params.at[i].name, s);
	for (size_t i = 0; i < like->s->intermediates.n; i++)
		print_state(like, c, like->s->intermediates.at[i].name, s);
}

void sched_print_choices(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	const struct block like = {.s = sc, .plan = plan, .arena = plan->p->arena};
	const struct sched_choice *c;
	for (size_t i = 0; (c = sched_choice_at(i)); i++)
		switch (c->scope) {
		case SCHED_SCOPE_PLAN:
			break;
		case SCHED_SCOPE_PROGRAM:
			print_one(&like, c, NULL, s);
			break;
		case SCHED_SCOPE_STATE:
			print_states(&like, c, s);
			break;
		case SCHED_SCOPE_GROUP:
			print_groups(&like, c, s);
			break;
		}
}
