/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* One pass over all nodes: checks them, and finds heights as long as children come first. */
#include "linearize/linearize.h"

#include <string.h>

static const struct diag_at nowhere;

/* --- diagnostics --- */

/* A hint how to make a node fit.  Two children are those of binary trees, which readers can make. */
static const char *hint_for_arity(int32_t found, int32_t wanted, const struct lin_name *name)
{
	if (found < wanted && found == 1 && name->may_collapse)
		return "leave nodes with one child out (--collapse, esp_treebank_options.collapse), or use "
		       "a model whose nodes take any number of children";
	if (found < wanted)
		return "leave nodes with fewer children out, or use a model whose nodes take any number of "
		       "children";
	if (wanted == 2 && name->may_binarize)
		return "binarize the structure (--binarize, esp_treebank_options.binarize), or use a model "
		       "whose nodes take any number of children";
	if (wanted == 2)
		return "binarize the structure, or use a model whose nodes take any number of children";
	return "use a model whose nodes take as many children, or any number";
}

static bool refuse_arity(struct lin_order *o, const struct lin_forest *f, int32_t n, struct lin_rules rules,
			 struct diags *diags)
{
	int32_t found = f->child_begin[n + 1] - f->child_begin[n];
	struct lin_name name = lin_name(f, n, o->order, o->number);
	diag_add(diags, DIAG_WRONG_ARITY, name.at, hint_for_arity(found, rules.children, &name),
		 "%s has %d %s; the model's inner nodes have %d, its leaves 0", name.text, found,
		 found == 1 ? "child" : "children", rules.children);
	return diag_about(diags, name.input, name.node);
}

static bool refuse_child(struct lin_order *o, const struct lin_forest *f, int32_t n, int32_t i,
			 struct diags *diags)
{
	struct lin_name name = lin_name(f, n, o->order, o->number);
	diag_add(diags, DIAG_DANGLING_CHILD, name.at, "children are named by the number of a node, from 0",
		 "child %d of %s is node %d, but there are nodes 0 to %lld only", i - f->child_begin[n],
		 name.text, f->children[i], (long long)f->nodes - 1);
	return diag_about(diags, name.input, name.node);
}

static bool refuse_shared(struct lin_order *o, const struct lin_forest *f, int32_t parent, int32_t n,
			  int32_t child, struct diags *diags)
{
	struct lin_name name = lin_name(f, child, o->order, o->number);
	struct lin_name first = lin_name(f, parent, o->order, o->number);
	diag_add(diags, DIAG_SHARED_CHILD, name.at,
		 "give each parent a copy of the node, or declare the model's structure a DAG",
		 "%s is a child of %s and%s of %s", name.text, first.text, parent == n ? " again" : "",
		 lin_name(f, n, o->order, o->number).text);
	return diag_about(diags, name.input, name.node);
}

/* A child of node n has two parents; children of nodes up to n are right otherwise. */
static bool refuse_parents(struct lin_order *o, const struct lin_forest *f, int32_t n, struct diags *diags)
{
	int32_t *parent = o->number;
	memset(parent, -1, f->nodes * sizeof *parent);
	for (int32_t p = 0; p <= n; p++)
		for (int32_t i = f->child_begin[p]; i < f->child_begin[p + 1]; i++) {
			int32_t c = f->children[i];
			if (parent[c] >= 0)
				return refuse_shared(o, f, parent[c], p, c, diags);
			parent[c] = p;
		}
	return false;
}

/* Reports what made lin_scan stop at a node. */
static bool refuse_node(struct lin_order *o, const struct lin_forest *f, int32_t n, struct lin_rules rules,
			struct diags *diags)
{
	int32_t begin = f->child_begin[n], end = f->child_begin[n + 1];
	if (rules.children >= 0 && end - begin != rules.children)
		return refuse_arity(o, f, n, rules, diags);
	for (int32_t i = begin; i < end; i++)
		if (f->children[i] < 0 || f->children[i] >= f->nodes)
			return refuse_child(o, f, n, i, diags);
	return refuse_parents(o, f, n, diags);
}

bool lin_check_roots(const struct lin_forest *f, struct diags *diags)
{
	for (int64_t i = 0; i < f->inputs; i++)
		if (f->root[i] < 0 || f->root[i] >= f->nodes)
			return diag_add(diags, DIAG_BAD_ROOT, nowhere, "every input needs a node as its root",
					"the root of input %lld is node %d, but there are %lld nodes",
					(long long)i, f->root[i], (long long)f->nodes);
	return true;
}

/* --- the pass --- */

/* Local copies, which stay in registers: stores to the arrays might change those of the order. */
struct pass {
	const int32_t *child_begin, *list;
	int32_t *height, *count; /* count[h]: nodes of height h */
	int32_t *edges;		 /* likewise; NULL = they are not counted */
	uint8_t *seen;		 /* 1 = is a child already; in the memory of `order` */
	int32_t *stack;		 /* nodes + 1 elements; of pairs in the same memory */
	int32_t nodes, batches;
};

/* Checks `count` children, which must be below `limit`.  Returns one more than the highest of them (0 without
 * `heights`), or -1 when one is wrong. */
static inline __attribute__((always_inline)) int32_t scan_children(const struct pass *p, const int32_t *list,
								   int32_t count, int32_t limit, bool shared,
								   bool heights)
{
	int32_t highest = -1;
	bool wrong = false;
	for (int32_t k = 0; k < count; k++) {
		int32_t c = list[k];
		if ((uint32_t)c >= (uint32_t)limit)
			return -1;
		if (!shared)
			wrong |= p->seen[c], p->seen[c] = 1;
		if (heights)
			highest = p->height[c] > highest ? p->height[c] : highest;
	}
	return wrong ? -1 : highest + 1;
}

static inline __attribute__((always_inline)) bool is_count_right(int32_t count, int32_t children)
{
	return children < 0 || count == 0 || count == children;
}

/* Finds heights from node n on up to the first that is wrong or precedes a child of its own, and returns it. */
static inline __attribute__((always_inline)) int32_t sweep_nodes(struct pass *p, int32_t n, int32_t children,
								 bool shared)
{
	for (; n < p->nodes; n++) {
		int32_t begin = p->child_begin[n], count = p->child_begin[n + 1] - begin, h;
		if (!is_count_right(count, children) ||
		    (h = scan_children(p, p->list + begin, count, n, shared, true)) < 0)
			break;
		if (shared && p->edges)
			p->edges[h] = count + (h < p->batches ? p->edges[h] : 0);
		p->batches = lin_set_height(p->height, p->count, p->batches, n, h);
	}
	return n;
}

/* Whether nodes have no child or two, and some two. */
static bool are_twos(const struct lin_order *o)
{
	return o->edges && !(o->counts & ~2);
}

/* The same for trees whose nodes have no child or two, as long as ids are a post order.  The stack has the
 * nodes that have no parent yet, the last one on top; the children of a node must be the upper two of them,
 * so none is shared, and their heights are not searched for.  There is no branch on whether a node is a leaf,
 * since it cannot be predicted; an element below the bottom of the stack stands for what is missing there. */
static __attribute__((noinline)) int32_t sweep_post_order(struct pass *p, int32_t *depth)
{
	const int32_t *child_begin = p->child_begin, *list = p->list;
	int32_t *height = p->height, *count = p->count, *bottom = p->stack + 1, *top = bottom;
	int64_t n = 1, nodes = p->nodes, begin = child_begin[0];
	uint32_t batches = 1, h = 0;
	if (child_begin[1] != begin)
		return *depth = 0;
	bottom[-1] = p->nodes;
	height[0] = height[p->nodes] = 0;
	count[0] = 1;
	for (; n < nodes; n++) {
		int64_t end = child_begin[n + 1], inner = -((end - begin) >> 1); /* all bits, or none */
		const int32_t *c = list + (begin & inner);
		uint32_t last = n - 1, left = top[-1];
		*top = last;
		if (((c[0] ^ left) | (c[1] ^ last)) & inner)
			break;
		int32_t *next = top + 1 + 2 * inner;
		if (next < bottom)
			break;
		uint32_t other = height[left];
		h = ((other > h ? other : h) + 1) & inner;
		height[n] = h;
		if (h == batches)
			count[batches++] = 0;
		count[h]++;
		top = next;
		begin = end;
	}
	p->batches = batches;
	*depth = top - p->stack;
	return n;
}

/* The children of a node but for the last two: one more than the highest of them, 0 if there are none, or -1
 * when they are not the nodes on the stack. */
static inline int32_t scan_further(const struct pass *p, const int32_t *list, const int32_t *stack, int32_t n)
{
	int32_t h = 0;
	for (int32_t k = 0; k < n; k++) {
		if (list[k] != stack[k])
			return -1;
		h = p->height[stack[k]] >= h ? p->height[stack[k]] + 1 : h;
	}
	return h;
}

/* The same for trees whose nodes have any number of children, of which the last two are looked at without a branch: the
 * last is the node before, whose height is known.  Edges of each height are counted, too. */
static __attribute__((noinline)) int32_t sweep_lists_in_post_order(struct pass *p, int32_t *depth)
{
	const int32_t *child_begin = p->child_begin, *list = p->list;
	int32_t *height = p->height, *count = p->count, *edges_of = p->edges, *bottom = p->stack + 1, *top = bottom;
	int32_t begin = child_begin[0], batches = 1, h = 0;
	int64_t n = 1, nodes = p->nodes;
	if (child_begin[1] != begin)
		return *depth = 0;
	bottom[-1] = p->nodes;
	bottom[0] = 0;
	height[0] = height[p->nodes] = edges_of[0] = 0;
	count[0] = 1;
	for (; n < nodes; n++) {
		int32_t end = child_begin[n + 1], edges = end - begin, last = n - 1, left = top[-1], further;
		int32_t one = -(edges > 0), two = -(edges > 1), other = height[left];
		int32_t *next = top + 1 - edges;
		if (next < bottom || ((list[(end - 1) & one] ^ last) & one) | ((list[(end - 2) & two] ^ left) & two))
			break;
		h = (((other & two) > h ? other : h) + 1) & one;
		if (edges > 2) {
			if ((further = scan_further(p, list + begin, next, edges - 2)) < 0)
				break;
			h = further > h ? further : h;
		}
		height[n] = h;
		if (h == batches)
			edges_of[batches] = count[batches] = 0, batches++;
		edges_of[h] += edges;
		count[h]++;
		top = next;
		*top = n;
		begin = end;
	}
	p->batches = batches;
	*depth = top + 1 - bottom;
	return n;
}

/* Marks the nodes before n that are children: all but those on the stack. */
static void mark_children(struct pass *p, int32_t n, int32_t depth)
{
	while (n-- > 0)
		p->height[n] |= LIN_CHILD;
	while (depth > 0)
		p->height[p->stack[depth--]] &= ~LIN_CHILD;
}

/* The same in any other order in which children come first, from node n on.  Mostly it is that of the levels: there leaves
 * stand together, so the branch on them can be predicted, and a count that each of them raised would wait for the one before.
 * Children are marked in their heights, which are loaded anyway: LIN_CHILD is no height because half of the nodes are
 * leaves. */
static int32_t sweep_pairs(struct pass *p, const int32_t first)
{
	const int32_t *child_begin = p->child_begin, *list = p->list;
	int32_t *height = p->height, *count = p->count, nodes = p->nodes, batches = p->batches, n = first;
	for (; n < nodes; n++) {
		int32_t begin = child_begin[n];
		if (child_begin[n + 1] == begin) {
			height[n] = 0;
			continue;
		}
		uint32_t left = list[begin], right = list[begin + 1];
		if (left >= (uint32_t)n || right >= (uint32_t)n)
			break;
		int32_t a = height[left], b = height[right];
		if (((a | b) & LIN_CHILD) || left == right)
			break;
		height[left] = a | LIN_CHILD;
		height[right] = b | LIN_CHILD;
		batches = lin_set_height(height, count, batches, n, (a > b ? a : b) + 1);
	}
	p->batches = batches;
	if (n > first)
		count[0] += n - first - (child_begin[n] - child_begin[first]) / 2;
	return n;
}

static int32_t sweep_all_pairs(struct lin_order *o, struct pass *p)
{
	int32_t depth, n = sweep_post_order(p, &depth);
	o->pairs = n == p->nodes;
	if (o->pairs)
		return n;
	mark_children(p, n, depth);
	return sweep_pairs(p, n);
}

/* As far as ids are a post order, from a stack: within the L3 cache only where all lists are pairs.  Returns the first node
 * that is not. */
static int32_t sweep_nested_lists(struct lin_order *o, struct pass *p, int32_t *depth)
{
	int32_t n = 0;
	p->stack = o->child_begin;
	if (o->edges >= 2 && o->edge_begin) {
		n = sweep_lists_in_post_order(p, depth);
		o->post_order = n == p->nodes;
	} else if (are_twos(o)) {
		n = sweep_post_order(p, depth);
		o->pairs = n == p->nodes;
	}
	return n;
}

/* The rest in any order. */
static int32_t sweep_all_lists(struct lin_order *o, struct pass *p)
{
	int32_t depth = 0, n = sweep_nested_lists(o, p, &depth);
	if (n && n == p->nodes)
		return n;
	memset(p->seen, 1, (uint32_t)n);
	memset(p->seen + n, 0, (uint32_t)(p->nodes - n));
	while (depth > 0)
		p->seen[p->stack[depth--]] = 0;
	return sweep_nodes(p, n, -1, false);
}

/* The first node that breaks the rules, or `nodes`. */
static inline __attribute__((always_inline)) int32_t find_wrong_node(const struct pass *p, int32_t children,
								     bool shared)
{
	int32_t n;
	for (n = 0; n < p->nodes; n++) {
		int32_t begin = p->child_begin[n], count = p->child_begin[n + 1] - begin;
		if (!is_count_right(count, children) ||
		    scan_children(p, p->list + begin, count, p->nodes, shared, false) < 0)
			break;
	}
	return n;
}

/* Finds heights as far as one sweep can; unless that is all, then checks all nodes.  The sweep of a forest
 * that is not numbered children first mostly stops early, so the check may begin anew.  Lists of children are checked
 * edge by edge, since how many a node has cannot be predicted.  Returns the first wrong node. */
static inline __attribute__((always_inline)) int32_t
scan_nodes(struct lin_order *o, const struct lin_forest *f, int32_t children, bool shared)
{
	struct pass p = {.child_begin = f->child_begin,
			 .list = f->children,
			 .height = o->height,
			 .count = o->batch_begin + 2,
			 .edges = o->edge_begin ? o->edge_begin + 2 : NULL,
			 .seen = (uint8_t *)o->order,
			 .stack = o->order,
			 .nodes = o->nodes};
	bool pairs = children == 2 && !shared && are_twos(o), lists = children < 0 && !shared;
	if (!shared && !pairs && !lists)
		memset(p.seen, 0, (uint32_t)p.nodes);
	o->swept = pairs   ? sweep_all_pairs(o, &p)
		   : lists ? sweep_all_lists(o, &p)
			   : sweep_nodes(&p, 0, children, shared);
	o->batches = p.batches;
	o->marked = pairs && o->swept == p.nodes && !o->pairs;
	if (o->swept == p.nodes)
		return p.nodes;
	if (lists && lin_mark_children(o, f)) {
		o->swept = o->batches = 0; /* heights may be in the memory of marks */
		return p.nodes;
	}
	for (int32_t n = 0; pairs && n < o->swept; n++)
		p.height[n] &= ~LIN_CHILD;
	if (!shared)
		memset(p.seen, 0, (uint32_t)p.nodes);
	return find_wrong_node(&p, children, shared);
}

/* The pass is inlined once for each kind of rules. */
bool lin_scan(struct lin_order *o, const struct lin_forest *f, struct lin_rules rules, struct diags *diags)
{
	int32_t n = rules.shared	  ? scan_nodes(o, f, rules.children, true)
		    : rules.children == 2 ? scan_nodes(o, f, 2, false)
		    : rules.children == 1 ? scan_nodes(o, f, 1, false)
		    : rules.children < 0  ? scan_nodes(o, f, -1, false)
					  : scan_nodes(o, f, rules.children, false);
	if (n < f->nodes)
		return refuse_node(o, f, n, rules, diags);
	if (!lin_are_lists(o, rules.shared))
		o->edge_begin = NULL;
	return lin_check_roots(f, diags);
}
