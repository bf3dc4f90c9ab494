/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines of a schedule's text, split into words, and diagnostics about them. */
#ifndef ESPALIER_SCHED_LINE_H
#define ESPALIER_SCHED_LINE_H

#include "sched/sched.h"

enum sched_directive {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) SCHED_##name,
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
	SCHED_DIRECTIVES
};

enum { LINE_MOST_WORDS = 40, LINE_LENGTH = 512 };

struct line {
	struct diags *diags;
	struct diag_at at;
	const char *from;	/* the line in the schedule's text */
	char text[LINE_LENGTH]; /* a copy, cut into words */
	char *word[LINE_MOST_WORDS];
	int column[LINE_MOST_WORDS];
	int words;
	enum sched_directive directive; /* the first word; SCHED_DIRECTIVES = not a directive */
};

const char *sched_spelling(enum sched_directive);
/* Reads the next line of a text and splits it; false after a diagnostic. */
bool line_next(struct line *, const char **text, const char *end);
/* Whether the line has a word at this position and it is `text`. */
bool line_is(const struct line *, int word, const char *text);
/* The position of a word in a list that ends with NULL, or -1 after a diagnostic. */
int line_word(struct line *, int word, const char *const *list);
/* Whether the line has no more words than these; false after a diagnostic. */
bool line_ends(struct line *, int words);
/* A number in low..high at a word, or -1 after a diagnostic. */
int line_number(struct line *, int word, int low, int high);
/* Reports the line's directive as illegal, naming the word and the reason.  Always false. */
bool line_refuse(struct line *, int word, const char *why);
#define line_refuse(...) diag_false(line_refuse(__VA_ARGS__))

/* --- specialize.c --- */

void sched_print_cases(const struct sched *, const struct sub_program *, struct str *);
bool sched_read_cases(struct line *, struct sched *, const struct sub_program *);

/* --- choose_mutants.c --- */

bool sched_read_mutant(struct line *, struct sched_fusion *);
/* Whether the plan was made with the mutant of a line, or a later line takes it back; false after a diagnostic. */
bool sched_repeat_mutant(struct line *, struct sched *, const struct sched_plan *);
void sched_print_mutants(const struct sched_fusion *, struct str *);

#endif
