/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Code whose kernels are compiled when a call needs them.
 *
 * A run tells beforehand how many rows its calls have, and what these need is compiled at once, by several threads.  A kernel
 * that is complete is called by its function; before that, those of its variants that are there are called one after the
 * other.  When all are there, their objects are linked to the blob of the image, which is then as if it had been compiled
 * at once. */
#include "compile/compilation.h"

#include <string.h>

/* The self of the image's code. */
struct late_code {
	struct jit_code jit;
	image_kernel **kernel; /* by kernel; NULL = not complete */
	int *first;	       /* by kernel: its first unit; one more than kernels */
	int *wanted;	       /* room for the numbers of units, those that were compiled last first */
	int latest;	       /* how many these are */
	struct jit_threads threads;
	const char *backend;
};

static struct late_code *late_code_of(const struct image *image)
{
	return image->code.self;
}

static bool is_needed(const struct jit_unit *u, const int64_t *rows)
{
	return !rows || rows[u->kernel] >= u->rows;
}

bool compile_has_code(const struct image *image, const int64_t *rows)
{
	const struct jit_code *c = &late_code_of(image)->jit;
	for (int i = 0; i < c->units; i++)
		if (is_needed(&c->unit[i], rows) && !jit_address(c, i))
			return false;
	return true;
}

bool compile_has_any_code(const struct image *image)
{
	const struct jit_code *c = &late_code_of(image)->jit;
	for (int i = 0; i < c->units; i++)
		if (jit_address(c, i))
			return true;
	return false;
}

/* --- calls --- */

static bool refuse_call(const struct jit_unit *u, struct diags *diags)
{
	return diag_add(diags, DIAG_COMPILE_FAILED, (struct diag_at){0}, "please report it",
			"kernel '%s' is called before it was compiled", u->name);
}

static bool has_rows(const struct jit_unit *u, const struct image_range *r)
{
	return r->end - r->begin >= u->rows;
}

static bool call_unit(const struct late_code *l, int i, const struct image_frame *frame, const struct image_range *r,
		      struct diags *diags)
{
	image_kernel *run = (image_kernel *)jit_address(&l->jit, i);
	if (!run)
		return refuse_call(&l->jit.unit[i], diags);
	run(frame->buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

/* The kernel itself runs what its variants run, too.  They may run in any order, since rows are independent. */
static bool call_units(void *self, int kernel, const struct image_frame *frame, const struct image_range *r,
		       struct diags *diags)
{
	const struct late_code *l = self;
	int first = l->first[kernel];
	bool ok = true;
	if (has_rows(&l->jit.unit[first], r))
		return call_unit(l, first, frame, r, diags);
	for (int i = first + 1; ok && i < l->first[kernel + 1]; i++)
		if (has_rows(&l->jit.unit[i], r))
			ok = call_unit(l, i, frame, r, diags);
	return ok;
}

/* Lets kernels be called that have all their variants. */
static void publish_kernels(struct late_code *l)
{
	for (int i = 0; i < l->jit.units; i++) {
		const struct jit_unit *u = &l->jit.unit[i];
		if (!u->variant && jit_address(&l->jit, i))
			__atomic_store_n(&l->kernel[u->kernel], (image_kernel *)jit_address(&l->jit, i), __ATOMIC_RELEASE);
	}
}

/* --- opening --- */

static void release_late_code(struct image_code *code)
{
	struct late_code *l = code->self;
	jit_close(&l->jit);
}

static void find_first_units(struct late_code *l, int kernels)
{
	for (int i = l->jit.units; i-- > 0;)
		l->first[l->jit.unit[i].kernel] = i;
	l->first[kernels] = l->jit.units;
}

bool compile_open_code(struct compilation *c, const struct jit_backend *backend, const struct jit_options *options,
		       struct image *image)
{
	struct late_code *l = ARENA_NEW(c->arena, struct late_code);
	struct ilir_module *m = ARENA_NEW(c->arena, struct ilir_module);
	*m = c->module;
	if (!jit_open(c->arena, backend, m, options, &l->jit, c->diags))
		return false;
	image->code = (struct image_code){.release = release_late_code, .self = l};
	l->kernel = ARENA_ARRAY(c->arena, image_kernel *, image->kernels);
	l->first = ARENA_ARRAY(c->arena, int, image->kernels + 1);
	l->wanted = ARENA_ARRAY(c->arena, int, l->jit.units);
	l->threads = c->options->threads;
	l->backend = c->options->backend;
	find_first_units(l, image->kernels);
	image->code.kernels = l->kernel;
	image->code.call = call_units;
	return true;
}

/* --- compiling --- */

/* The units that were wanted, with their objects. */
static struct jit_objects wanted_objects(const struct late_code *l, int n, struct arena *arena)
{
	struct jit_unit *unit = ARENA_ARRAY(arena, struct jit_unit, n);
	struct jit_objects o = {n, unit, ARENA_ARRAY(arena, struct image_object, n), NULL};
	o.seconds = arena_take(arena, n, sizeof *o.seconds);
	for (int i = 0; i < n; i++) {
		const struct jit_made *made = &l->jit.made[l->wanted[i]];
		unit[i] = l->jit.unit[l->wanted[i]];
		o.object[i] = (struct image_object){made->object.text, made->object.n};
		memcpy(o.seconds[i], made->seconds, sizeof made->seconds);
	}
	return o;
}

static void count_bytes(struct arena *arena, struct image *image, const struct jit_objects *o)
{
	size_t bytes = image->code.bytes;
	for (int i = 0; i < o->n; i++)
		bytes += image_function_bytes(arena, o->object[i], o->unit[i].name);
	__atomic_store_n(&image->code.bytes, bytes, __ATOMIC_RELAXED);
}

bool compile_need_code(struct arena *arena, struct diags *diags, struct image *image, const int64_t *rows,
		       struct times *times)
{
	struct late_code *l = late_code_of(image);
	double begin = times_clock();
	int n = 0;
	for (int i = 0; i < l->jit.units; i++)
		if (is_needed(&l->jit.unit[i], rows) && !jit_address(&l->jit, i))
			l->wanted[n++] = i;
	bool ok = jit_need(&l->jit, l->wanted, n, l->threads, arena, diags);
	publish_kernels(l);
	l->latest = ok ? n : 0;
	if (!ok || !n)
		return ok;
	struct jit_objects o = wanted_objects(l, n, arena);
	count_bytes(arena, image, &o);
	times_since(times, "jit", "compile", begin);
	compile_note_objects(arena, times, l->backend, &o);
	return true;
}

int compile_list_code(struct arena *arena, const struct image *image, struct image_function **functions)
{
	const struct late_code *l = late_code_of(image);
	struct image_function *f = *functions = ARENA_ARRAY(arena, struct image_function, l->latest);
	for (int i = 0; i < l->latest; i++) {
		const char *name = l->jit.unit[l->wanted[i]].name;
		const struct str *object = &l->jit.made[l->wanted[i]].object;
		struct image_object of = {object->text, object->n};
		struct image_blob *blob = ARENA_NEW(arena, struct image_blob);
		bool known = image_describe_function(arena, of, name, blob);
		f[i] = (struct image_function){name, jit_address(&l->jit, l->wanted[i]),
					       image_function_bytes(arena, of, name),
					       known ? *blob->kernel : 0, blob};
	}
	return l->latest;
}

/* Makes objects again for which there was no memory. */
static bool make_objects(struct late_code *l, struct arena *arena, struct diags *diags)
{
	l->latest = 0;
	for (int i = 0; i < l->jit.units; i++)
		l->wanted[i] = i;
	return jit_need(&l->jit, l->wanted, l->jit.units, l->threads, arena, diags);
}

bool compile_link_code(struct arena *arena, struct diags *diags, struct image *image)
{
	struct late_code *l = late_code_of(image);
	struct image_object *object = ARENA_ARRAY(arena, struct image_object, l->jit.units);
	if (!make_objects(l, arena, diags))
		return false;
	for (int i = 0; i < l->jit.units; i++)
		object[i] = (struct image_object){l->jit.made[i].object.text, l->jit.made[i].object.n};
	if (!image_link(arena, object, l->jit.units, image->name, image->kernels, image->kernel_name, &image->blob,
			diags))
		return false;
	__atomic_store_n(&image->code.bytes, (size_t)image->blob.size, __ATOMIC_RELAXED);
	return true;
}
