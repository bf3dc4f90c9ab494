/* Structures to arrays.
 *
 * A forest of trees or DAGs comes in as the caller has it; out comes a numbering in which everything that a
 * kernel wants to run over is a contiguous range:
 *
 *     height of a node    0 for a leaf, else 1 + the largest height of its children
 *     batch b             the nodes of height b, by ascending caller's id
 *     numbers             batch after batch: leaves are 0 .. leaves-1, children lie in earlier batches
 *
 * So leafness is one comparison, and the nodes of a batch depend on earlier batches only.  The numbering is a
 * function of the forest alone.  Time is linear, and nesting never touches the C stack. */
#ifndef ESPALIER_LINEARIZE_LINEARIZE_H
#define ESPALIER_LINEARIZE_LINEARIZE_H

#include "base/diag.h"
#include "base/memory.h"

#include <stdint.h>

/* The caller's arrays; nothing is copied. */
struct lin_forest {
	int64_t nodes, inputs;
	const int32_t *child_begin; /* nodes + 1: those of node n are child_begin[n] .. child_begin[n + 1] */
	const int32_t *children;    /* in slot order; ids of nodes */
	const int32_t *root;	    /* inputs */
	/* Of each input its first node, when the nodes of an input are consecutive: diagnostics then count
	 * them from there.  NULL = inputs are mixed. */
	const int32_t *input_begin;
};

/* What structures a model takes. */
struct lin_rules {
	int children; /* of every inner node; -1 = any number */
	bool shared;  /* a node may have several parents */
	bool edges;   /* child_begin and child_list are wanted for a fixed number of children, too */
	bool places;  /* `place` is wanted; not when nodes are shared */
	bool unlinked; /* neither lin_child nor child_list is wanted */
};

/* Numbers are new ones unless it says id.  Arrays begin at multiples of 64 bytes and are valid until the next
 * call with the same order. */
struct lin_order {
	const struct allocator *allocator;
	int32_t nodes, inputs, edges, leaves, batches;
	int32_t *order;	      /* nodes: the id of a number */
	int32_t *number;      /* nodes: the number of an id */
	int32_t *batch_begin; /* batches + 1 */
	int32_t *root;	      /* inputs */
	/* with a fixed number of children, unless nobody wants them, else NULL */
	int32_t slots;
	int32_t *child; /* slot after slot, see lin_child */
	/* with any number of children, or when they are wanted, else NULL */
	int32_t *child_begin; /* nodes + 1 */
	int32_t *child_list;  /* edges; NULL when nobody wants it */
	/* when wanted, else NULL: the rank of a node among the children of all nodes, in the order of their edges; then come
	 * the nodes that are nobody's child, by number */
	int32_t *place; /* nodes */
	/* its own */
	int32_t *height; /* nodes, by id; see LIN_CHILD */
	int32_t swept;	 /* ids below have their height */
	size_t stride;	 /* of `child`, in elements */
	void *block;
	size_t bytes;
};

void lin_order_init(struct lin_order *, const struct allocator *);
void lin_order_free(struct lin_order *);

/* False after a diagnostic; the order is then empty and can be used again.  Takes memory only when it needs
 * more than any call before.  A node that no root reaches is numbered like the others. */
bool lin_linearize(struct lin_order *, const struct lin_forest *, struct lin_rules, struct diags *);

/* The child in a slot, of each node; -1 for leaves. */
static inline int32_t *lin_child(const struct lin_order *o, int slot)
{
	return o->child + slot * o->stride;
}

/* --- the parts of lin_linearize, in this order --- */

/* That the sizes can be numbered and child_begin ascends: afterwards the arrays can be walked. */
bool lin_check_sizes(const struct lin_forest *, struct diags *);
/* That children, their counts and the roots are as the rules want them.  On the way: the heights of the nodes
 * before the first that precedes a child of its own, which is `swept`. */
bool lin_scan(struct lin_order *, const struct lin_forest *, struct lin_rules, struct diags *);
/* May be set in `height` when all heights are known. */
enum { LIN_CHILD = 1 << 30 };
/* The other heights, finding cycles; then `order`, `number`, `batch_begin`, `leaves`, `batches`. */
bool lin_frontier(struct lin_order *, const struct lin_forest *, struct diags *);
/* The index arrays: `root`, those of children, `place`. */
void lin_fill(struct lin_order *, const struct lin_forest *);

/* "node 3 of input 1": for diagnostics about a node of a forest whose child_begin is right.  Takes `scratch`
 * and `marks`, a node each. */
struct lin_name {
	int64_t input, node; /* -1 = unknown; the node as counted in the input */
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

/* --- a forest from single structures --- */

struct lin_collect {
	const struct allocator *allocator;
	int64_t nodes, edges, inputs;
	struct lin_array {
		int32_t *at;
		size_t capacity;
	} child_begin, children, root, input_begin;
};

void lin_collect_init(struct lin_collect *, const struct allocator *);
void lin_collect_free(struct lin_collect *);
/* Forgets the structures and keeps the memory. */
void lin_collect_clear(struct lin_collect *);

/* Appends an input whose last node is its root; ids count from 0 within it.  False after a diagnostic, and
 * nothing changed: the input has no node, a child outside of it, or a child_begin that does not ascend. */
bool lin_collect_add(struct lin_collect *, int64_t nodes, const int32_t *child_begin, const int32_t *children,
		     struct diags *);
/* The same, with any node as the root. */
bool lin_collect_add_rooted(struct lin_collect *, int64_t nodes, const int32_t *child_begin,
			    const int32_t *children, int64_t root, struct diags *);

/* Valid until the next change. */
struct lin_forest lin_collect_forest(const struct lin_collect *);

#endif
