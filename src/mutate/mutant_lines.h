/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines of schedules that choose mutants, and the program that they make.  Names are those of values without mutants; in each line
 * one stands for what the lines before have put in its place.
 *
 *     mutate output.v6 part 0 4 before 3
 *     mutate inner.v9 join 0 inner.v12 */
#ifndef ESPALIER_MUTATE_MUTANT_LINES_H
#define ESPALIER_MUTATE_MUTANT_LINES_H

#include "mutate/image_mutant.h"
#include "mutate/product_mutant.h"

/* BODY.vN, as values are printed, in the text of a schedule: not terminated. */
struct mutate_name {
	const char *text;
	int length;
};

/* A line: a value, and what is done with its image, or with it and others. */
struct mutate_choice {
	struct mutate_name value;
	struct mutate_layout layout; /* of use if the operator is none */
	struct mutate_regroup regroup; /* without its values */
	int others;
	struct mutate_name other[MUTATE_MAX_JOINED - 1];
};

/* Reads the words behind the value's name, n > 0, of which text[i] is where word[i] stands in the schedule; returns the position of
 * the first that is wrong, or of the last where one is missing behind it; n = none is wrong. */
int mutate_read_choice(char *const *word, const char *const *text, int n, struct mutate_choice *);
/* Prints the words of a line, from the value's name on. */
void mutate_print_choice(const struct mutate_choice *, struct str *);
bool mutate_same_choice(const struct mutate_choice *, const struct mutate_choice *);

/* Prints all values that have mutants, as BODY.vN with N = number[i] for value i, those with number 0 left out (NULL: N = i), each mutant as a line of a schedule, what was proved of it and what is corrected;
 * with `every` all elements of each mutant and its correction are computed, as far as MUTATE_MAX_STEPS and, for products, MUTATE_MAX_CHECKED_WORK go.  False if the
 * search was given up. */
bool mutate_print_mutants(struct sub_program *, const uint32_t *number, bool exact, bool every, const struct mutate_watch *, struct str *);

/* Puts corrected mutants in place of values, n > 0 lines one after the other: `to`, an empty program, is the one without them but for
 * these, and now[i], which has an entry for each value of `from`, what stands in place of value i.  Returns why a choice cannot be
 * followed, and its number in *wrong; NULL = all were. */
const char *mutate_apply(struct sub_program *to, const struct sub_program *from, const struct mutate_choice *, int n,
			 bool exact, sub_ref *now, int *wrong);

/* Copies a program into `to`, an empty one, without reorganisations that undo another one behind elementwise operators: these are
 * computed in the layout of the later one.  No bit of a result changes. */
void mutate_cancel_moves(struct sub_program *to, const struct sub_program *from);

#endif
