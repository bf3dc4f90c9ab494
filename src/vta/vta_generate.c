/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Makes streams of operations.
 *
 * A tile of outputs is summed up in accumulators over steps; each step has a tile of inputs and of weights.
 * Steps take turns with the two halves of the input and weight memories, and tiles with those of the
 * accumulators, so that loads of the next step and stores of the last tile run beside products.  Tokens, for
 * step t and tile u:
 *
 *     load of t      pops what products of t-2 pushed, and pushes when all is there
 *     products of t  pop that, and push behind their last one
 *     tile u         begins by popping what stores of u-2 pushed; pushes when it is complete
 *     stores of u    pop that, and push behind the last one
 *
 * Of an operation that stores planes of sums, tiles take no turns: stores of a plane push for the shift
 * behind it, and tile u pops what the last stores of u-1 pushed.  Where nobody would pop, nothing is pushed.
 * The last store of an operation pushes for what follows: the end, or a token that goes through compute to
 * load before the next operation. */
#include "vta/vta_parts.h"

static int64_t divide_up(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- loads --- */

/* Rows of activations in the host's memory, as entries. */
struct region {
	uint64_t place; /* bytes */
	int64_t plane;	/* image * blocks + block */
	int64_t extent[2], begin[2], size[2];
};

static struct vta_insn move_region(enum vta_opcode opcode, enum vta_memory memory, const struct region *r,
				   uint32_t sram)
{
	int64_t first = (r->plane * r->extent[0] + r->begin[0]) * r->extent[1] + r->begin[1];
	struct vta_insn insn = {.opcode = opcode};
	insn.memory = memory;
	insn.sram_base = sram;
	insn.dram_base = (uint32_t)(r->place / VTA_BLOCK + (uint64_t)first);
	insn.y_size = (uint32_t)r->size[0];
	insn.x_size = (uint32_t)r->size[1];
	insn.x_stride = (uint32_t)(r->size[0] == 1 ? r->size[1] : r->extent[1]);
	return insn;
}

/* Cuts the window of outputs to what the image has; the rest are zeros. */
static void cut_window(const struct vta_operation *op, const struct vta_part *p, int axis, struct region *r,
		       uint32_t pad[2])
{
	int64_t begin = p->begin[axis] * op->stride[axis] - op->before[axis];
	int64_t end = begin + vta_window(op, axis, p->size[axis]);
	r->begin[axis] = begin < 0 ? 0 : begin;
	r->size[axis] = min_of(end, op->size[axis]) - r->begin[axis];
	pad[0] = (uint32_t)(r->begin[axis] - begin);
	pad[1] = (uint32_t)(end - r->begin[axis] - r->size[axis]);
}

static void load_input(struct vta_generator *g, const struct vta_part *p, int64_t block, uint32_t sram)
{
	const struct vta_operation *op = g->op;
	struct region r = {g->place.input,
			   p->image * op->in_blocks + p->first_input + block,
			   {op->size[0], op->size[1]},
			   {0},
			   {0}};
	uint32_t pad[2][2];
	for (int axis = 0; axis < 2; axis++)
		cut_window(op, p, axis, &r, pad[axis]);
	struct vta_insn insn = move_region(VTA_LOAD, VTA_MEMORY_INPUT, &r, sram);
	insn.y_pad_0 = pad[0][0];
	insn.y_pad_1 = pad[0][1];
	insn.x_pad_0 = pad[1][0];
	insn.x_pad_1 = pad[1][1];
	vta_emit(g->emitter, insn);
}

static void load_weights(struct vta_generator *g, const struct vta_part *p, int64_t block, int64_t blocks,
			 uint32_t sram)
{
	int64_t places = g->op->kernel[0] * g->op->kernel[1];
	struct vta_insn insn = {.opcode = VTA_LOAD};
	insn.memory = VTA_MEMORY_WEIGHT;
	insn.sram_base = sram;
	insn.dram_base = (uint32_t)(g->place.weights / 256) +
			 (uint32_t)((p->block * vta_inputs_of_group(g->op) + block) * places);
	insn.y_size = (uint32_t)p->blocks;
	insn.x_size = (uint32_t)(blocks * places);
	insn.x_stride = (uint32_t)(vta_inputs_of_group(g->op) * places);
	vta_emit(g->emitter, insn);
}

/* An instruction without work, for its tokens. */
static struct vta_insn *pass_token(struct vta_generator *g, enum vta_memory memory)
{
	struct vta_insn insn = {.opcode = VTA_LOAD};
	insn.memory = memory;
	return vta_emit(g->emitter, insn);
}

/* --- tokens of steps --- */

/* Of the loads of a step, which are those behind instruction `first`, the first one waits until the half that
 * they fill is free, and the last one says that all are there.  Returns where the instructions of compute
 * begin. */
static size_t end_loads(struct vta_generator *g, size_t first)
{
	size_t end = vta_count_insns(g->emitter);
	vta_insn_at(g->emitter, first)->pop_next = g->step >= 2;
	vta_insn_at(g->emitter, end - 1)->push_next = 1;
	return end;
}

/* Of the instructions of compute, the first one waits for the loads, and the last one gives the half back. */
static void end_step(struct vta_generator *g, size_t first)
{
	vta_insn_at(g->emitter, first)->pop_prev = 1;
	vta_insn_at(g->emitter, vta_count_insns(g->emitter) - 1)->push_prev = g->step + 2 < g->steps;
	g->step++;
}

/* --- a step: products of a tile of inputs --- */

/* Where a step has its inputs and weights. */
struct operands {
	uint32_t inputs, weights;
	int64_t blocks; /* of inputs */
};

/* The products of one place of the kernel and one block of inputs: over rows and columns of outputs, for each
 * block of outputs.  So one step after the other adds to another sum, which pipelines need. */
static void multiply_place(struct vta_generator *g, const struct vta_part *p, const struct operands *o,
			   int64_t block, int64_t y, int64_t x)
{
	const struct vta_operation *op = g->op;
	int64_t width = vta_window(op, 1, p->size[1]), window = vta_window(op, 0, p->size[0]) * width;
	for (int64_t i = 0; i < p->blocks; i++)
		g->uop[i] = (struct vta_uop){
		    p->sums + (uint32_t)(i * vta_count_places(p)),
		    o->inputs + (uint32_t)(block * window + y * width + x),
		    o->weights +
			(uint32_t)(((i * o->blocks + block) * op->kernel[0] + y) * op->kernel[1] + x)};
	struct vta_insn insn = {.opcode = VTA_GEMM};
	insn.iter_out = (uint32_t)p->size[0];
	insn.iter_in = (uint32_t)p->size[1];
	insn.dst_factor_out = p->size[0] == 1 ? 0 : (uint32_t)p->size[1];
	insn.dst_factor_in = 1;
	insn.src_factor_out = p->size[0] == 1 ? 0 : (uint32_t)(op->stride[0] * width);
	insn.src_factor_in = p->size[1] == 1 ? 0 : (uint32_t)op->stride[1];
	vta_emit_loop(g, insn, (uint32_t)p->blocks);
}

static void emit_products(struct vta_generator *g, const struct vta_part *p, const struct operands *o)
{
	for (int64_t block = 0; block < o->blocks; block++)
		for (int64_t y = 0; y < g->op->kernel[0]; y++)
			for (int64_t x = 0; x < g->op->kernel[1]; x++)
				multiply_place(g, p, o, block, y, x);
}

static void run_step(struct vta_generator *g, const struct vta_part *p, int64_t block)
{
	uint32_t half = g->step & 1;
	bool stay = g->tile.inputs >= vta_inputs_of_group(g->op);
	struct operands o = {half * VTA_HALF_INPUT, stay ? p->weights : half * VTA_WEIGHT_HALVES,
			     min_of(g->tile.inputs, vta_inputs_of_group(g->op) - block)};
	int64_t window = vta_window(g->op, 0, p->size[0]) * vta_window(g->op, 1, p->size[1]);
	size_t first = vta_count_insns(g->emitter);
	if (!stay || p->loads_weights)
		load_weights(g, p, block, o.blocks, o.weights);
	for (int64_t i = 0; i < o.blocks; i++)
		load_input(g, p, block + i, o.inputs + (uint32_t)(i * window));
	if (g->op->residual && !g->step)
		vta_load_constants(g, VTA_MEMORY_WEIGHT, g->place.residual_weights, 1, VTA_RESIDUAL_BLOCK);
	first = end_loads(g, first);
	emit_products(g, p, &o);
	end_step(g, first);
}

/* --- what follows the sums --- */

static struct region find_outputs(const struct vta_generator *g, const struct vta_part *p, uint64_t place,
				  int64_t block)
{
	const struct vta_operation *op = g->op;
	return (struct region){place,
			       p->image * op->out_blocks + p->block + block,
			       {vta_output_size(op, 0), vta_output_size(op, 1)},
			       {p->begin[0], p->begin[1]},
			       {p->size[0], p->size[1]}};
}

/* Adds a residual: its product with a diagonal block. */
static void add_residual(struct vta_generator *g, const struct vta_part *p)
{
	uint32_t inputs = (g->step & 1) * VTA_HALF_INPUT;
	size_t first = vta_count_insns(g->emitter);
	for (int64_t i = 0; i < p->blocks; i++) {
		struct region r = find_outputs(g, p, g->place.residual, i);
		vta_emit(g->emitter, move_region(VTA_LOAD, VTA_MEMORY_INPUT, &r,
						 inputs + (uint32_t)(i * vta_count_places(p))));
	}
	first = end_loads(g, first);
	struct vta_insn insn = vta_over_sums(VTA_GEMM, p);
	insn.src_factor_out = 1;
	g->uop[0] = (struct vta_uop){p->sums, inputs, VTA_RESIDUAL_BLOCK};
	vta_emit_loop(g, insn, 1);
	end_step(g, first);
}

/* How many tiles are under way: stores of planes alternate with shifts, and so those of a tile end before the
 * next one begins. */
static int64_t turns_of(const struct vta_generator *g)
{
	return g->op->planes == 4 ? 1 : 2;
}

/* Stores what the output memory has of a tile; the first store waits until it is there, and the last one
 * says, if somebody waits for it, that it is stored. */
static void store_tile(struct vta_generator *g, const struct vta_part *p, int64_t plane, bool awaited)
{
	for (int64_t i = 0; i < p->blocks; i++) {
		struct region r = find_outputs(g, p, g->place.output, i);
		r.plane += plane * g->op->images * g->op->out_blocks;
		struct vta_insn insn = move_region(VTA_STORE, VTA_MEMORY_OUTPUT, &r,
						   p->sums + (uint32_t)(i * vta_count_places(p)));
		insn.pop_prev = i == 0;
		insn.push_prev = i + 1 == p->blocks && awaited;
		vta_emit(g->emitter, insn);
	}
}

static bool is_awaited(const struct vta_generator *g)
{
	return g->tile_number + turns_of(g) < g->tiles || g->tile_number + 1 == g->tiles;
}

static void store_bytes(struct vta_generator *g, const struct vta_part *p)
{
	vta_round_sums(g, p);
	if (g->op->offset)
		vta_emit_immediate(g, p, p->sums, VTA_ALU_ADD, g->op->offset);
	if (g->op->residual && !g->op->residual_first)
		add_residual(g, p);
	vta_emit_immediate(g, p, p->sums, VTA_ALU_MAX, g->op->low);
	vta_emit_immediate(g, p, p->sums, VTA_ALU_MIN, g->op->high)->push_next = 1;
	store_tile(g, p, 0, is_awaited(g));
}

/* Sums, byte by byte: a store has the lowest one, and a shift behind it brings the next. */
static void store_planes(struct vta_generator *g, const struct vta_part *p)
{
	vta_insn_at(g->emitter, vta_count_insns(g->emitter) - 1)->push_next = 1;
	for (int plane = 0; plane < 4; plane++) {
		store_tile(g, p, plane, plane < 3 || is_awaited(g));
		if (plane == 3)
			return;
		struct vta_insn *shift = vta_emit_immediate(g, p, p->sums, VTA_ALU_SHR, 8);
		shift->pop_next = shift->push_next = 1;
	}
}

/* --- tiles --- */

static void run_tile(struct vta_generator *g, struct vta_part *p)
{
	p->sums = (g->tile_number & 1) * VTA_HALF_ACCUMULATOR;
	p->copies = p->sums + (uint32_t)(p->blocks * vta_count_places(p));
	p->bias = vta_copies_sums(g->op) ? p->copies + (p->copies - p->sums) : p->copies;
	p->rounding = p->bias + (uint32_t)p->blocks;
	vta_clear_entries(g, p, p->sums, g->tile_number >= turns_of(g));
	for (int64_t block = 0; block < vta_inputs_of_group(g->op); block += g->tile.inputs)
		run_step(g, p, block);
	if (vta_adds_bias(g->op))
		vta_add_bias(g, p);
	if (g->op->residual && g->op->residual_first)
		add_residual(g, p);
	if (g->op->planes == 4)
		store_planes(g, p);
	else
		store_bytes(g, p);
	g->tile_number++;
}

/* Rows and columns of one image, for the same blocks of outputs. */
static void run_image(struct vta_generator *g, struct vta_part *p)
{
	for (int64_t y = 0; y < vta_output_size(g->op, 0); y += g->tile.size[0])
		for (int64_t x = 0; x < vta_output_size(g->op, 1); x += g->tile.size[1]) {
			p->begin[0] = y;
			p->begin[1] = x;
			for (int axis = 0; axis < 2; axis++)
				p->size[axis] =
				    min_of(g->tile.size[axis], vta_output_size(g->op, axis) - p->begin[axis]);
			run_tile(g, p);
			p->loads_weights = false;
		}
}

static int64_t count_tiles_of_outputs(const struct vta_generator *g)
{
	int64_t of_group = vta_outputs_of_group(g->op);
	return g->op->out_blocks / of_group * divide_up(of_group, g->tile.outputs);
}

static void count_turns(struct vta_generator *g)
{
	const struct vta_operation *op = g->op;
	g->tiles = op->images * count_tiles_of_outputs(g);
	for (int axis = 0; axis < 2; axis++)
		g->tiles *= divide_up(vta_output_size(op, axis), g->tile.size[axis]);
	g->steps = g->tiles * (divide_up(vta_inputs_of_group(op), g->tile.inputs) + (op->residual != NULL));
	g->step = g->tile_number = 0;
}

/* The n-th tile of blocks of outputs: no tile has blocks of two groups. */
static struct vta_part part_of(const struct vta_generator *g, int64_t n)
{
	int64_t of_group = vta_outputs_of_group(g->op), tiles = divide_up(of_group, g->tile.outputs);
	int64_t group = n / tiles, first = n % tiles * g->tile.outputs;
	return (struct vta_part){.block = group * of_group + first,
				 .blocks = min_of(g->tile.outputs, of_group - first),
				 .first_input = group * vta_inputs_of_group(g->op),
				 .weights = (uint32_t)(n & 1) * VTA_WEIGHT_HALVES,
				 .loads_weights = true};
}

static void run_operation(struct vta_generator *g)
{
	count_turns(g);
	for (int64_t n = 0; n < count_tiles_of_outputs(g); n++) {
		struct vta_part p = part_of(g, n);
		for (p.image = 0; p.image < g->op->images; p.image++)
			run_image(g, &p);
	}
}

/* The next operation may read what this one stored. */
static void separate_steps(struct vta_generator *g)
{
	struct vta_insn *insn = pass_token(g, VTA_MEMORY_UOP);
	insn->pop_next = insn->push_prev = 1;
	pass_token(g, VTA_MEMORY_INPUT)->pop_next = 1;
}

static void add_uops(struct arena *a, struct vta_emitter *e, struct vta_stream *stream)
{
	struct vta_segment *all = ARENA_ARRAY(a, struct vta_segment, stream->segments + 1);
	for (size_t i = 0; i < stream->segments; i++)
		all[i] = stream->segment[i];
	vta_take_insns(e, stream->bytes, stream);
	struct vta_segment *uops = &all[stream->segments++];
	*uops = vta_take_uops(e, stream->bytes);
	stream->segment = all;
	stream->bytes +=
	    (uops->bytes + VTA_MEMORY_ALIGNMENT - 1) / VTA_MEMORY_ALIGNMENT * VTA_MEMORY_ALIGNMENT;
}

bool vta_generate(struct arena *a, struct diags *diags, const struct vta_operation *op, size_t n,
		  struct vta_stream *stream)
{
	struct vta_places *places = ARENA_ARRAY(a, struct vta_places, n);
	if (!vta_lay_out(a, diags, op, n, stream, places))
		return false;
	struct vta_generator g = {.emitter = vta_emitter_create(a),
				  .uop = ARENA_ARRAY(a, struct vta_uop, VTA_HALF_ACCUMULATOR)};
	for (size_t i = 0; i < n; i++) {
		g.op = &op[i];
		g.place = places[i];
		g.tile = vta_choose_tile(&op[i]);
		if (i)
			separate_steps(&g);
		run_operation(&g);
	}
	vta_emit(g.emitter, (struct vta_insn){.opcode = VTA_FINISH, .pop_next = n > 0});
	add_uops(a, g.emitter, stream);
	return vta_check_memory(diags, "the stream", stream);
}
