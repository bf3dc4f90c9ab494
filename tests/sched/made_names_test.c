/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A model may name things as the compiler names what it makes.  Whatever a schedule's text names is one thing
 * all the same: no line is printed of two, and the text is read back as what it was printed of. */
#include "sched/sched.h"
#include "tests/models/helper.h"

#define CHILDREN "structure tree(*)\ninput x[E]\n"
#define TAGGED CHILDREN "input tag : token\n"
#define TWICE                                                                                                          \
	"traversal up\nstate h[D]\nleaf:\n h = W @ x\ninner:\n h = tanh(U @ sum(k.h for k in children))\n"             \
	"inner2:\n h = sigmoid(U @ sum(k.h for k in children))\n"                                                      \
	"traversal up\nstate g[D]\nleaf:\n g = h\ninner:\n g = tanh(U @ sum(k.g for k in children) + h)\n"             \
	"output y = g at every node\n"
#define FORGET "node:\n f = W @ x\n h = tanh(f + sum(sigmoid(f + U @ k.h) * k.h for k in children))\n"

/* `name`: of what the compiler makes; the model has something of this name already. */
static const struct {
	const char *what, *text, *sizes, *schedule, *name;
} models[] = {
    {"a case named as a body of the second traversal",
     "model m\n" TAGGED "param W[D, E], U[D, D]\ncase inner2 = inner when tag == 1\n" TWICE, "D=16 E=5", "",
     "tile inner2_1.0 "},
    {"a case named as what is hoisted",
     "model m\n" TAGGED
     "param W[D, E], U[D, D]\ncase hoist = leaf when tag == 1\nstate h[D]\nleaf:\n h = W @ x\n"
     "hoist:\n h = sigmoid(W @ x)\ninner:\n h = tanh(W @ x + U @ sum(k.h for k in children))\noutput y = h "
     "at every node\n",
     "D=16 E=5", "hoist all\n", "tile hoist_1.0 "},
    {"a case named as what is hoisted for inner nodes",
     "model m\n" TAGGED
     "param W[D, E], U[D, D], b[D]\ncase hoist.inner = leaf when tag == 1\nstate h[D]\nleaf:\n h = b\n"
     "hoist.inner:\n h = tanh(b)\ninner:\n h = tanh(W @ x + U @ sum(k.h for k in children))\n"
     "output y = h at every node\n",
     "D=16 E=5", "hoist all\n", "tile hoist.inner_1.0 "},
    {"a state named as one that is derived",
     "model m\n" CHILDREN "param W[D, E], U[D, D]\nstate h[D], refactor0[D]\n" FORGET
     " refactor0 = f\noutput y = h at every node\noutput z = refactor0 at every node\n",
     "D=19 E=5", "refactor all\n", "layout refactor0_1 "},
    {"a state named as a parameter that is folded",
     "model m\nstructure tree(*)\ninput x[D]\nedge rel : token\nparam U[R, D, D], W[D, D]\nstate "
     "fold0[D]\nleaf:\n"
     " fold0 = x\ninner:\n fold0 = tanh(sum((W @ U[k.rel]) @ k.fold0 for k in children))\n"
     "output y = fold0 at every node\n",
     "D=16 R=20", "", "tile fold0_1.0 "},
    {"a case named as a parameter that is folded",
     "model m\nstructure tree(*)\ninput w : token\nparam E[V, D], W[D, D], U[D, D]\ncase fold0 = leaf when w "
     "== 1\n"
     "state h[D]\nleaf:\n h = tanh(W @ E[w])\nfold0:\n h = sigmoid(W @ E[w])\n"
     "inner:\n h = tanh(W @ E[w] + U @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=16 V=20", "", "tile fold0_1.0 "},
    {"a case named as one that a schedule makes",
     "model m\n" CHILDREN
     "param W[D, E], U[D, D]\ncase inner.children2 = inner when children == 3\nstate h[D]\n"
     "leaf:\n h = W @ x\ninner:\n h = tanh(U @ sum(k.h for k in children))\n"
     "inner.children2:\n h = sigmoid(U @ sum(k.h for k in children))\noutput y = h at every node\n",
     "D=16 E=5", "specialize inner when children == 2\nspecialize leaf inner.children2\n",
     "tile inner.children2_1.0 "},
    {"a case named as the word for all cases",
     "model m\n" TAGGED
     "param W[D, E], U[D, D]\ncase all = leaf when tag == 1\nstate h[D]\nleaf:\n h = W @ x\n"
     "all:\n h = sigmoid(W @ x)\ninner:\n h = tanh(W @ x + U @ sum(k.h for k in children))\noutput y = h at "
     "every node\n",
     "D=16 E=5", "specialize case all\n", "specialize case all"},
    {"the leaves that no case takes, where the word is for all leaves",
     "model m\n" TAGGED
     "param W[D, E], U[D, D]\ncase all = leaf when tag == 1\nstate h[D]\nleaf:\n h = W @ x\n"
     "all:\n h = sigmoid(W @ x)\ninner:\n h = tanh(W @ x + U @ sum(k.h for k in children))\noutput y = h at "
     "every node\n",
     "D=16 E=5", "specialize case leaf\n", "specialize case leaf"},
};

/* The printed schedule, or NULL. */
static const char *schedule_of(struct test_model *t, const char *schedule)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct str s = str_in(&t->arena);
	return compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "sched", &s) ? str_text(&s) : NULL;
}

/* Whether a line begins as another: the directive and what it is of, the rest may differ. */
static bool begin_alike(const char *a, const char *b)
{
	size_t n = strcspn(a, " ");
	n += a[n] == ' ' ? 1 + strcspn(a + n + 1, " \n") : 0;
	return strncmp(a, b, n) == 0 && (b[n] == ' ' || b[n] == '\n');
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

/* Of the directives that name something. */
static const char *said_twice(const char *text)
{
	static const char *const named[] = {"tile ",  "parallel ", "layout ", "vectorize ",
					    "# leaf", "# inner",   "# hoist", "# fold"};
	for (const char *a = text; *a; a = next_line(a))
		for (size_t i = 0; i < sizeof named / sizeof *named; i++)
			for (const char *b = next_line(a); *b && strncmp(a, named[i], strlen(named[i])) == 0;
			     b = next_line(b))
				if (begin_alike(a, b))
					return a;
	return NULL;
}

static bool has_line(const char *text, const char *begin)
{
	for (; *text; text = next_line(text))
		if (strncmp(text, begin, strlen(begin)) == 0)
			return true;
	return false;
}

static bool is_clear(struct test_model *t, const char *schedule, const char *name)
{
	const char *text = schedule_of(t, schedule), *twice = text ? said_twice(text) : NULL;
	const char *again = text ? schedule_of(t, text) : NULL;
	bool ok = text && !twice && again && strcmp(again, text) == 0 && has_line(text, name);
	if (twice)
		printf("# twice: %.*s\n", (int)strcspn(twice, "\n"), twice);
	if (text && !ok)
		for (const char *line = text; *line; line = next_line(line))
			printf("# %.*s\n", (int)strcspn(line, "\n"), line);
	print_diags(&t->diags);
	return ok;
}

static void check_models(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		bool ok = load_text(&t, "m", models[i].text, strlen(models[i].text), models[i].sizes) &&
			  is_clear(&t, models[i].schedule, models[i].name);
		tap_ok(ok, "%s", models[i].what);
		free_model(&t);
	}
}

/* The number of a value is the program's, so a model without the name says it. */
static void check_value(void)
{
	static const char text[] =
	    "model m\nstructure tree(*)\nparam U[D, D], b[D, 2]\nstate %s[D, 2]\nleaf:\n %s = b\ninner:\n"
	    " %s = tanh(U @ tanh(U @ sum(k.%s for k in children)))\noutput y = %s at every node\n";
	char first[1000], second[1000], name[40] = "", line[60];
	struct test_model t = {0}, again = {0};
	snprintf(first, sizeof first, text, "h", "h", "h", "h", "h");
	bool ok = load_text(&t, "m", first, strlen(first), "D=16");
	const char *printed = ok ? schedule_of(&t, "") : NULL;
	for (; printed && *printed; printed = next_line(printed))
		if (sscanf(printed, "layout inner.v%39[0-9]", name) == 1)
			break;
	snprintf(line, sizeof line, "layout inner.v%s_1 ", name);
	char state[60];
	snprintf(state, sizeof state, "inner.v%s", name);
	snprintf(second, sizeof second, text, state, state, state, state, state);
	ok = *name && load_text(&again, "m", second, strlen(second), "D=16") && is_clear(&again, "", line);
	tap_ok(ok, "a state named as a value that is stored: %s", state);
	free_model(&t);
	free_model(&again);
}

int main(void)
{
	check_models();
	check_value();
	return tap_done();
}
