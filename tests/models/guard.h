/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Machine code under guard: a kernel that is called sees a copy of each buffer that lies alone, between two
 * pages that nobody may touch; what it has changed is copied back.  So an access outside of a buffer, be it
 * by one vector, is found and named, even where another buffer of the run would lie: intermediates share
 * memory, and nothing that a sanitizer adds is in compiled kernels.
 *
 * Buffers begin at multiples of 64 bytes, so up to 63 bytes lie between the end of one and its page: a store
 * to them is found as well, a load from them gives NaN.  Rows that are the caller's end where their page
 * ends.  The guard is of one thread. */
#ifndef ESPALIER_TESTS_MODELS_GUARD_H
#define ESPALIER_TESTS_MODELS_GUARD_H

#include "image/image.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_LINE = 64, GUARD_SLACK = 0xff, GUARD_CLOSED = 1 << 20, GUARD_FAULTS = 2 };

/* The copy of one buffer: whole pages between inaccessible ones. */
struct guard_block {
	char *pages; /* the first accessible one; NULL = none */
	size_t bytes;
	char *at; /* the copy of this call */
	size_t used;
};

struct guard {
	const struct image *image;
	struct guard_block *block;  /* by buffer */
	void **table;		    /* what the kernel is given */
	float faults[GUARD_FAULTS]; /* behind the buffers of the image: of kernels that look at their indices
				       (checked.h) the buffer from 1 on, and the dimension, of the first that
				       is outside */
	int32_t sizes[IMAGE_SIZES];
	uint32_t calls;
	sigjmp_buf stop;
	char *volatile touched; /* the address of the first access that was stopped */
};

/* The guard whose kernel is running. */
static struct guard *guard_running;

static inline void guard_stop(int signal, siginfo_t *info, void *context)
{
	(void)context;
	struct guard *g = guard_running;
	if (!g) { /* a fault of somebody else */
		struct sigaction usual = {.sa_handler = SIG_DFL};
		sigaction(signal, &usual, NULL);
		return;
	}
	g->touched = info->si_addr;
	siglongjmp(g->stop, 1);
}

static inline void guard_free(struct guard *g)
{
	for (int i = 0; g->block && i < g->image->buffers; i++)
		if (g->block[i].pages)
			munmap(g->block[i].pages - GUARD_CLOSED, g->block[i].bytes + 2 * GUARD_CLOSED);
	free(g->block);
	free(g->table);
	*g = (struct guard){0};
}

static inline bool guard_init(struct guard *g, const struct image *image)
{
	*g = (struct guard){.image = image,
			    .block = calloc(image->buffers + 1, sizeof *g->block),
			    .table = calloc(image->buffers + 2, sizeof *g->table)};
	return g->block && g->table;
}

/* --- blocks --- */

/* Arrays of beginnings have one element more, their end. */
static inline size_t guard_bytes(const struct image_buffer *b, const int64_t *sizes)
{
	return (sizes[b->rows] + image_traits_of(b->kind)->more) * b->row_elements * dtype_traits_of(b->dtype)->bytes;
}

/* Maps pages for so many bytes, in place of those before. */
static inline bool guard_reserve(struct guard_block *block, size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE), whole = (bytes + page) / page * page;
	if (block->pages && block->bytes >= bytes)
		return true;
	if (block->pages)
		munmap(block->pages - GUARD_CLOSED, block->bytes + 2 * GUARD_CLOSED);
	char *all = mmap(NULL, whole + 2 * GUARD_CLOSED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	block->pages = all == MAP_FAILED ? NULL : all + GUARD_CLOSED;
	block->bytes = whole;
	return block->pages && mprotect(block->pages, whole, PROT_READ | PROT_WRITE) == 0;
}

/* Copies a buffer to the end of its pages, at a multiple of `line` bytes, or with `low` to their beginning,
 * to catch accesses before it. */
static inline bool guard_enter(struct guard_block *block, const void *from, size_t bytes, size_t line, bool low)
{
	if (!guard_reserve(block, bytes))
		return false;
	block->at = low ? block->pages : block->pages + (block->bytes - bytes) / line * line;
	block->used = bytes;
	memcpy(block->at, from, bytes);
	memset(block->at + bytes, GUARD_SLACK, block->pages + block->bytes - block->at - bytes);
	return true;
}

static inline const char *guard_slack(const struct guard_block *block)
{
	for (const char *at = block->at + block->used; at < block->pages + block->bytes; at++)
		if (*at != (char)GUARD_SLACK)
			return at;
	return NULL;
}

/* --- a call --- */

static inline bool guard_report(const struct guard *g, int kernel, const char *address, const char *how,
				struct diags *d)
{
	const char *name = g->image->kernel_name ? g->image->kernel_name[kernel] : "?";
	for (int i = 0; i < g->image->buffers; i++) {
		const struct guard_block *block = &g->block[i];
		if (g->table[i] && address >= block->pages - GUARD_CLOSED &&
		    address < block->pages + block->bytes + GUARD_CLOSED)
			return diag_add(d, DIAG_INVALID_LOOPS, (struct diag_at){0}, NULL,
					"compiled kernel '%s' %s byte %td of '%s', which has %zu", name, how,
					address - block->at, g->image->buffer[i].name, block->used);
	}
	return diag_add(d, DIAG_INVALID_LOOPS, (struct diag_at){0}, NULL, "compiled kernel '%s' %s %p", name,
			how, (const void *)address);
}

static inline bool guard_report_index(const struct guard *g, int kernel, struct diags *d)
{
	return diag_add(d, DIAG_INVALID_LOOPS, (struct diag_at){0}, NULL,
			"compiled kernel '%s' has an index outside of dimension %d of '%s'",
			g->image->kernel_name ? g->image->kernel_name[kernel] : "?", (int)g->faults[1],
			g->image->buffer[(int)g->faults[0] - 1].name);
}

static inline bool guard_copy_in(struct guard *g, const struct image_frame *f)
{
	bool low = g->calls++ % 4 == 3;
	memset(g->faults, 0, sizeof g->faults);
	for (int i = 0; i < IMAGE_SIZES; i++)
		g->sizes[i] = f->sizes[i];
	g->table[g->image->buffers] = g->faults;
	g->table[g->image->buffers + 1] = g->sizes;
	for (int i = 0; i < g->image->buffers; i++) {
		const struct image_buffer *b = &g->image->buffer[i];
		size_t bytes = guard_bytes(b, f->sizes);
		g->table[i] = NULL;
		if (!f->buffers[i])
			continue;
		size_t line = b->kind == IMAGE_GIVEN ? dtype_traits_of(b->dtype)->bytes : GUARD_LINE;
		if (!guard_enter(&g->block[i], f->buffers[i], bytes, line, low))
			return false;
		g->table[i] = g->block[i].at;
	}
	return true;
}

/* Copies only changed buffers back: another buffer may share the memory of an unchanged one. */
static inline void guard_copy_out(struct guard *g, const struct image_frame *f)
{
	bool *changed = calloc(g->image->buffers + 1, sizeof *changed);
	for (int i = 0; changed && i < g->image->buffers; i++)
		changed[i] = g->table[i] && memcmp(g->table[i], f->buffers[i], g->block[i].used) != 0;
	for (int i = 0; changed && i < g->image->buffers; i++)
		if (changed[i])
			memcpy(f->buffers[i], g->table[i], g->block[i].used);
	free(changed);
}

/* Runs the kernel; false when an access was stopped. */
static inline bool guard_run(struct guard *g, image_kernel *kernel, const struct image_range *p)
{
	struct sigaction watch = {.sa_sigaction = guard_stop, .sa_flags = SA_SIGINFO}, before;
	sigaction(SIGSEGV, &watch, &before);
	guard_running = g;
	bool stopped = sigsetjmp(g->stop, 1);
	if (!stopped)
		kernel(g->table, p->begin, p->end, p->first, p->blocks, p->direction);
	guard_running = NULL;
	sigaction(SIGSEGV, &before, NULL);
	return !stopped;
}

/* Calls a compiled kernel.  False after a diagnostic that says which access was outside of which buffer. */
static inline bool guard_call(struct guard *g, int kernel, image_kernel *code, const struct image_frame *f,
			      const struct image_range *p, struct diags *d)
{
	if (!guard_copy_in(g, f))
		return diag_add(d, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for guarded buffers");
	bool ran = guard_run(g, code, p);
	if (g->faults[0] > 0)
		return guard_report_index(g, kernel, d);
	if (!ran)
		return guard_report(g, kernel, g->touched, "reaches", d);
	for (int i = 0; i < g->image->buffers; i++) {
		const char *written = g->table[i] ? guard_slack(&g->block[i]) : NULL;
		if (written)
			return guard_report(g, kernel, written, "writes", d);
	}
	guard_copy_out(g, f);
	return true;
}

#endif
