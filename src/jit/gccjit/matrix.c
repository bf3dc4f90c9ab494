/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matrix registers: tiles of AMX (Intel's manual of the architecture, volume 1, chapter 18), by instructions, since libgccjit knows no
 * tiles: GCC allocates none, so they need no operands.  The n-th matrix register that a loop allocates is tile n. */
#include "jit/gccjit/emit.h"

#include <stdio.h>

/* What ldtilecfg reads: a byte for the palette, of which there is one; from 16 on the bytes of a row of each tile, in 16 bits; from
 * 48 on the rows of each. */
enum { CONFIGURATION = 64, PALETTE = 1, ROW_BYTES_AT = 16, ROWS_AT = 48, WORD_BYTES = 4 };

/* An instruction that may read and write any memory, and stays where it is. */
static gcc_jit_extended_asm *add_instruction(struct emitter *e, const char *template)
{
	gcc_jit_extended_asm *s = gcc_jit_block_add_extended_asm(e->at, e->location, template);
	gcc_jit_extended_asm_set_volatile_flag(s, 1);
	gcc_jit_extended_asm_add_clobber(s, "memory");
	return s;
}

static int tile_of(const struct emitter *e, ilir_buffer matrix)
{
	int n = 0;
	while (n < e->matrices && e->matrix[n].i != matrix.i)
		n++;
	return n;
}

static void describe_tiles(const struct emitter *e, uint8_t bytes[CONFIGURATION])
{
	memset(bytes, 0, CONFIGURATION);
	bytes[0] = PALETTE;
	for (int n = 0; n < e->matrices; n++) {
		const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, e->matrix[n]);
		bytes[ROW_BYTES_AT + 2 * n] = (uint8_t)(WORD_BYTES * b->dim[1].padded);
		bytes[ROWS_AT + n] = (uint8_t)b->dim[0].padded;
	}
}

void jit_configure_matrices(struct emitter *e, const struct ilir_stmt *loop)
{
	ilir_buffer list[ILIR_MATRICES + 1];
	uint8_t bytes[CONFIGURATION];
	int64_t word[CONFIGURATION / 8];
	e->matrices = ilir_list_matrices(e->m, loop->loop.body, list);
	memcpy(e->matrix, list, sizeof e->matrix);
	describe_tiles(e, bytes);
	memcpy(word, bytes, sizeof word);
	gcc_jit_type *type = gcc_jit_context_new_array_type(e->context, NULL, e->type[ILIR_INDEX][0], CONFIGURATION / 8);
	gcc_jit_lvalue *tiles = jit_local(e, type);
	for (int i = 0; i < CONFIGURATION / 8; i++) {
		gcc_jit_lvalue *at =
		    gcc_jit_context_new_array_access(e->context, NULL, gcc_jit_lvalue_as_rvalue(tiles), jit_index(e, i));
		gcc_jit_block_add_assignment(e->at, e->location, at, jit_index(e, word[i]));
	}
	gcc_jit_lvalue *first = gcc_jit_context_new_array_access(e->context, NULL, gcc_jit_lvalue_as_rvalue(tiles), jit_index(e, 0));
	gcc_jit_extended_asm_add_input_operand(add_instruction(e, "ldtilecfg\t(%0)"), NULL, "r", gcc_jit_lvalue_get_address(first, NULL));
}

void jit_release_matrices(struct emitter *e)
{
	add_instruction(e, "tilerelease");
	e->matrices = 0;
}

void jit_emit_rows(struct emitter *e, const struct ilir_stmt *s)
{
	char template[48];
	int tile = tile_of(e, s->rows.matrix);
	gcc_jit_rvalue *at = jit_emit_address(e, s->rows.first);
	if (!at)
		return;
	if (s->kind == ILIR_FILL)
		snprintf(template, sizeof template, "tileloadd\t(%%0,%%1,1), %%%%tmm%d", tile);
	else
		snprintf(template, sizeof template, "tilestored\t%%%%tmm%d, (%%0,%%1,1)", tile);
	/* libgccjit 12 crashes where an operand is a constant. */
	gcc_jit_rvalue *distance = jit_keep(e, e->type[ILIR_INDEX][0], jit_index(e, WORD_BYTES * ilir_row_distance(e->m, s)));
	gcc_jit_extended_asm *instruction = add_instruction(e, template);
	gcc_jit_extended_asm_add_input_operand(instruction, NULL, "r", at);
	gcc_jit_extended_asm_add_input_operand(instruction, NULL, "r", distance);
}

void jit_emit_matrix_dot(struct emitter *e, const struct ilir_stmt *s)
{
	char template[64];
	snprintf(template, sizeof template, "%s\t%%%%tmm%d, %%%%tmm%d, %%%%tmm%d", s->dot.op == ILIR_DOT4 ? "tdpbusd" : "tdpbf16ps",
		 tile_of(e, s->dot.b), tile_of(e, s->dot.a), tile_of(e, s->dot.sum));
	add_instruction(e, template);
}
