/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Cases of nodes that have kernels of their own: those of the model, and those that the schedule adds.
 *
 *     specialize inner when children == 2 and tag == 3
 *
 * makes a case of the nodes of another case that meet the conditions (subop/split_cases.c), before the
 * program is rewritten. */
#include "sched/line.h"

/* --- conditions --- */

enum { MOST_CHILDREN = 1 << 16 };

/* Whether the line adds a case. */
static bool is_split(const struct line *l)
{
	return l->directive == SCHED_SPECIALIZE && line_is(l, 2, "when");
}

/* The arguments of the directive, with one blank between words. */
static const char *text_of(const struct line *l, struct arena *a)
{
	struct str s = str_in(a);
	for (int word = 1; word < l->words; word++)
		str_printf(&s, "%s%s", word > 1 ? " " : "", l->word[word]);
	return str_text(&s);
}

/* children == 2 */
static bool read_children(struct line *l, int word, const struct sub_program *p, struct sub_split *to)
{
	const char *problem = sub_check_split_children(p, to);
	if (problem)
		return line_refuse(l, word, problem);
	to->children = line_number(l, word + 2, 1, MOST_CHILDREN);
	return to->children > 0;
}

/* tag == 3 */
static bool read_token(struct line *l, int word, const struct sub_program *p, struct sub_split *to)
{
	size_t input = 0;
	while (input < p->inputs.n && !line_is(l, word, p->inputs.at[input].name))
		input++;
	const char *problem = sub_check_split_token(p, to, input);
	if (problem)
		return line_refuse(l, word, problem);
	int value = line_number(l, word + 2, 0, INT32_MAX);
	vec_push(p->arena, &to->match, (struct image_match){input, value});
	return value >= 0;
}

/* Reads the conditions, from the third word on. */
static bool read_split(struct line *l, const struct sub_program *p, struct sub_split *to)
{
	const char *text = text_of(l, p->arena);
	*to = (struct sub_split){
	    .base = arena_copy(p->arena, l->word[1], strlen(l->word[1]) + 1), .children = -1, .text = text};
	for (int word = 3;; word += 4) {
		if (!line_is(l, word + 1, "=="))
			return line_refuse(l, word < l->words ? word : word - 1,
					   "expects children == N or TOKEN == N");
		bool children = line_is(l, word, "children");
		if (!(children ? read_children : read_token)(l, word, p, to))
			return false;
		if (word + 3 == l->words)
			return true;
		if (!line_is(l, word + 3, "and"))
			return line_refuse(l, word + 3, "expects the word and here");
	}
}

bool sched_split_cases(struct sub_program *p, const char *file, const char *text, size_t length,
		       struct diags *diags)
{
	struct line l = {.diags = diags, .at = {.file = file}};
	struct sub_split split;
	for (const char *end = text + length; text < end;) {
		if (!line_next(&l, &text, end))
			return false;
		if (!l.words || !is_split(&l))
			continue;
		const char *problem = sub_check_split_base(p, l.word[1]);
		if (problem)
			return line_refuse(&l, 1, problem);
		if (!read_split(&l, p, &split))
			return false;
		problem = sub_split_case(p, &split);
		if (problem)
			return line_refuse(&l, 1, problem);
	}
	return true;
}

/* --- printing --- */

/* A mask of all cases; 0 if the model names none. */
static unsigned all_cases(const struct sub_program *p)
{
	return p->cases.n ? (1u << p->cases.n) - 1 : 0;
}

static bool is_word_of_all(const char *name)
{
	return strcmp(name, "all") == 0 || strcmp(name, "none") == 0 || strcmp(name, "leaf") == 0;
}

/* Writes the names of cases that have kernels of their own, after `case` where the first could be taken
 * for another argument. */
static void print_apart(const struct sched *sc, const struct sub_program *p, struct str *s)
{
	for (size_t c = 0, first = true; c < p->cases.n; c++)
		if (!(sc->shared_cases >> c & 1)) {
			str_printf(s, "%s %s", first && is_word_of_all(p->cases.at[c].name) ? " case" : "",
				   p->cases.at[c].name);
			first = false;
		}
}

void sched_print_cases(const struct sched *sc, const struct sub_program *p, struct str *s)
{
	unsigned all = all_cases(p);
	bool apart = all && !sc->shared_cases;
	str_printf(s, "%s", sched_spelling(SCHED_SPECIALIZE));
	if (!sc->specialize_leaf || apart || sc->shared_cases == all)
		str_puts(s, !sc->specialize_leaf ? " none" : apart ? " all" : " leaf");
	else
		print_apart(sc, p, s);
	str_puts(s, "\n");
	for (size_t i = 0; i < p->splits.n; i++)
		str_printf(s, "%s %s\n", sched_spelling(SCHED_SPECIALIZE), p->splits.at[i].text);
}

/* --- reading --- */

/* Cases are added before rewriting: the line may only repeat one that was added. */
static bool read_split_again(struct line *l, const struct sub_program *p)
{
	const char *text = text_of(l, p->arena);
	for (size_t i = 0; i < p->splits.n; i++)
		if (strcmp(p->splits.at[i].text, text) == 0)
			return true;
	return line_refuse(l, 1, "the program was made without it");
}

static bool read_cases(struct line *l, struct sched *s, const struct sub_program *p)
{
	s->shared_cases = all_cases(p);
	for (int word = line_is(l, 1, "case") ? 2 : 1; word < l->words; word++) {
		size_t c = 0;
		while (c < p->cases.n && !line_is(l, word, p->cases.at[c].name))
			c++;
		if (c == p->cases.n)
			return line_refuse(
			    l, word, p->cases.n ? "the model has no case of this name" : "wrong argument");
		if (!(s->shared_cases >> c & 1))
			return line_refuse(l, word, "names a case twice");
		s->shared_cases &= ~(1u << c);
	}
	return true;
}

bool sched_read_cases(struct line *l, struct sched *s, const struct sub_program *p)
{
	bool all = line_is(l, 1, "all"), none = line_is(l, 1, "none");
	if (is_split(l))
		return read_split_again(l, p);
	int least = line_is(l, 1, "case") ? 3 : 2;
	if (l->words < least || ((all || none) && l->words > 2))
		return line_refuse(l, l->words < least ? least - 1 : 2, "wrong argument");
	s->specialize_leaf = !none;
	if (all || none || (l->words == 2 && line_is(l, 1, "leaf"))) {
		s->shared_cases = all ? 0 : all_cases(p);
		return true;
	}
	return read_cases(l, s, p);
}
