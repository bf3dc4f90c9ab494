/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Changes streams of the generator, and asks the verifier. What it accepts must be harmless: the same bytes
 * in every order of the modules, and when tokens alone were changed, those of the stream as it was. */
#include "tests/tap.h"
#include "tests/vta/operations.h"

#include <string.h>

static struct arena arena;
static struct diags diags;

static const enum vta_module orders[][VTA_MODULES] = {
    {VTA_MODULE_LOAD, VTA_MODULE_COMPUTE, VTA_MODULE_STORE},
    {VTA_MODULE_STORE, VTA_MODULE_COMPUTE, VTA_MODULE_LOAD},
    {VTA_MODULE_COMPUTE, VTA_MODULE_LOAD, VTA_MODULE_STORE},
    {VTA_MODULE_STORE, VTA_MODULE_LOAD, VTA_MODULE_COMPUTE},
};
enum { ORDERS = sizeof orders / sizeof *orders };

struct subject {
	struct drawn_operation d;
	struct vta_stream stream;
	struct vta_cost cost;
	const int8_t *plain; /* what it must give */
	long accepted, refused, wrong;
};

/* Whether all orders give the same; of the stream as it was, too, when `keeps`. */
static bool is_harmless(const struct subject *s, bool keeps)
{
	uint8_t *first = NULL;
	for (int i = 0; i < ORDERS; i++) {
		uint8_t *memory = operation_memory(&arena, &s->stream, &s->d, 7);
		vta_execute(&arena, &s->stream, orders[i], memory);
		if (first && memcmp(first, memory, s->stream.bytes) != 0)
			return false;
		first = memory;
	}
	const struct vta_segment *y = vta_find_segment(&s->stream, "y");
	return !keeps || !memcmp(first + y->begin, s->plain, y->bytes);
}

/* Judges the changed stream; one that runs for too long after the change is not executed. */
static void judge_stream(struct subject *s, bool keeps)
{
	struct arena before = arena;
	struct vta_cost cost;
	bool accepted = vta_verify(&arena, &diags, &s->stream, &cost);
	s->accepted += accepted;
	s->refused += !accepted;
	if (accepted && cost.cycles < 10 * s->cost.cycles + 100000)
		s->wrong += !is_harmless(s, keeps);
	arena_rewind(&arena, &before);
	diags_free(&diags);
	diags_init(&diags, &allocator_default);
}

/* --- tokens --- */

static uint32_t *token_of(struct vta_insn *insn, int kind)
{
	uint32_t *token[] = {&insn->pop_prev, &insn->pop_next, &insn->push_prev, &insn->push_next};
	return token[kind];
}

enum { TOKENS = 4 };

static void flip_tokens(struct subject *s)
{
	for (size_t i = 0; i < s->stream.insns; i++)
		for (int kind = 0; kind < TOKENS; kind++) {
			*token_of(&s->stream.insn[i], kind) ^= 1;
			judge_stream(s, true);
			*token_of(&s->stream.insn[i], kind) ^= 1;
		}
}

/* Gives a token of one instruction to the next one of its module. */
static void move_tokens(struct subject *s)
{
	struct vta_insn *insn = s->stream.insn;
	for (size_t i = 0; i < s->stream.insns; i++)
		for (size_t j = i + 1; j < s->stream.insns && j < i + 60; j++) {
			if (vta_module_of(&insn[i]) != vta_module_of(&insn[j]))
				continue;
			for (int kind = 0; kind < TOKENS; kind++) {
				uint32_t *a = token_of(&insn[i], kind), *b = token_of(&insn[j], kind),
					 one = *a;
				if (*a == *b)
					continue;
				*a = *b;
				*b = one;
				judge_stream(s, true);
				*b = *a;
				*a = one;
			}
			break;
		}
}

/* The n-th instruction of a module that has a token; NULL = there is none. */
static uint32_t *find_token(struct subject *s, enum vta_module module, int kind, size_t n)
{
	for (size_t i = 0; i < s->stream.insns; i++) {
		uint32_t *token = token_of(&s->stream.insn[i], kind);
		if (vta_module_of(&s->stream.insn[i]) == module && *token && n-- == 0)
			return token;
	}
	return NULL;
}

/* Takes away a push and the pop of it, so that tokens stay balanced. */
static void drop_pairs(struct subject *s)
{
	static const struct {
		enum vta_module from, to;
		int push, pop;
	} queue[] = {{VTA_MODULE_LOAD, VTA_MODULE_COMPUTE, 3, 0},
		     {VTA_MODULE_COMPUTE, VTA_MODULE_LOAD, 2, 1},
		     {VTA_MODULE_COMPUTE, VTA_MODULE_STORE, 3, 0},
		     {VTA_MODULE_STORE, VTA_MODULE_COMPUTE, 2, 1}};
	for (int q = 0; q < 4; q++)
		for (size_t n = 0; n < 40; n++) {
			uint32_t *push = find_token(s, queue[q].from, queue[q].push, n);
			uint32_t *pop = find_token(s, queue[q].to, queue[q].pop, n);
			if (!push || !pop)
				break;
			*push = *pop = 0;
			judge_stream(s, true);
			*push = *pop = 1;
		}
}

/* --- other fields --- */

static void change_fields(struct subject *s, int count)
{
	for (int n = 0; n < count; n++) {
		struct vta_insn *insn = &s->stream.insn[draw() % s->stream.insns], before = *insn;
		const struct vta_field *field = &vta_fields[draw() % (uint32_t)vta_field_count];
		if (!(field->set & vta_sets_of(insn->opcode)))
			continue;
		uint32_t value = vta_field_get(insn, field),
			 other = draw() % 2 ? value + 1 - 2 * (draw() % 2) : value ^ 1u << draw() % 16;
		if (vta_field_fits(field, other) && (field->width > 3 || draw() % 4 == 0)) {
			vta_field_set(insn, field, other);
			judge_stream(s, false);
		}
		*insn = before;
	}
}

static void change_uops(struct subject *s, int count)
{
	struct vta_segment *segment = &s->stream.segment[s->stream.segments - 1];
	uint8_t *data = arena_copy(&arena, segment->data, segment->bytes);
	segment->data = data;
	for (int n = 0; n < count; n++) {
		size_t at = draw() % segment->bytes;
		uint8_t before = data[at];
		data[at] ^= (uint8_t)(1 << draw() % 8);
		judge_stream(s, false);
		data[at] = before;
	}
}

/* --- the whole --- */

static void report_subject(struct subject *s, const char *what)
{
	printf("# %s: %ld refused, %ld accepted\n", what, s->refused, s->accepted);
	tap_ok(!s->wrong, "%s: those that are accepted are harmless", what);
	tap_ok(s->refused > 0, "%s: some are refused", what);
	s->accepted = s->refused = s->wrong = 0;
}

static bool make_subject(struct subject *s, struct drawn_sizes sizes)
{
	*s = (struct subject){0};
	draw_sized(&arena, &s->d, sizes);
	s->d.op.residual = "r";
	s->plain = plain_operation(&arena, &s->d.op, s->d.x, s->d.residual);
	return vta_generate(&arena, &diags, &s->d.op, 1, &s->stream) &&
	       vta_verify(&arena, &diags, &s->stream, &s->cost);
}

static void test_changes(struct drawn_sizes sizes, const char *what)
{
	struct subject s;
	if (!tap_ok(make_subject(&s, sizes), "%s", what))
		return;
	tap_ok(is_harmless(&s, true), "as it is, it gives what plain loops give");
	flip_tokens(&s);
	tap_is(s.accepted, 0, "no token can be added or taken away alone");
	report_subject(&s, "tokens that are added or taken away");
	move_tokens(&s);
	report_subject(&s, "tokens that move to the next instruction");
	drop_pairs(&s);
	report_subject(&s, "pushes and pops that are taken away together");
	change_fields(&s, 2000);
	report_subject(&s, "fields that are changed");
	change_uops(&s, 300);
	report_subject(&s, "micro-ops that are changed");
}

/* Four tiles, whose weights stay; and tiles of several steps, each with weights of its own. */
int main(void)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	test_changes((struct drawn_sizes){4, 2, 2, {4, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, "a convolution");
	test_changes((struct drawn_sizes){1, 40, 34, {1, 5}, {1, 1}, {1, 1}, {0}, {0}}, "a product");
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
