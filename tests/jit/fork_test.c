/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Back ends in a child of a process that compiles in other threads. */
#include "tests/jit/helper.h"

#include "base/fork.h"
#include "tests/sanitizers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 16, FORKS = 12, COMPILERS = 2 };
enum verdict { COMPILED, REFUSED, WRONG };

/* out[n] = x[n] + x[n], compiled and run. */
static enum verdict compile_one(void)
{
	struct fixture f;
	struct image_code code;
	float x[N], out[N];
	enum verdict verdict = WRONG;
	if (!fixture_init(&f, "fork")) {
		verdict = f.diags.n == 1 && f.diags.at[0].id == DIAG_BACKEND_UNUSABLE ? REFUSED : WRONG;
		fixture_free(&f);
		return verdict;
	}
	ilir_buffer from = buffer_of(&f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer to = buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(&f, "n");
	ilir_expr at = ramp(&f, ref(&f, n), 8), v = ilir_load(&f.m, from, &at, 1);
	kernel(&f, "twice",
	       over_rows(&f, n, 8, ilir_store(&f.m, to, &at, 1, ilir_binary(&f.m, ILIR_ADD, v, v))));
	fill(x, N, 1);
	if (compile_for(&f, "native", true, &code)) {
		code.kernels[0]((void *[]){x, out}, 0, N, 0, 1, 1);
		code.release(&code);
		verdict = out[N - 1] == 2 * x[N - 1] ? COMPILED : WRONG;
	}
	fixture_free(&f);
	return verdict;
}

/* What a child finds; it must find something in time. */
static enum verdict ask_child(void)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		_exit(compile_one());
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return WRONG;
	return WEXITSTATUS(status);
}

static atomic_bool enough;

static void *compile_on(void *unused)
{
	while (!atomic_load(&enough) && compile_one() == COMPILED)
		;
	return unused;
}

static void test_under_way(void)
{
	pthread_t thread[COMPILERS];
	int compiled = 0, refused = 0;
	const char *what = "children of a process that compiles: an answer, never a hang";
	if (HEAP_NOT_FOR_FORKS || LIBRARIES_NOT_FOR_FORKS) {
		tap_skip("the sanitizer's locks are not for forks", "%s", what);
		return;
	}
	for (int i = 0; i < COMPILERS; i++)
		pthread_create(&thread[i], NULL, compile_on, NULL);
	for (int i = 0; i < FORKS; i++) {
		enum verdict v = ask_child();
		compiled += v == COMPILED;
		refused += v == REFUSED;
		usleep(1000 * i);
	}
	atomic_store(&enough, true);
	for (int i = 0; i < COMPILERS; i++)
		pthread_join(thread[i], NULL);
	printf("# children: %d compiled, %d were refused\n", compiled, refused);
	tap_ok(compiled + refused == FORKS, "%s", what);
}

static void test_all(void)
{
	atomic_store(&enough, false);
	tap_ok(compile_one() == COMPILED, "it compiles");
	tap_ok(ask_child() == COMPILED, "a child of an idle process compiles");
	fork_enter_foreign();
	tap_ok(ask_child() == REFUSED, "a child of a process that compiles is refused");
	fork_leave_foreign();
	tap_ok(ask_child() == COMPILED, "that is over when the compilation is");
	test_under_way();
}

int main(void)
{
	return over_backends(test_all);
}
