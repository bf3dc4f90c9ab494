/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "compile/options.h"

#include <string.h>

void compile_describe_machine(struct compile_options *o, const struct machine_known *machine)
{
	if (!o->native)
		return;
	o->machine = machine;
	o->target = &machine->target;
}

struct rewrite_options compile_rewrite_options(const struct compile_options *o)
{
	return (struct rewrite_options){
	    .math = o->math, .off = o->rules_off, .table_bytes = o->table_bytes, .weights_as = o->weights_as, .precision = o->precision};
}

bool compile_interprets(const struct compile_options *o)
{
	return strcmp(o->backend, "interpreter") == 0;
}
