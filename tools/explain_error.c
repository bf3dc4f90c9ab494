/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier explain-error: the registry of diagnostics. */
#include "tool.h"

#include <string.h>

static int list_messages(void)
{
	const esp_message *m;
	for (size_t i = 0; (m = esp_message_at(i)); i++)
		printf("%-20s  %s\n", m->id, m->message);
	return 0;
}

static int explain_message(const esp_message *m)
{
	printf("%s: %s\n\n", m->id, m->message);
	put_wrapped(stdout, 0, m->explanation);
	fputs("\nWhat to do:\n", stdout);
	put_wrapped(stdout, 2, m->fix);
	if (m->status)
		printf("\nStatus of a call that fails with it: %s (%d)%s\n", esp_status_name(m->status),
		       m->status,
		       esp_status_is_transient(m->status) ? ", the same call may be made again" : "");
	else
		puts("\nA notice: it is only logged, no call fails with it.");
	return 0;
}

/* Removes the square brackets that an id has in a message. */
static void strip_brackets(const char *word, char id[static 64])
{
	size_t begin = word[0] == '[', n = strlen(word + begin);
	if (n && word[begin + n - 1] == ']')
		n--;
	snprintf(id, 64, "%.*s", (int)n, word + begin);
}

int command_explain_error(const struct options *options)
{
	char id[64];
	const esp_message *m;
	if (!options->operands)
		return list_messages();
	strip_brackets(options->operand[0], id);
	if ((m = esp_message_find(id)))
		return explain_message(m);
	struct nearest nearest = {.wanted = id};
	for (size_t i = 0; (m = esp_message_at(i)); i++)
		nearest_offer(&nearest, m->id);
	complain_unknown("diagnostic", &nearest, "espalier explain-error");
	return EXIT_USAGE;
}
