/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Runs a stream without its values and proves each access.
 *
 * Every entry on the chip and every cell of the host's memory remembers the instruction that wrote it last
 * and the last one of each module that read it.  An access must come after the last write, and a write after
 * the last reads, by tokens or by the order within a module: the instruction must know them to be complete.
 * One order of the modules is enough, since two accesses that no token orders stand in every order without
 * one between them. */
#include "vta/vta_verify.h"

#include <string.h>

/* Numbers of instructions, plus one; 0 = none. */
struct access {
	uint32_t wrote, read[VTA_MODULES];
	bool defined; /* has a value */
	bool output;  /* of accumulators: the output memory has its low bits */
};

struct proof {
	const struct vta_stream *stream;
	struct diags *diags;
	struct vta_event event;
	struct access input[VTA_ENTRIES], weight[VTA_ENTRIES], accumulator[VTA_ENTRIES];
	struct access *cell;	 /* of the host's memory */
	uint8_t *role;		 /* of a cell; VTA_ROLES = of no segment */
	const uint8_t **content; /* of cells that come with the stream */
	uint32_t *uop;
	bool *uop_defined;
	struct vta_cost *cost;
};

static bool refuse_insn(struct proof *p, enum diag_id id, const char *hint, const char *what)
{
	return vta_refuse(p->diags, id, p->event.insn, hint, what);
}

/* --- accesses --- */

static bool is_ordered(const struct proof *p, uint32_t number)
{
	if (!number)
		return true;
	enum vta_module module = vta_module_of(&p->stream->insn[number - 1]);
	return module == p->event.module || p->event.seen[module] >= number;
}

static bool fail_race(struct proof *p, uint32_t other, const char *what)
{
	return diag_add(p->diags, DIAG_VTA_RACE, (struct diag_at){0},
			"let the later one pop a token that was pushed when the other had ended",
			"instruction %u %s instruction %u, and no token orders them", p->event.insn, what,
			other - 1);
}

static bool note_read(struct proof *p, struct access *a)
{
	if (!a->defined)
		return refuse_insn(p, DIAG_VTA_UNDEFINED, "load or compute it first",
				   "reads what nothing wrote");
	if (!is_ordered(p, a->wrote))
		return fail_race(p, a->wrote, "reads what is written by");
	a->read[p->event.module] = p->event.insn + 1;
	return true;
}

static bool note_write(struct proof *p, struct access *a, bool output)
{
	if (!is_ordered(p, a->wrote))
		return fail_race(p, a->wrote, "overwrites what is written by");
	for (int m = 0; m < VTA_MODULES; m++)
		if (!is_ordered(p, a->read[m]))
			return fail_race(p, a->read[m], "overwrites what is read by");
	a->wrote = p->event.insn + 1;
	a->defined = true;
	a->output = output;
	return true;
}

/* --- the host's memory --- */

static void lay_segment(struct proof *p, const struct vta_segment *segment)
{
	bool given = segment->role != VTA_ROLE_OUTPUT && segment->role != VTA_ROLE_SCRATCH;
	for (uint64_t at = 0; at < segment->bytes; at += VTA_CELL) {
		uint64_t cell = (segment->begin + at) / VTA_CELL;
		p->role[cell] = (uint8_t)segment->role;
		p->cell[cell].defined = given;
		p->content[cell] = segment->data ? segment->data + at : NULL;
	}
}

static bool check_role(struct proof *p, uint64_t cell, bool writes, bool uops)
{
	uint8_t role = p->role[cell];
	if (role == VTA_ROLES)
		return refuse_insn(p, DIAG_VTA_BOUNDS, NULL,
				   "uses memory of the host that belongs to no segment");
	if (writes && role != VTA_ROLE_OUTPUT && role != VTA_ROLE_SCRATCH)
		return refuse_insn(p, DIAG_VTA_ROLE, "outputs and scratch memory are written",
				   "writes over what is only read");
	if (uops != (role == VTA_ROLE_UOPS))
		return refuse_insn(p, DIAG_VTA_ROLE, NULL,
				   uops ? "loads micro-ops from other memory than that of micro-ops"
					: "loads micro-ops as data");
	return true;
}

static bool use_cells(struct proof *p, uint64_t begin, uint64_t end, bool writes)
{
	for (uint64_t cell = begin; cell < end; cell++)
		if (!check_role(p, cell, writes, false) ||
		    !(writes ? note_write(p, &p->cell[cell], false) : note_read(p, &p->cell[cell])))
			return false;
	return true;
}

/* The bytes of row y of a load or store, from the beginning of the memory; false when they lie outside. */
static bool find_row(struct proof *p, const struct vta_insn *insn, uint32_t y, uint64_t *begin, uint64_t *end)
{
	uint64_t bytes = vta_memory_traits(insn->memory).bytes;
	*begin = (insn->dram_base + (uint64_t)y * insn->x_stride) * bytes;
	*end = *begin + insn->x_size * bytes;
	return *end <= p->stream->bytes ||
	       refuse_insn(p, DIAG_VTA_BOUNDS, NULL, "goes beyond the memory of the host");
}

/* --- loads and stores --- */

static struct access *accesses_of(struct proof *p, enum vta_memory memory)
{
	return memory == VTA_MEMORY_INPUT    ? p->input
	       : memory == VTA_MEMORY_WEIGHT ? p->weight
					     : p->accumulator;
}

static bool check_sram(struct proof *p, const struct vta_insn *insn, uint32_t *entries)
{
	uint64_t x = (uint64_t)insn->x_size + insn->x_pad_0 + insn->x_pad_1;
	uint64_t y = (uint64_t)insn->y_size + insn->y_pad_0 + insn->y_pad_1;
	if (insn->sram_base + x * y > vta_memory_traits(insn->memory).entries)
		return refuse_insn(p, DIAG_VTA_BOUNDS, NULL, "goes beyond a memory of the device");
	*entries = (uint32_t)(x * y);
	return true;
}

static bool load_uops(struct proof *p, const struct vta_insn *insn)
{
	uint64_t begin = 0, end = 0;
	if (insn->y_size && !find_row(p, insn, 0, &begin, &end))
		return false;
	for (uint32_t i = 0; begin + 4 * (uint64_t)i < end; i++) {
		uint64_t at = begin + 4 * (uint64_t)i;
		if (!check_role(p, at / VTA_CELL, false, true))
			return false;
		p->uop[insn->sram_base + i] = vta_get_u32(p->content[at / VTA_CELL] + at % VTA_CELL);
		p->uop_defined[insn->sram_base + i] = true;
	}
	return true;
}

static bool load_data(struct proof *p, const struct vta_insn *insn, uint32_t entries)
{
	struct access *to = accesses_of(p, insn->memory) + insn->sram_base;
	for (uint32_t i = 0; i < entries; i++)
		if (!note_write(p, &to[i], false))
			return false;
	for (uint32_t y = 0; insn->x_size && y < insn->y_size; y++) {
		uint64_t begin, end;
		if (!find_row(p, insn, y, &begin, &end) ||
		    !use_cells(p, begin / VTA_CELL, end / VTA_CELL, false))
			return false;
	}
	return true;
}

static bool store_data(struct proof *p, const struct vta_insn *insn, uint32_t entries)
{
	struct access *from = p->accumulator + insn->sram_base;
	for (uint32_t i = 0; i < entries; i++) {
		if (!note_read(p, &from[i]))
			return false;
		if (!from[i].output)
			return refuse_insn(p, DIAG_VTA_UNDEFINED,
					   "the output memory is written by GEMM without reset and by ALU",
					   "stores an accumulator that was loaded or reset and not computed");
	}
	for (uint32_t y = 0; insn->x_size && y < insn->y_size; y++) {
		uint64_t begin, end;
		if (!find_row(p, insn, y, &begin, &end) ||
		    !use_cells(p, begin / VTA_CELL, end / VTA_CELL, true))
			return false;
	}
	return true;
}

static bool prove_move(struct proof *p, const struct vta_insn *insn)
{
	uint32_t entries = 0;
	if (!check_sram(p, insn, &entries))
		return false;
	uint64_t bytes = (uint64_t)insn->x_size * insn->y_size * vta_memory_traits(insn->memory).bytes;
	*(insn->opcode == VTA_STORE ? &p->cost->stored : &p->cost->loaded) += bytes;
	if (insn->opcode == VTA_STORE)
		return store_data(p, insn, entries);
	return insn->memory == VTA_MEMORY_UOP ? load_uops(p, insn) : load_data(p, insn, entries);
}

/* --- loops --- */

static bool read_set(struct proof *p, struct access *a, const struct vta_set *set)
{
	for (uint32_t i = 0; i < VTA_ENTRIES; i++)
		if (vta_set_has(set, i) && !note_read(p, &a[i]))
			return false;
	return true;
}

static bool write_set(struct proof *p, struct access *a, const struct vta_set *set, bool output)
{
	for (uint32_t i = 0; i < VTA_ENTRIES; i++)
		if (vta_set_has(set, i) && !note_write(p, &a[i], output))
			return false;
	return true;
}

static bool check_uops(struct proof *p, const struct vta_insn *insn)
{
	if (insn->uop_end > vta_memory_traits(VTA_MEMORY_UOP).entries)
		return refuse_insn(p, DIAG_VTA_BOUNDS, NULL, "goes beyond the memory of micro-ops");
	for (uint32_t i = insn->uop_begin; i < insn->uop_end; i++)
		if (!p->uop_defined[i])
			return refuse_insn(p, DIAG_VTA_UNDEFINED, "load its micro-ops first",
					   "runs micro-ops that nothing loaded");
	return true;
}

/* Reset alone writes without reading; what devices leave in the output memory then differs. */
static bool prove_loop(struct proof *p, const struct vta_insn *insn)
{
	struct vta_uses uses;
	bool gemm = insn->opcode == VTA_GEMM, reset = gemm && insn->reset;
	if (!check_uops(p, insn))
		return false;
	if (!vta_find_uses(insn, p->uop, &uses))
		return refuse_insn(p, DIAG_VTA_BOUNDS, NULL,
				   "has micro-ops that go beyond a memory of the device");
	uint64_t steps = (uint64_t)insn->iter_out * insn->iter_in * (insn->uop_end - insn->uop_begin);
	*(gemm ? &p->cost->gemm_steps : &p->cost->alu_steps) += steps;
	if (!reset && !read_set(p, p->accumulator, &uses.dst))
		return false;
	if (gemm && !reset && (!read_set(p, p->input, &uses.src) || !read_set(p, p->weight, &uses.wgt)))
		return false;
	if (!gemm && !insn->use_imm && !read_set(p, p->accumulator, &uses.src))
		return false;
	return write_set(p, p->accumulator, &uses.dst, !reset);
}

/* --- the whole --- */

/* The host reads outputs when the stream has finished, and may then begin another. */
static bool prove_finish(struct proof *p)
{
	for (uint32_t i = 0; i < p->event.insn; i++)
		if (!is_ordered(p, i + 1))
			return fail_race(p, i + 1, "ends the stream before");
	return true;
}

static bool prove_stream(struct proof *p)
{
	const struct vta_insn *insn = &p->stream->insn[p->event.insn];
	p->cost->busy[p->event.module] += p->event.end - p->event.begin;
	if (p->cost->cycles < p->event.end)
		p->cost->cycles = p->event.end;
	if (insn->opcode == VTA_FINISH)
		return prove_finish(p);
	return insn->opcode == VTA_LOAD || insn->opcode == VTA_STORE ? prove_move(p, insn)
								     : prove_loop(p, insn);
}

static struct proof *begin_proof(struct arena *a, struct diags *diags, const struct vta_stream *stream,
				 struct vta_cost *cost)
{
	struct proof *p = ARENA_NEW(a, struct proof);
	size_t cells = stream->bytes / VTA_CELL, uops = vta_memory_traits(VTA_MEMORY_UOP).entries;
	p->stream = stream;
	p->diags = diags;
	p->cost = cost;
	p->cell = ARENA_ARRAY(a, struct access, cells);
	p->role = ARENA_ARRAY(a, uint8_t, cells);
	p->content = ARENA_ARRAY(a, const uint8_t *, cells);
	p->uop = ARENA_ARRAY(a, uint32_t, uops);
	p->uop_defined = ARENA_ARRAY(a, bool, uops);
	memset(p->role, VTA_ROLES, cells);
	for (size_t i = 0; i < stream->segments; i++)
		lay_segment(p, &stream->segment[i]);
	return p;
}

static bool check_end(struct proof *p, const struct vta_walk *walk)
{
	p->event.insn = vta_walk_stuck(walk);
	if (p->event.insn < p->stream->insns)
		return refuse_insn(
		    p, DIAG_VTA_TOKENS,
		    "each pop needs a push that comes before, and at most 512 tokens wait in a queue",
		    "waits for ever for a token or for room");
	const char *queue;
	uint32_t left = vta_walk_left(walk, &queue);
	return !left || diag_add(p->diags, DIAG_VTA_TOKENS, (struct diag_at){0},
				 "the next stream would begin with them",
				 "%u tokens are left in the queue from %s", left, queue);
}

bool vta_verify(struct arena *a, struct diags *diags, const struct vta_stream *stream, struct vta_cost *cost)
{
	*cost = (struct vta_cost){0};
	if (!vta_check_insns(diags, stream))
		return false;
	struct proof *p = begin_proof(a, diags, stream, cost);
	struct vta_walk *walk = vta_walk_begin(a, stream, NULL);
	while (vta_walk_next(walk, &p->event))
		if (!prove_stream(p))
			return false;
	return check_end(p, walk);
}
