/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are compiled at the same time: the code does not depend on the threads, what goes wrong is
 * told in the order of the kernels, and memory may run out at any request. */
#include "tests/jit/helper.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { KERNELS = 7, N = 64 };

/* out[n] = fma(x[n], factor, x[n]) for a factor of each kernel; longer ones do it again and again. */
static void add_kernel(struct fixture *f, ilir_buffer x, ilir_buffer out, const char *name, int factor)
{
	ilir_var n = index_var(f, "n");
	ilir_expr at = ramp(f, ref(f, n), 8), v = ilir_load(&f->m, x, &at, 1);
	ilir_expr by = splat(f, ilir_float(&f->m, factor), 8);
	struct ilir_stmt *body = NULL;
	for (int i = 0; i < factor; i++)
		body = ilir_append(body,
				   ilir_store(&f->m, out, &at, 1, ilir_ternary(&f->m, ILIR_FMA, v, by, v)));
	kernel(f, name, over_rows(f, n, 8, body));
}

static void build(struct fixture *f)
{
	static const char *const name[KERNELS] = {"a", "b", "c", "d", "e", "f", "g"};
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	for (int i = 0; i < KERNELS; i++)
		add_kernel(f, x, out, name[i], 1 + i * 3 % KERNELS);
}

static bool make_blob(struct fixture *f, int threads, struct image_blob *blob)
{
	struct jit_options o = {.target = target_find("native"), .native = true};
	struct jit_objects objects;
	build(f);
	return jit_compile(f->backend, &f->m, &o, (struct jit_threads){.most = threads}, &f->arena, &objects,
			   &f->diags) &&
	       link_objects(f, &objects, blob);
}

static bool same_blob(const struct image_blob *a, const struct image_blob *b)
{
	return a->size == b->size && a->kernels == b->kernels && memcmp(a->bytes, b->bytes, a->size) == 0 &&
	       memcmp(a->kernel, b->kernel, a->kernels * sizeof *a->kernel) == 0;
}

static void run_kernels(struct fixture *f, const struct image_blob *blob)
{
	struct image_code code;
	float x[N], out[N];
	bool ok = image_code_load(blob, &allocator_default, "compile", &code, &f->diags);
	fill(x, N, 3);
	for (int k = 0; ok && k < KERNELS; k++) {
		code.kernels[k]((void *[]){x, out}, 0, N, 0, 1, 1);
		for (int i = 0; i < N; i++)
			ok &= out[i] == __builtin_fmaf(x[i], 1 + k * 3 % KERNELS, x[i]);
	}
	tap_ok(ok, "each kernel is found, and does what it should");
	if (code.release)
		code.release(&code);
}

static void test_threads(void)
{
	static const int threads[] = {1, 2, 3, 64, 0};
	struct fixture f[5];
	struct image_blob blob[5];
	bool ok = true;
	for (int i = 0; i < 5; i++) {
		ok &= fixture_init(&f[i], "compile") && make_blob(&f[i], threads[i], &blob[i]);
		ok = ok && same_blob(&blob[0], &blob[i]);
		show_diags(&f[i].diags);
	}
	tap_ok(ok, "the same bytes by 1, 2, 3, 64 and no threads");
	run_kernels(&f[0], &blob[0]);
	for (int i = 0; i < 5; i++)
		fixture_free(&f[i]);
}

/* --- what goes wrong --- */

static bool compile_badly(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
			  struct str *object, double seconds[JIT_PHASES], struct diags *d)
{
	(void)m, (void)o, (void)seconds;
	str_puts(object, "no object");
	return unit->kernel % 2 == 0 ||
	       diag_add(d, DIAG_COMPILE_FAILED, (struct diag_at){0}, NULL, "%s", unit->name);
}

static void test_failures(void)
{
	static const struct jit_backend bad = {.compile = compile_badly};
	struct fixture f;
	struct jit_options o = {.target = target_find("native"), .native = true};
	struct jit_objects objects;
	fixture_init(&f, "compile");
	build(&f);
	bool ok = jit_compile(&bad, &f.m, &o, (struct jit_threads){.most = 3}, &f.arena, &objects, &f.diags);
	tap_ok(!ok && f.diags.n == 3 && strcmp(f.diags.at[0].message, "b") == 0 &&
		   strcmp(f.diags.at[1].message, "d") == 0 && strcmp(f.diags.at[2].message, "f") == 0,
	       "kernels that fail are told in their order");
	fixture_free(&f);
}

/* --- where threads run --- */

static atomic_int inside, elsewhere;

/* The first kernels wait for each other, so that no thread has all of them. */
static bool compile_and_look(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
			     struct str *object, double seconds[JIT_PHASES], struct diags *d)
{
	cpu_set_t own;
	(void)m, (void)o, (void)unit, (void)seconds, (void)d;
	atomic_fetch_add(&inside, 1);
	for (int i = 0; i < 5000 && atomic_load(&inside) < 2; i++)
		usleep(1000);
	if (sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&own) > 1)
		atomic_fetch_add(&elsewhere, 1);
	str_puts(object, "no object");
	return true;
}

static void test_places(void)
{
	static const struct jit_backend looking = {.compile = compile_and_look};
	struct fixture f;
	struct jit_options o = {.target = target_find("native"), .native = true};
	struct jit_objects objects;
	cpu_set_t all, one;
	int first = 0;
	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2) {
		tap_skip("there is one processor", "threads that compile run where they may");
		return;
	}
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	fixture_init(&f, "compile");
	build(&f);
	sched_setaffinity(0, sizeof one, &one);
	bool ok = jit_compile(&looking, &f.m, &o, (struct jit_threads){2, &all, sizeof all}, &f.arena,
			      &objects, &f.diags);
	bool stayed = sched_getaffinity(0, sizeof one, &one) == 0 && CPU_COUNT(&one) == 1;
	sched_setaffinity(0, sizeof all, &all);
	tap_ok(ok && atomic_load(&elsewhere) > 0 && stayed,
	       "threads that compile run where they may, whatever their maker is bound to");
	fixture_free(&f);
}

/* --- memory --- */

static atomic_long left, held;

static void *fail_later(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context;
	if (new_size && atomic_fetch_sub(&left, 1) <= 0)
		return NULL;
	atomic_fetch_add(&held, (long)new_size - (long)old_size);
	if (new_size)
		return realloc(p, new_size);
	free(p);
	return NULL;
}

static bool compile_well(const struct ilir_module *m, const struct jit_options *o, const struct jit_unit *unit,
			 struct str *object, double seconds[JIT_PHASES], struct diags *d)
{
	(void)m, (void)o, (void)seconds, (void)d;
	for (int i = 0; i < 2000 * (1 + unit->kernel); i++)
		str_puts(object, "an object ");
	return true;
}

/* Whether all went well; nothing of it is left. */
static bool compile_with(struct fixture *f, long requests)
{
	static const struct jit_backend good = {.compile = compile_well};
	static const struct allocator failing = {fail_later, NULL};
	struct jit_options o = {.target = target_find("native"), .native = true};
	struct jit_objects objects;
	struct arena a;
	jmp_buf escape;
	volatile bool ok = false;
	atomic_store(&left, requests);
	arena_init(&a, &failing);
	if (!arena_guard(&a, &escape))
		ok =
		    jit_compile(&good, &f->m, &o, (struct jit_threads){.most = 3}, &a, &objects, &f->diags) &&
		    objects.object[KERNELS - 1].size == 10u * 2000 * KERNELS;
	arena_free(&a);
	return ok;
}

static void test_memory(void)
{
	struct fixture f;
	long n = 0;
	fixture_init(&f, "compile");
	build(&f);
	while (n < 10000 && !compile_with(&f, n))
		n++;
	tap_ok(n > KERNELS && n < 10000, "memory may run out at any of %ld requests", n);
	tap_ok(atomic_load(&held) == 0, "and all is given back");
	fixture_free(&f);
}

int main(void)
{
	test_failures();
	test_places();
	test_memory();
	return over_backends(test_threads);
}
