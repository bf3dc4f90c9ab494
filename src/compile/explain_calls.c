/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the functions of an accelerator take: each stream is generated and walked as that of a program is, for one row, as of an
 * image with the sizes of the model. */
#include "compile/explain.h"
#include "vta/vta_generate.h"

#include <inttypes.h>

static const struct column {
	const char *heading, *key;
	size_t member; /* of struct vta_cost */
} columns[] = {{"cycles", "cycles", offsetof(struct vta_cost, cycles)},
	       {"gemm steps", "gemm_steps", offsetof(struct vta_cost, gemm_steps)},
	       {"alu steps", "alu_steps", offsetof(struct vta_cost, alu_steps)},
	       {"bytes loaded", "bytes_loaded", offsetof(struct vta_cost, loaded)},
	       {"bytes stored", "bytes_stored", offsetof(struct vta_cost, stored)}};

enum { COLUMNS = sizeof columns / sizeof *columns };

static uint64_t *count_of(struct vta_cost *cost, int column)
{
	return (uint64_t *)((char *)cost + columns[column].member);
}

/* What a call takes; the memory of its stream is given back. */
static bool find_cost(struct arena *a, struct diags *diags, const struct sub_call *c, struct vta_cost *cost)
{
	struct arena before = *a;
	struct vta_stream stream;
	bool ok = vta_generate(a, diags, c->operation, (size_t)c->operations, &stream) && vta_verify(a, diags, &stream, cost);
	arena_rewind(a, &before);
	return ok;
}

bool explain_find_calls(struct arena *a, struct diags *diags, const struct sub_program *p, struct explain_calls *to)
{
	*to = (struct explain_calls){.n = (int)p->calls.n, .call = ARENA_ARRAY(a, struct explain_call, p->calls.n + 1)};
	for (int i = 0; i < to->n; i++) {
		struct explain_call *call = &to->call[i];
		call->name = p->calls.at[i].name;
		if (!find_cost(a, diags, &p->calls.at[i], &call->cost))
			return false;
		for (int c = 0; c < COLUMNS; c++)
			*count_of(&to->all, c) += *count_of(&call->cost, c);
	}
	return true;
}

/* --- as text --- */

static void put_row(const char *name, struct vta_cost *cost, struct str *s)
{
	str_printf(s, "%-24s", name);
	for (int c = 0; c < COLUMNS; c++)
		str_printf(s, "  %12" PRIu64, *count_of(cost, c));
	str_puts(s, "\n");
}

void explain_put_calls(struct explain_calls *calls, struct str *s)
{
	if (!calls->n)
		return;
	str_printf(s, "\n%-24s", "accelerator, of a row");
	for (int c = 0; c < COLUMNS; c++)
		str_printf(s, "  %12s", columns[c].heading);
	str_puts(s, "\n");
	for (int i = 0; i < calls->n; i++)
		put_row(calls->call[i].name, &calls->call[i].cost, s);
	put_row("all", &calls->all, s);
}

/* --- as JSON --- */

static void put_members(struct vta_cost *cost, struct str *s)
{
	for (int c = 0; c < COLUMNS; c++)
		str_printf(s, "%s\"%s\":%" PRIu64, c ? "," : "", columns[c].key, *count_of(cost, c));
}

void explain_put_json_calls(struct explain_calls *calls, struct str *s)
{
	str_puts(s, "{\"functions\":[");
	for (int i = 0; i < calls->n; i++) {
		str_puts(s, i ? ",{\"name\":" : "{\"name\":");
		str_json(s, calls->call[i].name);
		str_puts(s, ",");
		put_members(&calls->call[i].cost, s);
		str_puts(s, "}");
	}
	str_puts(s, "],");
	put_members(&calls->all, s);
	str_puts(s, "}");
}
