/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The stage `choices`: what else the schedule of a program may say.  To list the choices between plans, each
 * plan is made. */
#include "compile/compilation.h"

#include <string.h>

/* A directive of a plan, and the rest of the schedule with it. */
struct variant {
	const char *line, *rest;
};

static bool is_first_word(const char *line, const char *word)
{
	size_t n = strlen(word);
	return strncmp(line, word, n) == 0 && (line[n] == ' ' || line[n] == '\t');
}

static const struct sched_choice *plan_choice_of(const char *line)
{
	const struct sched_choice *c;
	for (size_t i = 0; (c = sched_choice_at(i)); i++)
		if (c->scope == SCHED_SCOPE_PLAN && is_first_word(line, c->spelling))
			return c;
	return NULL;
}

/* The lines of a schedule's text that steer its plan, but for those of one directive. */
static const char *other_directives(struct arena *a, const char *schedule, const struct sched_choice *but)
{
	struct str s = str_in(a);
	for (const char *p = schedule; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *line = p + strspn(p, " \t");
		const struct sched_choice *of = plan_choice_of(line);
		if (of && of != but)
			str_printf(&s, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
	return str_text(&s);
}

/* A printed schedule without the lines of a directive. */
static const char *remove_directive(struct arena *a, const char *printed, const char *directive)
{
	struct str s = str_in(a);
	for (const char *p = printed; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (!is_first_word(p, directive))
			str_printf(&s, "%.*s\n", (int)strcspn(p, "\n"), p);
	return str_text(&s);
}

/* Prints the schedule that is chosen with one more line; NULL = it is refused. */
static const char *schedule_with(const struct compilation *from, const struct sched_choice *c,
				 const char *line)
{
	struct compilation v = *from;
	struct compile_options options = *from->options;
	struct diags diags;
	struct str text = str_in(v.arena), printed = str_in(v.arena);
	diags_init(&diags, v.arena->allocator);
	str_printf(&text, "%s%s\n", other_directives(v.arena, options.schedule, c), line ? line : "");
	options.schedule = str_text(&text);
	v.options = &options;
	v.diags = &diags;
	v.trace = NULL;
	bool ok = compile_run_steered_passes(&v) && compile_to_schedule(&v);
	diags_free(&diags);
	if (!ok)
		return NULL;
	sched_print(&v.sched, &v.plan, &printed);
	return str_text(&printed);
}

/* Adds the printed schedule's line of the directive, unless the rest of the schedule was found before. */
static bool add_variant(struct arena *a, const struct sched_choice *c, const char *printed,
			struct variant *found, size_t *n)
{
	struct variant v = {sched_find_line(a, printed, c->spelling),
			    remove_directive(a, printed, c->spelling)};
	for (size_t i = 0; i < *n; i++)
		if (!v.line || strcmp(v.rest, found[i].rest) == 0)
			return false;
	found[(*n)++] = v;
	return true;
}

static const char *own_line(const struct compilation *c, const struct sched_choice *choice)
{
	return sched_find_line(c->arena, c->options->schedule, choice->spelling);
}

static void print_variants(const struct compilation *c, const struct sched_choice *choice, struct str *s)
{
	enum { MOST = 16 };
	struct variant found[MOST];
	size_t n = 0;
	const char *line, *printed = schedule_with(c, choice, own_line(c, choice));
	if (!printed)
		return;
	add_variant(c->arena, choice, printed, found, &n);
	for (size_t i = 0; n < MOST && (line = sched_choice_line(c->arena, choice, NULL, i)); i++)
		if ((printed = schedule_with(c, choice, line)))
			add_variant(c->arena, choice, printed, found, &n);
	for (size_t i = 0; n > 1 && i < n; i++)
		if (i == 0)
			sched_begin_block(choice->scope, choice->spelling, found[i].line, s),
			    str_puts(s, "\n");
		else
			str_printf(s, "%s\n", found[i].line);
}

void compile_print_choices(const struct compilation *c, struct str *s)
{
	const struct sched_choice *choice;
	str_printf(
	    s,
	    "# what a schedule of %s for %s may say: of each block one line, the first is what is said now\n"
	    "# with another line of a plan, all groups and what is said of them are others\n",
	    c->program.name, c->plan.target->name);
	for (size_t i = 0; (choice = sched_choice_at(i)); i++)
		if (choice->scope == SCHED_SCOPE_PLAN)
			print_variants(c, choice, s);
	sched_print_choices(&c->sched, &c->plan, s);
}
