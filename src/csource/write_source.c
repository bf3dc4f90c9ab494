/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The files of a program, and what cannot be written. */
#include "csource/writer.h"

#include "jit/place.h"

static bool refuse_program(const struct csource_program *p, const char *what, const char *hint, struct diags *diags)
{
	return diag_add(diags, DIAG_NO_SOURCE, (struct diag_at){0}, hint, "the program '%s' cannot be written as C: %s",
			p->image->name, what);
}

/* What a host would have to do before the first kernel, or to its processor. */
static bool check_program(const struct csource_program *p, struct diags *diags)
{
	const struct image *image = p->image;
	if (image->flush)
		return refuse_program(p, "denormals count as zeros in it, which C cannot say", "compile it with --math reassociate or exact",
				      diags);
	if (image->cases || image->sorts)
		return refuse_program(p, "its rows are sorted by a token", "leave out what the schedule says of them", diags);
	for (int i = 0; i < image->buffers; i++)
		if (csource_is_of_recursion(image->buffer[i].kind))
			return refuse_program(p, "its kernels read a structure", "choose a model without a structure", diags);
	return true;
}

/* Files that only programs with calls of the accelerator have. */
enum { OF_CALLS = 3 };

static void begin_file(struct csource_writer *w, struct csource_file *file, const char *suffix)
{
	*file = (struct csource_file){suffix, str_in(w->arena)};
	w->to = &file->text;
	w->depth = 0;
	csource_line(w, "/* Written by espalier compile. */");
}

int csource_write(struct arena *arena, const struct csource_program *p, struct csource_file file[CSOURCE_FILES],
		  struct diags *diags)
{
	static const struct {
		const char *suffix;
		void (*print)(struct csource_writer *);
	} files[CSOURCE_FILES] = {
	    {".h", csource_print_header},
	    {".c", csource_print_run},
	    {"_arithmetic.h", csource_print_arithmetic},
	    {"_weights.h", csource_declare_weights},
	    {"_weights.c", csource_print_weights},
	    {"_device.h", csource_declare_device},
	    {"_streams.c", csource_print_streams},
	    {"_executor.c", csource_print_executor},
	};
	int n = p->image->calls ? CSOURCE_FILES : CSOURCE_FILES - OF_CALLS;
	size_t nodes = p->module->nodes.n;
	struct csource_writer w = {.program = p,
				   .m = p->module,
				   .arena = arena,
				   .reads = jit_find_reads(p->module, arena),
				   .known = ARENA_ARRAY(arena, bool, nodes),
				   .lane = ARENA_ARRAY(arena, uint32_t, nodes)};
	if (!check_program(p, diags))
		return 0;
	for (int i = 0; i < n; i++) {
		begin_file(&w, &file[i], files[i].suffix);
		files[i].print(&w);
	}
	return !w.problem || refuse_program(p, w.problem, "report this as a fault of the compiler", diags) ? n : 0;
}
