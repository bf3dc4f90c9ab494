/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A stream under construction, and its micro-ops.
 *
 * Sequences of micro-ops are kept once in the host's memory.  On the device each is loaded behind the last
 * one, and when the memory is full it begins anew: the compute module runs both the loads and the loops, so
 * nothing has to wait. */
#include "base/vec.h"
#include "vta/vta_generate.h"

struct sequence {
	uint32_t n, first;	 /* among all micro-ops */
	uint32_t at, generation; /* where it was loaded, and when */
	struct sequence *next;	 /* of the same bucket */
};

enum { BUCKETS = 1024 };

struct vta_emitter {
	struct arena *arena;
	VEC(struct vta_insn) insns;
	VEC(uint32_t) uops;
	struct sequence *bucket[BUCKETS];
	uint32_t used, generation; /* of the memory of micro-ops */
};

struct vta_emitter *vta_emitter_create(struct arena *a)
{
	struct vta_emitter *e = ARENA_NEW(a, struct vta_emitter);
	e->arena = a;
	e->generation = 1;
	return e;
}

struct vta_insn *vta_emit(struct vta_emitter *e, struct vta_insn insn)
{
	vec_push(e->arena, &e->insns, insn);
	return &e->insns.at[e->insns.n - 1];
}

size_t vta_count_insns(const struct vta_emitter *e)
{
	return e->insns.n;
}

struct vta_insn *vta_insn_at(struct vta_emitter *e, size_t i)
{
	return &e->insns.at[i];
}

static bool is_sequence(const struct vta_emitter *e, const struct sequence *s, const struct vta_uop *uop,
			uint32_t n)
{
	if (s->n != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (e->uops.at[s->first + i] != vta_encode_uop(uop[i]))
			return false;
	return true;
}

static struct sequence *find_sequence(struct vta_emitter *e, const struct vta_uop *uop, uint32_t n)
{
	uint32_t hash = n;
	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ vta_encode_uop(uop[i])) * 2654435761u;
	struct sequence **bucket = &e->bucket[hash >> 22];
	for (struct sequence *s = *bucket; s; s = s->next)
		if (is_sequence(e, s, uop, n))
			return s;
	struct sequence *s = ARENA_NEW(e->arena, struct sequence);
	*s = (struct sequence){.n = n, .first = (uint32_t)e->uops.n, .next = *bucket};
	for (uint32_t i = 0; i < n; i++)
		vec_push(e->arena, &e->uops, vta_encode_uop(uop[i]));
	return *bucket = s;
}

/* The load counts from the first micro-op until the place of all of them is known. */
static void load_sequence(struct vta_emitter *e, struct sequence *s)
{
	if (e->used + s->n > vta_memory_traits(VTA_MEMORY_UOP).entries) {
		e->used = 0;
		e->generation++;
	}
	struct vta_insn load = {.opcode = VTA_LOAD};
	load.memory = VTA_MEMORY_UOP;
	load.sram_base = s->at = e->used;
	load.dram_base = s->first;
	load.y_size = 1;
	load.x_size = load.x_stride = s->n;
	vta_emit(e, load);
	s->generation = e->generation;
	e->used += s->n;
}

uint32_t vta_place_uops(struct vta_emitter *e, const struct vta_uop *uop, uint32_t n)
{
	struct sequence *s = find_sequence(e, uop, n);
	if (s->generation != e->generation)
		load_sequence(e, s);
	return s->at;
}

static bool loads_uops(const struct vta_insn *insn)
{
	return insn->opcode == VTA_LOAD && insn->memory == VTA_MEMORY_UOP && insn->x_size;
}

void vta_take_insns(struct vta_emitter *e, uint64_t begin, struct vta_stream *stream)
{
	for (size_t i = 0; i < e->insns.n; i++)
		if (loads_uops(&e->insns.at[i]))
			e->insns.at[i].dram_base += (uint32_t)(begin / 4);
	stream->insn = e->insns.at;
	stream->insns = e->insns.n;
}

struct vta_segment vta_take_uops(struct vta_emitter *e, uint64_t begin)
{
	uint64_t bytes = (e->uops.n * 4 + VTA_CELL - 1) / VTA_CELL * VTA_CELL;
	uint8_t *data = ARENA_ARRAY(e->arena, uint8_t, bytes);
	for (size_t i = 0; i < e->uops.n; i++)
		vta_put_u32(data + 4 * i, e->uops.at[i]);
	return (struct vta_segment){"uops", VTA_ROLE_UOPS, begin, bytes, data};
}
