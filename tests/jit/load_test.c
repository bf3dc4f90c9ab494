/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading back ends: what is there, what is not, and what is something else. */
#include "tests/backends.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *original_path;

static bool says(const struct diags *d, enum diag_id id, const char *text)
{
	for (size_t i = 0; i < d->n; i++)
		printf("# %s: %s\n", diag_spelling(d->at[i].id), d->at[i].message);
	return d->n == 1 && d->at[0].id == id && strstr(d->at[0].message, text) && d->at[0].hint;
}

static void refused(const char *what, const char *name, const char *path, enum diag_id id, const char *text)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	setenv("ESPALIER_BACKEND_PATH", path, 1);
	const struct jit_backend *b = jit_backend_load(name, &d);
	tap_ok(!b && says(&d, id, text), "%s", what);
	diags_free(&d);
}

static void write_text(const char *folder)
{
	char path[300];
	snprintf(path, sizeof path, "%s/espalier-text.so", folder);
	FILE *f = fopen(path, "w");
	fputs("not a shared object\n", f);
	fclose(f);
}

/* The C library is a shared object, and no back end. */
static void link_stranger(const char *folder)
{
	char path[300];
	Dl_info info;
	snprintf(path, sizeof path, "%s/espalier-stranger.so", folder);
	if (!dladdr(dlsym(RTLD_DEFAULT, "strtod"), &info) || symlink(info.dli_fname, path))
		printf("# cannot link %s\n", path);
}

static void *refuse_memory(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)old_size;
	if (!new_size)
		free(p);
	return NULL;
}

static void without_memory(void)
{
	static const struct allocator none = {refuse_memory, NULL};
	struct diags d;
	diags_init(&d, &none);
	tap_ok(!jit_backend_load("llvm", &d) && d.lost, "without memory there is no back end");
	diags_free(&d);
}

static void refusals(void)
{
	char folder[] = "/tmp/espalier-load-XXXXXX", path[300], both[320];
	if (!tap_ok(mkdtemp(folder) != NULL, "a folder to work in"))
		return;
	write_text(folder);
	link_stranger(folder);
	snprintf(both, sizeof both, ":%s::/nonexistent/two:", folder);
	refused("a missing back end: the folders of the path are named", "none", both, DIAG_BACKEND_NOT_FOUND,
		folder);
	refused("a missing back end: every folder is named", "none", both, DIAG_BACKEND_NOT_FOUND,
		", /nonexistent/two, ");
	refused("a name that leaves the folder", "../../tmp/x", folder, DIAG_BACKEND_NOT_FOUND, "nowhere");
	refused("an empty name", "", folder, DIAG_BACKEND_NOT_FOUND, "nowhere");
	refused("a file that is no shared object", "text", folder, DIAG_BACKEND_UNUSABLE, "espalier-text.so");
	refused("a shared object that is no back end", "stranger", folder, DIAG_BACKEND_UNUSABLE,
		"not a back end");
	snprintf(path, sizeof path, "%s/espalier-text.so", folder);
	unlink(path);
	snprintf(path, sizeof path, "%s/espalier-stranger.so", folder);
	unlink(path);
	rmdir(folder);
}

static void other_version(void)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	setenv("ESPALIER_BACKEND_PATH", original_path, 1);
	if (!jit_backend_load("fake", &d) && d.n == 1 && d.at[0].id == DIAG_BACKEND_NOT_FOUND)
		tap_skip("espalier-fake.so is not built", "a back end of another version");
	else
		tap_ok(says(&d, DIAG_BACKEND_UNUSABLE, "another version"), "a back end of another version");
	diags_free(&d);
}

static void *load_usual(void *out)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	*(const struct jit_backend **)out = jit_backend_load(usual_backend(), &d);
	diags_free(&d);
	return NULL;
}

static void from_threads(void)
{
	enum { THREADS = 8 };
	pthread_t thread[THREADS];
	const struct jit_backend *found[THREADS];
	bool same = true;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, load_usual, &found[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		same &= found[i] && found[i] == found[0];
	}
	if (need_backend("threads that load at once get the same back end"))
		tap_ok(same && strcmp(found[0]->name, usual_backend()) == 0,
		       "threads that load at once get the same back end");
}

int main(void)
{
	const char *path = getenv("ESPALIER_BACKEND_PATH");
	original_path = path ? strdup(path) : "";
	from_threads();
	refusals();
	other_version();
	without_memory();
	return tap_done();
}
