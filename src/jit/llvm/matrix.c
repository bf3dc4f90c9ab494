/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matrix registers: tiles of AMX (Intel's manual of the architecture, volume 1, chapter 18), by LLVM's operators that name them by
 * number.  The n-th matrix register that a loop allocates is tile n. */
#include "jit/llvm/emit.h"

/* What ldtilecfg reads: a byte for the palette, of which there is one; from 16 on the bytes of a row of each tile, in 16 bits; from
 * 48 on the rows of each. */
enum { CONFIGURATION = 64, PALETTE = 1, ROW_BYTES_AT = 16, ROWS_AT = 48, WORD_BYTES = 4 };

static LLVMValueRef call_operator(struct emitter *e, const char *name, LLVMValueRef *arg, int args)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
	return LLVMBuildCall2(e->at, LLVMIntrinsicGetType(e->context, id, NULL, 0), function, arg, args, "");
}

static LLVMValueRef number_constant(struct emitter *e, uint64_t n)
{
	return LLVMConstInt(e->scalar[ILIR_I8], n, false);
}

/* The number of a matrix register as an operand. */
static LLVMValueRef tile_of(struct emitter *e, ilir_buffer matrix)
{
	int n = 0;
	while (n < e->matrices && e->matrix[n].i != matrix.i)
		n++;
	return number_constant(e, n);
}

static LLVMValueRef describe_tiles(struct emitter *e)
{
	uint8_t bytes[CONFIGURATION] = {PALETTE};
	LLVMValueRef lane[CONFIGURATION];
	for (int n = 0; n < e->matrices; n++) {
		const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, e->matrix[n]);
		bytes[ROW_BYTES_AT + 2 * n] = (uint8_t)(WORD_BYTES * b->dim[1].padded);
		bytes[ROWS_AT + n] = (uint8_t)b->dim[0].padded;
	}
	for (int i = 0; i < CONFIGURATION; i++)
		lane[i] = number_constant(e, bytes[i]);
	return LLVMConstVector(lane, CONFIGURATION);
}

void jit_configure_matrices(struct emitter *e, const struct ilir_stmt *loop)
{
	ilir_buffer list[ILIR_MATRICES + 1];
	e->matrices = ilir_list_matrices(e->m, loop->loop.body, list);
	memcpy(e->matrix, list, sizeof e->matrix);
	LLVMValueRef tiles = describe_tiles(e), at = LLVMBuildAlloca(e->entry, LLVMTypeOf(tiles), "tiles");
	LLVMBuildStore(e->at, tiles, at);
	call_operator(e, "llvm.x86.ldtilecfg", &at, 1);
}

void jit_release_matrices(struct emitter *e)
{
	call_operator(e, "llvm.x86.tilerelease", NULL, 0);
	e->matrices = 0;
}

void jit_emit_rows(struct emitter *e, const struct ilir_stmt *s)
{
	int64_t bytes = WORD_BYTES * ilir_row_distance(e->m, s);
	LLVMValueRef at = jit_emit_address(e, s->rows.first);
	LLVMValueRef arg[] = {tile_of(e, s->rows.matrix), at, LLVMConstInt(e->scalar[ILIR_I64], bytes, false)};
	if (at)
		call_operator(e, s->kind == ILIR_FILL ? "llvm.x86.tileloadd64" : "llvm.x86.tilestored64", arg, 3);
}

void jit_emit_matrix_dot(struct emitter *e, const struct ilir_stmt *s)
{
	LLVMValueRef arg[] = {tile_of(e, s->dot.sum), tile_of(e, s->dot.a), tile_of(e, s->dot.b)};
	call_operator(e, s->dot.op == ILIR_DOT4 ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbf16ps", arg, 3);
}
