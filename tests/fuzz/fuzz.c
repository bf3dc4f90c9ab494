/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Small inputs that want more than this are findings: a reader's memory is bounded by its input. */
enum { MOST_HELD = 512 << 20, ANY_NUMBER = 1 << 30 };

static _Noreturn void fault(const char *what)
{
	fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

/* The sizes that the library says it gives back must be those that it took. */
static void *resize(void *context, void *p, size_t old_size, size_t new_size)
{
	struct fuzz *f = context;
	if (new_size && (f->left-- <= 0 || (f->most && new_size > f->most - f->held))) {
		f->refused = true;
		return NULL;
	}
	if (!p != !old_size || old_size > f->held)
		fault("memory is given back with the size that it was taken with");
	if (new_size > MOST_HELD || f->held - old_size + new_size > MOST_HELD)
		fault("a small input takes a modest amount of memory");
	void *q = allocator_default.resize(NULL, p, old_size, new_size);
	f->held += new_size - old_size;
	f->blocks += (new_size != 0) - (old_size != 0);
	return q;
}

void fuzz_check(const struct fuzz *f, bool kept, const char *promise)
{
	if (!kept && !f->refused)
		fault(promise);
}

uint64_t fuzz_hash(const void *bytes, size_t n)
{
	uint64_t h = hash_bytes(HASH_START, bytes, n);
	return (h ^ h >> 29) * 0xBF58476D1CE4E5B9u >> 16;
}

const char *fuzz_file(const void *bytes, size_t n)
{
	static int fd = -1;
	static char path[40];
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		fault("the system lets the target make a file");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

/* Every diagnostic as the command shows it: places and source lines are read on the way. */
static void show(struct fuzz *f)
{
	jmp_buf escape;
	if (arena_guard(&f->arena, &escape))
		return;
	struct str shown = str_in(&f->arena);
	for (size_t i = 0; i < f->diags.n; i++)
		diag_print(&f->diags.at[i], &shown);
}

static void run_once(fuzz_body *body, const uint8_t *bytes, size_t n, long allocations)
{
	static struct fuzz f; /* what it holds must survive the escape */
	jmp_buf escape;
	f = (struct fuzz){.left = allocations};
	f.allocator = (struct allocator){resize, &f};
	arena_init(&f.arena, &f.allocator);
	diags_init(&f.diags, &f.allocator);
	if (arena_guard(&f.arena, &escape))
		fuzz_check(&f, false, "the arena escapes when memory is out only");
	else if (!body(&f, bytes, n))
		fuzz_check(&f, f.diags.n, "what is refused is explained");
	show(&f);
	diags_free(&f.diags);
	arena_free(&f.arena);
	if (f.held || f.blocks)
		fault("all memory comes back");
}

int fuzz_run(fuzz_body *body, const uint8_t *bytes, size_t n)
{
	uint64_t h = fuzz_hash(bytes, n);
	run_once(body, bytes, n, ANY_NUMBER);
	if (h % 8 == 0)
		run_once(body, bytes, n, h / 8 % 32);
	return 0;
}

int fuzz_run_once(fuzz_body *body, const uint8_t *bytes, size_t n)
{
	run_once(body, bytes, n, ANY_NUMBER);
	return 0;
}
