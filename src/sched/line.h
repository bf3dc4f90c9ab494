/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lines of a schedule's text, split into words, and how they are refused. */
#ifndef ESPALIER_SCHED_LINE_H
#define ESPALIER_SCHED_LINE_H

#include "sched/sched.h"

enum sched_directive {
#define SCHED_DIRECTIVE(name, spelling, arguments, meaning) SCHED_##name,
#include "sched/sched.def"
#undef SCHED_DIRECTIVE
	SCHED_DIRECTIVES
};

enum { LINE_MOST_WORDS = 20, LINE_LENGTH = 512 };

struct line {
	struct diags *diags;
	struct diag_at at;
	const char *from;	/* the text of the line, */
	char text[LINE_LENGTH]; /* and its words */
	char *word[LINE_MOST_WORDS];
	int column[LINE_MOST_WORDS];
	int words;
	enum sched_directive directive; /* that it begins with; SCHED_DIRECTIVES = none */
};

const char *sched_spelling(enum sched_directive);
/* The next line of a text, split; false after a diagnostic. */
bool line_next(struct line *, const char **text, const char *end);
/* Whether there is such a word, and it is this one. */
bool line_is(const struct line *, int word, const char *text);
/* The place of a word in a list that NULL ends, or -1 after a diagnostic. */
int line_word(struct line *, int word, const char *const *list);
/* Whether the line has no more words than these; false after a diagnostic. */
bool line_ends(struct line *, int words);
/* A number in low..high at a word, or -1 after a diagnostic. */
int line_number(struct line *, int word, int low, int high);
/* Always false: the line's directive is refused, for what is said of the word. */
bool line_refuse(struct line *, int word, const char *why);
#define line_refuse(...) diag_false(line_refuse(__VA_ARGS__))

/* --- specialize.c --- */

void sched_print_cases(const struct sched *, const struct sub_program *, struct str *);
bool sched_read_cases(struct line *, struct sched *, const struct sub_program *);

#endif
