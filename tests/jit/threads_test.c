/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Many threads load the back end, compile, run and release at once. */
#include "tests/jit/helper.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 4, N = 64 };

/* out[n] = fma(x[n], factor, x[n]), for a factor of its own in every compilation. */
static void build(struct fixture *f, float factor)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(f, "n");
	ilir_expr at = ramp(f, ref(f, n), 8), v = ilir_load(&f->m, x, &at, 1);
	ilir_expr by = splat(f, ilir_float(&f->m, factor), 8);
	kernel(f, "scale",
	       over_rows(f, n, 8, ilir_store(&f->m, out, &at, 1, ilir_ternary(&f->m, ILIR_FMA, v, by, v))));
}

static bool run_round(float factor)
{
	struct fixture f;
	struct image_code code;
	float x[N], out[N];
	bool ok = fixture_init(&f, "threads");
	fill(x, N, factor);
	if (ok) {
		build(&f, factor);
		ok = compile_for(&f, "native", true, &code);
	}
	if (ok) {
		code.kernels[0]((void *[]){x, out}, 0, N, 0, 1, 1);
		code.release(&code);
	}
	for (int i = 0; ok && i < N; i++)
		ok = out[i] == __builtin_fmaf(x[i], factor, x[i]);
	fixture_free(&f);
	return ok;
}

static void *work(void *number)
{
	intptr_t good = 0;
	for (int i = 0; i < ROUNDS; i++)
		good += run_round(1 + *(int *)number * ROUNDS + i);
	return (void *)good;
}

static void test_all(void)
{
	pthread_t thread[THREADS];
	int number[THREADS];
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&thread[i], NULL, work, &number[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		void *good;
		pthread_join(thread[i], &good);
		tap_ok((intptr_t)good == ROUNDS,
		       "thread %d: %d compilations of its own, with the right results", i, ROUNDS);
	}
}

int main(void)
{
	return over_backends(test_all);
}
