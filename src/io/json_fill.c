/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads data in JSON as the type that a program needs. */
#include "io/json.h"

#include <stdio.h>
#include <string.h>

struct fill {
	const struct io_text *text;
	const struct io_wanted *wanted;
	struct arena *arena;
	struct diags *diags;
	struct scan scan;
	char *to;
	int64_t row, node;
	bool refused; /* a diagnostic was added */
};

static bool number_token(struct fill *f, int32_t *to)
{
	const char *at = f->scan.at;
	bool integer = f->wanted->integer;
	const char *message =
	    integer ? "an integer from -2147483648 to 2147483647 is needed here"
		    : "a token or an index is a whole number from 0 to 2147483647, or -1 for none";
	return io_json_integer(&f->scan, to, message) &&
	       (integer || *to >= -1 || scan_fault(&f->scan, at, message));
}

static bool text_token(struct fill *f, int32_t *to)
{
	const char *at = f->scan.at;
	struct io_span text = io_json_text(&f->scan, f->arena);
	if (!text.text)
		return false;
	if (!f->wanted->vocab)
		return scan_fault(&f->scan, at,
				  "a text where a number is needed, since there is no vocabulary");
	*to = io_token(f->text, f->wanted, text, at, f->diags);
	f->refused = *to < 0;
	return !f->refused;
}

/* Null stands for no value. */
static bool accept_null(struct fill *f, const char *at, bool needed)
{
	return !needed || scan_fault(&f->scan, at, "the model reads the input here: null is no value");
}

/* A node without a token is the model's to judge: its token is -1.  An integer has no such value. */
static bool fill_token(struct fill *f, bool needed)
{
	bool integer = f->wanted->integer;
	int32_t *to = (int32_t *)(void *)f->to + f->row;
	char c = scan_peek(&f->scan);
	const char *at = f->scan.at;
	if (c != 'n')
		return c == '"' ? text_token(f, to) : number_token(f, to);
	*to = integer ? 0 : -1;
	if (!scan_null(&f->scan))
		return scan_fault(&f->scan, at,
				  integer ? "a number is missing here" : "a token is missing here");
	return accept_null(f, at, needed && integer);
}

static bool fill_number(struct fill *f, float *to)
{
	struct number n;
	return scan_number(&f->scan, &n) &&
	       (number_float(&n, to) || scan_fault(&f->scan, n.text, "a number too large"));
}

/* Reads a list of `extent` values, which are lists if there are more axes; `elements` numbers in all. */
static bool fill_axis(struct fill *f, float *to, int64_t extent, int64_t elements, int axes)
{
	bool first = true;
	int64_t n = 0, inner = elements / extent;
	scan_peek(&f->scan);
	const char *at = f->scan.at;
	if (!scan_expect(&f->scan, '['))
		return false;
	for (; scan_more(&f->scan, ']', &first); n++) {
		if (n == extent)
			return scan_fault(&f->scan, at,
					  axes ? "more lists than the axis has" : "more numbers than the input has");
		if (!(axes ? fill_axis(f, to + n * inner, f->wanted->shape[f->wanted->rank - axes], inner, axes - 1)
			   : fill_number(f, &to[n])))
			return false;
	}
	return !f->scan.fault &&
	       (n == extent ||
		scan_fault(&f->scan, at, axes ? "fewer lists than the axis has" : "fewer numbers than the input has"));
}

/* Reads all numbers in one list, or nested lists, one level for each axis. */
static bool fill_list(struct fill *f, float *to)
{
	const struct io_wanted *w = f->wanted;
	struct scan ahead = f->scan;
	bool nested = w->rank > 1 && scan_expect(&ahead, '[') && scan_peek(&ahead) == '[';
	return nested ? fill_axis(f, to, w->shape[0], w->elements, w->rank - 1)
		      : fill_axis(f, to, w->elements, w->elements, 0);
}

static bool fill_vector(struct fill *f, bool needed)
{
	const struct io_wanted *w = f->wanted;
	float *to = (float *)(void *)f->to + f->row * w->elements;
	const char *at = f->scan.at;
	if (scan_null(&f->scan)) {
		memset(to, 0, w->elements * sizeof *to);
		return accept_null(f, at, needed);
	}
	if (scan_peek(&f->scan) == '[' || w->elements != 1)
		return fill_list(f, to);
	return fill_number(f, to);
}

static bool fill_row(struct fill *f, bool leaf)
{
	scan_peek(&f->scan);
	bool needed = io_is_read(f->wanted, leaf);
	bool ok = f->wanted->token ? fill_token(f, needed) : fill_vector(f, needed);
	f->row++;
	return ok;
}

/* Reads the list of a node, which has a value for each child. */
static bool fill_edges(struct fill *f, int32_t children)
{
	bool first = true;
	int32_t n = 0;
	scan_peek(&f->scan);
	const char *at = f->scan.at;
	if (!scan_expect(&f->scan, '['))
		return false;
	for (; scan_more(&f->scan, ']', &first); n++)
		if (n == children ? !scan_fault(&f->scan, at, "more values than the node has children")
				  : !fill_row(f, false))
			return false;
	return !f->scan.fault &&
	       (n == children || scan_fault(&f->scan, at, "fewer values than the node has children"));
}

static bool fill_nodes(struct fill *f, const struct io_structure *s)
{
	const char *at = f->scan.at;
	bool first = true;
	if (!scan_expect(&f->scan, '['))
		return false;
	for (; scan_more(&f->scan, ']', &first); f->node++) {
		if (f->node == s->nodes)
			return scan_fault(&f->scan, at, "more values than there are nodes");
		int32_t children = s->child_begin[f->node + 1] - s->child_begin[f->node];
		if (!(f->wanted->on_edges ? fill_edges(f, children) : fill_row(f, !children)))
			return false;
	}
	return !f->scan.fault &&
	       (f->node == s->nodes || scan_fault(&f->scan, at, "fewer values than there are nodes"));
}

bool io_json_fill(const struct io_text *t, const struct io_structure *s, const struct io_column *c,
		  const struct io_wanted *w, struct arena *arena, void *to, struct diags *diags)
{
	char message[200];
	struct fill f = {.text = t,
			 .wanted = w,
			 .arena = arena,
			 .diags = diags,
			 .scan = {.at = c->json.text, .end = c->json.text + c->json.length},
			 .to = to};
	if (fill_nodes(&f, s))
		return true;
	if (f.refused)
		return false;
	snprintf(message, sizeof message, "structure %lld, counted from 0, data '%.60s', node %lld: %s",
		 (long long)t->structures - 1, c->names, (long long)f.node, f.scan.fault);
	return io_refuse(
		   t, diags, DIAG_BAD_JSON, f.scan.fault_at,
		   w->on_edges
		       ? "an input on edges has a list for each node, a value in it for each child"
		       : "an input has a value for each node: a token, a number, a list of numbers, or null",
		   message) == IO_TREE;
}

/* --- words --- */

/* A text or a number from 0; other values are no words, since -1 is no token. */
static struct io_span word_of(struct scan *j, struct arena *arena)
{
	char c = scan_peek(j);
	const char *begin = j->at;
	if (c == '"')
		return io_json_text(j, arena);
	scan_skip(j);
	return (c >= '0' && c <= '9') ? (struct io_span){begin, j->at - begin} : (struct io_span){0};
}

void io_json_words(const struct io_structure *s, const struct io_column *c, struct arena *arena,
		   struct str *to)
{
	struct scan scan = {.at = c->json.text, .end = c->json.text + c->json.length};
	bool first = true, list = scan_take(&scan, '[');
	for (int32_t n = 0; n < s->nodes; n++)
		io_add_word(to, list && scan_more(&scan, ']', &first) ? word_of(&scan, arena)
								      : (struct io_span){0});
}
