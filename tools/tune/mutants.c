/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures mutants: programs that compute a sum of a reorganised image, and by the original where that is not equal. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY = 512,
	KEPT = 4 /* mutants that are no faster, of which mutants are tried */
};

/* Of one mutant the first two words of its line: a schedule has one of each value.  Mutants of mutants stand behind the line that
 * they are of, so that all of it is their key. */
static bool find_key(const char *line, bool further, char *key)
{
	const char *name = strchr(line, ' ');
	size_t n = !name ? 0 : further ? strlen(line) : (size_t)(name - line) + 1 + strcspn(name + 1, " ");
	if (n == 0 || n >= KEY)
		return false;
	memcpy(key, line, n);
	key[n] = 0;
	return true;
}

/* A copy of a line without its comment, which the caller frees; NULL when memory is out. */
static char *copy_line(const char *line)
{
	size_t n = strcspn(line, "\n#");
	while (n && line[n - 1] == ' ')
		n--;
	return strndup(line, n);
}

/* --- the fastest of those that are no faster than the holder --- */

struct kept {
	int n;
	struct {
		char *line;
		double ratio;
	} at[KEPT]; /* the fastest first */
};

/* Takes ownership of the line. */
static void keep_line(struct kept *k, char *line, double ratio)
{
	int i = k->n < KEPT ? k->n++ : KEPT - 1;
	free(k->at[i].line);
	for (; i > 0 && k->at[i - 1].ratio < ratio; i--)
		k->at[i] = k->at[i - 1];
	k->at[i].line = line;
	k->at[i].ratio = ratio;
}

static bool is_kept(const struct kept *k, double ratio)
{
	return ratio > 0 && (k->n < KEPT || k->at[KEPT - 1].ratio < ratio);
}

static void free_kept(struct kept *k)
{
	for (int i = 0; i < k->n; i++)
		free(k->at[i].line);
}

/* --- lines --- */

/* Tries a line with a schedule (NULL = the holder's); `kept` gets it if it is no faster, or is NULL for mutants of mutants. */
static int try_line(struct search *s, const struct directives *from, const char *text, struct kept *kept)
{
	char key[KEY], *line = copy_line(text);
	struct attempt a = {false, false, 0};
	if (!line) {
		complain("no memory for a schedule");
		return EXIT_INPUT;
	}
	int status = find_key(line, !kept, key) ? search_try(s, from, key, line, true, &a) : 0;
	if (kept && !status && !a.faster && is_kept(kept, a.ratio))
		keep_line(kept, line, a.ratio);
	else
		free(line);
	return status;
}

static int try_lines(struct search *s, const struct directives *from, const char *text, struct kept *kept)
{
	int status = 0;
	for (const char *line = text; *line && !status && !search_is_over(s); line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, "mutate ", 7) == 0)
			status = try_line(s, from, line, kept);
	return status;
}

/* Whether a call failed because it was given up, as interrupt_give_up wants. */
static bool was_given_up(const esp_error *error)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	return d && strcmp(d->id, "compile-cancelled") == 0;
}

/* Lists the mutants of a program, for half of the time that is left, and tries them.  There are none where the time, or an interrupt, ends
 * the passes ahead of the list. */
static int try_mutants(struct search *s, esp_program *program, const struct directives *from, struct kept *kept)
{
	char *text = NULL;
	double now = read_clock();
	esp_error *error;
	interrupt_give_up(true, now + (s->deadline - now) / 2);
	esp_status refused = esp_program_dump(program, "mutants", &text, &error);
	interrupt_give_up(false, INFINITY);
	if (refused && was_given_up(error)) {
		esp_error_free(error);
		return 0;
	}
	int status = refused ? report_failure(refused, error) : try_lines(s, from, text, kept);
	esp_text_free(text);
	return status;
}

/* --- rounds --- */

/* The mutants of the program of a schedule, which is not the holder's. */
static int try_further(struct search *s, const struct directives *from)
{
	struct subject base;
	esp_error *error;
	char *text = directives_text(from);
	if (!text)
		return EXIT_INPUT;
	esp_status refused = subject_join(&base, s->first, s->options, text, &error);
	free(text);
	if (refused) {
		esp_error_free(error);
		return 0;
	}
	int status = try_mutants(s, base.objects.program, from, NULL);
	subject_close(&base);
	return status;
}

/* The mutants of a mutant alone, without those that the holder has. */
static int try_kept(struct search *s, const char *line)
{
	char key[KEY];
	struct directives d = {0};
	int status = EXIT_INPUT;
	s->base = line;
	if (find_key(line, false, key) && directives_set(&d, key, line, true))
		status = try_further(s, &d);
	s->base = NULL;
	directives_free(&d);
	return status;
}

int search_mutants(struct search *s)
{
	struct kept kept = {0};
	s->tells_all = true;
	int status = try_mutants(s, s->holder->objects.program, NULL, &kept);
	if (!status && s->holder != s->first && !search_is_over(s))
		status = try_mutants(s, s->holder->objects.program, NULL, NULL);
	for (int i = 0; i < kept.n && !status && !search_is_over(s); i++)
		status = try_kept(s, kept.at[i].line);
	free_kept(&kept);
	return status;
}
