/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/faults/inject.h"

#if defined __x86_64__ && defined __linux__

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_CALLS = 12, SECONDS = 30 };

static const int calls[][MOST_CALLS] = {
    [INJECT_OPEN] = {SYS_openat, SYS_open},
    [INJECT_READ] = {SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_getdents64, SYS_recvfrom},
    [INJECT_WRITE] = {SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_sendto},
    [INJECT_MAP] = {SYS_mmap, SYS_mprotect, SYS_mremap, SYS_brk},
    [INJECT_RENAME] = {SYS_rename, SYS_renameat, SYS_renameat2},
    [INJECT_LOOK] = {SYS_newfstatat, SYS_fstat, SYS_stat, SYS_lstat, SYS_statx, SYS_access, SYS_faccessat,
		     SYS_faccessat2, SYS_readlink, SYS_lseek},
    [INJECT_CHANGE] = {SYS_mkdir, SYS_ftruncate, SYS_fchmod, SYS_close, SYS_utimensat},
    [INJECT_SYNC] = {SYS_fsync, SYS_fdatasync},
    [INJECT_TALK] = {SYS_socketpair, SYS_memfd_create, SYS_poll, SYS_sendto, SYS_recvfrom, SYS_wait4, SYS_waitid},
    [INJECT_SPAWN] = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve},
    [INJECT_THREAD] = {SYS_clone, SYS_clone3},
};

struct run {
	const struct inject *fault;
	const char *after;
	pid_t child;
	long left;    /* calls that succeed still */
	long threads; /* beside the first */
	bool begun;
	struct outcome *outcome;
};

/* --- the program's side --- */

/* Stops at the calls of the kind, and those that open files. */
static bool watch(enum inject_kind kind)
{
	struct sock_filter code[2 * MOST_CALLS + 8];
	int n = 0, wanted[MOST_CALLS + 2] = {SYS_openat, SYS_open}, count = 2;
	for (int i = 0; i < MOST_CALLS && (calls[kind][i] || !i); i++)
		wanted[count++] = calls[kind][i];
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {n, code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool redirect(const char *path, int to)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	return fd >= 0 && dup2(fd, to) == to && close(fd) == 0;
}

static _Noreturn void start(const struct run *r, char *const *argv, const char *out, const char *err)
{
	int nothing = open("/dev/null", O_RDONLY);
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO && close(nothing) == 0 &&
	    redirect(out, STDOUT_FILENO) && redirect(err, STDERR_FILENO) &&
	    ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 && raise(SIGSTOP) == 0 && watch(r->fault->kind))
		execv(argv[0], argv);
	_exit(126);
}

/* --- the tracer's side --- */

static bool is_of_kind(enum inject_kind kind, long call)
{
	for (int i = 0; i < MOST_CALLS && (calls[kind][i] || !i); i++)
		if (calls[kind][i] == call)
			return true;
	return false;
}

static bool opens_the_file(const struct run *r, pid_t pid, const struct user_regs_struct *regs)
{
	char path[1024] = "";
	unsigned long at = regs->orig_rax == SYS_open ? regs->rdi : regs->rsi;
	if (regs->orig_rax != SYS_open && regs->orig_rax != SYS_openat)
		return false;
	/* The path may end before a page that cannot be read, or go on in the next one: what is read of a page is read
	 * whole or not at all. */
	size_t most = sizeof path - 1, page = 4096 - at % 4096, first = page < most ? page : most;
	struct iovec here = {path, most}, there[] = {{(void *)at, first}, {(void *)(at + first), most - first}};
	ssize_t got = process_vm_readv(pid, &here, 1, there, 2, 0);
	size_t n = got > 0 ? strlen(path) : 0, m = strlen(r->after);
	return n >= m && strcmp(path + n - m, r->after) == 0;
}

static bool makes_thread(pid_t pid, const struct user_regs_struct *regs)
{
	unsigned long flags = regs->rdi;
	if (regs->orig_rax == SYS_clone3) {
		struct iovec here = {&flags, sizeof flags}, there = {(void *)regs->rdi, sizeof flags};
		process_vm_readv(pid, &here, 1, &there, 1, 0);
	}
	return flags & CLONE_THREAD;
}

/* Whether this call is to fail. */
static bool is_turn(struct run *r, pid_t pid, const struct user_regs_struct *regs)
{
	const struct inject *f = r->fault;
	bool transfers = f->kind == INJECT_READ || f->kind == INJECT_WRITE;
	if (!is_of_kind(f->kind, regs->orig_rax) || (f->kind == INJECT_WRITE && regs->rdi == STDERR_FILENO))
		return false;
	if (f->kind == INJECT_THREAD)
		return makes_thread(pid, regs) && r->threads >= r->left;
	if (transfers && !f->error && regs->rdx < 2)
		return false;
	return r->left-- == 0 || (f->on && r->left < 0);
}

static void meddle(struct run *r, pid_t pid)
{
	struct user_regs_struct regs;
	if (ptrace(PTRACE_GETREGS, pid, 0, &regs) != 0)
		return;
	r->begun |= opens_the_file(r, pid, &regs);
	if (!r->begun || !is_turn(r, pid, &regs))
		return;
	r->outcome->hit = true;
	if (r->fault->error) {
		/* brk knows no errors: a break below the one that was wanted says no. */
		regs.rax = regs.orig_rax == SYS_brk ? 0 : -r->fault->error;
		regs.orig_rax = -1; /* no call */
	} else {
		regs.rdx /= 2;
	}
	ptrace(PTRACE_SETREGS, pid, 0, &regs);
}

/* Lets a thread that has stopped go on. */
static void go_on(struct run *r, pid_t pid, int status)
{
	int event = status >> 16, signal = WSTOPSIG(status);
	if (event == PTRACE_EVENT_SECCOMP)
		meddle(r, pid);
	if (event == PTRACE_EVENT_CLONE)
		r->threads++;
	/* A new thread begins with a stop of its own. */
	bool ours = event || signal == SIGTRAP || signal == SIGSTOP;
	ptrace(PTRACE_CONT, pid, 0, ours ? 0 : signal);
}

static void stop_waiting(int signal)
{
	(void)signal;
}

static void follow(struct run *r)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == EINTR) {
			r->outcome->hung = true;
			kill(r->child, SIGKILL);
			continue;
		}
		if (pid < 0)
			return;
		if (WIFSTOPPED(status)) {
			go_on(r, pid, status);
			continue;
		}
		if (pid != r->child) {
			r->threads--;
			continue;
		}
		r->outcome->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		r->outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		return;
	}
}

static bool attach(const struct run *r)
{
	int status;
	long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
		       PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	if (waitpid(r->child, &status, 0) == r->child && WIFSTOPPED(status)) {
		if (ptrace(PTRACE_SETOPTIONS, r->child, 0, options) == 0 &&
		    ptrace(PTRACE_CONT, r->child, 0, 0) == 0)
			return true;
		kill(r->child, SIGKILL);
		waitpid(r->child, &status, 0);
	}
	return false;
}

bool inject_run(const struct inject *fault, long n, const char *after, char *const *argv, const char *out,
		const char *err, struct outcome *outcome)
{
	struct run r = {.fault = fault, .after = after, .left = n, .outcome = outcome};
	*outcome = (struct outcome){0};
	r.child = fork();
	if (r.child == 0)
		start(&r, argv, out, err);
	if (r.child < 0 || !attach(&r))
		return false;
	struct sigaction action = {.sa_handler = stop_waiting};
	sigaction(SIGALRM, &action, NULL);
	alarm(SECONDS);
	follow(&r);
	alarm(0);
	return outcome->status != 126;
}

#else

bool inject_run(const struct inject *fault, long n, const char *after, char *const *argv, const char *out,
		const char *err, struct outcome *outcome)
{
	(void)fault, (void)n, (void)after, (void)argv, (void)out, (void)err;
	*outcome = (struct outcome){0};
	return false;
}

#endif
