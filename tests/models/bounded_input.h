/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* An input within a bound, added to the text of a random model: all states of floats are computed of products with it. */
#ifndef ESPALIER_TESTS_MODELS_BOUNDED_INPUT_H
#define ESPALIER_TESTS_MODELS_BOUNDED_INPUT_H

#include "tests/models/forms.h"

#include <string.h>

/* Inserts a string before a place of a text; false, and nothing changes, where there is no room for it. */
static inline bool insert_text(struct text *t, size_t before, const char *what)
{
	size_t n = strlen(what);
	if (t->n + n >= sizeof t->at)
		return false;
	memmove(t->at + before + n, t->at + before, t->n + 1 - before);
	memcpy(t->at + before, what, n);
	t->n += n;
	return true;
}

/* Adds a product to what each body gives a state: inside of its tanh, where there is one, so that it continues the sums that
 * stand there, else before all. */
static inline void add_to_state(struct text *t, const char *state)
{
	char line[40], inside[64], alone[80];
	int n = snprintf(line, sizeof line, "\n    %s = ", state);
	snprintf(inside, sizeof inside, "q_%s @ bounded + ", state);
	snprintf(alone, sizeof alone, "0.25 * tanh(q_%s @ bounded) + ", state);
	for (char *at = strstr(t->at, line); at; at = strstr(at + 1, line)) {
		size_t value = at + n - t->at, skipped = strncmp(t->at + value, "0.25 * ", 7) == 0 ? 7 : 0;
		bool bounds = strncmp(t->at + value + skipped, "tanh(", 5) == 0;
		insert_text(t, bounds ? value + skipped + 5 : value, bounds ? inside : alone);
	}
}

/* Adds the input, of so many times the elements of a symbol and with such a bound as the seed says, where a state of floats has
 * dimensions and no more than `rank`, which are those that leave the weights one more. */
static inline void put_bounded_input(struct text *t, uint64_t seed, int rank, int times)
{
	static const char *const bounds[] = {"0.3", "1", "0.4", "2.5"};
	char symbol = (char)('A' + seed / 16 % SYMBOLS), elements[24];
	int states = 0;
	snprintf(elements, sizeof elements, "%d*%c", times, symbol);
	for (const char *at = strstr(t->at, "\nstate "); at; at = strstr(at + 1, "\nstate ")) {
		char state[16], dims[200];
		int commas = 0;
		if (sscanf(at, " state %15[a-z0-9][%199[^]]", state, dims) != 2 || at[1 + strcspn(at + 1, "\n:")] == ':')
			continue;
		for (const char *c = dims; *c; c++)
			commas += *c == ',';
		if (commas + 1 > rank)
			continue;
		size_t here = at - t->at;
		add_to_state(t, state);
		put(t, "param q_%s[%s, %s]\n", state, dims, elements); /* dims is as "B, C + 1" */
		at = t->at + here;
		states++;
	}
	if (states)
		put(t, "input bounded[%s] within %s\n", elements, bounds[seed / 48 % 4]);
}

#endif
