/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Saving programs that were compiled ahead of time, and loading them.
 *
 * A saved program is an image as in the cache, without what is specific to this machine: its key and the
 * list of tools that made it. */
#include "api/objects.h"

#include "image/code.h"
#include "image/image_file.h"
#include "image/object.h"
#include "io/file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- saving --- */

struct saving {
	esp_program *program;
	const char *path;
	const esp_save_options *options;
	struct arena arena;
	struct image image;	   /* the program's, without code */
	struct image caller;	   /* its code packs the weights */
	struct rt_binding binding; /* the packed weights */
	struct diags *diags;
};

/* Makes the image that computes values of weights alone: the program's code or, if it cannot run here, the
 * interpreter, which gives the same bits by the same recipes. */
static bool make_caller(void *job)
{
	struct saving *s = job;
	esp_program *p = s->program;
	struct compile_options options = p->options;
	options.backend = "interpreter";
	options.watch.goes_on = program_is_wanted;
	s->caller = s->image;
	if (!s->image.folds)
		return true;
	if (p->model && !target_runs_here(p->options.target))
		return compile_image(&s->arena, s->diags, p->model->graph, p->sizes, &options, &s->caller,
				     NULL);
	if (!program_begin(p, s->diags))
		return false;
	s->caller = p->image;
	return true;
}

/* Packs the weights of the options; without any, the program keeps those that it was loaded with. */
static bool pack_weights(struct saving *s)
{
	const esp_weights *w = s->options->weights;
	return !w ||
	       (binding_check(s->program, w, s->diags) && api_guarded(&s->arena, s->diags, make_caller, s) &&
		binding_pack(&s->binding, s->program, &s->caller, w, s->diags));
}

static void describe_packed(struct saving *s, struct image *image)
{
	struct image_packed *packed = ARENA_ARRAY(&s->arena, struct image_packed, image->recipes + 1);
	if (!s->binding.packed)
		return;
	for (int i = 0; i < image->recipes; i++)
		packed[i] = image_pack(image, i, s->binding.packed[i]);
	image->packed = packed;
	image->packs = image->recipes;
}

static bool write_image(void *job)
{
	struct saving *s = job;
	const struct io_piece *piece;
	struct image image = s->image;
	image.key = NULL;
	image.tools = 0;
	describe_packed(s, &image);
	int n = image_pieces(&image, &s->arena, &piece);
	bool object = s->options->form == ESP_SAVE_OBJECT;
	if (object && object_bytes(piece, n) > OBJECT_LIMIT)
		return diag_add(s->diags, DIAG_FILE_TOO_LARGE, (struct diag_at){.file = s->path},
				"save the program without weights, or as a file of its own",
				"an object has %d bytes at most, '%s' would have %lld", OBJECT_LIMIT, s->path,
				(long long)object_bytes(piece, n));
	if (object)
		n = object_pieces(&s->arena, image.blob.machine, s->options->symbol, piece, n, &piece);
	return io_write_file(&s->arena, s->diags, s->path, piece, n);
}

static bool save_program(struct saving *s)
{
	esp_program *p = s->program;
	if (!program_make(p, &s->image, s->diags))
		return false;
	if (!s->image.blob.size)
		return diag_add(s->diags, DIAG_NO_CODE, (struct diag_at){0}, "choose another back end",
				"the program '%s' is interpreted: there is no code to save", s->image.name);
	const struct allocator *a = &p->object.context->allocator;
	arena_init(&s->arena, a);
	bool ok = pack_weights(s) && api_guarded(&s->arena, s->diags, write_image, s);
	rt_binding_free(&s->binding);
	if (s->caller.code.call && !s->caller.code.kernels) /* the interpreter is its own, other code the program's */
		image_code_release(&s->caller.code);
	arena_free(&s->arena);
	return ok;
}

static bool is_identifier(const char *text)
{
	if (!text || !(isalpha((unsigned char)*text) || *text == '_'))
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

static bool take_options(const esp_save_options *options, esp_save_options *o, struct api_call *call)
{
	const char *function = "esp_program_save";
	if (options && !api_take_struct(&call->diags, function, "options", options, o, sizeof *o))
		return false;
	if (o->form < ESP_SAVE_PROGRAM || o->form > ESP_SAVE_SOURCE)
		return api_bad_argument(&call->diags, function, "options->form",
					"must be one of ESP_SAVE_...");
	if (o->form != ESP_SAVE_PROGRAM && !is_identifier(o->symbol))
		return api_bad_argument(&call->diags, function, "options->symbol",
					"must be an identifier of C");
	return !o->weights || api_belongs(call, o->weights, function, "options->weights");
}

esp_status esp_program_save(esp_program *program, const char *path, const esp_save_options *options,
			    esp_error **error)
{
	struct api_call call = api_begin(program);
	esp_save_options o = {0};
	struct saving saving = {.program = program, .path = path, .options = &o, .diags = &call.diags};
	bool ok = api_need(&call, program) && api_need(&call, path) && take_options(options, &o, &call) &&
		  (o.form == ESP_SAVE_SOURCE ? program_save_source(program, path, o.symbol, o.weights, &call.diags) : save_program(&saving));
	return api_end(&call, ok, error);
}

/* --- loading --- */

struct loading {
	esp_program *program;
	const void *bytes;
	size_t n;
	struct diags *diags;
};

static bool read_image(void *job)
{
	struct loading *l = job;
	esp_program *p = l->program;
	if (!image_read(&p->arena, l->bytes, l->n, &p->interface, l->diags) ||
	    !compile_can_load(&p->interface, l->diags))
		return false;
	p->found = true;
	program_describe(p);
	return true;
}

/* Reads the image; adds the path to the diagnostics. */
static bool read_named(struct loading *l, const char *path, struct diags *diags)
{
	const struct allocator *a = &l->program->object.context->allocator;
	struct diags said;
	diags_init(&said, a);
	l->diags = &said;
	bool ok = api_guarded(&l->program->arena, &said, read_image, l);
	for (size_t i = 0; i < said.n; i++)
		diag_add(diags, said.at[i].id, (struct diag_at){.file = path}, said.at[i].hint,
			 "cannot load %s: %s", path ? path : "a program", said.at[i].message);
	diags->lost |= said.lost;
	diags_free(&said);
	return ok;
}

/* Reads the whole file into memory aligned for weights, so that later changes of the file have no effect. */
static bool read_file(struct loading *l, int fd, const char *path, struct diags *diags)
{
	esp_program *p = l->program;
	struct stat st;
	if (fstat(fd, &st) != 0)
		return diag_add(diags, DIAG_CANNOT_READ, (struct diag_at){.file = path}, NULL,
				"cannot read '%s': %s", path, strerror(errno));
	p->file = rt_allocate(&p->object.context->allocator, st.st_size);
	l->bytes = p->file;
	l->n = st.st_size;
	return p->file ? io_read_at(diags, path, fd, p->file, st.st_size, 0)
		       : diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				  "no memory for the %lld bytes of '%s'", (long long)st.st_size, path);
}

static bool open_file(struct loading *l, const char *path, struct diags *diags)
{
	int fd = io_open_regular(diags, path);
	bool ok = fd >= 0 && read_file(l, fd, path, diags);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Loads a file if there is a path, else the bytes. */
static esp_program *load_program(esp_context *context, const char *path, const void *bytes, size_t n,
				 struct diags *diags)
{
	double begin = times_clock();
	esp_program *p = program_new(context, NULL, diags);
	struct loading l = {.program = p, .bytes = bytes, .n = n};
	context_machine(context, false);
	if (p && (!path || open_file(&l, path, diags)) && read_named(&l, path, diags)) {
		p->looking = times_clock() - begin;
		return p;
	}
	object_release(p);
	return NULL;
}

esp_status esp_program_load(esp_context *context, const char *path, esp_program **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_program *p = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		p = load_program(context, path, NULL, 0, &call.diags);
	if (out)
		*out = p;
	return api_end(&call, p, error);
}

esp_status esp_program_load_memory(esp_context *context, const void *bytes, size_t n, esp_program **out,
				   esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_program *p = NULL;
	if (api_need(&call, context) && api_need(&call, bytes) && api_need(&call, out))
		p = load_program(context, NULL, bytes, n, &call.diags);
	if (out)
		*out = p;
	return api_end(&call, p, error);
}

int esp_program_has_weights(const esp_program *p)
{
	return p && (p->interface.packs > 0 || p->interface.params == 0);
}
