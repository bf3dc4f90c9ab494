/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs as C: compiled up to finished loops, bound to weights, and written to a folder. */
#include "api/objects.h"

#include "csource/csource.h"
#include "image/code.h"
#include "io/write.h"
#include "jit/jit.h"

#include <errno.h>
#include <sys/stat.h>

struct source {
	esp_program *program;
	const char *folder, *name;
	const esp_weights *weights;
	struct arena arena;
	struct image image; /* interpreted, so that its loops are kept */
	bool compiled; /* what depends on weights alone is computed by the program's own code */
	struct rt_binding binding;
	struct diags *diags;
};

static bool check_model(const struct source *s)
{
	const esp_program *p = s->program;
	if (!p->model)
		return diag_add(s->diags, DIAG_NO_MODEL, (struct diag_at){0}, "write C of a program that was made of the model",
				"the program '%s' was saved: its loops are not in it", p->interface.name);
	enum ra_structure_kind kind = p->model->graph->structure.kind;
	if (kind != RA_NONE)
		return diag_add(s->diags, DIAG_NO_SOURCE, (struct diag_at){0}, "save the program, for hosts that have the library",
				"the model '%s' cannot be written as C: it has the structure '%s'", p->interface.name,
				ra_structure_words[kind]);
	return s->weights || !p->interface.params ||
	       api_bad_argument(s->diags, "esp_program_save", "options->weights", "must not be NULL for source");
}

/* The interpreter gives the same bits, and takes a thousand times as long: it is used where no code of the program can be
 * made or run. */
static bool has_code(struct source *s)
{
	const struct compile_options *o = &s->program->options;
	return !compile_interprets(o) && target_runs_here(o->target) && jit_backend_path(&s->arena, o->backend);
}

static bool compile_loops(void *job)
{
	struct source *s = job;
	const esp_program *p = s->program;
	struct compile_options options = p->options;
	options.backend = "interpreter";
	options.watch.goes_on = program_is_wanted;
	bool ok = compile_image(&s->arena, s->diags, p->model->graph, p->sizes, &options, &s->image, NULL);
	s->compiled = ok && s->image.folds && has_code(s);
	return ok;
}

static bool pack_weights(struct source *s)
{
	esp_program *p = s->program;
	if ((s->weights && !binding_check(p, s->weights, s->diags)) || (s->compiled && !program_begin(p, s->diags)))
		return false;
	return binding_pack(&s->binding, p, s->compiled ? &p->image : &s->image, s->weights, s->diags);
}

static bool make_folder(const struct source *s)
{
	return mkdir(s->folder, 0777) == 0 || errno == EEXIST ||
	       diag_add(s->diags, DIAG_CANNOT_WRITE, (struct diag_at){.file = s->folder}, "name a folder that can be made",
			"cannot make the folder '%s': %s", s->folder, strerror(errno));
}

static bool write_file(struct source *s, const struct csource_file *file)
{
	struct str path = str_in(&s->arena);
	str_printf(&path, "%s/%s%s", s->folder, s->name, file->suffix);
	struct io_piece piece = {str_text(&file->text), (int64_t)file->text.n};
	return io_write_file(&s->arena, s->diags, str_text(&path), &piece, 1);
}

static bool write_files(void *job)
{
	struct source *s = job;
	struct csource_file file[CSOURCE_FILES];
	int64_t *row = ARENA_ARRAY(&s->arena, int64_t, s->image.buffers), *fixed = ARENA_ARRAY(&s->arena, int64_t, s->image.buffers);
	struct csource_program c = {.module = compile_loops_of(&s->image),
				    .image = &s->image,
				    .packed = s->binding.packed,
				    .name = s->name,
				    .row_offset = row,
				    .fixed_offset = fixed};
	if (!rt_lay_out_scratch(&s->image, csource_row_sizes, row, &c.row_bytes) ||
	    !rt_lay_out_scratch(&s->image, csource_fixed_sizes, fixed, &c.fixed_bytes))
		return diag_add(s->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for the intermediates of a row");
	int files = csource_write(&s->arena, &c, file, s->diags);
	bool ok = files && make_folder(s);
	for (int i = 0; ok && i < files; i++)
		ok = write_file(s, &file[i]);
	return ok;
}

bool program_save_source(esp_program *p, const char *folder, const char *name, const esp_weights *weights, struct diags *diags)
{
	struct source s = {.program = p, .folder = folder, .name = name, .weights = weights, .diags = diags};
	arena_init(&s.arena, &p->object.context->allocator);
	bool ok = check_model(&s) && api_guarded_deep(p->model->graph, &s.arena, diags, compile_loops, &s) && pack_weights(&s) &&
		  api_guarded_deep(p->model->graph, &s.arena, diags, write_files, &s);
	rt_binding_free(&s.binding);
	image_code_release(&s.image.code);
	arena_free(&s.arena);
	return ok;
}
