/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Measures mutants: programs that compute a sum of a reorganised image, and by the original where that is not equal. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2, KEY = 512 };

/* Of the first round the first two words of a line: it chooses one mutant of a value.  Later lines are of the mutants of the best so
 * far, and stand behind its own. */
static bool find_key(const char *line, int round, char *key)
{
	const char *name = strchr(line, ' ');
	size_t n = !name ? 0 : round ? strlen(line) : (size_t)(name - line) + 1 + strcspn(name + 1, " ");
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

static int try_line(struct search *s, const char *from, int round, bool *faster)
{
	char key[KEY], *line = copy_line(from);
	bool tried;
	if (!line) {
		complain("no memory for a schedule");
		return EXIT_INPUT;
	}
	int status = find_key(line, round, key) ? search_try(s, key, line, true, &tried, faster) : 0;
	free(line);
	return status;
}

static int try_all(struct search *s, const char *text, int round, bool *any)
{
	int status = 0;
	*any = false;
	for (const char *line = text; *line && !status && !search_is_over(s); line += strcspn(line, "\n"), line += *line == '\n') {
		bool faster = false;
		if (strncmp(line, "mutate ", 7) == 0)
			status = try_line(s, line, round, &faster);
		*any |= faster;
	}
	return status;
}

/* Lists the mutants of the best so far, for half of the time that is left; *text is NULL where an interrupt ended that. */
static int list_mutants(struct search *s, char **text)
{
	double now = tune_clock();
	esp_error *error;
	interrupt_give_up(true, now + (s->deadline - now) / 2);
	esp_status refused = esp_program_dump(s->holder->objects.program, "mutants", text, &error);
	interrupt_give_up(false, INFINITY);
	if (!refused || !interrupt_noted())
		return refused ? report_failure(refused, error) : 0;
	esp_error_free(error);
	return 0;
}

int search_mutants(struct search *s)
{
	bool any = true;
	int status = 0;
	s->tells_all = true;
	for (int round = 0; round < ROUNDS && any && !status && !search_is_over(s); round++) {
		char *text = NULL;
		status = list_mutants(s, &text);
		any = false;
		if (text && !status)
			status = try_all(s, text, round, &any);
		esp_text_free(text);
	}
	return status;
}
