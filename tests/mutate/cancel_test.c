/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reorganisations of two mutants cancel on both sides of elementwise operators: how many indices are digits
 * of others before and after the pass, where they must stay, and that all back ends compute the bits of the
 * program without mutants. */
#include "tests/backends.h"
#include "tests/models/agree.h"

#define LAYERS                                                                                               \
	"model m\nstructure none\ninput x[4, 6, 8]\nparam A[4, 4, 3, 3], a[4], B[4, 4, 3, 3], b[4]\n"        \
	"def first(r) = conv(r, A, bias=a, pad=2, dilation=2)\n"                                             \
	"def second(r) = conv(r, B, bias=b, pad=2, dilation=2)\n"
#define UPRIGHT                                                                                              \
	"model m\nstructure none\ninput x[2, 4, 8, 8]\nparam A[4, 4, 3, 1], a[4], B[4, 4, 3, 1], b[4]\n"

static const struct layers {
	const char *name, *text;
	const char *change[3]; /* of the sums in their order */
	int before, after;     /* indices that are digits */
} layers[] = {
    {"an activation between",
     LAYERS "output y = second(relu(first(x)))\n",
     {"phase 1 2 batch phase 2 2 batch", "phase 1 2 batch phase 2 2 batch"},
     8,
     4},
    {"a function that is expensive between",
     LAYERS "output y = second(tanh(first(x)))\n",
     {"phase 1 2 batch", "phase 1 2 batch"},
     4,
     2},
    {"nothing but a bias between",
     LAYERS "output y = second(first(x))\n",
     {"phase 2 2 batch", "phase 2 2 batch"},
     4,
     2},
    {"another value added, of an input",
     LAYERS "output y = second(relu(first(x) + x))\n",
     {"phase 1 2 batch", "phase 1 2 batch"},
     4,
     2},
    {"another value added, which the first reads",
     LAYERS "def between(r) = relu(second(r) + r)\noutput y = second(between(relu(first(x))))\n",
     {"phase 1 2 batch", "phase 1 2 batch", "phase 1 2 batch"},
     6,
     2},
    {"phases of rows in one, of both in the other",
     LAYERS "output y = second(relu(first(x)))\n",
     {"phase 1 2 batch", "phase 1 2 batch phase 2 2 batch"},
     6,
     4},
    {"phases of both in one, of rows in the other",
     LAYERS "output y = second(relu(first(x)))\n",
     {"phase 1 2 batch phase 2 2 batch", "phase 1 2 batch"},
     6,
     4},
    {"halves of the width",
     UPRIGHT "output y = relu(conv(relu(conv(x, A, bias=a)), B, bias=b))\n",
     {"part 3 2 before 2", "part 3 2 before 2"},
     8,
     6},
    {"what is between is a result as well",
     LAYERS "output y = second(relu(first(x)))\noutput z = relu(first(x))\n",
     {"phase 1 2 batch", "phase 1 2 batch"},
     4,
     4},
    {"phases of two and of three",
     "model m\nstructure none\ninput x[4, 6, 8]\nparam A[4, 4, 3, 3], a[4], B[4, 4, 3, 3]\n"
     "output y = conv(relu(conv(x, A, bias=a, pad=2, dilation=2)), B, pad=3, dilation=3)\n",
     {"phase 1 2 batch", "phase 1 3 batch"},
     4,
     4},
    {"a border around phases, which a bias must not reach",
     "model m\nstructure none\ninput x[4, 5, 8]\nparam A[4, 4, 3, 3], a[4], B[4, 4, 3, 3], b[4]\n"
     "output y = conv(relu(conv(x, A, bias=a, pad=2, dilation=2)), B, bias=b, pad=2, dilation=2)\n",
     {"phase 1 2 batch", "phase 1 2 batch"},
     4,
     4},
    {"a value that is read in two orders",
     "model m\nstructure none\ninput x[4, 6, 6]\nparam A[4, 4, 3, 3], a[4], B[4, 4, 3, 3], b[4]\n"
     "def first(r) = relu(conv(r, A, bias=a, pad=2, dilation=2))\n"
     "def turned(r) = (o[c, i in 6, j in 6] = r[c, j, i]; o)\n"
     "output y = conv(first(x) + turned(first(x)), B, bias=b, pad=2, dilation=2)\n",
     {"phase 1 2 batch", "phase 1 2 batch"},
     4,
     4},
    {"a value that is also read with a fill, in its own order",
     LAYERS "def between(r) = (o[c, i in 6, j in 8] = r[c, i - 1, j] else 0.25; r + o)\n"
	    "output y = second(between(tanh(first(x))))\n",
     {"phase 2 2 batch", "phase 2 2 batch"},
     4,
     4},
    {"a value added that is read with a fill",
     LAYERS "def before(r) = (o[c, i in 6, j in 8] = r[c, i - 1, j] else 0.25; o)\n"
	    "output y = second(relu(first(x) + before(x)))\n",
     {"phase 2 2 batch", "phase 2 2 batch"},
     4,
     2},
    {"only one of two",
     LAYERS "output y = second(relu(first(x)))\n", {"phase 1 2 batch", NULL}, 2, 2},
};

static struct option_texts options_of(const char *backend, const char *schedule)
{
	return (struct option_texts){
	    .backend = backend, .target = "avx2", .math = "reassociate", .schedule = schedule};
}

static bool dump(struct test_model *t, const char *schedule, const char *stage, struct str *s)
{
	struct option_texts o = options_of("interpreter", schedule);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, s);
	print_diags(&t->diags);
	return ok;
}

/* Writes the line of each sum that is changed, under its name in the program before mutants. */
static int write_schedule(struct test_model *t, const struct layers *l, struct str *lines)
{
	struct str text = str_in(&t->arena);
	int n = 0, sums = 0;
	if (!dump(t, NULL, "group", &text))
		return 0;
	for (const char *line = strstr(str_text(&text), "  %"); line && n < 3;
	     line = strstr(line + 1, "  %")) {
		const char *sum = strstr(line, "= accumulate_");
		if (!sum || sum > line + strcspn(line, "\n"))
			continue;
		if (l->change[n] && ++sums)
			str_printf(lines, "mutate output.v%d %s\n", atoi(line + 3), l->change[n]);
		n++;
	}
	return sums;
}

/* Indices of the form x/d, x%m and x/d%m, in a program of one body. */
static int count_digits(struct test_model *t, const char *schedule, const char *stage)
{
	struct str text = str_in(&t->arena);
	int n = 0;
	if (!dump(t, schedule, stage, &text))
		return -1;
	for (const char *c = strstr(str_text(&text), "\n  %"); c && *c; c++) {
		size_t length = strcspn(c, ",]\n ");
		if (*c == '[' || *c == ',')
			length = strcspn(c + 1, ",]\n ") + 1;
		else
			continue;
		n += memchr(c, '/', length) || memchr(c + 1, '%', length - 1);
	}
	return n;
}

static void test_bits(const struct layers *l, struct test_model *t, const char *schedule)
{
	static const char *const backends[] = {"interpreter", "llvm", "gccjit"};
	struct test_run base = {0};
	struct setting s = {.model = t};
	struct option_texts plain = options_of("interpreter", NULL);
	bool ok = start_run(&base, t, &plain);
	if (ok)
		make_forest(&s.forest, &base.image, 3, 4);
	if (!tap_ok(ok && begin_setting(&s, &base), "%s: run", l->name))
		return;
	for (int i = 0; i < 3; i++) {
		struct option_texts o = options_of(backends[i], schedule);
		if (i && !has_backend(backends[i]))
			tap_skip("the back end is not built", "%s: %s", l->name, backends[i]);
		else
			tap_ok(agrees(&s, &o), "%s: the same bits by %s", l->name, backends[i]);
	}
	end_run(&base);
	end_setting(&s);
}

static void test_layers(const struct layers *l)
{
	struct test_model t = {0};
	struct str lines = str_in(&t.arena);
	int changed = !!l->change[0] + !!l->change[1] + !!l->change[2];
	bool ok = load_text(&t, "m", l->text, strlen(l->text), "");
	print_diags(&t.diags);
	if (tap_ok(ok && write_schedule(&t, l, &lines) == changed, "%s: loaded", l->name)) {
		tap_is(count_digits(&t, str_text(&lines), "mutate"), l->before,
		       "digits of indices before the pass");
		tap_is(count_digits(&t, str_text(&lines), "cancel"), l->after, "and behind it");
		test_bits(l, &t, str_text(&lines));
	}
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
		test_layers(&layers[i]);
	return tap_done();
}
