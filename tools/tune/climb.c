/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing: for one directive after the other, tries the most promising alternatives not tried yet,
 * until none is faster.
 *
 * A schedule is accepted when it is faster twice, the second time with its data at several places in
 * memory: among a hundred that are no better, some look faster once, and where weights lie can matter more
 * than a tile. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PLACES = 4,
	FEW = 6,
	MANY = 1 << 20 /* options of a block that are tried in a round, in the first round and at most */
};

static const double small = 0.01; /* groups that take a smaller fraction of the time are left as they are */
static const double gain = 0.99, confirmed = 0.995; /* of the holder's time: a challenger must be below */

bool search_is_over(const struct search *s)
{
	return interrupt_noted() || read_clock() > s->deadline;
}

/* --- progress --- */

static void show_progress(const struct search *s, const char *line)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%ld measured, %.0f s left: %.50s\033[K", s->measured,
			fmax(0, s->deadline - read_clock()), line);
}

static void hide_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static void print_gain(const struct search *s, const char *line, const struct outcome *o)
{
	hide_progress();
	fprintf(stderr, "%s%s%s: %.3f times as fast\n", s->base ? s->base : "", s->base ? "; " : "", line, o->holder / o->challenger);
}

/* --- a challenger --- */

static bool was_tried(const struct search *s, const char *text)
{
	for (size_t i = 0; i < s->tries; i++)
		if (strcmp(s->tried[i], text) == 0)
			return true;
	return false;
}

/* Takes ownership of the text. */
static bool note_try(struct search *s, char *text)
{
	char **more = realloc(s->tried, (s->tries + 1) * sizeof *more);
	if (!more) {
		free(text);
		return complain("no memory for the schedules that were tried");
	}
	s->tried = more;
	s->tried[s->tries++] = text;
	return true;
}

static int measure_challenger(struct search *s, struct subject *challenger, const char *line, struct attempt *a)
{
	struct contest thorough = s->contest;
	struct outcome o;
	int status = contest_run(&s->contest, s->holder, challenger, &o);
	s->measured++;
	if (!status && o.differs) {
		hide_progress();
		complain("'%s' changes results, and is left out", line);
		s->differing++;
	}
	a->ratio = status || o.differs ? 0 : o.holder / o.challenger;
	if (a->ratio > 0 && s->tells_all)
		print_gain(s, line, &o);
	if (status || o.differs || o.challenger > gain * o.holder)
		return status;
	thorough.places = PLACES;
	status = contest_run(&thorough, s->holder, challenger, &o);
	a->faster = !status && o.challenger < confirmed * o.holder;
	if (a->faster && !s->tells_all)
		print_gain(s, line, &o);
	return status;
}

static void replace_holder(struct search *s, struct subject *challenger, struct directives *d)
{
	if (s->holder != s->first) {
		subject_close(s->holder);
		free(s->holder);
	}
	directives_free(&s->directives);
	s->directives = *d;
	s->holder = challenger;
	*d = (struct directives){0};
}

/* Measures a schedule against the holder, and replaces that by a faster one. A schedule that the library
 * refuses is skipped. */
static int try_challenger(struct search *s, struct directives *d, const char *text, const char *line,
			  struct attempt *a)
{
	esp_error *error;
	struct subject *challenger = calloc(1, sizeof *challenger);
	if (!challenger) {
		complain("no memory for a program");
		return EXIT_INPUT;
	}
	show_progress(s, line);
	if (subject_join(challenger, s->first, s->options, text, &error)) {
		esp_error_free(error);
		free(challenger);
		return 0;
	}
	int status = measure_challenger(s, challenger, line, a);
	if (a->faster) {
		replace_holder(s, challenger, d);
	} else {
		subject_close(challenger);
		free(challenger);
	}
	return status;
}

int search_try(struct search *s, const struct directives *from, const char *key, const char *line, bool plan,
	       struct attempt *a)
{
	struct directives d;
	int status = EXIT_INPUT;
	*a = (struct attempt){0};
	if (!directives_copy(&d, from ? from : &s->directives))
		return status;
	char *text = directives_set(&d, key, line, plan) ? directives_text(&d) : NULL;
	if (text && was_tried(s, text)) {
		free(text);
		status = 0;
	} else if (text && note_try(s, text)) {
		a->tried = true;
		status = try_challenger(s, &d, text, line, a);
	}
	directives_free(&d);
	return status;
}

/* --- a round --- */

struct round {
	size_t most;	  /* options of a block */
	bool any, faster; /* any: a schedule was tried */
};

/* Tries the options of a block, and again those near the new one each time that one is faster. */
static int try_block(struct search *s, const char *key, struct round *r)
{
	struct space space;
	bool faster = true;
	int status = 0;
	while (faster && !status && !search_is_over(s) &&
	       !(status = space_of(&space, s->holder->objects.program))) {
		const struct block *b = space_find(&space, key);
		size_t tries = 0;
		faster = false;
		for (size_t i = 1;
		     b && i < b->options && tries < r->most && !faster && !status && !search_is_over(s);
		     i++) {
			struct attempt a;
			status = search_try(s, NULL, key, b->option[i].line, block_is_plan(b), &a);
			tries += a.tried;
			faster = a.faster;
		}
		r->any |= tries > 0;
		r->faster |= faster;
		space_free(&space);
	}
	return status;
}

static int is_worth_it(struct search *s, const struct block *b, bool *worth)
{
	struct kernels k = {.share = 1};
	const char *group = block_group(b);
	int status = group ? contest_kernels(&s->contest, s->holder, group, &k) : 0;
	*worth = k.share >= small;
	return status;
}

/* Tries the blocks of the schedule that the round begins with; blocks that a new plan adds wait for the
 * next round. */
static int run_round(struct search *s, struct round *r)
{
	struct space space;
	int status = space_of(&space, s->holder->objects.program);
	for (size_t i = 0; i < space.blocks && !status && !search_is_over(s); i++) {
		bool worth;
		status = is_worth_it(s, &space.block[i], &worth);
		if (!status && worth)
			status = try_block(s, space.block[i].key, r);
	}
	space_free(&space);
	return status;
}

int search_climb(struct search *s)
{
	struct round r = {.any = true, .most = FEW};
	int status = 0;
	while (r.any && !status && !search_is_over(s)) {
		r.any = r.faster = false;
		status = run_round(s, &r);
		if (!r.faster && r.most < MANY)
			r.most *= 2;
	}
	hide_progress();
	return status;
}

void search_free(struct search *s)
{
	for (size_t i = 0; i < s->tries; i++)
		free(s->tried[i]);
	free(s->tried);
	if (s->holder && s->holder != s->first) {
		subject_close(s->holder);
		free(s->holder);
	}
	directives_free(&s->directives);
}
