/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams of instructions for the Versatile Tensor Accelerator: decoded instructions, the memory that they
 * work on, and what can be done with a stream: encode, print, parse, keep, verify, estimate and execute.
 *
 * Source: T. Moreau et al., "A Hardware-Software Blueprint for Flexible Deep Learning Specialization", IEEE
 * Micro 2019, and the published hardware description.  doc/vta.md has the forms of text and file.
 *
 * The device has three modules that run at the same time, each its instructions in order.  The load module
 * fills the input and weight memories, the compute module has all else but stores.  Neighbours order their
 * work by tokens: four queues, load to compute, compute to load, compute to store and store to compute.  Seen
 * from compute, load is `prev` and store is `next`. */
#ifndef ESPALIER_VTA_VTA_H
#define ESPALIER_VTA_VTA_H

#include "base/diag.h"

#include <stdint.h>

enum vta_opcode {
#define VTA_OPCODE(NAME, spelling, code, fields) VTA_##NAME = (code),
#include "vta/vta_isa.def"
};

enum vta_memory {
#define VTA_MEMORY(NAME, spelling, code, bytes, entries, padded) VTA_MEMORY_##NAME = (code),
#include "vta/vta_isa.def"
	VTA_MEMORIES
};

enum vta_alu {
#define VTA_ALU(NAME, spelling, code) VTA_ALU_##NAME = (code),
#include "vta/vta_isa.def"
	VTA_ALUS
};

enum vta_module { VTA_MODULE_LOAD, VTA_MODULE_COMPUTE, VTA_MODULE_STORE, VTA_MODULES };

/* The rest of the machine. */
enum {
	VTA_BLOCK = 16, /* elements of a vector, rows and columns of a block of weights */
	VTA_INSN_BYTES = 16,
	VTA_CELL = 16, /* bytes: the unit of the host's memory, smallest entry but for micro-ops */
	VTA_MEMORY_ALIGNMENT = 256, /* bytes: the largest entry */
	VTA_QUEUE_DEPTH = 512,	    /* tokens of a queue, and instructions that wait for a module */
	VTA_DMA_BYTES = 8,	    /* of a cycle */
	VTA_ALU_CYCLES = 2	    /* of an operation on one accumulator entry */
};

/* A decoded instruction; `imm` has its sign extended. */
struct vta_insn {
#define VTA_FIELD_ANY(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
	union {
		struct { /* LOAD, STORE */
#define VTA_FIELD_MOVE(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
		};
		struct { /* GEMM, ALU */
#define VTA_FIELD_LOOP(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
			union {
				struct { /* GEMM */
#define VTA_FIELD_GEMM(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
				};
				struct { /* ALU */
#define VTA_FIELD_ALU(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
				};
			};
		};
	};
};

struct vta_uop {
#define VTA_UOP_FIELD(name, offset, width) uint32_t name;
#include "vta/vta_isa.def"
};

/* What a part of the host's memory is for.  Micro-ops and constants come with the stream and are never
 * written. */
enum vta_role {
	VTA_ROLE_UOPS,
	VTA_ROLE_CONSTANT,
	VTA_ROLE_INPUT,
	VTA_ROLE_OUTPUT,
	VTA_ROLE_SCRATCH,
	VTA_ROLES
};

enum { VTA_NAME_BYTES = 32 };

/* begin, bytes: multiples of VTA_CELL; segments ascend and do not overlap. */
struct vta_segment {
	char name[VTA_NAME_BYTES]; /* terminated: letters, digits, dots and underscores */
	enum vta_role role;
	uint64_t begin, bytes;
	const uint8_t *data; /* of micro-ops and constants; else NULL */
};

#define VTA_MEMORY_LIMIT ((uint64_t)1 << 28) /* bytes */
#define VTA_INSNS_LIMIT ((size_t)1 << 21)

/* dram_base counts entries of the memory's kind from the beginning of the host's memory, which a program on
 * the device adds (doc/vta.md).  What it points at lives in the arena that it was read or made in. */
struct vta_stream {
	struct vta_insn *insn;
	size_t insns;
	struct vta_segment *segment;
	size_t segments;
	uint64_t bytes; /* of the host's memory, a multiple of VTA_MEMORY_ALIGNMENT */
};

/* --- vta_encode.c --- */

/* Sets of fields that an instruction may have. */
enum { VTA_SET_ANY = 1, VTA_SET_MOVE = 2, VTA_SET_LOOP = 4, VTA_SET_GEMM = 8, VTA_SET_ALU = 16 };

struct vta_field {
	const char *name;
	int set, offset, width;
	size_t member; /* of struct vta_insn, a uint32_t */
};
extern const struct vta_field vta_fields[];
extern const int vta_field_count;
/* The fields of an opcode, as sets; 0 = there is no such opcode. */
int vta_sets_of(uint32_t opcode);
uint32_t vta_field_get(const struct vta_insn *, const struct vta_field *);
void vta_field_set(struct vta_insn *, const struct vta_field *, uint32_t value);
/* Only the immediate operand of ALU has a sign. */
bool vta_field_is_signed(const struct vta_field *);
/* Whether the value fits the field. */
bool vta_field_fits(const struct vta_field *, uint32_t value);

/* All fields must fit. */
void vta_encode(const struct vta_insn *, uint8_t bytes[VTA_INSN_BYTES]);
/* False when there is no such opcode, or bits are set that belong to no field. */
bool vta_decode(const uint8_t bytes[VTA_INSN_BYTES], struct vta_insn *);
uint32_t vta_encode_uop(struct vta_uop);
struct vta_uop vta_decode_uop(uint32_t);
uint32_t vta_get_u32(const uint8_t *);
void vta_put_u32(uint8_t *, uint32_t);

/* Spellings; NULL = there is none of this code. */
const char *vta_opcode_name(uint32_t);
const char *vta_memory_name(uint32_t);
const char *vta_alu_name(uint32_t);
const char *vta_role_name(uint32_t);
const char *vta_module_name(enum vta_module);
/* Sizes of a memory. */
struct vta_memory_traits {
	uint32_t bytes, entries;
	bool padded;
};
struct vta_memory_traits vta_memory_traits(enum vta_memory);
/* The module that runs an instruction. */
enum vta_module vta_module_of(const struct vta_insn *);

/* --- text and files --- */

void vta_print_insn(const struct vta_insn *, struct str *);
void vta_print(const struct vta_stream *, struct str *);
/* Reads what vta_print writes. False after `vta-text` or `vta-format`, with a place. */
bool vta_parse(struct arena *, struct diags *, const char *file, const char *text, struct vta_stream *);
/* The whole file, in the arena. */
uint8_t *vta_write(struct arena *, const struct vta_stream *, size_t *bytes);
/* Reads untrusted bytes, which must live as long as the stream. False after `vta-format`. */
bool vta_read(struct arena *, struct diags *, const char *file, const uint8_t *, size_t, struct vta_stream *);
/* What holds of the memory of every stream: limits, segments.  False after `vta-format`. */
bool vta_check_memory(struct diags *, const char *file, const struct vta_stream *);
/* The segment of a name; NULL = there is none. */
const struct vta_segment *vta_find_segment(const struct vta_stream *, const char *name);

/* --- vta_queues.c: which instruction can run next --- */

/* An instruction that runs.  seen[m]: all instructions of module m before this number are known to be
 * complete. */
struct vta_event {
	uint32_t insn;
	enum vta_module module;
	uint32_t seen[VTA_MODULES];
	uint64_t begin, end; /* cycles */
};

struct vta_walk;
/* Begins to run a stream.  `order` has the modules by priority; NULL = load, compute, store.  Of streams
 * without races every order gives the same results. */
struct vta_walk *vta_walk_begin(struct arena *, const struct vta_stream *,
				const enum vta_module order[VTA_MODULES]);
/* The same in memory of so many bytes, aligned as malloc does. */
size_t vta_walk_bytes(void);
void vta_walk_start(struct vta_walk *, const struct vta_stream *, const enum vta_module order[VTA_MODULES]);
/* The next instruction; false when none can run. */
bool vta_walk_next(struct vta_walk *, struct vta_event *);
/* After the last: the instruction that waits in vain (the first one in the stream), or the number of
 * instructions. */
uint32_t vta_walk_stuck(const struct vta_walk *);
/* After the last: tokens that nobody took, and the name of the queue where they are. */
uint32_t vta_walk_left(const struct vta_walk *, const char **queue);

/* --- vta_verify.c --- */

/* Times in cycles.  Modules overlap as tokens permit; a GEMM step takes one, an ALU step VTA_ALU_CYCLES,
 * memory gives VTA_DMA_BYTES a cycle to each module and to the fetch of instructions. */
struct vta_cost {
	uint64_t cycles, busy[VTA_MODULES];
	uint64_t gemm_steps, alu_steps, loaded, stored; /* loaded, stored: bytes */
};

/* Proves that a stream runs to its end, stays inside all memories, reads nothing that was not written before,
 * and gives the same result however its modules overlap.  False after the first fault, which names the
 * instruction: `vta-instruction`, `vta-bounds`, `vta-tokens`, `vta-race`, `vta-undefined`, `vta-role`. */
bool vta_verify(struct arena *, struct diags *, const struct vta_stream *, struct vta_cost *);
void vta_print_cost(const struct vta_cost *, struct str *);

/* --- vta_execute.c --- */

/* Runs a stream that was verified, bit for bit as the published device does.  `memory` has stream->bytes; the
 * constants are put there first.  The arena holds the device while it runs. */
void vta_execute(struct arena *, const struct vta_stream *, const enum vta_module order[VTA_MODULES],
		 uint8_t *memory);

/* The same on a device that can be used again, by one caller at a time: so many bytes, aligned as malloc does, with any
 * content. */
struct vta_device;
size_t vta_device_bytes(void);
void vta_execute_on(struct vta_device *, const struct vta_stream *, const enum vta_module order[VTA_MODULES],
		    uint8_t *memory);

#endif
