/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Calls of the accelerator in images made by hand: convolutions of random sizes, types and zero points, which
 * give what plain loops give; images that are written and read, and those that are refused. */
#include "tests/image/bytes.h"
#include "tests/tap.h"
#include "tests/vta/streams.h"
#include "vta/vta_generate.h"

#include <string.h>

static struct arena arena;
static struct diags diags;

enum { X, W, B, Y, BUFFERS, ROWS = 5 };

/* A convolution of rows [height][width][channels] or [channels][height][width]. */
struct convolution {
	int64_t inputs, outputs, size[2], kernel[2], pad, out[2];
	int shift, zero_x, zero_y;
	bool wide, signed_x, channels_first;
	const int8_t *w; /* [outputs][inputs][rows][columns] */
	const int32_t *b;
	const uint8_t *x;
	struct vta_stream stream;
};

struct made {
	struct image image;
	struct image_buffer buffer[BUFFERS];
	struct image_recipe recipe[2];
	struct image_pack_source source[2];
	struct tensor_info param[2];
	struct image_step step[1];
	struct image_call call[1];
	struct image_operand operand[4];
	struct image_input input;
	struct image_output output;
};

static void draw_convolution(struct convolution *c)
{
	*c = (struct convolution){.inputs = draw_between(1, 40),
				  .outputs = draw_between(1, 40),
				  .pad = draw_between(0, 1),
				  .shift = (int)draw_between(4, 10),
				  .wide = draw() % 3 == 0,
				  .signed_x = draw() % 2,
				  .channels_first = draw() % 2};
	for (int axis = 0; axis < 2; axis++) {
		c->kernel[axis] = draw_between(2, 3);
		c->size[axis] = draw_between(3, 8);
		c->out[axis] = c->size[axis] + 2 * c->pad - c->kernel[axis] + 1;
	}
	c->zero_x = c->signed_x ? 0 : 128;
	c->zero_y = c->wide ? 0 : (int)draw_between(100, 128);
	int64_t weights = c->outputs * c->inputs * c->kernel[0] * c->kernel[1];
	int8_t *w = ARENA_ARRAY(&arena, int8_t, weights);
	int32_t *b = ARENA_ARRAY(&arena, int32_t, c->outputs);
	uint8_t *x = ARENA_ARRAY(&arena, uint8_t, ROWS * c->inputs * c->size[0] * c->size[1]);
	for (int64_t i = 0; i < weights; i++)
		w[i] = (int8_t)draw();
	for (int64_t i = 0; i < c->outputs; i++)
		b[i] = (int32_t)draw_between(-100000, 100000);
	for (int64_t i = 0; i < ROWS * c->inputs * c->size[0] * c->size[1]; i++)
		x[i] = (uint8_t)draw();
	c->w = w, c->b = b, c->x = x;
}

/* --- by plain loops --- */

static int64_t place_of(const struct convolution *c, int64_t channels, const int64_t size[2], int64_t row,
			int64_t channel, int64_t y, int64_t x)
{
	int64_t in_row = c->channels_first ? (channel * size[0] + y) * size[1] + x
					   : (y * size[1] + x) * channels + channel;
	return row * channels * size[0] * size[1] + in_row;
}

static int32_t plain_sum(const struct convolution *c, int64_t row, int64_t o, int64_t y, int64_t x)
{
	int32_t sum = c->b[o];
	for (int64_t i = 0; i < c->inputs; i++)
		for (int64_t ky = 0; ky < c->kernel[0]; ky++)
			for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
				int64_t at_y = y + ky - c->pad, at_x = x + kx - c->pad;
				if (at_y < 0 || at_x < 0 || at_y >= c->size[0] || at_x >= c->size[1])
					continue;
				uint8_t e = c->x[place_of(c, c->inputs, c->size, row, i, at_y, at_x)];
				int value = c->signed_x ? (int8_t)e : e - c->zero_x;
				sum += value *
				       c->w[((o * c->inputs + i) * c->kernel[0] + ky) * c->kernel[1] + kx];
			}
	return sum;
}

static int plain_byte(const struct convolution *c, int32_t sum)
{
	int32_t y = (sum + (1 << (c->shift - 1))) >> c->shift;
	return (y < -100 ? -100 : y > 100 ? 100 : y) + c->zero_y;
}

static bool is_right(const struct convolution *c, int64_t row, const void *got)
{
	bool right = true;
	for (int64_t o = 0; o < c->outputs; o++)
		for (int64_t y = 0; y < c->out[0]; y++)
			for (int64_t x = 0; x < c->out[1]; x++) {
				int32_t sum = plain_sum(c, row, o, y, x);
				int64_t at = place_of(c, c->outputs, c->out, 0, o, y, x);
				right &= c->wide ? ((const int32_t *)got)[at] == sum
						 : ((const uint8_t *)got)[at] == plain_byte(c, sum);
			}
	return right;
}

/* --- the image --- */

static bool make_stream(struct convolution *c, struct image_call *call)
{
	struct vta_operation op = {.name = "op",
				   .input = "x",
				   .output = "y",
				   .images = 1,
				   .in_blocks = vta_blocks(c->inputs),
				   .out_blocks = vta_blocks(c->outputs),
				   .size = {c->size[0], c->size[1]},
				   .kernel = {c->kernel[0], c->kernel[1]},
				   .stride = {1, 1},
				   .before = {c->pad, c->pad},
				   .after = {c->pad, c->pad},
				   .shift = c->wide ? 0 : c->shift,
				   .low = -100,
				   .high = 100,
				   .bound = true,
				   .planes = c->wide ? 4 : 1};
	size_t bytes;
	if (!vta_generate(&arena, &diags, &op, 1, &c->stream))
		return false;
	*call = (struct image_call){.name = "conv", .stream = vta_write(&arena, &c->stream, &bytes)};
	call->bytes = (int64_t)bytes;
	return true;
}

static struct vta_strides strides_of(const struct convolution *c, int64_t channels, const int64_t size[2])
{
	return c->channels_first ? (struct vta_strides){0, size[0] * size[1], size[1], 1}
				 : (struct vta_strides){0, 1, size[1] * channels, channels};
}

static void make_operands(const struct convolution *c, struct made *m)
{
	m->operand[0] = (struct image_operand){"x",
					       X,
					       IMAGE_OPERAND_INPUT,
					       {1, c->inputs, {c->size[0], c->size[1]}},
					       strides_of(c, c->inputs, c->size),
					       c->zero_x,
					       1};
	m->operand[1] = (struct image_operand){
	    .segment = "op.w", .buffer = W, .role = IMAGE_OPERAND_CONSTANT, .planes = 1};
	m->operand[2] = (struct image_operand){
	    .segment = "op.b", .buffer = B, .role = IMAGE_OPERAND_CONSTANT, .planes = 1};
	m->operand[3] = (struct image_operand){"y",
					       Y,
					       IMAGE_OPERAND_OUTPUT,
					       {1, c->outputs, {c->out[0], c->out[1]}},
					       strides_of(c, c->outputs, c->out),
					       c->zero_y,
					       c->wide ? 4 : 1};
	m->call[0].operand = m->operand;
	m->call[0].operands = 4;
}

/* Weights are laid out in blocks by a recipe, as any others. */
static void make_recipes(const struct convolution *c, struct made *m)
{
	int64_t in = vta_blocks(c->inputs), out = vta_blocks(c->outputs);
	m->param[0] =
	    (struct tensor_info){"w", DTYPE_I8, 4, {c->outputs, c->inputs, c->kernel[0], c->kernel[1]}};
	m->param[1] = (struct tensor_info){"b", DTYPE_I32, 1, {c->outputs}};
	m->source[0] = (struct image_pack_source){.param = 0,
						  .end = {c->outputs, c->inputs, c->kernel[0], c->kernel[1]}};
	m->source[1] = (struct image_pack_source){.param = 1, .end = {c->outputs}};
	m->recipe[0] = (struct image_recipe){
	    6,
	    1,
	    {{0, out, 16}, {1, in, 16}, {2, c->kernel[0], 1}, {3, c->kernel[1], 1}, {0, 16, 1}, {1, 16, 1}},
	    &m->source[0],
	    DTYPE_I8,
	    0};
	m->recipe[1] = (struct image_recipe){1, 1, {{0, out * 16, 1}}, &m->source[1], DTYPE_I32, 0};
	m->buffer[W] = (struct image_buffer){
	    .name = "w", .dtype = DTYPE_I8, .row_elements = image_recipe_elements(&m->recipe[0])};
	m->buffer[B] =
	    (struct image_buffer){.name = "b", .dtype = DTYPE_I32, .which = 1, .row_elements = out * 16};
}

static void make_rows(const struct convolution *c, struct made *m)
{
	int64_t in = c->inputs * c->size[0] * c->size[1], out = c->outputs * c->out[0] * c->out[1];
	enum dtype from = c->signed_x ? DTYPE_I8 : DTYPE_U8, to = c->wide ? DTYPE_I32 : DTYPE_U8;
	m->input = (struct image_input){
	    .name = "x", .dtype = from, .elements = in, .at_leaf = true, .rank = 1, .shape = {in}};
	m->output = (struct image_output){
	    .name = "y", .buffer = Y, .dtype = to, .rank = 1, .shape = {out}, .elements = out};
	m->buffer[X] = (struct image_buffer){.name = "x",
					     .kind = IMAGE_VECTOR,
					     .dtype = from,
					     .rows = IMAGE_NODES,
					     .row_elements = in,
					     .rank = 1,
					     .shape = {in},
					     .stride = {1}};
	m->buffer[Y] = (struct image_buffer){.name = "y",
					     .kind = IMAGE_OUTPUT,
					     .dtype = to,
					     .rows = IMAGE_NODES,
					     .row_elements = out,
					     .rank = 1,
					     .shape = {out},
					     .stride = {1}};
}

static bool make_image(struct convolution *c, struct made *m)
{
	*m = (struct made){0};
	m->step[0] = (struct image_step){
	    .target = IMAGE_TARGET_VTA, .domain = IMAGE_DOMAIN_NODES, .rows = 1, .blocks = 1};
	make_operands(c, m);
	make_recipes(c, m);
	make_rows(c, m);
	bool made = make_stream(c, m->call);
	m->call[0].operand = m->operand;
	m->call[0].operands = 4;
	m->image = (struct image){.name = "conv",
				  .target = "any",
				  .extensions = "",
				  .inputs = 1,
				  .input = &m->input,
				  .params = 2,
				  .param = m->param,
				  .buffers = BUFFERS,
				  .buffer = m->buffer,
				  .recipes = 2,
				  .recipe = m->recipe,
				  .steps = 1,
				  .step = m->step,
				  .calls = 1,
				  .call = m->call,
				  .outputs = 1,
				  .output = &m->output,
				  .blob.alignment = 1};
	return made && image_open_calls(&arena, &m->image, &diags) && image_check(&m->image, &diags);
}

/* --- runs --- */

static bool read_param(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	const struct convolution *c = context;
	(void)d;
	memcpy(to, param ? (const void *)(c->b + first) : (const void *)(c->w + first),
	       (size_t)count * (param ? 4 : 1));
	return true;
}

/* Whether the driver counted the cycles of all rows of all nodes: a changed image may have another step. */
static bool has_cycles(const struct image *image, uint64_t cycles, int runs)
{
	bool whole = image->step->target == IMAGE_TARGET_VTA && image->step->domain == IMAGE_DOMAIN_NODES;
	return !whole || cycles == (uint64_t)runs * ROWS * image->call[image->step->call].cost.cycles;
}

/* Runs twice, and asks `judge` of each row. */
static bool run_image(const struct convolution *c, const struct image *image, struct rt_team *team,
		      bool (*judge)(const struct convolution *, int64_t row, const void *got),
		      struct diags *d)
{
	static const int32_t none[ROWS + 1] = {0}, numbers[ROWS] = {0, 1, 2, 3, 4};
	const void *const data[] = {c->x};
	struct rt_minibatch m = {{ROWS, ROWS, none, NULL, numbers, numbers, NULL, 0}, data};
	struct rt_source source = {read_param, (void *)c};
	struct rt_binding binding = {0};
	struct rt_session s = {0};
	bool bound = rt_bind(&binding, &allocator_default, image, &source, team, d);
	bool open = bound && rt_session_init(&s, &allocator_default, image, d), right = open;
	for (int run = 0; right && run < 2; run++) {
		right = rt_session_run(&s, &binding, team, &m, d);
		for (int64_t row = 0; right && row < ROWS; row++)
			right = judge(c, row, rt_session_row(&s, 0, row));
		right = right && has_cycles(image, s.walk_state.driver.cycles, run + 1);
		rt_session_trim(&s);
	}
	if (open)
		rt_session_free(&s);
	if (bound)
		rt_binding_free(&binding);
	return right;
}

/* Writes an image, reads it, and runs what was read. */
static bool run_read(const struct convolution *c, const struct image *image, struct rt_team *team)
{
	struct file f = write_image(image);
	struct reader r;
	read_image(&r, &f);
	bool right = r.ok && run_image(c, &r.image, team, is_right, &diags);
	if (!r.ok)
		printf("# %s\n", r.diags.n ? r.diags.at[0].message : "");
	free_reader(&r);
	free(f.bytes);
	return right;
}

static void test_random(int count)
{
	struct rt_team team;
	int right = 0, again = 0;
	rt_team_init(&team, &allocator_default, 2);
	for (int i = 0; i < count; i++) {
		struct arena before = arena;
		struct convolution c;
		struct made m;
		draw_convolution(&c);
		bool made = make_image(&c, &m);
		right += made && run_image(&c, &m.image, NULL, is_right, &diags);
		again += made && run_read(&c, &m.image, &team);
		arena_rewind(&arena, &before);
	}
	rt_team_stop(&team);
	if (diags.n)
		printf("# %s\n", diags.at[0].message);
	tap_is(right, count, "random convolutions give what plain loops give");
	tap_is(again, count, "and images of them that were written and read, beside a team");
}

/* --- refusals --- */

static void far_channels(struct made *m)
{
	m->operand[0].stride.channel = m->buffer[X].row_elements;
}

static void far_rows(struct made *m)
{
	m->operand[3].stride.row = (int64_t)1 << 48;
}

static void more_channels(struct made *m)
{
	m->operand[0].extent.channels += 16;
}

static void no_rows(struct made *m)
{
	m->operand[3].extent.size[0] = 0;
}

static void other_segment(struct made *m)
{
	m->operand[0].segment = "z";
}

static void same_segment(struct made *m)
{
	m->operand[2].segment = "op.w";
	m->operand[2].buffer = W;
}

static void other_role(struct made *m)
{
	m->operand[3].role = IMAGE_OPERAND_INPUT;
}

static void missing_input(struct made *m)
{
	m->call[0].operand++;
	m->call[0].operands--;
}

static void constant_in_rows(struct made *m)
{
	m->operand[1].buffer = X;
}

static void output_in_weights(struct made *m)
{
	m->operand[3].buffer = W;
}

static void wrong_type(struct made *m)
{
	m->operand[3].planes = m->operand[3].planes == 4 ? 1 : 4;
}

static void short_constant(struct made *m)
{
	m->operand[1].buffer = B;
}

static void other_call(struct made *m)
{
	m->step[0].call = 1;
}

static void other_rows(struct made *m)
{
	m->step[0].domain = IMAGE_DOMAIN_INPUTS;
}

static void kernel_of_host(struct made *m)
{
	m->step[0].target = IMAGE_TARGET_HOST;
}

static void call_of_columns(struct made *m)
{
	m->step[0].blocks = 2;
}

static void test_refusals(void)
{
	static const struct {
		const char *what, *says;
		void (*bend)(struct made *);
	} bent[] = {
	    {"channels outside of a row", "beyond a row", far_channels},
	    {"rows outside of a row", "beyond a row", far_rows},
	    {"more channels than the segment has", "as large as its segment", more_channels},
	    {"activations of no rows", "as large as its segment", no_rows},
	    {"a segment that is not there", "does not exist", other_segment},
	    {"a segment that is filled twice", "filled twice", same_segment},
	    {"an output that is read", "another role", other_role},
	    {"an input that nobody fills", "filled twice, or an input never", missing_input},
	    {"a constant in rows", "no binding keeps", constant_in_rows},
	    {"an output in weights", "has no activations", output_in_weights},
	    {"sums in bytes, or bytes in sums", "another type", wrong_type},
	    {"a constant that is too small", "smaller than its segment", short_constant},
	    {"a call that is not there", "makes no call", other_call},
	    {"a step over other rows", "other rows", other_rows},
	    {"a step of the host without a kernel", "kernel that does not exist", kernel_of_host},
	    {"columns that are cut", "another domain", call_of_columns},
	};
	for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
		struct convolution c;
		struct made m;
		struct reader r;
		do
			draw_convolution(&c);
		while (c.inputs * c.kernel[0] * c.kernel[1] < 20 || c.inputs < 2 || c.out[0] < 2);
		bool made = make_image(&c, &m);
		bent[i].bend(&m);
		struct file f = write_image(&m.image);
		read_image(&r, &f);
		tap_ok(made && says(&r, bent[i].says), "refused: %s", bent[i].what);
		free_reader(&r);
		free(f.bytes);
	}
}

/* --- numbers that are changed at random --- */

static bool is_any(const struct convolution *c, int64_t row, const void *got)
{
	(void)c, (void)row;
	return got;
}

#define NUMBER(struct, member)                                                                               \
	{                                                                                                    \
		offsetof(struct, member), sizeof(((struct *)0)->member)                                      \
	}

struct number {
	size_t at, size;
};

static void put_number(void *base, const struct number *n, int64_t value)
{
	int32_t narrow = (int32_t)value;
	memcpy((char *)base + n->at, n->size == sizeof value ? (const void *)&value : (const void *)&narrow,
	       n->size);
}

static int64_t draw_number(void)
{
	static const int64_t usual[] = {0,  1,	2,  3,	 4,   8,       15,	  16,
					17, 32, 48, 255, 256, 1 << 16, INT32_MAX, (int64_t)1 << 48};
	return draw() % 2 ? (int64_t)(draw() % 64) : usual[draw() % (sizeof usual / sizeof *usual)];
}

/* Changes a number of an operand, of a buffer, or of the step. */
static void change_image(struct made *m)
{
	static const struct number of_operand[] = {
	    NUMBER(struct image_operand, buffer),	  NUMBER(struct image_operand, role),
	    NUMBER(struct image_operand, extent.images),  NUMBER(struct image_operand, extent.channels),
	    NUMBER(struct image_operand, extent.size[0]), NUMBER(struct image_operand, extent.size[1]),
	    NUMBER(struct image_operand, stride.image),	  NUMBER(struct image_operand, stride.channel),
	    NUMBER(struct image_operand, stride.row),	  NUMBER(struct image_operand, stride.column),
	    NUMBER(struct image_operand, zero),		  NUMBER(struct image_operand, planes)};
	static const struct number of_buffer[] = {
	    NUMBER(struct image_buffer, kind), NUMBER(struct image_buffer, dtype),
	    NUMBER(struct image_buffer, rows), NUMBER(struct image_buffer, row_elements)};
	static const struct number of_step[] = {
	    NUMBER(struct image_step, target), NUMBER(struct image_step, call),
	    NUMBER(struct image_step, domain), NUMBER(struct image_step, kernel)};
	switch (draw() % 4) {
	case 0:
		put_number(&m->buffer[draw() % BUFFERS], &of_buffer[draw() % 4], draw_number() % (1 << 17));
		return;
	case 1:
		put_number(m->step, &of_step[draw() % 4], draw_number());
		return;
	default:
		put_number(&m->operand[draw() % 4], &of_operand[draw() % 12], draw_number());
	}
}

/* What is accepted runs inside of its buffers, which tools for memory see. */
static void test_changes(int count)
{
	int accepted = 0, refused = 0, failed = 0;
	for (int i = 0; i < count; i++) {
		struct arena before = arena;
		struct convolution c;
		struct made m;
		struct reader r;
		draw_convolution(&c);
		if (!make_image(&c, &m))
			failed++;
		for (int n = (int)draw_between(1, 2); n > 0; n--)
			change_image(&m);
		struct file f = write_image(&m.image);
		read_image(&r, &f);
		accepted += r.ok;
		refused += !r.ok;
		if (r.ok)
			failed += !run_image(&c, &r.image, NULL, is_any, &r.diags);
		free_reader(&r);
		free(f.bytes);
		arena_rewind(&arena, &before);
	}
	printf("# %d accepted, %d refused\n", accepted, refused);
	tap_ok(accepted > count / 20 && refused > count / 20,
	       "of images that are changed some are accepted, others refused");
	tap_is(failed, 0, "and those that are accepted run");
}

/* A stream that is not one, and one that the verifier refuses. */
static void test_streams(void)
{
	struct convolution c;
	struct made m;
	struct reader r;
	draw_convolution(&c);
	bool made = make_image(&c, &m);
	m.call[0].bytes--;
	struct file f = write_image(&m.image);
	read_image(&r, &f);
	tap_ok(made && !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_VTA_FORMAT,
	       "refused: a stream that ends too early");
	free_reader(&r);
	free(f.bytes);
	size_t bytes;
	c.stream.insn[c.stream.insns - 2].push_prev ^= 1;
	m.call[0].stream = vta_write(&arena, &c.stream, &bytes);
	m.call[0].bytes = (int64_t)bytes;
	f = write_image(&m.image);
	read_image(&r, &f);
	tap_ok(made && !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_VTA_TOKENS,
	       "refused: a stream that would not end");
	free_reader(&r);
	free(f.bytes);
}

int main(void)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	test_random(60);
	test_refusals();
	test_streams();
	test_changes(300);
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
