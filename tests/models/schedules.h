/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random schedules for a plan, of which the printed one tells the groups and what is stored: legal ones, and
 * lines that are drawn from the arguments of a directive, which may be anything that they can be read as. */
#ifndef ESPALIER_TESTS_MODELS_SCHEDULES_H
#define ESPALIER_TESTS_MODELS_SCHEDULES_H

#include "tests/models/generate.h"

/* --- legal ones --- */

/* The least extent of a group's dimensions, which the comment on it names; 1 = it has none. */
static inline int least_extent(const char *comment)
{
	int least = INT_MAX;
	for (const char *c = comment + strcspn(comment, ":\n"); *c && *c != ',' && *c != '\n'; c++)
		if (c[-1] == ' ' && *c >= '0' && *c <= '9' && atoi(c) < least)
			least = atoi(c);
	return least == INT_MAX || least < 1 ? 1 : least;
}

/* `comment` is the one on the group. */
static inline void put_tile(struct text *t, const char *group, int length, const char *along, bool rows,
			    const char *comment)
{
	static const int sizes[][4] = {{1},    {2, 1},	     {3, 2, 1}, {4, 2, 1},
				       {5, 1}, {8, 4, 2, 1}, {7, 3, 1}, {6, 1}};
	bool by_rows = rows && random_below(3) == 0;
	const int *nodes = sizes[by_rows ? 0 : random_below(8)];
	bool across = along && !by_rows && random_below(2);
	put(t, "tile %.*s %s", length, group, across ? "rows" : "nodes");
	for (int i = 0; i == 0 || nodes[i - 1] > 1; i++)
		put(t, " %d", nodes[i]);
	put(t, " columns %d unroll %d", 1 + random_below(8), 1 + random_below(random_below(2) ? 4 : 16));
	int columns = random_below(2);
	if (along)
		put(t, " along %d", columns);
	if (across)
		put(t, " across %d", !columns);
	if (across && random_below(2))
		put(t, " block %d", 1 + random_below(least_extent(comment)));
	put(t, " by %s\n", by_rows ? "rows" : "columns");
}

/* A tile of as many rows as matrix registers have, or of fewer, for the group of another line; returns its rows. */
static inline int put_wide_tile(struct text *t, const char *line)
{
	static const int sizes[][5] = {{16, 8, 4, 2, 1}, {16, 1}, {13, 5, 1}, {15, 7, 3, 1}, {8, 4, 2, 1}, {16, 2, 1}, {14, 9, 1}, {2, 1}};
	const int *rows = sizes[random_below(8)];
	put(t, "tile %.*s nodes", (int)strcspn(line + 5, " "), line + 5);
	for (int i = 0; i == 0 || rows[i - 1] > 1; i++)
		put(t, " %d", rows[i]);
	put(t, " columns %d unroll %d by columns\n", 1 + random_below(8), 1 + random_below(random_below(2) ? 4 : 16));
	return rows[0];
}

static const char *const drawn_lanes[] = {"4", "8", "16", "off", "8"};

/* The dimensions of the line in another order. */
static inline void put_layout(struct text *t, const char *line, bool tree)
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
static inline bool line_has(const char *line, const char *word)
{
	const char *found = strstr(line, word);
	return found && found < line + strcspn(line, "\n");
}

/* The tile of another line; the comment before it says what there is in its group. */
static inline void put_tile_of(struct text *t, const char *line, const char *comment)
{
	bool columns = line_has(comment, " x ");
	int length = strcspn(line + 5, " ");
	put_tile(t, line + 5, length, line_has(line, " along") ? " along" : NULL,
		 columns && (line_has(comment, ": rows") || line_has(comment, ": edges of rows")), comment);
	if (columns && random_below(4) == 0)
		put(t, "vectorize %.*s %s\n", length, line + 5, drawn_lanes[random_below(5)]);
	if (!line_has(comment, ", 0 reductions") && random_below(2))
		put(t, "pipeline %.*s %s\n", length, line + 5, random_below(4) ? "on" : "off");
}

/* Lines for the groups that stand in the printed schedule of a model; local ones keep theirs, which must go by rows. */
static inline void put_schedule(struct text *t, const char *printed, const struct ra_model *m)
{
	bool tree = m->structure.kind == RA_TREE || m->structure.kind == RA_SEQUENCE;
	bool batches = random_below(3);
	put(t, "dynamic_batch %s\n", batches ? "on" : "off");
	put(t, "dense_index %s\n", random_below(3) ? "on" : "off");
	if (tree && batches)
		put(t, "unroll %d\n", 1 + random_below(4));
	put(t, "peel %s\n", random_below(3) ? "on" : "off");
	put(t, "persist %s\nbarrier %s\n", random_below(2) ? "on" : "off",
	    random_below(2) ? "level" : "step");
	put(t, "specialize %s\n", random_below(3) ? "leaf" : "none");
	put(t, "vectorize %s\n", drawn_lanes[random_below(5)]);
	put(t, "accumulators %d\n", 1 + random_below(20));
	const char *before = printed;
	for (const char *line = printed; line; before = line, line = behind(line, '\n'))
		if (strncmp(line, "tile ", 5) == 0 && !line_has(before, ", computed by") && random_below(4))
			put_tile_of(t, line, before);
		else if (strncmp(line, "layout ", 7) == 0)
			put_layout(t, line + 7, tree);
}

/* --- lines drawn from the table of directives --- */

static const struct {
	const char *spelling, *arguments;
} drawn_directives[] = {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) {spelling, arguments},
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
};
enum { DRAWN_DIRECTIVES = sizeof drawn_directives / sizeof *drawn_directives };

/* The second word of a random line that begins with this one; false without such a line. */
static inline bool put_name_of(struct text *t, const char *printed, const char *directive)
{
	size_t n = strlen(directive);
	const char *chosen = NULL;
	int lines = 0;
	for (const char *line = printed; line; line = behind(line, '\n'))
		if (strncmp(line, directive, n) == 0 && line[n] == ' ' && random_below(++lines) == 0)
			chosen = line + n + 1;
	if (chosen)
		put(t, " %.*s", (int)strcspn(chosen, " \n"), chosen);
	return chosen;
}

/* A word of the arguments: in capitals it stands for a name, or a number. */
static inline void put_argument(struct text *t, const char *word, int length, const char *printed,
				const char *directive)
{
	static const int numbers[] = {0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 8, 16, 17, 1000000};
	enum { NUMBERS = sizeof numbers / sizeof *numbers };
	if (!isupper((unsigned char)*word)) {
		put(t, " %.*s", length, word);
		return;
	}
	if (length == 3 && strchr("/%*", word[1])) {
		put(t, " %d%c%d", numbers[random_below(NUMBERS)], word[1], numbers[random_below(NUMBERS)]);
		return;
	}
	bool name = length > 1 && random_below(8);
	if (!name || !put_name_of(t, printed,
				  random_below(8)   ? directive
				  : random_below(2) ? "tile"
						    : "layout"))
		put(t, " %d", numbers[random_below(NUMBERS)]);
}

/* Past one item, a word or what stands in brackets. */
static inline const char *item_end(const char *item)
{
	int depth = 0;
	do {
		depth += (*item == '[') - (*item == ']');
		item++;
	} while (*item && (depth || !strchr(" ]", *item)));
	return item;
}

static inline void put_arguments(struct text *t, const char *at, const char *end, const char *printed,
				 const char *directive);

/* `N...` comes several times, `[...]` perhaps. */
static inline void put_item(struct text *t, const char *item, const char *end, const char *printed,
			    const char *directive)
{
	bool more = end - item > 3 && strncmp(end - 3, "...", 3) == 0;
	end -= more ? 3 : 0;
	for (int n = more ? 1 + random_below(3) : 1; n > 0; n--)
		if (*item != '[')
			put_argument(t, item, end - item, printed, directive);
		else if (random_below(2))
			put_arguments(t, item + 1, end - 1, printed, directive);
}

/* Items one after another; of those that a bar stands between one is taken. */
static inline void put_items(struct text *t, const char *at, const char *end, const char *printed,
			     const char *directive)
{
	while (at < end) {
		const char *chosen = at, *chosen_end = item_end(at);
		int ways = 1;
		for (at = chosen_end; at + 3 < end && strncmp(at, " | ", 3) == 0; at = item_end(at + 3))
			if (random_below(++ways) == 0)
				chosen = at + 3, chosen_end = item_end(at + 3);
		put_item(t, chosen, chosen_end, printed, directive);
		at += *at == ' ';
	}
}

/* Where an argument of several words has a bar, it can stand between words or between all that is before it
 * and after it; what is wrong is refused. */
static inline void put_arguments(struct text *t, const char *at, const char *end, const char *printed,
				 const char *directive)
{
	const char *bar = strstr(at, " | ");
	if (!bar || bar >= end || random_below(2))
		put_items(t, at, end, printed, directive);
	else if (random_below(2))
		put_items(t, at, bar, printed, directive);
	else
		put_arguments(t, bar + 3, end, printed, directive);
}

/* A line of a directive of the table; one in eight has a word too many. */
static inline void put_drawn(struct text *t, const char *printed)
{
	int d = random_below(DRAWN_DIRECTIVES);
	const char *arguments = drawn_directives[d].arguments;
	put(t, "%s", drawn_directives[d].spelling);
	put_arguments(t, arguments, arguments + strlen(arguments), printed, drawn_directives[d].spelling);
	put(t, random_below(8) ? "\n" : " 1\n");
}

#endif
