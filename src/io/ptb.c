/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/ptb.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_WORD = 40 };

/* Refuses the rest of the text. */
static enum io_next refuse_rest(struct io_text *r, struct diags *diags, enum diag_id id, const char *p,
				const char *hint, const char *message)
{
	io_refuse(r, diags, id, p, hint, message);
	io_text_stop(r);
	return IO_FAILED;
}

/* --- tokens --- */

static struct io_span token_at(const char *p, const char *end)
{
	const char *begin = p;
	while (p < end && !io_is_space(*p) && *p != '(' && *p != ')')
		p++;
	return (struct io_span){begin, p - begin};
}

/* --- first sweep: where the tree ends, how many nodes it has, how deep it is --- */

struct extent {
	const char *begin, *end;
	int64_t nodes, depth;
};

static enum io_next refuse_unclosed(struct io_text *r, struct diags *diags, const char *begin, int64_t open)
{
	char message[100];
	snprintf(message, sizeof message, "the tree that begins here has %lld ')' too few when the text ends",
		 (long long)open);
	return refuse_rest(r, diags, DIAG_UNBALANCED_TREE, begin,
			   "add the missing ')'; the tree swallows all that follows it", message);
}

static enum io_next measure_tree(struct io_text *r, struct diags *diags, struct extent *e)
{
	int64_t open = 0;
	for (const char *p = e->begin; p < r->end; p++) {
		if (*p == '(') {
			open++;
			e->depth = open > e->depth ? open : e->depth;
			if (++e->nodes > INT32_MAX)
				return refuse_rest(
				    r, diags, DIAG_TOO_MANY_NODES, e->begin, "split the tree",
				    "the tree that begins here has more than 2147483647 nodes");
		} else if (*p == ')' && --open == 0) {
			e->end = p + 1;
			return IO_TREE;
		} else if (*p == 0) {
			return refuse_rest(r, diags, DIAG_BAD_TREE, p, "trees are read from text files",
					   "a NUL byte inside of a tree");
		}
	}
	return refuse_unclosed(r, diags, e->begin, open);
}

/* --- second sweep: the arrays --- */

/* A node whose ')' is still to come. */
struct open_node {
	const char *at;
	struct io_span label, word;
	int32_t children; /* how many of `waiting` are its children */
};

struct build {
	struct io_text *reader;
	struct diags *diags;
	struct io_span *label, *word;
	int32_t *child_begin, *children;
	int32_t nodes, edges;
	struct open_node *open;
	int64_t depth;
	int32_t *waiting; /* complete nodes whose parent is open: a stack */
	int32_t waits;
};

static struct build build_for(struct io_text *r, struct arena *a, struct diags *diags, const struct extent *e)
{
	return (struct build){
	    .reader = r,
	    .diags = diags,
	    .label = ARENA_ARRAY(a, struct io_span, e->nodes),
	    .word = ARENA_ARRAY(a, struct io_span, e->nodes),
	    .child_begin = ARENA_ARRAY(a, int32_t, e->nodes + 1),
	    .children = ARENA_ARRAY(a, int32_t, e->nodes),
	    .open = ARENA_ARRAY(a, struct open_node, e->depth),
	    .waiting = ARENA_ARRAY(a, int32_t, e->nodes),
	};
}

static bool bad_tree(const struct build *b, const char *p, const char *hint, const char *message)
{
	refuse_rest(b->reader, b->diags, DIAG_BAD_TREE, p, hint, message);
	return false;
}

static const char *begin_node(struct build *b, const char *p, const char *end)
{
	const char *at = io_skip_space(p + 1, end);
	struct io_span label = token_at(at, end);
	b->open[b->depth++] =
	    (struct open_node){.at = p, .label = label.length ? label : (struct io_span){0}};
	return at + label.length;
}

static bool add_word(struct build *b, struct io_span word)
{
	struct open_node *o = &b->open[b->depth - 1];
	char message[200];
	int shown = word.length < SHOWN_WORD ? (int)word.length : SHOWN_WORD;
	if (o->children) {
		snprintf(message, sizeof message, "the word '%.*s' stands beside subtrees", shown, word.text);
		return bad_tree(b, word.text, "give the word a node of its own: (label word)", message);
	}
	if (o->word.text) {
		snprintf(message, sizeof message, "'%.*s' is a second word in one leaf", shown, word.text);
		return bad_tree(b, word.text, "give every word a node of its own: (label word)", message);
	}
	o->word = word;
	return true;
}

/* Moves the node's children from the stack to the arrays; the node itself becomes the newest on the stack. */
static bool end_node(struct build *b)
{
	struct open_node *o = &b->open[--b->depth];
	if (!o->children && !o->word.text)
		return bad_tree(b, o->at, "a leaf is (label word), an inner node (label subtree ...)",
				o->label.text ? "a node has a label, but neither a word nor subtrees"
					      : "a node is empty");
	int32_t n = b->nodes++;
	b->label[n] = o->label;
	b->word[n] = o->word;
	b->waits -= o->children;
	memcpy(b->children + b->edges, b->waiting + b->waits, o->children * sizeof *b->children);
	b->edges += o->children;
	b->child_begin[n + 1] = b->edges;
	b->waiting[b->waits++] = n;
	return true;
}

static bool begin_child(const struct build *b, const char *p)
{
	struct open_node *o = &b->open[b->depth - 1];
	if (o->word.text)
		return bad_tree(b, p, "give the word a node of its own: (label word)",
				"a subtree stands beside a word");
	o->children++;
	return true;
}

static bool build_tree(struct build *b, const struct extent *e)
{
	const char *p = begin_node(b, e->begin, e->end);
	while ((p = io_skip_space(p, e->end)) < e->end) {
		if (*p == '(') {
			if (!begin_child(b, p))
				return false;
			p = begin_node(b, p, e->end);
		} else if (*p == ')') {
			if (!end_node(b))
				return false;
			p++;
		} else {
			struct io_span word = token_at(p, e->end);
			if (!add_word(b, word))
				return false;
			p += word.length;
		}
	}
	return true;
}

/* Removes brackets that only wrap the tree; they are last in post order. */
static void remove_wrapper(struct build *b)
{
	int32_t root = b->nodes - 1;
	while (root > 0 && !b->label[root].text && b->child_begin[root + 1] - b->child_begin[root] == 1)
		root--;
	b->nodes = root + 1;
}

/* --- the reader --- */

/* Moves to the next tree.  Only spaces may stand between trees. */
static enum io_next find_tree(struct io_text *r, struct diags *diags)
{
	const char *p = r->at = io_skip_space(r->at, r->end);
	if (p == r->end && r->structures)
		return IO_END;
	r->structures++;
	if (p == r->end)
		return refuse_rest(r, diags, DIAG_EMPTY_INPUT, p,
				   "write trees as (label word) or (label subtree ...)",
				   "the text holds no tree");
	if (*p == '(')
		return IO_TREE;
	if (*p == ')')
		return refuse_rest(r, diags, DIAG_UNBALANCED_TREE, p,
				   "take it out, or add the '(' that it closes", "this ')' closes no tree");
	return refuse_rest(r, diags, DIAG_BAD_TREE, p, "a tree begins with '('", "text outside of a tree");
}

enum io_next io_ptb_next(struct io_text *r, struct arena *arena, struct diags *diags, struct io_tree *tree)
{
	enum io_next next = find_tree(r, diags);
	if (next != IO_TREE)
		return next;
	io_text_mark(r);
	struct extent e = {.begin = r->at};
	if (measure_tree(r, diags, &e) != IO_TREE)
		return IO_FAILED;
	struct build b = build_for(r, arena, diags, &e);
	if (!build_tree(&b, &e))
		return IO_FAILED;
	remove_wrapper(&b);
	r->at = e.end;
	*tree = (struct io_tree){b.nodes, b.label, b.word, b.child_begin, b.children};
	return IO_TREE;
}
