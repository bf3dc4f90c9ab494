/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/json.h"

#include "base/vec.h"
#include "io/extent.h"

#include <stdio.h>

/* Where the text is with respect to the objects. */
enum { BEFORE, OBJECTS, LIST_BEGUN, LIST, CLOSED };

static const char form[] =
    "a structure is {\"children\": [[], [], [0, 1]], \"root\": 2, \"data\": {\"word\": [3, 4, null]}}";

static enum io_next refuse_object(const struct io_text *t, struct diags *diags, const char *p,
				  const char *message)
{
	char text[200];
	snprintf(text, sizeof text, "structure %lld, counted from 0: %s", (long long)t->structures - 1,
		 message);
	return io_refuse(t, diags, DIAG_BAD_JSON, p, form, text);
}

/* --- between objects --- */

/* Refuses the rest of the text. */
static enum io_next refuse_rest(struct io_text *t, struct diags *diags, const char *message)
{
	const char *p = t->at;
	t->structures++;
	t->state = CLOSED;
	refuse_object(t, diags, p, message);
	io_text_stop(t);
	return IO_FAILED;
}

static enum io_next refuse_empty(struct io_text *t, struct diags *diags)
{
	t->structures++;
	return io_refuse(t, diags, DIAG_EMPTY_INPUT, t->at, form, "the text holds no structure");
}

static bool take_byte(struct io_text *t, char c)
{
	t->at = io_skip_space(t->at, t->end);
	if (t->at == t->end || *t->at != c)
		return false;
	t->at++;
	return true;
}

/* Moves to the next object. */
static enum io_next find_object(struct io_text *t, struct diags *diags)
{
	if (t->state == BEFORE)
		t->state = take_byte(t, '[') ? LIST_BEGUN : OBJECTS;
	bool list = t->state == LIST_BEGUN || t->state == LIST;
	if (list && take_byte(t, ']')) {
		t->state = CLOSED;
		list = false;
	}
	if (t->state == LIST && !take_byte(t, ','))
		return refuse_rest(t, diags, "a ',' or ']' is missing here");
	t->state = t->state == LIST_BEGUN ? LIST : t->state;
	t->at = io_skip_space(t->at, t->end);
	if (t->at == t->end && !list)
		return t->structures ? IO_END : refuse_empty(t, diags);
	if (t->at == t->end || *t->at != '{' || t->state == CLOSED)
		return refuse_rest(t, diags,
				   t->at == t->end	? "the list is not closed"
				   : t->state == CLOSED ? "text behind the list"
							: "an object is missing here");
	return IO_TREE;
}

/* --- values --- */

struct io_span io_json_text(struct scan *s, struct arena *arena)
{
	struct span from;
	if (!scan_string(s, &from))
		return (struct io_span){0};
	if (!from.escaped)
		return (struct io_span){from.text, from.n};
	char *text = arena_take(arena, from.n, 1);
	return (struct io_span){text, span_copy(from, text)};
}

bool io_json_integer(struct scan *s, int32_t *to, const char *message)
{
	struct number n;
	double value;
	if (!scan_number(s, &n))
		return false;
	if (!number_double(&n, &value))
		return scan_fault(s, n.text, "a number too large");
	*to = value >= INT32_MIN && value <= INT32_MAX ? (int32_t)value : 0;
	return value == *to || scan_fault(s, n.text, message);
}

/* --- one object --- */

struct object {
	struct scan scan;
	struct arena *arena;
	struct io_structure *to;
	VEC(int32_t) begin, children;
	VEC(struct io_column) column;
	bool sequence; /* children may be left out */
	bool has_root, has_data;
	const char *root_at;
	int32_t root;
};

static bool read_child(struct object *o)
{
	int32_t child;
	if (!io_json_integer(&o->scan, &child, "a child is the number of a node, from 0"))
		return false;
	vec_push(o->arena, &o->children, child);
	return true;
}

static bool read_children(struct object *o)
{
	bool first = true;
	if (o->begin.n)
		return scan_fault(&o->scan, o->scan.at, "a second member 'children'");
	vec_push(o->arena, &o->begin, 0);
	if (!scan_expect(&o->scan, '['))
		return false;
	while (scan_more(&o->scan, ']', &first)) {
		bool first_child = true;
		if (!scan_expect(&o->scan, '['))
			return false;
		while (scan_more(&o->scan, ']', &first_child))
			if (!read_child(o))
				return false;
		vec_push(o->arena, &o->begin, (int32_t)o->children.n);
	}
	return !o->scan.fault;
}

static const char no_root[] = "the root is the number of a node, from 0";

static bool read_root(struct object *o)
{
	if (o->has_root)
		return scan_fault(&o->scan, o->scan.at, "a second member 'root'");
	o->has_root = true;
	o->root_at = o->scan.at;
	return io_json_integer(&o->scan, &o->root, no_root);
}

static bool read_text(struct object *o)
{
	struct io_span text = io_json_text(&o->scan, o->arena);
	if (text.text)
		o->to->sentence = arena_text(o->arena, text.text, text.length);
	return text.text;
}

static const char *name_of(struct span key, struct arena *arena)
{
	char *name = arena_take(arena, key.n + 1, 1);
	name[span_copy(key, name)] = 0;
	return name;
}

/* Keeps the text of the values: their type is known when they are filled in. */
static bool read_column(struct object *o)
{
	const char *at = o->scan.at;
	struct span key;
	if (!scan_string(&o->scan, &key) || !scan_expect(&o->scan, ':'))
		return false;
	for (size_t i = 0; i < o->column.n; i++)
		if (span_is(key, o->column.at[i].names))
			return scan_fault(&o->scan, at, "data by a name that has some already");
	scan_peek(&o->scan);
	const char *begin = o->scan.at;
	if (!scan_skip(&o->scan))
		return false;
	vec_push(o->arena, &o->column,
		 (struct io_column){.names = name_of(key, o->arena),
				    .json = {begin, o->scan.at - begin}});
	return true;
}

static bool read_data(struct object *o)
{
	bool first = true;
	if (o->has_data)
		return scan_fault(&o->scan, o->scan.at, "a second member 'data'");
	o->has_data = true;
	if (!scan_expect(&o->scan, '{'))
		return false;
	while (scan_more(&o->scan, '}', &first))
		if (!read_column(o))
			return false;
	return !o->scan.fault;
}

static bool read_member(struct object *o, struct span key)
{
	scan_peek(&o->scan);
	if (span_is(key, "children"))
		return read_children(o);
	if (span_is(key, "root"))
		return read_root(o);
	if (span_is(key, "data"))
		return read_data(o);
	if (span_is(key, "text"))
		return read_text(o);
	return scan_skip(&o->scan);
}

/* The first column that is a list; others are no values of nodes. */
static const struct io_column *find_list(const struct object *o)
{
	for (size_t i = 0; i < o->column.n; i++)
		if (*o->column.at[i].json.text == '[')
			return &o->column.at[i];
	return NULL;
}

/* Counts the values of a column: one for each node. */
static bool count_values(struct object *o, int32_t *n)
{
	const struct io_column *c = find_list(o);
	bool first = true;
	if (!c)
		return scan_fault(&o->scan, o->column.at[0].json.text,
				  "data of a sequence is a list with a value for each node");
	struct scan scan = {.at = c->json.text + 1, .end = c->json.text + c->json.length};
	for (*n = 0; scan_more(&scan, ']', &first) && *n < INT32_MAX && scan_skip(&scan);)
		++*n;
	return true;
}

/* Makes a sequence of as many nodes as there are values. */
static bool make_sequence(struct object *o, const char *begin)
{
	struct io_structure *s = o->to;
	const char *sentence = s->sentence;
	int32_t nodes;
	if (!o->sequence)
		return scan_fault(
		    &o->scan, begin,
		    "it has no member 'children', without which it is a sequence, and the model takes none");
	if (!o->column.n)
		return scan_fault(&o->scan, begin, "it has neither a member 'children' nor data");
	if (!count_values(o, &nodes))
		return false;
	if (!nodes)
		return scan_fault(&o->scan, begin, "it has no node");
	*s = io_sequence(nodes, o->arena);
	s->sentence = sentence;
	return true;
}

static bool take_children(struct object *o, const char *begin)
{
	if (o->begin.n == 1)
		return scan_fault(&o->scan, begin, "it has no node");
	o->to->nodes = (int32_t)o->begin.n - 1;
	o->to->root = o->to->nodes - 1;
	o->to->child_begin = o->begin.at;
	o->to->children = o->children.at;
	return true;
}

static bool finish_object(struct object *o, const char *begin)
{
	struct io_structure *s = o->to;
	if (!(o->begin.n ? take_children : make_sequence)(o, begin))
		return false;
	if (o->has_root && (o->root < 0 || o->root >= s->nodes))
		return scan_fault(&o->scan, o->root_at, no_root);
	if (o->has_root)
		s->root = o->root;
	s->column = o->column.at;
	s->columns = (int)o->column.n;
	return true;
}

static bool read_object(struct object *o)
{
	const char *begin = o->scan.at;
	struct span key;
	bool first = true;
	*o->to = (struct io_structure){.sentence = ""};
	if (!scan_expect(&o->scan, '{'))
		return false;
	while (scan_key(&o->scan, &key, &first))
		if (!read_member(o, key))
			return false;
	return !o->scan.fault && finish_object(o, begin);
}

enum io_next io_json_next(struct io_text *t, bool sequence, struct arena *arena, struct diags *diags,
			  struct io_structure *to)
{
	enum io_next next = find_object(t, diags);
	if (next != IO_TREE)
		return next;
	io_text_mark(t);
	const char *end = io_extent_end(&(struct io_extent){.format = IO_JSON}, t->at, t->end);
	if (!end)
		return refuse_rest(t, diags, "the object that begins here is not closed");
	struct object o = {.scan = {.at = t->at, .end = end}, .arena = arena, .to = to, .sequence = sequence};
	t->structures++;
	t->at = end;
	return read_object(&o) ? IO_TREE : refuse_object(t, diags, o.scan.fault_at, o.scan.fault);
}
