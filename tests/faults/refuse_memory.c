/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* An allocator to preload: in a program that is not rebuilt for it, the n-th request for memory fails, of the
 * C library and others as well.  Who tests the program shares its account by a file, which the environment
 * names in REFUSE_MEMORY.  Only glibc lets its own allocator be called by other names. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __GLIBC__

/* All of 64 bits, in this order. */
struct account {
	_Atomic int64_t left;	 /* requests that succeed still; below 0 = all do */
	_Atomic int64_t on;	 /* all after the first that fails do so, too */
	_Atomic int64_t refused; /* that have failed */
	_Atomic int64_t blocks;	 /* that are out */
};

static struct account own = {.left = -1};
static struct account *account = &own;

__attribute__((constructor)) static void share_account(void)
{
	const char *path = getenv("REFUSE_MEMORY");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct account *shared =
	    file < 0 ? MAP_FAILED : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0)
		close(file);
	if (shared == MAP_FAILED)
		return;
	atomic_store(&shared->blocks, atomic_load(&own.blocks));
	account = shared;
}

static bool is_refused(void)
{
	int64_t left = atomic_load(&account->left);
	while (left > 0 && !atomic_compare_exchange_weak(&account->left, &left, left - 1))
		continue;
	if (left)
		return false;
	if (!atomic_load(&account->on))
		atomic_store(&account->left, -1);
	atomic_fetch_add(&account->refused, 1);
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	atomic_fetch_add(&account->blocks, p ? 1 : 0);
	return p;
}

#define REPLACES __attribute__((visibility("default")))
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

REPLACES void *malloc(size_t n)
{
	return is_refused() ? NULL : counted(__libc_malloc(n));
}

REPLACES void *calloc(size_t n, size_t size)
{
	return is_refused() ? NULL : counted(__libc_calloc(n, size));
}

REPLACES void *realloc(void *p, size_t n)
{
	if (n && is_refused())
		return NULL;
	void *to = __libc_realloc(p, n);
	atomic_fetch_add(&account->blocks, (to && !p) - (p && !n));
	return to;
}

REPLACES void *aligned_alloc(size_t alignment, size_t n)
{
	return is_refused() ? NULL : counted(__libc_memalign(alignment, n));
}

REPLACES int posix_memalign(void **to, size_t alignment, size_t n)
{
	void *p = aligned_alloc(alignment, n);
	if (!p)
		return ENOMEM;
	*to = p;
	return 0;
}

REPLACES void free(void *p)
{
	atomic_fetch_sub(&account->blocks, p ? 1 : 0);
	__libc_free(p);
}

#endif
