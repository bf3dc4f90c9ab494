/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The end of the compile leg: from loops to code, by a back end or the interpreter. */
#include "base/cpu.h"
#include "compile/compilation.h"
#include "image/code.h"
#include "image/link.h"
#include "io/file.h"

#include <pthread.h>
#include <string.h>

/* The interpreter has one state, so one call runs at a time. */
struct interpreted {
	struct ilir_module module;
	struct ilir_interpreter *interpreter;
	pthread_mutex_t lock;
};

static bool call_interpreter(void *self, int kernel, const struct image_frame *frame,
			     const struct image_range *range, struct diags *diags)
{
	struct interpreted *in = self;
	pthread_mutex_lock(&in->lock);
	bool ok = ilir_interpret(in->interpreter, kernel, frame, range, diags);
	pthread_mutex_unlock(&in->lock);
	return ok;
}

const struct ilir_module *compile_loops_of(const struct image *image)
{
	const struct interpreted *in = image->code.self;
	return image->code.call == call_interpreter ? &in->module : NULL;
}

static void release_interpreter(struct image_code *code)
{
	pthread_mutex_destroy(&((struct interpreted *)code->self)->lock);
}

static bool make_interpreter(struct compilation *c, struct image *image)
{
	struct interpreted *in = ARENA_NEW(c->arena, struct interpreted);
	in->module = c->module;
	in->interpreter = ilir_interpreter_new(c->arena, &in->module);
	if (pthread_mutex_init(&in->lock, NULL) != 0)
		return diag_add(c->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for a lock");
	image->code =
	    (struct image_code){.call = call_interpreter, .release = release_interpreter, .self = in};
	return true;
}

struct jit_options compile_jit_options(const struct compilation *c)
{
	return (struct jit_options){.target = c->sched.target,
				    .native = c->options->native,
				    .watch = c->options->watch.goes_on ? &c->options->watch : NULL,
				    .lines = c->lines};
}

/* What the code was made with, as far as it can be named. */
static void note_tool(struct compilation *c, const char *path, struct image *image)
{
	struct image_tool *t = ARENA_NEW(c->arena, struct image_tool);
	if (!path || !io_stat(path, &t->size, &t->modified))
		return;
	t->path = arena_string(c->arena, path);
	image->tool = t;
	image->tools = 1;
}

static double sum_seconds(const double seconds[JIT_PHASES])
{
	double sum = 0;
	for (int p = 0; p < JIT_PHASES; p++)
		sum += seconds[p];
	return sum;
}

/* The times of the threads: by phase of the back end, then by unit where each was compiled alone. */
void compile_note_objects(struct arena *arena, struct times *times, const char *backend, const struct jit_objects *o)
{
	static const char *const part[JIT_PHASES] = {"  emit", "  check", "  optimise", "  generate"};
	for (int p = 0; p < JIT_PHASES; p++) {
		double sum = 0;
		for (int k = 0; k < o->n; k++)
			sum += o->seconds[k][p];
		times_note(times, backend, part[p], sum);
	}
	for (int k = 0; k < o->n && o->unit; k++) {
		struct str name = str_in(arena);
		str_printf(&name, "  kernel %s", o->unit[k].name);
		times_note(times, backend, name.text, sum_seconds(o->seconds[k]));
	}
}

static bool compile_here(struct compilation *c, const struct jit_options *options, struct jit_objects *o,
			 const char **compiler)
{
	const struct jit_backend *backend = jit_backend_load(c->options->backend, c->diags);
	compile_note(c, "jit", "load");
	*compiler = backend ? backend->compiler() : NULL;
	return backend &&
	       jit_compile(backend, &c->module, options, c->options->threads, c->arena, o, c->diags);
}

static bool make_objects(struct compilation *c, const struct jit_options *options, struct jit_objects *o,
			 const char **compiler)
{
	const struct compile_options *asked = c->options;
	return asked->apart ? jit_compile_apart(asked->backend, &c->module, options, asked->threads,
						asked->memory, c->arena, o, compiler, c->diags)
			    : compile_here(c, options, o, compiler);
}

/* Whether the back end works in this process and can compile kernels when they are needed; opens the code then. */
static bool open_late(struct compilation *c, const struct jit_options *options, struct image *image)
{
	const struct jit_backend *backend;
	if (!c->options->late || c->options->apart || !(backend = jit_backend_load(c->options->backend, c->diags)))
		return false;
	compile_note(c, "jit", "load");
	if (!compile_open_code(c, backend, options, image))
		return false;
	compile_note(c, "jit", "open");
	note_tool(c, backend->compiler(), image);
	return true;
}

static bool make_blob(struct compilation *c, const struct jit_options *options, struct image *image)
{
	struct jit_objects o = {0};
	const char *compiler = NULL;
	size_t before = c->diags->n;
	if (open_late(c, options, image))
		return true;
	if (c->diags->n > before || !make_objects(c, options, &o, &compiler))
		return false;
	compile_note(c, "jit", "compile");
	if (c->times)
		compile_note_objects(c->arena, c->times, c->options->backend, &o);
	note_tool(c, compiler, image);
	bool ok = image_link(c->arena, o.object, o.n, image->name, image->kernels, image->kernel_name,
			     &image->blob, c->diags);
	compile_note(c, "image", "link");
	return ok;
}

static bool check_target(const struct target *t, struct diags *diags)
{
	return target_runs_here(t) ||
	       diag_add(diags, DIAG_TARGET_NOT_HERE, (struct diag_at){0},
			"choose --target-cpu " TARGET_NATIVE ", or --backend interpreter",
			"this machine cannot run code for %s (%s)", t->name, t->description);
}

bool compile_runs_here(const struct compile_options *options, struct diags *diags)
{
	return compile_interprets(options) || check_target(options->target, diags);
}

static void list_loops(struct compilation *c, struct image *image)
{
	struct str listing = str_in(c->arena);
	compile_print_loops(c, &listing);
	compile_note(c, "image", "list");
	image->listing = str_text(&listing);
}

bool compile_to_code(struct compilation *c, struct image *image)
{
	image->listing = "";
	if (c->options->lines && !compile_interprets(c->options))
		list_loops(c, image);
	struct jit_options options = compile_jit_options(c);
	return compile_interprets(c->options) ? make_interpreter(c, image) : make_blob(c, &options, image);
}

static bool refuse_machine(const struct image *image, const char *lacking, struct diags *diags)
{
	return diag_add(diags, DIAG_TARGET_NOT_HERE, (struct diag_at){0},
			"run it where there is, or compile the model on this machine or for what it has "
			"(--target-cpu)",
			"the code of '%s' needs a processor with %.*s, which this machine has not",
			image->name, (int)strcspn(lacking, " "), lacking);
}

/* Images may come from another machine, or another version of the library. */
bool compile_can_load(const struct image *image, struct diags *diags)
{
	const struct target *target = target_find(image->target);
	const char *lacking = cpu_lacks(image->extensions);
	if (!target || !target_runs_here(target))
		return refuse_machine(image, image->target, diags);
	return !lacking || refuse_machine(image, lacking, diags);
}

bool compile_load(const struct allocator *allocator, struct diags *diags, struct image *image,
		  struct times *times)
{
	double begin = times_clock();
	if (image->code.call)
		return true;
	bool ok = compile_can_load(image, diags) &&
		  image_code_load(&image->blob, allocator, image->name, &image->code, diags);
	if (times)
		times_since(times, "image", "load", begin);
	return ok;
}
