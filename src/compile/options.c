/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "compile/options.h"

#include <string.h>

static bool has_same_vectors(const struct target *a, const struct target *b)
{
	return strcmp(a->arch, b->arch) == 0 && a->lanes == b->lanes && a->registers == b->registers;
}

void compile_describe_machine(struct arena *arena, struct compile_options *o, const struct machine_known *machine)
{
	if (!o->native)
		return;
	struct target *target = ARENA_NEW(arena, struct target);
	*target = has_same_vectors(o->target, &machine->target) ? target_with_numbers(o->target, &machine->target) : machine->target;
	o->machine = machine;
	o->target = target;
}

struct rewrite_options compile_rewrite_options(const struct compile_options *o)
{
	return (struct rewrite_options){
	    .math = o->math, .off = o->rules_off, .table_bytes = o->table_bytes, .weights_as = o->weights_as, .precision = o->precision,
	    .calibration = o->calibration,
	    .observing = o->observing,
	    .on_host = o->on_host,
	    .finite = o->finite,
	    .matrices = o->target && o->target->amx_int8};
}

bool compile_interprets(const struct compile_options *o)
{
	return strcmp(o->backend, "interpreter") == 0;
}
