/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loading code: it runs, it is never writable while it can run, and whatever the system refuses is told. */
#include "image/code.h"

#include "tests/image/object.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool load(struct linked *l, struct image_code *code)
{
	return image_code_load(&l->blob, &allocator_default, "hand", code, &l->diags);
}

/* The permissions of the mapping that holds an address, as /proc writes them. */
static bool has_permissions(const void *address, const char *wanted)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[400], permissions[8] = "";
	unsigned long begin, end;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s", &begin, &end, permissions) == 3 &&
		    (unsigned long)address >= begin && (unsigned long)address < end)
			break;
	if (f)
		fclose(f);
	return strcmp(permissions, wanted) == 0;
}

static void test_running(struct linked *l)
{
	struct image_code code;
	float x = 0, y = 0;
	if (!tap_ok(load(l, &code) && code.kernels && code.bytes == (size_t)l->blob.size, "code is loaded"))
		return;
	tap_ok(has_permissions((void *)(uintptr_t)code.kernels[0], "r-xp"), "it cannot be written");
	tap_ok((uintptr_t)code.kernels[0] % l->blob.alignment == 0, "it is aligned");
	code.kernels[0]((void *[]){&x}, 0, 1, 0, 1, 1);
	code.kernels[1]((void *[]){&y}, 0, 1, 0, 1, 1);
	tap_ok(x == object_constant && y == object_constant, "it runs");
	image_code_release(&code);
	tap_ok(!code.self && !code.kernels, "nothing is left of released code");
	image_code_release(&code);
	tap_ok(!code.self, "released code can be released again");
}

static void test_other_machine(struct linked *l)
{
	struct image_code code;
	struct linked other = *l;
	other.blob.machine = EM_S390;
	tap_ok(!load(&other, &code) && other.diags.n == 1 && other.diags.at[0].id == DIAG_TARGET_NOT_HERE &&
		   !code.release,
	       "code for another machine is refused");
	diags_free(&other.diags);
}

static void *refuse_memory(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)old_size;
	if (!new_size)
		free(p);
	return NULL;
}

static void test_memory(const struct linked *l)
{
	static const struct allocator none = {refuse_memory, NULL};
	struct image_code code;
	struct diags d;
	diags_init(&d, &allocator_default);
	tap_ok(!image_code_load(&l->blob, &none, "hand", &code, &d) && d.n == 1 &&
		   d.at[0].id == DIAG_OUT_OF_MEMORY,
	       "without memory there is no code");
	diags_free(&d);
}

/* As a service manager does it: mprotect that asks for execution fails. */
static bool deny_execution(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { TOLD, SILENT, UNABLE };

static int load_denied(struct linked *l)
{
	struct image_code code;
	if (!deny_execution())
		return UNABLE;
	bool told = !load(l, &code) && l->diags.n == 1 && l->diags.at[0].id == DIAG_COMPILE_FAILED &&
		    strstr(l->diags.at[0].message, "does not let") && l->diags.at[0].hint && !code.release;
	return told ? TOLD : SILENT;
}

static void test_denied(struct linked *l)
{
	const char *what = "a system that lets nobody make code is told";
	int status = 0;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(load_denied(l));
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == UNABLE)
		tap_skip("no seccomp", "%s", what);
	else
		tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == TOLD, "%s", what);
}

int main(void)
{
	struct object o;
	struct linked l;
	make_object(&o);
	link_object(&l, &o, sizeof o);
	test_other_machine(&l);
#ifdef __x86_64__
	test_running(&l);
	test_memory(&l);
	test_denied(&l);
#else
	tap_skip("the object is for x86-64", "running");
#endif
	free_linked(&l);
	return tap_done();
}
