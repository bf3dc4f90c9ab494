/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Every file of tests/ra/illegal is refused with the one diagnostic, at the one place, that its first line
 * names; and every diagnostic of model texts has such a file. */
#include "tests/ra/read.h"
#include "tests/ra/session.h"
#include "tests/tap.h"

#include <dirent.h>

static bool provoked[DIAG_COUNT];

static void check_file(const char *name)
{
	char path[600], spelling[64];
	int line, column;
	size_t length;
	struct session s;
	snprintf(path, sizeof path, "tests/ra/illegal/%s", name);
	char *text = read_text(source_path(path), &length);
	if (!tap_ok(text && sscanf(text, "# expect: %63s %d:%d", spelling, &line, &column) == 3,
		    "%s: says what to expect", name)) {
		free(text);
		return;
	}
	session_parse(&s, &allocator_default, text, length);
	free(text);
	const struct diag *d = s.diags.n ? &s.diags.at[0] : NULL;
	tap_ok(!s.model, "%s: is refused", name);
	tap_ok(s.diags.n == 1, "%s: has one fault", name);
	tap_ok(d && strcmp(diag_spelling(d->id), spelling) == 0 && d->line == line && d->column == column,
	       "%s: %s at %d:%d", name, spelling, line, column);
	if (d)
		provoked[d->id] = true;
	for (size_t i = 0; i < s.diags.n; i++)
		printf("# %d:%d %s [%s]\n", s.diags.at[i].line, s.diags.at[i].column, s.diags.at[i].message,
		       diag_spelling(s.diags.at[i].id));
	session_end(&s);
}

int main(void)
{
	DIR *folder = opendir(source_path("tests/ra/illegal"));
	if (!tap_ok(folder, "the illegal models are there"))
		return tap_done();
	for (struct dirent *e; (e = readdir(folder));)
		if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".ra") == 0)
			check_file(e->d_name);
	closedir(folder);
	for (int id = DIAG_MODEL_SYNTAX; id <= DIAG_MODEL_LARGE; id++)
		tap_ok(provoked[id], "an illegal model provokes %s", diag_spelling(id));
	return tap_done();
}
