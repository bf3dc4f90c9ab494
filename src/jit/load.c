/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads back ends. */
#include "jit/jit.h"

#include "base/fork.h"
#include "base/str.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PKGLIBDIR
#define PKGLIBDIR "/usr/local/lib/espalier"
#endif
#ifndef PKGLIBEXECDIR
#define PKGLIBEXECDIR "/usr/local/libexec/espalier"
#endif

/* A search for a back end, and the folders that it has searched. */
struct search {
	struct arena *arena;
	const char *name;
	struct diags *diags;
	struct str looked;
};

/* A name becomes part of a file name: letters, digits and dashes only. */
static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return n > 0 && n < 40 && !name[n];
}

/* The path of the file, if the folder has it; else NULL, and the folder is added to `looked`. */
static const char *look_in(struct arena *arena, const char *folder, size_t length, const char *file,
			   struct str *looked)
{
	struct str path = str_in(arena);
	str_add(&path, folder, length);
	str_printf(&path, "/%s", file);
	if (access(path.text, F_OK) == 0)
		return path.text;
	str_printf(looked, "%s%.*s", looked->n ? ", " : "", (int)length, folder);
	return NULL;
}

/* The folder "espalier" beside the shared library, where a library that was moved after its installation has its plug-ins;
 * NULL in a program that is linked statically. */
static const char *find_own_folder(struct arena *arena)
{
	static const char anchor;
	Dl_info at;
	const char *slash = dladdr(&anchor, &at) && at.dli_fname ? strrchr(at.dli_fname, '/') : NULL;
	if (!slash || !strstr(slash, ".so"))
		return NULL;
	struct str folder = str_in(arena);
	str_add(&folder, at.dli_fname, (size_t)(slash - at.dli_fname));
	str_printf(&folder, "/espalier");
	return folder.text;
}

static const char *look_beside_library(struct arena *arena, const char *installed, const char *file, struct str *looked)
{
	const char *own = find_own_folder(arena);
	return own && strcmp(own, installed) != 0 ? look_in(arena, own, strlen(own), file, looked) : NULL;
}

/* A process with more rights than its caller ignores the caller's folders.  A library that was moved finds what was moved
 * with it before what is installed. */
static const char *find_file(struct arena *arena, const char *installed, const char *file,
			     struct str *looked)
{
	const char *folders = secure_getenv("ESPALIER_BACKEND_PATH"), *found = NULL;
	while (folders && *folders && !found) {
		size_t n = strcspn(folders, ":");
		if (n)
			found = look_in(arena, folders, n, file, looked);
		folders += n + (folders[n] == ':');
	}
	if (!found)
		found = look_beside_library(arena, installed, file, looked);
	return found ? found : look_in(arena, installed, strlen(installed), file, looked);
}

static const char *find_backend(struct search *s)
{
	struct str file = str_in(s->arena);
	str_printf(&file, "espalier-%s.so", s->name);
	return find_file(s->arena, PKGLIBDIR, file.text, &s->looked);
}

static const struct jit_backend *refuse_unusable(const struct search *s, const char *path, const char *why)
{
	diag_add(s->diags, DIAG_BACKEND_UNUSABLE, (struct diag_at){0},
		 "install the plug-in that belongs to this version of espalier, and what it depends on",
		 "back end '%s' (%s): %s", s->name, path, why);
	return NULL;
}

static const struct jit_backend *refuse_forked(const struct search *s)
{
	diag_add(
	    s->diags, DIAG_BACKEND_UNUSABLE, (struct diag_at){0},
	    "prepare programs before forking, or start the child's work by exec",
	    "back end '%s': this process was forked while its parent compiled, and has the compiler's "
	    "locks without the thread that would open them",
	    s->name);
	return NULL;
}

static const struct jit_backend *refuse_loading(const struct search *s, const char *path)
{
	diag_add(
	    s->diags, DIAG_BACKEND_UNUSABLE, (struct diag_at){0},
	    "link the program with the shared library, compile the model ahead of time with 'espalier compile', or "
	    "choose the back end 'interpreter'",
	    "back end '%s' (%s): this program is linked statically and loads no shared object", s->name, path);
	return NULL;
}

/* Notes whether the program's headers name a dynamic linker.  The program itself comes first, and ends the
 * search. */
static int read_headers(struct dl_phdr_info *program, size_t size, void *dynamic)
{
	(void)size;
	for (int i = 0; i < program->dlpi_phnum; i++)
		if (program->dlpi_phdr[i].p_type == PT_INTERP)
			*(bool *)dynamic = true;
	return 1;
}

/* Without a dynamic linker glibc's dlopen gives a plug-in a second C library, in which LLVM crashes. */
static bool is_static(void)
{
	bool dynamic = false;
	dl_iterate_phdr(read_headers, &dynamic);
	return !dynamic;
}

/* The handle is kept: code that the back end has made refers to it, and the loader counts repeated loads by
 * itself. */
static const struct jit_backend *open_backend(const struct search *s, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return refuse_unusable(s, path, dlerror());
	const struct jit_backend *b = dlsym(handle, JIT_BACKEND_SYMBOL);
	if (b && b->abi == JIT_ABI)
		return b;
	refuse_unusable(s, path,
			b ? "it was made for another version of the library" : "it is not a back end");
	dlclose(handle);
	return NULL;
}

static const struct jit_backend *load_found(struct search *s)
{
	if (fork_inherited_foreign())
		return refuse_forked(s);
	const char *path = is_name(s->name) ? find_backend(s) : NULL;
	if (path)
		return is_static() ? refuse_loading(s, path) : open_backend(s, path);
	diag_add(s->diags, DIAG_BACKEND_NOT_FOUND, (struct diag_at){0},
		 "install the plug-in, name its folder in ESPALIER_BACKEND_PATH, or choose the back end "
		 "'interpreter', which is always there, and slow",
		 "there is no back end '%s'; looked in: %s", s->name,
		 s->looked.n ? str_text(&s->looked) : "nowhere, since a name is made of a-z, 0-9 and -");
	return NULL;
}

static const struct jit_backend *guarded_load(struct search *s)
{
	jmp_buf escape;
	if (arena_guard(s->arena, &escape)) {
		diag_add(s->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
			 "no memory to look for a back end");
		return NULL;
	}
	return load_found(s);
}

const struct jit_backend *jit_backend_load(const char *name, struct diags *d)
{
	struct arena arena;
	arena_init(&arena, d->allocator);
	struct search s = {&arena, name, d, str_in(&arena)};
	fork_enter_foreign(); /* the search asks the dynamic linker, too, which has a lock */
	const struct jit_backend *b = guarded_load(&s);
	fork_leave_foreign();
	arena_free(&arena);
	return b;
}

/* --- loading in a thread --- */

static void *load_ahead(void *ahead)
{
	struct jit_ahead *a = ahead;
	struct diags unheard;
	jit_settle(&a->threads);
	diags_init(&unheard, &allocator_default);
	jit_backend_load(a->name, &unheard);
	diags_free(&unheard);
	return NULL;
}

/* The thread blocks all signals, which are left to the host. */
void jit_ahead_begin(struct jit_ahead *a, const char *name, struct jit_threads threads)
{
	sigset_t all, before;
	a->name = name;
	a->threads = threads;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	a->begun = pthread_create(&a->thread, NULL, load_ahead, a) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void jit_ahead_end(struct jit_ahead *a)
{
	if (a->begun)
		pthread_join(a->thread, NULL);
	a->begun = false;
}

/* --- names --- */

static const char *const names[] = {"llvm", "gccjit"};

const char *jit_backend_name(int i)
{
	return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

const char *jit_backend_usual(struct arena *arena)
{
	for (int i = 0; jit_backend_name(i); i++)
		if (jit_backend_path(arena, jit_backend_name(i)))
			return jit_backend_name(i);
	return jit_backend_name(0);
}

/* --- paths --- */

const char *jit_backend_path(struct arena *arena, const char *name)
{
	struct search s = {.arena = arena, .name = name, .looked = str_in(arena)};
	return is_name(name) ? find_backend(&s) : NULL;
}

const char *jit_helper_path(struct arena *arena, struct str *looked)
{
	return find_file(arena, PKGLIBEXECDIR, JIT_HELPER_FILE, looked);
}
