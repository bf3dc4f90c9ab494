/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reference outputs as text, one output for all.
 *
 * Of nodes:  tree INDEX NODES CLASSES ROOT-NODE ROOT-CLASS
 *            CLASSES numbers            NODES lines, a row for each node in the order of their numbers
 * Of roots:  LABEL CLASS numbers...     a line for each tree
 *
 * Trees are in the order of the input, from its first on. */
#include "reference/reference.h"

#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct text {
	struct reference *reference;
	char *line;
	size_t capacity, number; /* of the line, from 1 */
	const char *p;		 /* the rest of it */
	double *values;
	size_t n, value_capacity; /* values */
	size_t columns, rows; /* columns: of every row, 0 = not known yet */
	size_t tree_capacity;
};

__attribute__((format(printf, 2, 3))) static bool refuse_line(const struct text *x, const char *format, ...)
{
	char what[256];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	reference_clean(what);
	return complain("%s:%zu: %s", x->reference->path, x->number, what);
}
#define refuse_line(...) answer_false(refuse_line(__VA_ARGS__))

/* --- lines --- */

/* Reads the next line that is not blank; *more is false at the end of the file. */
static bool next_line(struct text *x, bool *more)
{
	ssize_t length;
	errno = 0;
	do {
		length = getline(&x->line, &x->capacity, x->reference->file);
		x->number++;
		if (length >= 0 && strlen(x->line) != (size_t)length)
			return refuse_line(x, "holds a zero byte, which no text does");
	} while (length >= 0 && !x->line[strspn(x->line, " \t\r\n")]);
	x->p = x->line;
	*more = length >= 0;
	return *more || feof(x->reference->file) ||
	       complain("cannot read '%s': %s", x->reference->path, strerror(errno ? errno : ENOMEM));
}

static bool at_end(struct text *x)
{
	x->p += strspn(x->p, " \t\r\n");
	return !*x->p;
}

/* A whole number from 0 to `most`. */
static bool take_count(struct text *x, const char *what, long most, long *to)
{
	char *end;
	errno = 0;
	*to = strtol(x->p, &end, 10);
	if (end == x->p || errno || *to < 0 || *to > most)
		return refuse_line(x, "expected %s, a number from 0 to %ld, at '%.20s'", what, most,
				   x->p + strspn(x->p, " \t"));
	x->p = end;
	return true;
}

static bool add_value(struct text *x, double value)
{
	if (x->n == x->value_capacity) {
		size_t capacity = x->value_capacity ? 2 * x->value_capacity : 1024;
		double *grown = capacity <= SIZE_MAX / sizeof *grown
				    ? realloc(x->values, capacity * sizeof *grown)
				    : NULL;
		if (!grown)
			return refuse_line(x, "no memory for more values");
		x->values = grown;
		x->value_capacity = capacity;
	}
	x->values[x->n++] = value;
	return true;
}

/* Reads the rest of the line as a row, with as many values as the other rows. */
static bool take_row(struct text *x)
{
	size_t before = x->n;
	while (!at_end(x)) {
		char *end;
		double value = strtod(x->p, &end);
		if (end == x->p)
			return refuse_line(x, "expected a number at '%.20s'", x->p);
		if (!add_value(x, value))
			return false;
		x->p = end;
	}
	if (!x->columns)
		x->columns = x->n - before;
	x->rows++;
	return (x->columns && x->n - before == x->columns) ||
	       refuse_line(x, "has %zu values where %zu are expected", x->n - before, x->columns);
}

/* --- trees --- */

static bool reserve_trees(struct text *x)
{
	struct reference *r = x->reference;
	if (r->trees + 1 < x->tree_capacity)
		return true;
	size_t capacity = x->tree_capacity ? 2 * x->tree_capacity : 256;
	int *class = realloc(r->class, capacity * sizeof *class);
	if (class)
		r->class = class;
	long *root = class ? realloc(r->root, capacity * sizeof *root) : NULL;
	if (root)
		r->root = root;
	uint64_t *begin = root ? realloc(r->begin, capacity * sizeof *begin) : NULL;
	if (!begin)
		return refuse_line(x, "no memory for more trees");
	r->begin = begin;
	x->tree_capacity = capacity;
	return true;
}

static bool add_tree(struct text *x, long root, long class)
{
	struct reference *r = x->reference;
	if (!reserve_trees(x))
		return false;
	r->root[r->trees] = root;
	r->class[r->trees++] = (int)class;
	r->begin[0] = 0;
	r->begin[r->trees] = x->rows;
	return true;
}

enum { MANY = 0x7fffffff };

struct tree {
	long index, nodes, classes, root, class;
};

static bool take_header(struct text *x, struct tree *t)
{
	x->p = x->line + strspn(x->line, " \t");
	if (strncmp(x->p, "tree ", 5) != 0)
		return refuse_line(x, "expected a line 'tree INDEX NODES CLASSES ROOT-NODE ROOT-CLASS'");
	x->p += 5;
	if (!take_count(x, "the number of the tree", MANY, &t->index) ||
	    !take_count(x, "a number of nodes", MANY, &t->nodes) ||
	    !take_count(x, "a number of classes", MANY, &t->classes) ||
	    !(t->classes || refuse_line(x, "a tree without classes")) ||
	    !take_count(x, "the root's number", MANY, &t->root) ||
	    !take_count(x, "the root's class", t->classes - 1, &t->class))
		return false;
	if (!at_end(x))
		return refuse_line(x, "goes on after the root's class with '%.20s'", x->p);
	if ((size_t)t->index != x->reference->trees)
		return refuse_line(x,
				   "tree %ld follows after %zu trees; they must be in the order of the input",
				   t->index, x->reference->trees);
	if (t->root >= t->nodes)
		return refuse_line(x,
				   "node %ld is the root of a tree of %ld nodes, which are numbered from 0",
				   t->root, t->nodes);
	if (x->columns && (size_t)t->classes != x->columns)
		return refuse_line(x, "tree %ld has %ld classes, the trees before have %zu", t->index,
				   t->classes, x->columns);
	x->columns = t->classes;
	return true;
}

static bool take_tree(struct text *x)
{
	struct tree t;
	bool more;
	if (!take_header(x, &t))
		return false;
	for (long node = 0; node < t.nodes; node++) {
		if (!next_line(x, &more))
			return false;
		if (!more)
			return refuse_line(x, "the file ends after %ld of the %ld nodes of tree %ld", node,
					   t.nodes, t.index);
		if (!take_row(x))
			return false;
	}
	return add_tree(x, t.root, t.class);
}

static bool take_root(struct text *x)
{
	long label, class;
	if (!take_count(x, "a label", MANY, &label) || !take_count(x, "a class", MANY, &class) ||
	    !take_row(x))
		return false;
	/* open_text frees the line: NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	if ((size_t) class >= x->columns)
		return refuse_line(x, "class %ld is none of the %zu", class, x->columns);
	return add_tree(x, 0, class);
}

/* --- files --- */

static bool read_all(struct text *x, bool (*take)(struct text *))
{
	bool more;
	do {
		if (!next_line(x, &more))
			return false;
		if (more && !take(x))
			return false;
	} while (more);
	return x->rows || complain("%s: holds no values", x->reference->path);
}

static bool open_text(struct reference *r, bool (*take)(struct text *))
{
	struct text x = {.reference = r};
	bool ok = read_all(&x, take);
	struct reference_tensor *t = ok ? reference_add(r, "") : NULL;
	free(x.line);
	if (!t) {
		free(x.values);
		return false;
	}
	t->type = REFERENCE_F64;
	t->values = x.values;
	return reference_add_dimension(t, x.rows) && reference_add_dimension(t, x.columns);
}

static bool open_nodes(struct reference *r)
{
	return open_text(r, take_tree);
}

/* A text of roots has no nodes, so `begin` and `root` are dropped. */
static bool open_roots(struct reference *r)
{
	bool ok = open_text(r, take_root);
	free(r->begin);
	free(r->root);
	r->begin = NULL;
	r->root = NULL;
	return ok;
}

static bool begins_nodes(const unsigned char *bytes)
{
	return memcmp(bytes, "tree ", 5) == 0;
}

static bool begins_roots(const unsigned char *bytes)
{
	return *bytes >= '0' && *bytes <= '9' && bytes[1];
}

/* Opening the file has read all values, so there is nothing to load. */
static bool refuse_load(struct reference *r, const struct reference_tensor *t, void *to, size_t bytes)
{
	(void)to;
	(void)bytes;
	return complain("%s: '%s' has no values", r->path, t->name);
}

const struct reference_form reference_nodes = {"text of nodes", true, begins_nodes, open_nodes, refuse_load};
const struct reference_form reference_roots = {"text of roots", true, begins_roots, open_roots, refuse_load};
