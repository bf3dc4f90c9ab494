/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The page about model texts names everything that the language has. */
#include "ra/syntax.h"
#include "tests/ra/read.h"
#include "tests/tap.h"

/* As it stands in the table of functions, or among the reserved words. */
static bool page_mentions(const char *page, const char *before, const char *name, size_t length,
			  const char *after)
{
	char wanted[200];
	snprintf(wanted, sizeof wanted, "%s%.*s%s", before, (int)length, name, after);
	return strstr(page, wanted);
}

int main(void)
{
	size_t length;
	char *page = read_text(source_path("doc/model-text.md"), &length);
	if (!tap_ok(page, "doc/model-text.md is there"))
		return tap_done();
	for (int i = 0; ra_builtin_name(i); i++)
		tap_ok(page_mentions(page, "`", ra_builtin_name(i), strlen(ra_builtin_name(i)), "("),
		       "it has %s", ra_builtin_name(i));
	for (int i = 0; i < ra_prelude_functions; i++) {
		const char *text = ra_prelude[i].text;
		size_t head = strcspn(text, ")") + 1;
		tap_ok(page_mentions(page, "| `", text, head, "`") && strstr(page, ra_prelude[i].doc),
		       "it has %.*s and what it is", (int)head, text);
	}
#define RA_WORD(name, spelling)                                                                              \
	tap_ok(page_mentions(page, "`", spelling, strlen(spelling), "`"), "it has the word %s", spelling);
	RA_WORD_LIST
#undef RA_WORD
	free(page);
	return tap_done();
}
