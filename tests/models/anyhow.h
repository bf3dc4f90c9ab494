/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs for a target that the machine does not run, such as that of matrix registers where a test executes their instructions in
 * place of the processor (tests/jit/amx.h). */
#ifndef ESPALIER_TESTS_MODELS_ANYHOW_H
#define ESPALIER_TESTS_MODELS_ANYHOW_H

#include "image/code.h"
#include "tests/models/agree.h"

/* Compiles for any target, also where the machine does not run it. */
static inline bool compile_anyhow(struct test_run *r, const struct test_model *t, const struct option_texts *texts)
{
	static jmp_buf jump;
	struct image unfinished;
	begin_run(r);
	if (arena_guard(&r->arena, &jump))
		return false;
	const struct compile_options *o = read_option_texts(&r->arena, &r->diags, texts);
	const struct compilation *first = o ? compile_begin(&r->arena, &r->diags, t->model, t->sizes, o, &unfinished, NULL) : NULL;
	bool ok = first && compile_finish(first, &r->arena, &r->diags, &r->image, NULL);
	if (ok && !r->image.code.call)
		ok = image_code_load(&r->image.blob, &allocator_default, r->image.name, &r->image.code, &r->diags);
	print_diags(&r->diags);
	return ok;
}

#endif
