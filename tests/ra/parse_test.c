/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Good models: read, printed, read again.  UPDATE_GOLDEN=1 writes the expected texts anew. */
#include "tests/ra/read.h"
#include "tests/ra/same.h"
#include "tests/ra/session.h"
#include "tests/tap.h"

static void show_diags(const struct session *s)
{
	for (size_t i = 0; i < s->diags.n; i++)
		printf("# %d:%d %s [%s]\n", s->diags.at[i].line, s->diags.at[i].column,
		       s->diags.at[i].message, diag_spelling(s->diags.at[i].id));
}

/* Prints, reads back, prints again. */
static void check_round_trip(struct session *s, const char *name)
{
	const char *first = session_print(s);
	struct session again;
	session_parse(&again, &allocator_default, first, strlen(first));
	show_diags(&again);
	if (tap_ok(again.model, "%s: the printed text can be read", name)) {
		tap_ok(strcmp(session_print(&again), first) == 0, "%s: printed again, it is the same text",
		       name);
		tap_ok(same_graph(s->model, again.model), "%s: read again, it is the same graph", name);
	}
	session_end(&again);
}

static bool check_golden(const char *path, const char *text)
{
	size_t length;
	char *golden = read_text(source_path(path), &length);
	bool same = golden && strcmp(golden, text) == 0;
	free(golden);
	if (same || !getenv("UPDATE_GOLDEN"))
		return same;
	FILE *f = fopen(source_path(path), "wb");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static void check_model(const char *name)
{
	char path[200];
	size_t length = 0;
	struct session s;
	snprintf(path, sizeof path, "tests/ra/good/%s.ra", name);
	char *text = read_text(source_path(path), &length);
	if (!tap_ok(text, "%s: the file is there", name))
		return;
	session_parse(&s, &allocator_default, text, length);
	free(text);
	show_diags(&s);
	if (tap_ok(s.model && !s.diags.n, "%s: is a model", name)) {
		snprintf(path, sizeof path, "tests/ra/good/%s.golden", name);
		tap_ok(check_golden(path, session_print(&s)), "%s: prints as expected", name);
		check_round_trip(&s, name);
	}
	session_end(&s);
}

/* --- models that are put together here --- */

#define HEAD                                                                                                 \
	"model m\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\nparam W[D, D]\nstate "     \
	"h[D]\n"                                                                                             \
	"leaf:\n h = E[word]\n"

static void check_text(const char *name, const char *text)
{
	struct session s;
	session_parse(&s, &allocator_default, text, strlen(text));
	show_diags(&s);
	if (tap_ok(s.model, "%s: is a model", name))
		check_round_trip(&s, name);
	session_end(&s);
}

/* A chain of locals that nests thousands of calls when each is written where it is used. */
static void check_deep_chain(bool inside)
{
	static char text[200000];
	int n = snprintf(text, sizeof text, HEAD "inner:\n h = %s",
			 inside ? "W @ sum((x0 = k.h; " : "W @ (x0 = left.h; ");
	for (int i = 1; i < 3000; i++)
		n += snprintf(text + n, sizeof text - n, "x%d = tanh(x%d); ", i, i - 1);
	snprintf(text + n, sizeof text - n, "x2999)%s\noutput o = h\n", inside ? " for k in children)" : "");
	check_text(inside ? "a deep chain inside of a sum over children" : "a deep chain", text);
}

static size_t count_nodes(const struct ra_model *m, enum ra_op op)
{
	size_t n = 0;
	for (size_t i = 1; i < m->nodes.n; i++)
		n += m->nodes.at[i].op == op;
	return n;
}

/* Whether the op occurs n times once the inner body is `inner`. */
static void check_count(const char *name, const char *inner, enum ra_op op, size_t n)
{
	char text[2000];
	struct session s;
	snprintf(text, sizeof text, HEAD "inner:\n %s\noutput o = h\n", inner);
	session_parse(&s, &allocator_default, text, strlen(text));
	show_diags(&s);
	tap_ok(s.model && count_nodes(s.model, op) == n, "%s", name);
	session_end(&s);
}

static void check_sharing(void)
{
	check_count("a local that is used twice is one node", "x = tanh(W @ left.h)\n h = x * x", RA_TANH, 1);
	check_count("an argument that is used twice is one node", "h = square(tanh(W @ left.h))", RA_TANH, 1);
	check_count("two calls make two nodes", "h = tanh(W @ left.h) * tanh(W @ left.h)", RA_TANH, 2);
	check_count("what no state needs is left out", "x = tanh(left.h)\n h = W @ left.h", RA_TANH, 0);
	check_count("one state of one child is one node", "h = W @ left.h + left.h + right.h", RA_CHILD, 2);
	check_count("a number becomes a state by adding zeros", "h = sum(W @ left.h)", RA_ZERO, 1);
	check_count("children have numbers as well as names", "h = W @ children[0].h + left.h", RA_CHILD, 1);
}

static void check_node_body(void)
{
	const char *text =
	    "model m\nstructure sequence\ninput x[D]\nparam W[D, D]\nstate h[D]\n"
	    "node:\n h = tanh(x + W @ previous.h + sum(k.h for k in children))\noutput o = h at root\n";
	struct session s;
	session_parse(&s, &allocator_default, text, strlen(text));
	tap_ok(s.model && count_nodes(s.model, RA_ZERO) == 1 && count_nodes(s.model, RA_CHILD_SUM) == 1 &&
		   count_nodes(s.model, RA_CHILD) == 2,
	       "a body for both cases has zeros for the children of a leaf");
	tap_ok(s.model && s.model->structure.children == 1 && s.model->outputs.at[0].at_root,
	       "a sequence has one child");
	session_end(&s);
}

static void check_precedence(void)
{
	check_text("operators bind as in Python", HEAD
		   "inner:\n h = -left.h * 2 - (right.h - -1 / 3 * W @ left.h) / (2 * 4)\n"
		   "output o = (h + 1) * (h - (h - 1)) / (h / h)\n");
	check_text("names that printing would choose may be taken",
		   "model m\nstructure tree(k, t1)\ninput x[D]\nparam t2[D]\nparam k1.h[D]\nstate h[D], k3\n"
		   "leaf:\n h = x\n k3 = 0\ninner:\n y = tanh(k.h)\n k3 = 1\n"
		   " h = y * y + t2 * sum(j.h * k1.h for j in children) + t1.h\noutput t4 = softmax(h)\n");
	check_text("a sum over children that another uses has a name", HEAD
		   "inner:\n s = sum(k.h for k in children)\n t = s + 1\n h = W @ sum(tanh(k.h * t) for k in "
		   "children) + max(s for k in children)\noutput o = h\n");
	check_text("what is not may be of a child by its number",
		   "model m\nstructure tree(2)\ninput x[D]\nstate h[D] : bool\nleaf:\n h = x > 0\ninner:\n"
		   " h = not children[0].h or children[1].h\noutput o = h\n");
	check_text("labels hold quotes, backslashes and UTF-8", HEAD
		   "inner:\n h = W @ left.h\noutput o = h[0:3] at root labels \"a \\\"b\\\"\", \"\\\\\", "
		   "\"\xc3\xa9\"\n");
	check_text("carriage returns and missing last newlines do no harm",
		   "model m\r\nstructure sequence\r\ninput x[D]\r\nstate h[D]\r\nnode:\r\n h = x +\t( # "
		   "half\r\n previous.h)\r\noutput o = h");
	check_text("symbols are numbered as the canonical text has them",
		   "model m\nstructure sequence\nstate h[B + A]\nparam W[A, A + B]\ninput x[A + 2*B - 1]\n"
		   "node:\n h = zeros(A + B) + sum(sum(W)) + sum(x)\noutput o = h\n");
}

static void check_recovery(void)
{
	const char *text = HEAD
	    "inner:\n a = tanh(left.h\n b = sigmoit(left.h)\n c = left.g\n d = W @ $\n h = a + b + c + d + W "
	    "@ x\n"
	    "output o = h + nothing\n";
	static const struct {
		enum diag_id id;
		int line;
	} expected[] = {
	    {DIAG_MODEL_SYNTAX, 11},  {DIAG_MODEL_CHARACTER, 13}, {DIAG_MODEL_FUNCTION, 11},
	    {DIAG_MODEL_UNKNOWN, 12}, {DIAG_MODEL_UNKNOWN, 14},	  {DIAG_MODEL_UNKNOWN, 15},
	};
	size_t n = sizeof expected / sizeof *expected;
	struct session s;
	session_parse(&s, &allocator_default, text, strlen(text));
	show_diags(&s);
	tap_ok(!s.model && s.diags.n == n, "independent faults are reported at once, and no others");
	for (size_t i = 0; i < n && i < s.diags.n; i++)
		tap_ok(s.diags.at[i].id == expected[i].id && s.diags.at[i].line == expected[i].line,
		       "line %d: %s", expected[i].line, diag_spelling(expected[i].id));
	session_end(&s);
}

static void check_numbers(void)
{
	check_text("numbers are written exactly", HEAD
		   "inner:\n h = W @ left.h * 0.1 + 1e-30 * 3.4028234e38 + 16777217 + 0.30000000000000004\n"
		   "output o = h\n");
}

int main(void)
{
	static const char *const models[] = {"products", "within", "treelstm", "childsum", "gru",   "lstm",	"dag",	   "matrix",
					     "nests",	 "tensor",   "edges", "updown", "down",	   "members",
					     "ones",	 "types",    "axes",  "graph",	"reshape", "gather", "among",  "arguments"};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		check_model(models[i]);
	check_deep_chain(false);
	check_deep_chain(true);
	check_sharing();
	check_node_body();
	check_precedence();
	check_recovery();
	check_numbers();
	return tap_done();
}
