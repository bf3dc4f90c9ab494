/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures to arrays.
 *
 * A forest of trees or DAGs comes in as the caller's arrays; out comes a numbering in which all nodes that a
 * kernel call runs over are a contiguous range:
 *
 *     height of a node    0 for a leaf, else 1 + the largest height of its children
 *     batch b             the nodes of height b, by case, then by ascending caller's id;
 *                         with spans (find_spans.c) in a post order, which the ids may be
 *     numbers             batch after batch: leaves are 0 .. leaves-1, children are in earlier batches
 *
 * So leafness is one comparison, and the nodes of a batch depend on earlier batches only.  The numbering is a
 * function of the forest and the rules alone.  Time is linear, and nesting never touches the C stack. */
#ifndef ESPALIER_LINEARIZE_LINEARIZE_H
#define ESPALIER_LINEARIZE_LINEARIZE_H

#include "base/diag.h"
#include "base/memory.h"
#include "base/target.h"
#include "image/image.h"

#include <stdint.h>

/* Where an input was read, for diagnostics. */
struct lin_origin {
	const char *file; /* NULL = it was not read from a file */
	int line;
	int64_t structure; /* of the file, from 0 */
	bool may_collapse, may_binarize; /* whether the reader could have, but its options were off */
};

/* The caller's arrays; nothing is copied. */
struct lin_forest {
	int64_t nodes, inputs;
	const int32_t *child_begin; /* nodes + 1: those of node n are child_begin[n] .. child_begin[n + 1] */
	const int32_t *children;    /* in slot order; ids of nodes */
	const int32_t *root;	    /* inputs */
	/* Of each input its first node, when the nodes of an input are consecutive: diagnostics then count
	 * them from there.  NULL = inputs are mixed. */
	const int32_t *input_begin;
	const struct lin_origin *origin; /* of the first `origins` inputs; of others nothing is known */
	int64_t origins;
};

/* The cases of nodes.  Those of leaves come before others, and every node fits one (image_check). */
struct lin_cases {
	int n;
	const struct image_case *at;
	const int32_t *const *token; /* by input, of nodes by id; not NULL where a case reads them */
};

/* The structures that a model accepts, and the arrays that its kernels read. */
struct lin_rules {
	int children; /* of every inner node; -1 = any number; 0 = there are none, and an input is one node */
	bool shared;  /* a node may have several parents */
	bool edges;   /* child_begin and child_list are filled for a fixed number of children, too */
	bool places;  /* `place` is filled; not when nodes are shared */
	bool origins; /* `origin` is filled */
	bool edge_nodes; /* `edge_node` is filled; with any number of children, or by the rule `edges` */
	bool unlinked;		       /* neither lin_child nor child_list is filled, but with spans */
	const struct lin_cases *cases; /* NULL = leaves and inner nodes are all the cases */
	bool parent;		       /* `parent` is filled; not when nodes are shared */
	bool parents;		       /* parent_begin and parent_list are filled */
	int span; /* levels of a span (find_spans.c); below 2: no spans; none when nodes are shared */
};

/* A number is a node's in the order, an id the caller's.  Arrays begin at multiples of 64 bytes and are valid
 * until the next call with the same order. */
struct lin_order {
	const struct allocator *allocator;
	int64_t l2_bytes, l3_bytes; /* of caches, by which one of two passes that give the same is chosen */
	int32_t nodes, inputs, edges, leaves, batches;
	int32_t *order;	      /* nodes: the id of a number */
	int32_t *number;      /* nodes: the number of an id */
	int32_t *batch_begin; /* batches + 1 */
	int32_t *root;	      /* inputs */
	/* with a fixed number of children unless they are unlinked without spans, else NULL */
	int32_t slots;
	int32_t *child; /* slot after slot, see lin_child */
	/* with any number of children, or by the rule `edges`, else NULL */
	int32_t *child_begin; /* nodes + 1 */
	int32_t *child_list;  /* edges; NULL when they are unlinked without spans */
	int32_t *edge_node;   /* edges: the node before them; NULL without the rule `edge_nodes` */
	/* by the rule `places`, else NULL: the rank of a node among the children of all nodes, in the order
	 * of their edges; nodes without a parent follow by number */
	int32_t *place; /* nodes */
	/* by the rules `parent` and `parents`, else NULL: the parent of a node, -1 = none; all parents of a
	 * node by id, once for each edge */
	int32_t *parent;       /* nodes */
	int32_t *parent_begin; /* nodes + 1, and one more for counting */
	int32_t *parent_list;  /* edges */
	/* when there are cases, else NULL and 0 */
	int32_t cases;
	int32_t *case_of;    /* nodes */
	int32_t *case_begin; /* batches * cases + 1: the nodes of case c in batch b begin at b * cases + c and
				end where the next case begins */
	int32_t *origin; /* nodes: the first of the node's batch, or span; NULL without the rule `origins` */
	/* with spans, else 0 and NULL; see find_spans.c */
	int32_t span;	   /* levels of a span: span s has levels 1 + (s - 1) * span and following, span 0 the leaves */
	int32_t *rank;	   /* nodes: positions in a post order */
	/* scratch */
	int32_t *stack;		 /* four for each node, with spans */
	int32_t *edge_begin; /* of each batch, or case of one: its first edge; NULL without lin_number_lists */
	int32_t *height; /* nodes, by id, until they are numbered, with lists in spans until these are found; see LIN_CHILD */
	int32_t swept;	 /* ids below have their height */
	int32_t counts;	 /* the numbers of children of all nodes, or-ed together */
	bool pairs;	 /* all inner nodes have two children, and ids are a post order */
	bool post_order; /* of lists, unless they are pairs: whether ids are a post order */
	bool marked;	 /* heights of children have the mark LIN_CHILD */
	bool children_marked; /* by lin_mark_children, and `number` has nothing else */
	bool in_place;	 /* numbers are ids */
	size_t stride;	 /* of `child`, in elements */
	struct lin_block {
		void *at;
		size_t bytes;
	} block, case_block;
};

void lin_order_init(struct lin_order *, const struct allocator *);
/* Sets the machine whose caches the order is made in; the default is a Zen 4. */
void lin_order_describe(struct lin_order *, const struct target *machine);
void lin_order_free(struct lin_order *);

/* False after a diagnostic; the order is then empty and can be used again.  Takes memory only when it needs
 * more than any call before.  A node that no root reaches is numbered like the others. */
bool lin_linearize(struct lin_order *, const struct lin_forest *, struct lin_rules, struct diags *);

/* The child in a slot, of each node; -1 for leaves. */
static inline int32_t *lin_child(const struct lin_order *o, int slot)
{
	return o->child + slot * o->stride;
}

/* The span of a level. */
static inline int32_t lin_span_of(const struct lin_order *o, int32_t level)
{
	return ((uint32_t)level + o->span - 1) / o->span;
}

/* The end of the batches that may run at the same time as this one, the first of them: those of its span. */
static inline int32_t lin_end_of_levels(const struct lin_order *o, int32_t batch)
{
	int32_t span = o->span > 1 && batch ? o->span : 1;
	return o->batches - batch < span ? o->batches : batch + span;
}

/* Divides the nodes of a span into chunks by rank, of about as many nodes each: the first rank of a chunk,
 * which is the end of the one before.  Takes the time of some searches in each level of the span. */
int32_t lin_span_chunk_begin(const struct lin_order *, int32_t span, int chunk, int chunks);
/* Of the numbers begin..end, a batch or a case of one, the first whose rank is not below this one. */
int32_t lin_first_of_rank(const struct lin_order *, int32_t begin, int32_t end, int32_t rank);

/* --- the passes of lin_linearize, in this order --- */

/* Checks that nodes can be numbered and child_begin ascends: then the arrays can be walked.  `counts`, which may be NULL, gets
 * the numbers of children of all nodes, or-ed together. */
bool lin_check_sizes(const struct lin_forest *, int32_t *counts, struct diags *);
/* Checks children, their counts and the roots against the rules.  Finds the heights of the nodes before the
 * first that precedes a child of its own, which is `swept`. */
bool lin_scan(struct lin_order *, const struct lin_forest *, struct lin_rules, struct diags *);
/* May be set in `height` when all heights are known. */
enum { LIN_CHILD = 1 << 30 };
bool lin_check_roots(const struct lin_forest *, struct diags *);
/* Without children: checks that nodes have no edges, and inputs one node each. */
bool lin_check_rows(struct lin_order *, const struct lin_forest *, struct diags *);
/* Whether lin_number_rows can number the nodes, in place of all passes after it: nothing but their number is asked for. */
bool lin_are_rows(const struct lin_order *, const struct lin_rules *);
/* Fills `order`, `number`, `root` and `batch_begin`, and checks the roots. */
bool lin_number_rows(struct lin_order *, const struct lin_forest *, struct diags *);
/* So many children are copied without looking how many there are. */
enum { LIN_USUAL = 4 };
/* Marks in `number` what is a child.  False when one is no node, or the child of two. */
bool lin_mark_children(struct lin_order *, const struct lin_forest *);
/* Finds all heights of trees whose children are marked, with spans the sizes of subtrees, too.  False when
 * there is a cycle, and heights are lost. */
bool lin_descend(struct lin_order *, const struct lin_forest *);
/* Finds the other heights, and cycles. */
bool lin_frontier(struct lin_order *, const struct lin_forest *, struct diags *);
/* Finds the first number of each batch, and of each case of it, and `leaves`; reserves `case_begin`. */
bool lin_find_begins(struct lin_order *, const struct lin_forest *, const struct lin_rules *, struct diags *);
/* Fills `case_of`, by id, and counts the nodes of key k at k + 2 of `case_begin`, their edges likewise. */
bool lin_count_cases(struct lin_order *, const struct lin_forest *, const struct lin_cases *,
		     struct diags *);
/* Fills `order` and `number`. */
void lin_number(struct lin_order *);
/* Whether lin_number_pairs can number and link the nodes, whose children are in slots or in lists. */
bool lin_are_pairs(const struct lin_order *);
/* Fills `order`, `number`, `child`, or `child_begin` and `child_list`, `place` and `parent` in one pass. */
void lin_number_pairs(struct lin_order *);
/* Whether lin_number_levels can: pairs of children that precede their parents, without cases, places, parents and spans. */
bool lin_are_levels(const struct lin_order *);
/* Fills `order`, `number` and `child` in one pass. */
void lin_number_levels(struct lin_order *, const struct lin_forest *);
/* Completes `batch_begin` and `case_of` when there are cases. */
void lin_end_cases(struct lin_order *);
/* Whether children precede their parents, the last one directly: lists of children that are not linked by
 * lin_number_spans may then be a post order. */
bool lin_seem_nested(const struct lin_order *, const struct lin_forest *);
/* Finds spans of trees in any order that have their numbers; numbers the nodes of each batch anew when ids are no post
 * order. */
void lin_find_spans(struct lin_order *, const struct lin_forest *);
/* Finds spans of trees without numbers, and fills `order` and `number` in the same pass, and what lin_links_spans
 * says. */
void lin_number_spans(struct lin_order *, const struct lin_forest *);
/* The same after lin_descend, without links.  Returns whether ids are ranks. */
bool lin_number_descended(struct lin_order *);
/* Whether it also fills `child`, `place` and `parent`: with a fixed number of children. */
static inline bool lin_links_spans(const struct lin_order *o)
{
	return o->slots && !o->child_begin;
}

/* Bytes that the passes over the nodes read and write: child_begin and children of the forest, `number`, `order`
 * and two arrays of children. */
static inline int64_t lin_bytes(const struct lin_order *o)
{
	enum { ARRAYS = 6 };
	return o->nodes * (int64_t)(ARRAYS * sizeof(int32_t));
}

/* Whether they are too many for the L3 cache. */
static inline bool lin_exceed_cache(const struct lin_order *o)
{
	return lin_bytes(o) >= o->l3_bytes;
}

/* Whether the next nodes of a batch are likely to be written to memory that no cache has: the passes that write
 * several streams for each batch, more than the processor follows by itself, then ask for it ahead.  Half of the
 * cache is left to the other arrays of an order and to what else runs. */
static inline bool lin_are_far(const struct lin_order *o)
{
	return 2 * lin_bytes(o) >= o->l3_bytes;
}

/* Asks for the elements of an array, or of none, that a batch writes some nodes after this one: two cache lines on. */
static inline void lin_prefetch(const int32_t *array, int64_t to)
{
	enum { AHEAD = 32 };
	if (array)
		__builtin_prefetch((const char *)((uintptr_t)array + (to + AHEAD) * sizeof *array), 1);
}

/* Whether lin_number_lists can number and link the nodes, of any number of children each, and is the faster way: shared
 * ones, or trees in post order.  Without it there is no `edge_begin`. */
bool lin_are_lists(const struct lin_order *, bool shared);
/* Fills `order`, `number`, `child_begin` and `child_list` in one pass; of trees `place` and `parent`, too. */
void lin_number_lists(struct lin_order *, const struct lin_forest *);
/* Gives the nodes without a parent, whose place is -1, the places that are left: they follow the others. */
void lin_end_places(struct lin_order *);
/* Fills the arrays of children, `place` and `parent`. */
void lin_link(struct lin_order *, const struct lin_forest *);
/* Fills the other index arrays: `root`, `origin`, those of all parents. */
void lin_fill(struct lin_order *, const struct lin_forest *);

/* Counting sort of the nodes by batch and case, stable in the id.  The first number of key k is at k + 1 of
 * `begin` and advances to the end of k, which is where k + 1 begins. */
struct lin_sort {
	int32_t *begin, *number, *order;
	int32_t *edge_begin;	/* the same for edges, or NULL */
	const int32_t *height;	/* may be `number` */
	const int32_t *case_of; /* by id; NULL = there are no cases */
	int32_t mask, cases;
};

static inline struct lin_sort lin_sort_of(const struct lin_order *o)
{
	return (struct lin_sort){.begin = o->cases ? o->case_begin : o->batch_begin,
				 .edge_begin = o->edge_begin,
				 .number = o->number,
				 .order = o->order,
				 .height = o->height,
				 .case_of = o->case_of,
				 .mask = o->batches > LIN_CHILD ? -1 : ~LIN_CHILD,
				 .cases = o->cases};
}

/* The key of a node that has no number yet. */
static inline int64_t lin_key(const struct lin_sort *s, int32_t id)
{
	int32_t height = s->height[id] & s->mask;
	return s->case_of ? (int64_t)height * s->cases + s->case_of[id] : height;
}

/* Gives the next node its number. */
static inline int32_t lin_take_number(const struct lin_sort *s, int32_t id)
{
	int32_t to = s->begin[lin_key(s, id) + 1]++;
	s->number[id] = to;
	s->order[to] = id;
	return to;
}

/* The name of a node in diagnostics: "node 3 of input 1", or "node 3 of structure 7" where it was read from a
 * file.  child_begin must be right; `scratch` and `marks` have an element for each node. */
struct lin_name {
	int64_t input, node; /* -1 = unknown; the node as counted in the input */
	struct diag_at at;   /* where the input was read */
	bool may_collapse, may_binarize; /* as of its origin */
	char text[80];
};
struct lin_name lin_name_of(const struct lin_forest *, int64_t input, int32_t id);
struct lin_name lin_name(const struct lin_forest *, int32_t id, int32_t *scratch, int32_t *marks);

/* Gives a node its height and returns the number of batches, one more than the largest height so far.
 * count[h] counts the nodes of height h.  A height is at most one more than that of a node that has its own:
 * no count is skipped. */
static inline int32_t lin_set_height(int32_t *height, int32_t *count, int32_t batches, int32_t id, int32_t h)
{
	height[id] = h;
	if (h == batches)
		count[batches++] = 0;
	count[h]++;
	return batches;
}

/* Aligned memory for so many bytes; the old content is lost.  False after a diagnostic. */
bool lin_reserve(struct lin_order *, struct lin_block *, size_t bytes, struct diags *);
/* The first aligned address of a block. */
int32_t *lin_block_begin(const struct lin_block *);

/* --- a forest from single structures --- */

struct lin_collect {
	const struct allocator *allocator;
	int64_t nodes, edges, inputs;
	struct lin_array {
		int32_t *at;
		size_t capacity;
	} child_begin, children, root, input_begin;
	struct lin_origin *origin; /* as of lin_forest */
	int64_t origins;
	size_t origin_capacity;
};

void lin_collect_init(struct lin_collect *, const struct allocator *);
void lin_collect_free(struct lin_collect *);
/* Removes all inputs and keeps the memory. */
void lin_collect_clear(struct lin_collect *);

/* Appends an input whose last node is its root; ids count from 0 within it.  False after a diagnostic, and
 * nothing changed: the input has no node, a child outside of it, or a child_begin that does not ascend. */
bool lin_collect_add(struct lin_collect *, int64_t nodes, const int32_t *child_begin, const int32_t *children,
		     struct diags *);
/* The same, with any node as the root. */
bool lin_collect_add_rooted(struct lin_collect *, int64_t nodes, const int32_t *child_begin,
			    const int32_t *children, int64_t root, struct diags *);

/* Inputs that stand one after the other in arrays.  Input i has the nodes input_begin[i] .. input_begin[i + 1] - 1; its
 * children and its root are named by their numbers within it.  Without these arrays each input is one node. */
struct lin_inputs {
	int64_t inputs;
	const int32_t *input_begin; /* inputs + 1, ascending */
	const int32_t *child_begin, *children;
	const int32_t *root; /* NULL = the last node of each */
};

/* Appends all of them, or none after a diagnostic. */
bool lin_collect_add_many(struct lin_collect *, const struct lin_inputs *, struct diags *);

/* The same as lin_collect_add_rooted for an input that was read from a file, whose name must live as long as the input. */
bool lin_collect_add_read(struct lin_collect *, int64_t nodes, const int32_t *child_begin,
			  const int32_t *children, int64_t root, const struct lin_origin *, struct diags *);

/* Removes an input; those behind it move up by one. */
void lin_collect_remove(struct lin_collect *, int64_t input);

/* Valid until the next change. */
struct lin_forest lin_collect_forest(const struct lin_collect *);

#endif
