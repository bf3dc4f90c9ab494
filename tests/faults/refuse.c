/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: in a program that is not rebuilt for it, the n-th call of a kind fails, of the C library
 * and others as well.  Who tests the program shares an account with it, by a file that the environment names
 * in REFUSE.  Only glibc lets its own allocator be called by other names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __GLIBC__

enum kind { MEMORY, ACCEPT, RECEIVE, SEND, WATCH, WAIT, WRITE };

/* All of 64 bits, in this order. */
struct account {
	_Atomic int64_t kind, error; /* which calls may fail, and what errno is then */
	_Atomic int64_t left;	     /* calls that succeed still; below 0 = all do */
	_Atomic int64_t on;	     /* all after the first that fails do so, too */
	_Atomic int64_t refused;     /* that have failed */
	_Atomic int64_t blocks;	     /* of memory that are out */
};

static struct account own = {.left = -1};
static struct account *account = &own;

__attribute__((constructor)) static void share_account(void)
{
	const char *path = getenv("REFUSE");
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

static bool is_refused(enum kind kind)
{
	int64_t left = atomic_load(&account->left);
	if (left < 0 || atomic_load(&account->kind) != kind)
		return false;
	while (left > 0 && !atomic_compare_exchange_weak(&account->left, &left, left - 1))
		continue;
	if (left)
		return false;
	if (!atomic_load(&account->on))
		atomic_store(&account->left, -1);
	atomic_fetch_add(&account->refused, 1);
	errno = (int)atomic_load(&account->error);
	return true;
}

static void *counted(void *p)
{
	atomic_fetch_add(&account->blocks, p ? 1 : 0);
	return p;
}

/* --- memory --- */

#define REPLACES __attribute__((visibility("default")))
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

REPLACES void *malloc(size_t n)
{
	return is_refused(MEMORY) ? NULL : counted(__libc_malloc(n));
}

REPLACES void *calloc(size_t n, size_t size)
{
	return is_refused(MEMORY) ? NULL : counted(__libc_calloc(n, size));
}

REPLACES void *realloc(void *p, size_t n)
{
	if (n && is_refused(MEMORY))
		return NULL;
	void *to = __libc_realloc(p, n);
	atomic_fetch_add(&account->blocks, (to && !p) - (p && !n));
	return to;
}

REPLACES void *aligned_alloc(size_t alignment, size_t n)
{
	return is_refused(MEMORY) ? NULL : counted(__libc_memalign(alignment, n));
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

/* --- calls of the system, which return -1 when they fail --- */

#define REPLACE(type, name, parameters, arguments, may_fail, kind)                                           \
	REPLACES type name parameters                                                                        \
	{                                                                                                    \
		static type(*next) parameters;                                                               \
		if ((may_fail) && is_refused(kind))                                                          \
			return -1;                                                                           \
		if (!next)                                                                                   \
			next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                  \
		return next arguments;                                                                       \
	}

REPLACE(int, accept4, (int fd, struct sockaddr *from, socklen_t *n, int flags), (fd, from, n, flags), true,
	ACCEPT)
REPLACE(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), true, RECEIVE)
REPLACE(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags), true, SEND)
REPLACE(ssize_t, sendmsg, (int fd, const struct msghdr *from, int flags), (fd, from, flags), true, SEND)
REPLACE(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n), true, SEND)
/* No system refuses to remove what is watched. */
REPLACE(int, epoll_ctl, (int fd, int what, int of, struct epoll_event *event), (fd, what, of, event),
	what == EPOLL_CTL_ADD, WATCH)
REPLACE(int, epoll_wait, (int fd, struct epoll_event *to, int n, int ms), (fd, to, n, ms), true, WAIT)
REPLACE(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), true, WRITE)

#endif
