/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rules that an instruction of a stream keeps by itself, whatever stands around it. */
#include "vta/vta_verify.h"

bool vta_refuse(struct diags *diags, enum diag_id id, uint32_t insn, const char *hint, const char *what)
{
	return diag_add(diags, id, (struct diag_at){0}, hint, "instruction %u %s", insn, what);
}

/* Tokens go to neighbours that there are. */
static const char *check_tokens(const struct vta_insn *insn)
{
	enum vta_module module = vta_module_of(insn);
	if (module == VTA_MODULE_LOAD && (insn->pop_prev || insn->push_prev))
		return "runs in the load module, which has no previous neighbour";
	if (module == VTA_MODULE_STORE && (insn->pop_next || insn->push_next))
		return "runs in the store module, which has no next neighbour";
	return NULL;
}

static bool has_padding(const struct vta_insn *insn)
{
	return insn->x_pad_0 || insn->x_pad_1 || insn->y_pad_0 || insn->y_pad_1;
}

static const char *check_move(const struct vta_insn *insn)
{
	bool output = insn->memory == VTA_MEMORY_OUTPUT;
	if (insn->memory >= VTA_MEMORIES || output != (insn->opcode == VTA_STORE))
		return "moves a memory that it cannot: loads fill all but the output memory, stores read it";
	if (has_padding(insn) && !vta_memory_traits(insn->memory).padded)
		return "pads a memory that cannot be padded: inputs and accumulators can";
	if (has_padding(insn) && !insn->x_size)
		return "pads rows without elements, which devices do in different ways";
	if (insn->memory == VTA_MEMORY_UOP && insn->y_size > 1)
		return "loads micro-ops in more than one row";
	return NULL;
}

static const char *check_alu(const struct vta_insn *insn)
{
	int32_t imm = (int32_t)insn->imm;
	if (insn->reset || !vta_alu_name(insn->operation))
		return "has an operation that accumulators do not have";
	if (!insn->use_imm && imm)
		return "has an immediate operand that it does not use";
	if (insn->use_imm && insn->operation == VTA_ALU_SHR && (imm < -16 || imm > 15))
		return "shifts by more than the device can: from -16 to 15";
	return NULL;
}

static const char *find_fault(const struct vta_insn *insn)
{
	const char *fault = check_tokens(insn);
	if (fault || insn->opcode == VTA_FINISH)
		return fault;
	if (insn->opcode == VTA_LOAD || insn->opcode == VTA_STORE)
		return check_move(insn);
	if (insn->uop_begin >= insn->uop_end || !insn->iter_out || !insn->iter_in)
		return "is a loop that does nothing";
	return insn->opcode == VTA_ALU ? check_alu(insn) : NULL;
}

bool vta_check_insns(struct diags *diags, const struct vta_stream *stream)
{
	for (uint32_t i = 0; i < stream->insns; i++) {
		const char *fault = find_fault(&stream->insn[i]);
		if (fault)
			return vta_refuse(diags, DIAG_VTA_INSTRUCTION, i, NULL, fault);
		if ((stream->insn[i].opcode == VTA_FINISH) != (i + 1 == stream->insns))
			return vta_refuse(diags, DIAG_VTA_INSTRUCTION, i,
					  "the last instruction is 'finish', and no other is",
					  "ends the stream too early or not at all");
	}
	return stream->insns || diag_add(diags, DIAG_VTA_INSTRUCTION, (struct diag_at){0},
					 "the last instruction is 'finish'", "a stream without instructions");
}
