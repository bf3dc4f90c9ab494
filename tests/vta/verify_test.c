/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The verifier: a stream that is right is accepted and runs, one broken in any way is refused by the rule
 * that it breaks; the executor, of what the device does at the limits of its numbers; the estimate. */
#include "tests/tap.h"
#include "tests/vta/streams.h"

#include <string.h>

static struct arena arena;
static struct diags diags;

/* The text with the first `old` replaced. */
static char *replace_text(const char *text, const char *old, const char *new)
{
	const char *at = strstr(text, old);
	struct str out = str_in(&arena);
	str_add(&out, text, (size_t)(at - text));
	str_puts(&out, new);
	str_puts(&out, at + strlen(old));
	return out.text;
}

/* The id of the fault, DIAG_COUNT = accepted. */
static enum diag_id find_verdict(const char *text)
{
	struct vta_stream stream;
	struct vta_cost cost;
	size_t before = diags.n;
	if (vta_parse(&arena, &diags, "test", text, &stream) && vta_verify(&arena, &diags, &stream, &cost))
		return DIAG_COUNT;
	return diags.n > before ? diags.at[diags.n - 1].id : DIAG_COUNT;
}

static void check_refused(const char *old, const char *new, enum diag_id id, const char *what)
{
	enum diag_id got = find_verdict(replace_text(stream_text, old, new));
	if (got != id)
		printf("# got %s, wanted %s\n", got == DIAG_COUNT ? "none" : diag_spelling(got),
		       diag_spelling(id));
	tap_ok(got == id, "refused: %s", what);
}

static void test_instructions(void)
{
	enum diag_id id = DIAG_VTA_INSTRUCTION;
	check_refused("finish pop_next\n", "", id, "no end");
	check_refused("finish pop_next\n", "finish\nfinish pop_next\n", id, "two ends");
	check_refused("load input dram", "load input pop_prev dram", id,
		      "a load that pops the module before it");
	check_refused("store pop_prev", "store pop_prev push_next", id,
		      "a store that pushes to the module behind it");
	check_refused("load input", "load output", id, "a load of the output memory");
	check_refused("output dram", "accumulator dram", id, "a store of accumulators");
	check_refused("weight dram", "weight x_pad_0=1 dram", id, "weights with padding");
	check_refused("input dram_base=48 y_size=1 x_size=2", "input x_pad_0=1 y_size=1", id,
		      "padding around nothing");
	check_refused("load uop y_size=1", "load uop y_size=2", id, "micro-ops in rows");
	check_refused("max use_imm", "shr use_imm imm=16", id, "a shift that is too far");
	check_refused("max use_imm", "shr use_imm imm=-17", id, "a shift that is too far to the left");
	check_refused("max use_imm", "max imm=1", id, "an immediate operand that is not used");
	check_refused("alu push_next", "alu push_next reset", id, "an operation that resets");
	check_refused("uop_end=1 iter_out=2 iter_in=1", "uop_end=1 iter_out=0 iter_in=1", id,
		      "a loop without iterations");
	check_refused("uop_end=1 iter_out=2", "iter_out=2", id, "a loop without micro-ops");
	tap_ok(find_verdict("memory 256\n") == id, "refused: an empty stream");
}

static void test_bounds(void)
{
	enum diag_id id = DIAG_VTA_BOUNDS;
	check_refused("input dram_base=48 ", "input sram_base=2047 dram_base=48 ", id,
		      "inputs behind their memory");
	check_refused("weight dram_base=1 ", "weight sram_base=1024 dram_base=1 ", id,
		      "weights behind their memory");
	check_refused("load uop y_size", "load uop sram_base=8192 y_size", id,
		      "micro-ops behind their memory");
	check_refused("output dram_base=64", "output sram_base=2047 dram_base=64", id,
		      "outputs behind their memory");
	check_refused("dst_factor_out=1 src", "dst_factor_out=2047 iter_in=2 dst_factor_in=1 src", id,
		      "accumulators behind their memory");
	check_refused("src_factor_out=1", "src_factor_out=2047 iter_in=3 src_factor_in=1", id,
		      "a loop behind the inputs");
	check_refused("src_factor_out=1", "src_factor_out=1 wgt_factor_out=1023 iter_in=3 wgt_factor_in=1",
		      id, "a loop behind the weights");
	check_refused("gemm reset uop_end=1", "gemm reset uop_end=8193", id, "a loop behind the micro-ops");
	check_refused("dram_base=48 y_size=1 x_size=2", "dram_base=96 y_size=1 x_size=2", id,
		      "a load behind the host's memory");
	check_refused("dram_base=48 y_size=1 x_size=2", "dram_base=4294967295 y_size=1 x_size=2", id,
		      "a load far behind it");
	check_refused("x_size=2 x_stride=2\nload", "x_size=3 x_stride=3\nload", id,
		      "a load of more than a segment");
	check_refused("output dram_base=64", "output dram_base=65", id, "a store of more than a segment");
}

static void test_tokens(void)
{
	enum diag_id id = DIAG_VTA_TOKENS;
	check_refused("load push_next weight", "load weight", id, "a token that compute waits for");
	check_refused("alu push_next", "alu", id, "a token that store waits for");
	check_refused("store pop_prev push_prev", "store pop_prev", id, "a token that the end waits for");
	check_refused("load input dram", "load pop_next input dram", id, "a token that load waits for");
	check_refused("gemm pop_prev", "gemm pop_prev push_prev", id, "a token to load that is left");
	char *many = replace_text(stream_text, "gemm pop_prev", "gemm");
	for (int i = 0; i < 513; i++)
		many = replace_text(many, "gemm uop", "load input push_next\ngemm uop");
	for (int i = 0; i < 514; i++)
		many = replace_text(many, "gemm uop", "load uop pop_prev\ngemm uop");
	tap_ok(find_verdict(many) == DIAG_COUNT,
	       "more tokens than a queue holds are accepted when they are popped in time");
	char *full =
	    replace_text(stream_text, "gemm pop_prev", "load pop_next input\ngemm push_prev pop_prev");
	for (int i = 0; i < 513; i++)
		full = replace_text(full, "gemm push", "load weight\ngemm push");
	tap_ok(find_verdict(full) == id,
	       "refused: more instructions that wait than their queue holds, before what they wait for");
}

static void test_races(void)
{
	enum diag_id id = DIAG_VTA_RACE;
	check_refused("load input dram", "load push_next input dram_base=0 y_size=0\nload input dram", id,
		      "a token that was pushed before the load that it should tell of");
	check_refused("load input dram", "load push_next input dram", id,
		      "weights that are read when the inputs are there");
	check_refused("store pop_prev push_prev", "store push_prev", id, "a store that does not wait");
	char *early = replace_text(replace_text(stream_text, "push_prev output", "output"), "finish pop_next",
				   "finish");
	tap_ok(find_verdict(early) == id, "refused: an end that does not wait for the store");
	char *late = replace_text(stream_text, "finish pop_next",
				  "gemm reset uop_end=1 iter_out=1 iter_in=1\nfinish pop_next");
	tap_ok(find_verdict(late) == id, "refused: an accumulator that is reset while it may be stored");
	char *again = replace_text(stream_text, "gemm pop_prev",
				   "load input dram_base=48 y_size=1 x_size=2 x_stride=2\ngemm pop_prev");
	tap_ok(find_verdict(again) == id, "refused: an input that is loaded while it may be read");
	check_refused("store pop_prev push_prev output dram_base=64 y_size=1 x_size=2 x_stride=2\n",
		      "store pop_prev push_prev output dram_base=64 y_size=1 x_size=2 x_stride=2\n"
		      "load input push_next dram_base=64 y_size=1 x_size=1 x_stride=1\nload uop pop_prev\n",
		      DIAG_VTA_UNDEFINED, "a load of what the store has not written yet");
}

static void test_undefined(void)
{
	enum diag_id id = DIAG_VTA_UNDEFINED;
	check_refused("x_size=2 x_stride=2\nload", "x_size=1 x_stride=2\nload", id,
		      "an input that is not loaded");
	check_refused("weight dram_base=1 y_size=1", "weight dram_base=1 y_size=0", id,
		      "weights that are not loaded");
	check_refused("gemm reset uop_end=1 iter_out=2", "gemm reset uop_end=1 iter_out=1", id,
		      "an accumulator without a value");
	check_refused("load uop y_size=1", "load uop y_size=0", id, "micro-ops that are not loaded");
	check_refused("max use_imm", "add src_factor_out=2", id, "an operand without a value");
	check_refused("iter_out=2 iter_in=1 dst_factor_out=1 src_factor_out=1", "iter_out=1 iter_in=1",
		      DIAG_COUNT, "nothing, while ALU computes all");
	char *reset =
	    replace_text(replace_text(stream_text, "iter_out=2 iter_in=1 dst_factor_out=1 src",
				      "iter_out=1 iter_in=1 src"),
			 "alu push_next uop_end=1 iter_out=2", "alu push_next uop_end=1 iter_out=1");
	tap_ok(find_verdict(reset) == id, "refused: an accumulator that is stored after its reset");
	check_refused("input x", "scratch x", id, "scratch memory that nothing wrote");
}

static void test_roles(void)
{
	enum diag_id id = DIAG_VTA_ROLE;
	check_refused("dram_base=64", "dram_base=48", id, "a store over the input");
	check_refused("load uop y_size=1", "load uop dram_base=64 y_size=1", id,
		      "micro-ops of the constants");
	check_refused("input dram_base=48 y_size=1 x_size=2", "input y_size=1 x_size=1", id,
		      "inputs of the micro-ops");
}

/* --- execution --- */

static void execute_text(const char *text, const int8_t *x, size_t n, int8_t *y, struct vta_cost *cost)
{
	struct vta_stream stream;
	if (!vta_parse(&arena, &diags, "test", text, &stream) || !vta_verify(&arena, &diags, &stream, cost)) {
		tap_ok(false, "%s", diags.at[diags.n - 1].message);
		return;
	}
	uint8_t *memory = ARENA_ARRAY(&arena, uint8_t, stream.bytes);
	memcpy(memory + vta_find_segment(&stream, "x")->begin, x, n);
	vta_execute(&arena, &stream, NULL, memory);
	memcpy(y, memory + vta_find_segment(&stream, "y")->begin, n);
}

static void test_product(void)
{
	int8_t x[32], y[32];
	struct vta_cost cost;
	for (int i = 0; i < 32; i++)
		x[i] = (int8_t)(i < 16 ? i - 6 : 20 - i);
	execute_text(stream_text, x, sizeof x, y, &cost);
	tap_ok(y[0] == 24 && y[1] == 6 && !y[2] && y[16] == 0 && y[17] == 0,
	       "a product, and no value below zero");
	/* The third instruction is fetched after 6 cycles; loads of inputs and weights take 4 and 32, then
	 * follow the product, the maximum, the store and the end. */
	tap_is((long)cost.cycles, 6 + 4 + 32 + 2 + 4 + 4 + 1, "the estimate follows the longest chain");
	tap_ok(cost.gemm_steps == 4 && cost.alu_steps == 2 && cost.loaded == 4 + 32 + 256 &&
		   cost.stored == 32,
	       "and counts");
}

/* The first element after an operation with an immediate operand. */
static int run_operation(const char *operation, int8_t value)
{
	int8_t x[32] = {value}, y[32];
	struct vta_cost cost;
	execute_text(replace_text(stream_text, "max use_imm", operation), x, sizeof x, y, &cost);
	return y[0];
}

static void test_operations(void)
{
	tap_is(run_operation("shr use_imm imm=1", -3), -2, "shifts round down");
	tap_is(run_operation("shr use_imm imm=15", -1), -1, "and keep the sign");
	tap_is(run_operation("shr use_imm imm=-2", 5), 20, "a negative shift goes to the left");
	tap_is(run_operation("add use_imm imm=100", 100), (int8_t)200, "stores have the low eight bits");
	tap_is(run_operation("add use_imm imm=-32768", 7), 7, "also of what is far from them");
	tap_is(run_operation("min use_imm imm=-5", 7), -5, "the least");
	tap_is(run_operation("add", 7), 14, "an accumulator added to itself");
}

/* Rows with zeros around them, in an order that shows where each is. */
static void test_padding(void)
{
	char *text = replace_text(stream_text, "output y 1024 32", "output y 1024 192");
	text = replace_text(text, "input dram_base=48 y_size=1 x_size=2 x_stride=2",
			    "input dram_base=48 y_size=2 x_size=1 x_stride=1 x_pad_0=1 x_pad_1=1 y_pad_1=1");
	for (int i = 0; i < 3; i++)
		text = replace_text(text, "iter_out=2 ", "iter_out=9 ");
	text = replace_text(text, "y_size=1 x_size=2 x_stride=2\nfinish",
			    "y_size=1 x_size=9 x_stride=9\nfinish");
	text = replace_text(text, "output y 1024 192", "output y 1024 144");
	int8_t x[144] = {1}, y[144];
	x[16] = 2;
	struct vta_stream stream;
	struct vta_cost cost;
	if (!tap_ok(vta_parse(&arena, &diags, "test", text, &stream) &&
			vta_verify(&arena, &diags, &stream, &cost),
		    "padding is accepted"))
		return;
	uint8_t *memory = ARENA_ARRAY(&arena, uint8_t, stream.bytes);
	memcpy(memory + 768, x, 32);
	vta_execute(&arena, &stream, NULL, memory);
	memcpy(y, memory + 1024, sizeof y);
	bool right = true;
	for (int i = 0; i < 9; i++)
		right &= y[16 * i] == (i == 1 ? 1 : i == 4 ? 2 : 0);
	tap_ok(right, "zeros stand around the rows");
}

int main(void)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	tap_ok(find_verdict(stream_text) == DIAG_COUNT, "a stream that is right is accepted");
	test_instructions();
	test_bounds();
	test_tokens();
	test_races();
	test_undefined();
	test_roles();
	test_product();
	test_operations();
	test_padding();
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
