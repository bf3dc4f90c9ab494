/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "linearize/linearize.h"

#include <string.h>

enum { ALIGNMENT = 64, ZEN4_L2 = 1 << 20, ZEN4_L3 = 32 << 20 };

void lin_order_init(struct lin_order *o, const struct allocator *allocator)
{
	*o = (struct lin_order){.allocator = allocator, .l2_bytes = ZEN4_L2, .l3_bytes = ZEN4_L3};
}

void lin_order_describe(struct lin_order *o, const struct target *machine)
{
	o->l2_bytes = machine->l2_bytes;
	o->l3_bytes = machine->l3_bytes;
}

static void free_block(struct lin_order *o, struct lin_block *b)
{
	if (b->at)
		o->allocator->resize(o->allocator->context, b->at, b->bytes, 0);
	*b = (struct lin_block){0};
}

void lin_order_free(struct lin_order *o)
{
	free_block(o, &o->block);
	free_block(o, &o->case_block);
	lin_order_init(o, o->allocator);
}

/* Empties the order and keeps its memory. */
static void empty_order(struct lin_order *o)
{
	*o = (struct lin_order){.allocator = o->allocator,
				.l2_bytes = o->l2_bytes,
				.l3_bytes = o->l3_bytes,
				.block = o->block,
				.case_block = o->case_block};
}

/* --- memory: one block, divided anew by every call --- */

enum { MOST_PIECES = 18 };

struct pieces {
	size_t n;
	struct piece {
		int32_t **array;
		size_t count, copies; /* so many arrays of `count` elements, each aligned */
	} at[MOST_PIECES];
};

/* Arrays that nobody wants take no time: an order of few nodes is made in a tenth of a microsecond. */
static void add_piece(struct pieces *p, int32_t **array, size_t count, size_t copies)
{
	if (copies)
		p->at[p->n++] = (struct piece){array, count, copies};
}

static size_t align_bytes(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Adds up the size of the block, its own alignment included; false when it overflows. */
static bool measure_pieces(const struct pieces *p, size_t *bytes)
{
	*bytes = ALIGNMENT;
	for (size_t i = 0; i < p->n; i++) {
		size_t piece;
		if (__builtin_mul_overflow(align_bytes(p->at[i].count * sizeof(int32_t)), p->at[i].copies, &piece) ||
		    __builtin_add_overflow(*bytes, piece, bytes))
			return false;
	}
	return *bytes <= PTRDIFF_MAX / 2;
}

/* The old content is lost.  Capacities grow by half at least, so that slowly growing minibatches seldom
 * allocate. */
static bool reserve_block(struct lin_order *o, struct lin_block *b, size_t bytes)
{
	if (bytes <= b->bytes)
		return true;
	const struct allocator *a = o->allocator;
	size_t more = b->bytes + b->bytes / 2;
	free_block(o, b);
	b->bytes = more > bytes ? more : bytes;
	b->at = a->resize(a->context, NULL, 0, b->bytes);
	if (!b->at) {
		b->bytes = bytes;
		b->at = a->resize(a->context, NULL, 0, b->bytes);
	}
	if (!b->at)
		b->bytes = 0;
	advise_huge_pages(b->at, b->bytes);
	return b->at;
}

static bool report_no_memory(const struct lin_order *o, struct diags *diags)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "run fewer inputs at a time",
			"no memory for the index arrays of %d nodes", o->nodes);
}

bool lin_reserve(struct lin_order *o, struct lin_block *b, size_t bytes, struct diags *diags)
{
	bool fits = !__builtin_add_overflow(bytes, ALIGNMENT, &bytes) && bytes <= PTRDIFF_MAX / 2;
	return (fits && reserve_block(o, b, bytes)) || report_no_memory(o, diags);
}

int32_t *lin_block_begin(const struct lin_block *b)
{
	return (int32_t *)align_bytes((uintptr_t)b->at);
}

/* The other arrays are NULL already. */
static void divide_block(struct lin_order *o, const struct pieces *p)
{
	char *at = (char *)lin_block_begin(&o->block);
	for (size_t i = 0; i < p->n; i++) {
		*p->at[i].array = (int32_t *)at;
		at += align_bytes(p->at[i].count * sizeof(int32_t)) * p->at[i].copies;
	}
}

/* There are at most as many batches as nodes; `batch_begin` has an element more than it needs, for the counts
 * of lin_frontier.  Arrays that are written without a branch on what is a leaf have one or two more as well,
 * for the children and parents of leaves (see scan.c, fill.c); `order` has one more for a stack (see scan.c).  Where LIN_USUAL
 * children are copied, however many there are, arrays have as many more. */
static bool allocate_arrays(struct lin_order *o, struct lin_rules rules, struct diags *diags)
{
	bool fixed = rules.children >= 0, list = !fixed || rules.edges;
	bool spans = o->span, linked = !rules.unlinked || spans;
	size_t nodes = o->nodes, slots = fixed && linked ? rules.children : 0, bytes;
	bool places = rules.places && !rules.shared;
	struct pieces pieces;
	pieces.n = 0;
	add_piece(&pieces, &o->order, nodes + LIN_USUAL, 1);
	add_piece(&pieces, &o->number, nodes + 2, 1);
	add_piece(&pieces, &o->batch_begin, nodes + 2, 1);
	add_piece(&pieces, &o->root, o->inputs, 1);
	add_piece(&pieces, &o->child, nodes + 2, slots);
	add_piece(&pieces, &o->child_begin, nodes + LIN_USUAL, list);
	add_piece(&pieces, &o->child_list, o->edges + (size_t)LIN_USUAL, list && linked);
	add_piece(&pieces, &o->edge_begin, nodes + 2, !fixed && (rules.shared || lin_exceed_cache(o)));
	add_piece(&pieces, &o->edge_node, o->edges, list && rules.edge_nodes);
	add_piece(&pieces, &o->place, nodes + 2, places);
	add_piece(&pieces, &o->parent, nodes + 1, rules.parent && !rules.shared);
	add_piece(&pieces, &o->parent_begin, nodes + 2, rules.parents);
	add_piece(&pieces, &o->parent_list, o->edges, rules.parents);
	add_piece(&pieces, &o->height, nodes + 2, spans && list);
	add_piece(&pieces, &o->case_of, nodes, rules.cases != NULL);
	add_piece(&pieces, &o->origin, nodes, rules.origins);
	add_piece(&pieces, &o->rank, nodes + LIN_USUAL, spans);
	add_piece(&pieces, &o->stack, nodes * 4 + 8, spans);
	if (!measure_pieces(&pieces, &bytes) || !reserve_block(o, &o->block, bytes))
		return report_no_memory(o, diags);
	divide_block(o, &pieces);
	if (!o->height) /* a node's number replaces its height, unless heights are read afterwards to find spans of lists */
		o->height = o->number;
	o->slots = slots;
	o->stride = align_bytes((nodes + 2) * sizeof(int32_t)) / sizeof(int32_t);
	return true;
}

/* Whether heights, or spans, are found from the roots on: of trees with any number of children where no sweep can follow
 * their ids. */
static bool needs_descent(const struct lin_order *o, const struct lin_forest *f, const struct lin_rules *rules)
{
	if (o->span)
		return !lin_are_pairs(o) && !lin_links_spans(o) && !lin_seem_nested(o, f);
	return rules->children < 0 && !rules->shared && o->swept < o->nodes;
}

/* Numbers all nodes, and gives them their links. */
static void number_nodes(struct lin_order *o, const struct lin_forest *f, bool descended)
{
	bool pairs = lin_are_pairs(o), levels = lin_are_levels(o), lists = o->edge_begin,
	     nested = o->span && !pairs && !lin_links_spans(o) && !descended, spans = o->span && !pairs && !nested,
	     linked = pairs || levels || lists || (spans && lin_links_spans(o));
	if (pairs)
		lin_number_pairs(o);
	else if (levels)
		lin_number_levels(o, f);
	else if (spans)
		lin_number_spans(o, f);
	else if (lists)
		lin_number_lists(o, f);
	else
		lin_number(o);
	if (o->cases)
		lin_end_cases(o);
	if (pairs && o->span)
		o->rank = o->order;
	if (nested)
		lin_find_spans(o, f);
	if (!linked)
		lin_link(o, f);
}

/* Arrays of no elements may be NULL.  They are replaced, since their begin is read or pointed to. */
static bool linearize_forest(struct lin_order *o, const struct lin_forest *given, struct lin_rules rules,
			     struct diags *diags)
{
	static const int32_t none;
	struct lin_forest forest = *given;
	const struct lin_forest *f = &forest;
	if (!lin_check_sizes(f, &o->counts, diags))
		return false;
	if (!forest.child_begin)
		forest.child_begin = &none;
	if (!forest.children)
		forest.children = &none;
	o->nodes = f->nodes;
	o->inputs = f->inputs;
	o->edges = f->child_begin[f->nodes] - f->child_begin[0];
	o->span = rules.span > 1 && !rules.shared ? rules.span : 0;
	if (!allocate_arrays(o, rules, diags) || (!rules.children && !lin_check_rows(o, f, diags)))
		return false;
	if (lin_are_rows(o, &rules))
		return lin_number_rows(o, f, diags);
	if (!lin_scan(o, f, rules, diags))
		return false;
	bool descended = needs_descent(o, f, &rules) && lin_descend(o, f);
	if ((!descended && !lin_frontier(o, f, diags)) || !lin_find_begins(o, f, &rules, diags))
		return false;
	number_nodes(o, f, descended);
	lin_fill(o, f);
	return true;
}

bool lin_linearize(struct lin_order *o, const struct lin_forest *f, struct lin_rules rules,
		   struct diags *diags)
{
	empty_order(o);
	if (linearize_forest(o, f, rules, diags))
		return true;
	empty_order(o);
	return false;
}
