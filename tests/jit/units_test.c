/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is compiled apart: the tiles of a kernel by rows, and what of them a range needs. */
#include "ilir/ilir.h"
#include "jit/units.h"
#include "tests/tap.h"

#include <string.h>

/* Tiles of 3, 2 and 1 rows, of which the last but one takes two rather than leave a row alone. */
#define THREES "((div(end - begin, 3) - select(and(mod(end - begin, 3) == 1, 1 < (end - begin)), 1, 0)) * 3)"
#define TWOS "(div((end - begin) - " THREES ", 2) * 2)"
#define TILES                                                                                                \
	"    for n.1:node in begin..begin + " THREES " step 3 {\n"                                             \
	"      out[n.1, 0] = 3.0\n"                                                                           \
	"    }\n"                                                                                             \
	"    for n.2:node in begin + " THREES "..(begin + " THREES ") + " TWOS " step 2 {\n"                    \
	"      out[n.2, 0] = 2.0\n"                                                                           \
	"    }\n"                                                                                             \
	"    for n.3:node in (begin + " THREES ") + " TWOS "..end {\n"                                          \
	"      out[n.3, 0] = 1.0\n"                                                                           \
	"    }\n"

#define HEAD                                                                                                 \
	"module units\ndim node, j\n"                                                                        \
	"buffer out : output 0 f32 [nodes:node, 8:j]\n"

struct parsed {
	struct arena arena;
	struct diags diags;
	struct ilir_module *module;
	struct jit_unit *unit;
	int units;
};

static void parse(struct parsed *p, const char *text, bool whole)
{
	arena_init(&p->arena, &allocator_default);
	diags_init(&p->diags, &allocator_default);
	p->module = ilir_parse(&p->arena, &p->diags, "units", text, strlen(text));
	p->units = p->module ? jit_list_units(&p->arena, p->module, whole, &p->unit) : -1;
	for (size_t i = 0; i < p->diags.n; i++)
		printf("# %s\n", p->diags.at[i].message);
}

static void parsed_free(struct parsed *p)
{
	diags_free(&p->diags);
	arena_free(&p->arena);
}

static bool is_unit(const struct jit_unit *u, const char *name, int variant, int variants, int64_t rows)
{
	return strcmp(u->name, name) == 0 && u->variant == variant && u->variants == variants && u->rows == rows;
}

static void test_tiles(void)
{
	struct parsed p;
	parse(&p, HEAD "kernel k in nodes {\n  for j:j in 0..8 step 4 swept {\n    alloc kept : f32 [2:node] parked\n" TILES "  }\n}\n", false);
	tap_ok(p.units == 3 && is_unit(&p.unit[0], "k", 0, 3, 3) && is_unit(&p.unit[2], "k.rows1", 2, 3, 1),
	       "tiles behind a register that is kept from tile to tile");
	parsed_free(&p);
	parse(&p, HEAD "kernel k in nodes {\n  for j:j in 0..8 step 4 swept {\n" TILES "  }\n}\n", false);
	tap_ok(p.units == 3 && is_unit(&p.unit[0], "k", 0, 3, 3) && is_unit(&p.unit[1], "k.rows2", 1, 3, 2) &&
		   is_unit(&p.unit[2], "k.rows1", 2, 3, 1),
	       "tiles by rows are units, each needed from so many rows on");
	parsed_free(&p);
	parse(&p, HEAD "kernel k in nodes {\n  for j:j in 0..8 step 4 swept {\n" TILES "  }\n}\n", true);
	tap_ok(p.units == 1 && is_unit(&p.unit[0], "k", 0, 1, 1), "or a kernel is one unit");
	parsed_free(&p);
}

static void refuse(const char *what, const char *text)
{
	struct parsed p;
	parse(&p, text, false);
	tap_ok(p.units == 1 && is_unit(&p.unit[0], "k", 0, 1, 1), "%s is one unit", what);
	parsed_free(&p);
}

int main(void)
{
	test_tiles();
	refuse("a kernel that finds its own rows", HEAD "kernel k in once {\n" TILES "}\n");
	refuse("a kernel with another statement beside its tiles",
	       HEAD "kernel k in nodes {\n  out[0, 1] = 1.0\n" TILES "}\n");
	refuse("a kernel with one loop", HEAD "kernel k in nodes {\n  for n:node in begin..end {\n    out[n, 0] = 1.0\n"
					      "  }\n}\n");
	refuse("a kernel with two sequences of tiles", HEAD "kernel k in nodes {\n" TILES
	       "    for m.1:node in begin..end {\n      out[m.1, 1] = 1.0\n    }\n}\n");
	refuse("a kernel whose loops over rows have fixed bounds",
	       HEAD "kernel k in nodes {\n  for n:node in 0..2 {\n    out[n, 0] = 1.0\n  }\n  for o:node in 2..4 {\n"
		    "    out[o, 0] = 1.0\n  }\n}\n");
	return tap_done();
}
