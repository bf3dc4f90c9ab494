/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The generator: streams of random operations, and of chains of them, are verified and give what plain loops
 * give, whichever module runs first. */
#include "tests/tap.h"
#include "tests/vta/operations.h"

#include <string.h>

static struct arena arena;
static struct diags diags;

static const char *last_message(void)
{
	return diags.n ? diags.at[diags.n - 1].message : "";
}

/* --- random operations --- */

static bool run_one(struct drawn_operation *d)
{
	struct vta_stream stream;
	struct vta_cost cost;
	struct vta_operation op = stream_operation(d);
	if (!vta_generate(&arena, &diags, &op, 1, &stream) ||
	    !vta_verify(&arena, &diags, &stream, &cost)) {
		printf("# %s\n", last_message());
		return false;
	}
	if ((int64_t)stream.insns > vta_bound_insns(&op) + 1) {
		printf("# %zu instructions, at most %d expected\n", stream.insns, (int)vta_bound_insns(&op));
		return false;
	}
	uint8_t *memory = operation_memory(&arena, &stream, d, 1);
	vta_execute(&arena, &stream, NULL, memory);
	if (check_operation(&stream, d, memory))
		return true;
	printf(
	    "# images %d blocks %d %d size %d %d kernel %d %d stride %d %d pad %d %d %d %d shift %d residual "
	    "%d rounding %d planes %d bound %d groups %d\n",
	    (int)d->op.images, (int)d->op.in_blocks, (int)d->op.out_blocks, (int)d->op.size[0],
	    (int)d->op.size[1], (int)d->op.kernel[0], (int)d->op.kernel[1], (int)d->op.stride[0],
	    (int)d->op.stride[1], (int)d->op.before[0], (int)d->op.before[1], (int)d->op.after[0],
	    (int)d->op.after[1], d->op.shift, d->op.residual ? d->op.residual_shift : -1,
	    d->op.rounding, d->op.planes, d->bound, (int)d->op.groups);
	return false;
}

static void test_random(int count)
{
	int right = 0;
	for (int i = 0; i < count; i++) {
		struct arena before = arena;
		struct drawn_operation d;
		draw_operation(&arena, &d, i % 3 == 0);
		right += run_one(&d);
		arena_rewind(&arena, &before);
	}
	tap_is(right, count, "random convolutions and products give what plain loops give, in no more instructions than their bound");
}

/* --- roundings --- */

/* One column of one channel for each sum: a product with nothing, and a bias. */
static bool is_rounded(int64_t first, int64_t step, int shift, enum vta_rounding rounding)
{
	enum { BLOCKS = 256 };
	struct drawn_operation d;
	draw_sized(&arena, &d, (struct drawn_sizes){1, 1, BLOCKS, {1, 1}, {1, 1}, {1, 1}, {0}, {0}});
	int32_t *bias = ARENA_ARRAY(&arena, int32_t, BLOCKS * VTA_BLOCK);
	for (int64_t i = 0; i < BLOCKS * VTA_BLOCK; i++)
		bias[i] = (int32_t)(first + i * step);
	d.x = ARENA_ARRAY(&arena, int8_t, VTA_BLOCK);
	d.op.bias = bias;
	d.op.shift = shift;
	d.op.rounding = rounding;
	d.op.low = INT8_MIN;
	d.op.high = INT8_MAX;
	d.op.residual = NULL;
	d.bound = true;
	return run_one(&d);
}

/* All sums from -2048 to 2047 by each shift, and, where these have few results, as many sums in steps of less than half of the
 * last place and of half of it, so that ties are among them. */
static void test_roundings(void)
{
	for (int rounding = VTA_HALF_UP; rounding <= VTA_HALF_TWICE; rounding++) {
		int right = 0;
		for (int shift = 0; shift <= 28; shift++) {
			struct arena before = arena;
			int64_t half = shift ? (int64_t)1 << (shift - 1) : 1, most = half > 4095 ? half / 4096 : 1;
			right += is_rounded(-2048, 1, shift, (enum vta_rounding)rounding) &&
				 is_rounded(-2048 * (most | 1), most | 1, shift, (enum vta_rounding)rounding) &&
				 is_rounded(shift > 20 ? -4 * half : -2048 * half, shift > 20 ? half / 512 : half,
					    shift, (enum vta_rounding)rounding);
			arena_rewind(&arena, &before);
		}
		tap_ok(right == 29, "rounding %d divides sums by powers of two as it should", rounding);
	}
}

/* --- groups --- */

/* Depthwise, a channel is computed of itself alone, however many there are. */
static void test_groups(void)
{
	struct drawn_operation d;
	struct vta_stream stream;
	struct vta_cost cost;
	draw_sized(&arena, &d, (struct drawn_sizes){2, 6, 6, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});
	int8_t *w = ARENA_ARRAY(&arena, int8_t, 6 * 9 * 256);
	for (int i = 0; i < 6 * 9 * VTA_BLOCK; i++)
		w[i / VTA_BLOCK * 256 + i % VTA_BLOCK * (VTA_BLOCK + 1)] = (int8_t)draw();
	d.op.weights = w;
	d.op.groups = 6;
	tap_ok(run_one(&d), "a depthwise convolution");
	bool made = vta_generate(&arena, &diags, &d.op, 1, &stream) && vta_verify(&arena, &diags, &stream, &cost);
	tap_ok(made && cost.gemm_steps < 2 * 6 * 25 * (9 + 4), "takes products with its own block alone");
	draw_sized(&arena, &d, (struct drawn_sizes){1, 40, 20, {3, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
	d.op.groups = 2;
	tap_ok(run_one(&d), "two groups, each of several tiles and steps");
}

/* --- chains --- */

/* Three operations, the third of which adds what the first one computed. */
static void test_chain(void)
{
	struct drawn_operation d[3];
	struct vta_operation op[3];
	draw_sized(&arena, &d[0], (struct drawn_sizes){2, 3, 4, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
	draw_sized(&arena, &d[1], (struct drawn_sizes){2, 4, 6, {9, 11}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
	draw_sized(&arena, &d[2], (struct drawn_sizes){2, 6, 4, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
	for (int i = 0; i < 3; i++) {
		static const char *const name[] = {"first", "second", "third"};
		op[i] = d[i].op;
		op[i].name = name[i];
		op[i].residual = NULL;
	}
	op[0].output = op[1].input = op[2].residual = "a";
	op[1].output = op[2].input = "b";
	d[1].x = plain_operation(&arena, &op[0], d[0].x, NULL);
	d[2].x = plain_operation(&arena, &op[1], d[1].x, NULL);
	const int8_t *y = plain_operation(&arena, &op[2], d[2].x, d[1].x);
	struct vta_stream stream;
	struct vta_cost cost;
	if (!tap_ok(vta_generate(&arena, &diags, op, 3, &stream) &&
			vta_verify(&arena, &diags, &stream, &cost),
		    "a chain is verified"))
		return;
	uint8_t *memory = ARENA_ARRAY(&arena, uint8_t, stream.bytes);
	const struct vta_segment *in = vta_find_segment(&stream, "x"), *out = vta_find_segment(&stream, "y");
	memcpy(memory + in->begin, d[0].x, in->bytes);
	vta_execute(&arena, &stream, NULL, memory);
	tap_ok(!memcmp(memory + out->begin, y, out->bytes), "and gives what plain loops give");
	tap_ok(vta_find_segment(&stream, "a")->role == VTA_ROLE_SCRATCH && in->role == VTA_ROLE_INPUT &&
		   out->role == VTA_ROLE_OUTPUT,
	       "what lies between is scratch memory");
}

/* --- overlap --- */

/* A large product: loads run beside products, so that the whole takes little longer than the busier of the
 * two. */
static void test_overlap(void)
{
	struct drawn_operation d;
	struct vta_stream stream;
	struct vta_cost cost;
	draw_sized(&arena, &d, (struct drawn_sizes){1, 16, 16, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
	bool made =
	    vta_generate(&arena, &diags, &d.op, 1, &stream) && vta_verify(&arena, &diags, &stream, &cost);
	tap_ok(made && cost.gemm_steps >= 16 * 16 * 9 * 196, "all products are there");
	tap_ok(made && cost.cycles < cost.busy[VTA_MODULE_COMPUTE] + cost.busy[VTA_MODULE_COMPUTE] / 10,
	       "compute waits for less than a tenth of its time");
	tap_ok(made && cost.gemm_steps * 10 > cost.cycles * 8,
	       "and multiplies for more than eight tenths of it");
}

/* The largest kernel, and strides that no loop has: tiles have one row or one column. */
static void test_extremes(void)
{
	struct drawn_operation d;
	draw_sized(&arena, &d, (struct drawn_sizes){1, 2, 2, {33, 50}, {16, 16}, {2, 3}, {15, 15}, {15, 15}});
	tap_ok(run_one(&d), "the largest kernel and zeros");
	draw_sized(&arena, &d, (struct drawn_sizes){1, 1, 1, {3, 4200}, {1, 1}, {1, 2050}, {0}, {0}});
	tap_ok(run_one(&d), "strides that are larger than a factor of a loop");
	draw_sized(&arena, &d, (struct drawn_sizes){1, 1, 2, {4, 300}, {3, 3}, {9, 9}, {2, 2}, {2, 2}});
	tap_ok(run_one(&d), "rows that are too far apart for a loop");
	draw_sized(&arena, &d, (struct drawn_sizes){1, 1, 40, {1, 70000}, {1, 1}, {1, 1}, {0}, {0}});
	d.op.out_blocks = 1;
	tap_ok(run_one(&d), "one row that is longer than a load can step over");
	draw_sized(&arena, &d, (struct drawn_sizes){1, 70, 70, {1, 1}, {1, 1}, {1, 1}, {0}, {0}});
	d.op.shift = 31;
	tap_ok(run_one(&d), "one vector times a large matrix, shifted to its sign");
}

/* --- refusals --- */

static void check_refused(struct vta_operation op, const char *what)
{
	struct vta_stream stream;
	size_t before = diags.n;
	bool made = vta_generate(&arena, &diags, &op, 1, &stream);
	tap_ok(!made && diags.n > before && diags.at[before].id == DIAG_VTA_OPERATION, "refused: %s", what);
}

static void test_refusals(void)
{
	struct drawn_operation d;
	draw_sized(&arena, &d, (struct drawn_sizes){1, 2, 2, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
	struct vta_operation op = d.op;
	op.kernel[0] = 17;
	check_refused(op, "a kernel that is too large");
	op = d.op, op.kernel[1] = 8;
	check_refused(op, "a kernel that is larger than the image");
	op = d.op, op.before[0] = 3;
	check_refused(op, "windows in zeros alone");
	op = d.op, op.shift = 32;
	check_refused(op, "a shift that is too far");
	op = d.op, op.low = 1, op.high = 0;
	check_refused(op, "bounds that no value keeps");
	op = d.op, op.high = 128;
	check_refused(op, "bounds that int8 does not have");
	op = d.op, op.size[1] = 65536;
	check_refused(op, "rows that are too long");
	op = d.op, op.images = 1 << 24;
	check_refused(op, "more memory than a stream has");
	op = d.op, op.output = op.input;
	check_refused(op, "an operation on its own result");
	op = d.op, op.output = "an_output_whose_name_is_too_long";
	check_refused(op, "a name that is too long");
	op = d.op, op.stride[0] = 0;
	check_refused(op, "a stride of nothing");
	op = d.op, op.residual = op.input, op.before[0] = 0;
	check_refused(op, "a residual of another size");
	op = d.op, op.residual = NULL, op.shift = 3, op.planes = 4;
	check_refused(op, "sums that are shifted, and stored as they are");
	op.shift = 0, op.residual = "r";
	check_refused(op, "a residual behind sums that are stored");
	op.shift = 0, op.planes = 2;
	check_refused(op, "two planes");
	op = d.op, op.bound = true;
	check_refused(op, "weights that come twice");
	op = d.op, op.groups = 3;
	check_refused(op, "groups of which one is smaller");
}

/* --- packing --- */

static void test_packing(void)
{
	int8_t from[2 * 5 * 3 * 4], back[sizeof from] = {0}, packed[2 * 3 * 4 * 16];
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (int8_t)i;
	struct vta_activations a = {2, 5, {3, 4}};
	struct vta_strides by = {60, 1, 20, 5};
	vta_pack_activations(a, by, 0, from, packed);
	vta_unpack_activations(a, by, 0, packed, back);
	tap_ok(!memcmp(from, back, sizeof from), "activations come back");
	tap_ok(packed[16 * (4 * 1 + 2) + 3] == from[20 + 10 + 3] && !packed[5],
	       "channels are together, and those that are none zeros");
	vta_pack_activations(a, by, 200, from, packed);
	tap_ok(packed[0] == 56 && !packed[5], "a zero point is subtracted modulo 256");
	vta_unpack_activations(a, by, 200, packed, back);
	tap_ok(!memcmp(from, back, sizeof from), "and added when they come back");
}

/* Blocks are copied where they lie in their order, and only there. */
static void test_blocks(void)
{
	enum { BYTES = 3 * 2 * 5 * 16 };
	int8_t from[BYTES], packed[BYTES], back[BYTES] = {0}, planes[4 * BYTES] = {0};
	int32_t sums[BYTES];
	struct vta_activations a = {3, 16, {2, 5}};
	struct vta_strides by = {160, 1, 80, 16}, turned = {160, 1, 16, 32};
	for (int i = 0; i < BYTES; i++)
		from[i] = (int8_t)(i * 7), planes[i] = from[i];
	vta_pack_activations(a, by, 100, from, packed);
	vta_unpack_activations(a, by, 100, packed, back);
	tap_ok(!memcmp(from, back, BYTES) && packed[BYTES - 1] == (int8_t)(uint8_t)((BYTES - 1) * 7 - 100), "blocks are copied, less a number");
	vta_pack_activations(a, turned, 0, from, packed);
	tap_ok(packed[16] == from[32] && packed[80] == from[16], "rows and columns that lie otherwise are not");
	vta_unpack_sums(a, by, 3, planes, sums);
	tap_ok(sums[BYTES - 1] == (uint8_t)from[BYTES - 1] + 3 && sums[1] == (uint8_t)from[1] + 3, "so are sums");
}

static void test_planes(void)
{
	int32_t back[2 * 20] = {0};
	int8_t planes[4 * 2 * 2 * 16];
	struct vta_activations a = {1, 20, {1, 2}};
	for (int plane = 0; plane < 4; plane++)
		for (int i = 0; i < 64; i++)
			planes[plane * 64 + i] = (int8_t)(uint8_t)((uint32_t)i * (uint32_t)-123456789 >> 8 * plane);
	vta_unpack_sums(a, (struct vta_strides){0, 2, 0, 1}, 0, planes, back);
	tap_ok(back[0] == 0 && back[2] == -123456789 && back[1] == (int32_t)(16u * (uint32_t)-123456789) &&
		   back[2 * 19 + 1] == (int32_t)(51u * (uint32_t)-123456789),
	       "planes of bytes are joined to sums");
}

int main(void)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	test_random(400);
	test_roundings();
	test_groups();
	test_chain();
	test_overlap();
	test_extremes();
	test_refusals();
	test_packing();
	test_blocks();
	test_planes();
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
