/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The sixteen mutants that the published implementation of PET (thu-pacman/PET) tests rule by rule, at small sizes: each is found by
 * the search, as a line of a schedule, or written as a second output and found equal to the first one, or wrong just where it is. */
#include "compile/program_passes.h"
#include "mutate/mutate.h"
#include "tests/models/agree.h"

enum { TEXT = 4000 };

struct rule {
	int number;
	const char *name, *text;
	const char *line; /* the mutant as the search prints it, without the numbers of values; NULL = it is the second output */
	int differ;	  /* else: elements of the second output in boxes that differ from the first one, all of which are wrong */
};

#define GROUPED "input x[4, 4, 4], r[6, 4, 4]\nparam V[4, 2, 3, 3], W[6, 2, 3, 3]\n"
#define ONE_IMAGE "input x[2, 4, 4], r[2, 4, 4]\nparam W0[2, 2, 3, 3], W1[3, 2, 3, 3], W2[2, 2, 3, 3], W3[4, 2, 3, 3]\n"

static const struct rule rules[] = {
    {1, "images one below the other", "input x[4, 2, 6, 4]\nparam W[3, 2, 3, 3]\noutput y = conv(x, W, pad=1)\n", "output.v part 0 4 before 2", 0},
    {2, "images side by side", "input x[2, 1, 14, 14]\nparam W[1, 1, 3, 3]\noutput y = conv(x, W, pad=1)\n", "output.v part 0 2 before 3", 0},
    {3, "channels one below the other, with kernels likewise",
     "input x[1, 2, 4, 4]\nparam W[1, 2, 3, 3]\n"
     "def along(r, V) = (s[b, k, i in 4, j in 4] = sum(V[k, u, v] * r[b, 2*i + u - 2, j + v - 1] for u, v); s)\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = along(reshape(transpose(x, 0, 2, 1, 3), 1, 8, 4), reshape(transpose(W, 0, 2, 1, 3), 1, 6, 3))\n",
     NULL, 0},
    {4, "channels side by side, with kernels likewise",
     "input x[1, 2, 4, 4]\nparam W[1, 2, 3, 3]\n"
     "def along(r, V) = (s[b, k, i in 4, j in 4] = sum(V[k, u, v] * r[b, i + u - 1, 2*j + v - 2] for u, v); s)\n"
     "output y = conv(x, W, pad=1)\n"
     "output z = along(reshape(transpose(x, 0, 2, 3, 1), 1, 4, 8), reshape(transpose(W, 0, 2, 3, 1), 1, 3, 6))\n",
     NULL, 0},
    {5, "a dilated convolution as a plain one", "input x[1, 8, 8]\nparam W[1, 1, 3, 3]\noutput y = conv(x, W, pad=2, dilation=2)\n",
     "output.v phase 1 2 batch phase 2 2 batch", 0},
    {6, "products of one matrix as a product of batches", "input x[8, 4]\nparam A[4, 8], B[4, 8]\noutput y = x @ A\noutput z = x @ B\n",
     "output.v stack output.v", 0},
    {7, "a transposed product", "input x[8, 4]\nparam A[4, 8]\noutput y = x @ A\noutput z = transpose(transpose(A) @ transpose(x))\n", NULL, 0},
    {8, "a convolution as one of groups",
     "input x[2, 4, 4]\nparam W[4, 2, 3, 3]\noutput y = conv(x, W, pad=1)\noutput z = conv(concat(x, x, axis=0), W, groups=2, pad=1)\n", NULL, 0},
    {9, "convolutions of one image as one",
     ONE_IMAGE "output y = conv(x, W0, pad=1)\noutput z = conv(x, W1, pad=1)\noutput u = conv(x, W2, pad=1)\noutput v = conv(r, W3, pad=1)\n",
     "output.v join 0 output.v output.v ", 0},
    {9, "with one of another image, which is wrong there",
     "input x[2, 4, 4], r[2, 4, 4]\nparam V[3, 2, 3, 3], W[2, 2, 3, 3]\n"
     "output y = concat(conv(x, V, pad=1), conv(r, W, pad=1), axis=0)\noutput z = conv(concat(x, r, axis=0)[0:2, :, :], concat(V, W, axis=0), pad=1)\n",
     NULL, 2 * 4 * 4},
    {10, "convolutions of groups as one, and apart again", GROUPED "output y = conv(x, V, groups=2, pad=1)\noutput z = conv(r, W, groups=3, pad=1)\n",
     "output.v join 0 output.v ", 0},
    {11, "convolutions of groups joined",
     GROUPED "output y = relu(concat(conv(x, V, groups=2, pad=1), conv(r, W, groups=3, pad=1), axis=0))\n", "output.v join 0 output.v ", 0},
    {12, "a flat kernel, upright",
     "input x[2, 4, 6]\nparam W[3, 2, 1, 3]\noutput y = conv(x, W)\n"
     "output z = transpose(conv(transpose(x, 0, 2, 1), transpose(W, 0, 1, 3, 2)), 0, 2, 1)\n",
     NULL, 0},
    {13, "flat kernels of several images as one convolution",
     "input x[2, 4, 6], r[2, 4, 6]\nparam V[3, 2, 1, 3], W[3, 2, 1, 3]\noutput y = conv(x, V)\noutput z = conv(r, W)\n", "output.v stack output.v ", 0},
    {13, "with an upright one",
     "input x[2, 6, 6], r[2, 6, 6]\nparam V[3, 2, 1, 3], W[3, 2, 3, 1]\n"
     "output y = concat(conv(x, V), transpose(conv(r, W), 0, 2, 1), axis=0)\n"
     "output z = conv(concat(x, transpose(r, 0, 2, 1), axis=0), concat(V, transpose(W, 0, 1, 3, 2), axis=0), groups=2)\n",
     NULL, 0},
    {14, "a convolution of groups in parts", "input x[4, 4, 4]\nparam W[4, 2, 3, 3]\noutput y = conv(x, W, groups=2, pad=1)\n",
     "output.v split 0 2 ", 0},
    {15, "a convolution of one element as a product",
     "input x[4, 2, 4, 6]\nparam W[3, 2, 1, 1]\noutput y = conv(x, W)\noutput z = reshape(reshape(W, 3, 2) @ reshape(x, 4, 2, 24), 4, 3, 4, 6)\n",
     NULL, 0},
    {16, "convolutions of groups of one image as one",
     "input x[4, 6, 6]\nparam V[4, 2, 3, 3], W[6, 2, 3, 3]\noutput y = conv(x, V, groups=2, pad=1)\noutput z = conv(x, W, groups=2, pad=1)\n",
     "output.v join 1 output.v ", 0},
    {16, "which mixes groups where kernels are only joined, and is wrong there",
     "input x[4, 4, 6]\nparam V[2, 2, 3, 3], W[2, 2, 3, 3]\n"
     "output y = concat(conv(x, V, groups=2, pad=1), conv(x, W, groups=2, pad=1), axis=0)\n"
     "output z = conv(x, concat(V, W, axis=0), groups=2, pad=1)\n",
     NULL, 4 * 4 * 6},
};

/* --- found --- */

/* Copies a line up to its comment without the numbers of values: output.v9 as output.v. */
static void drop_numbers(const char *line, char *to)
{
	bool number = false;
	for (const char *c = line; *c && *c != '#' && *c != '\n'; c++) {
		number = *c >= '0' && *c <= '9' && (number || (c > line + 1 && c[-1] == 'v' && c[-2] == '.'));
		if (!number)
			*to++ = *c;
	}
	*to = 0;
}

/* Whether there is such a line, and all elements of it are as those of the originals. */
static bool is_found(const char *text, const char *wanted)
{
	char shape[TEXT], line[TEXT];
	bool here = false;
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
		if (strncmp(line, "mutate ", 7) == 0) {
			drop_numbers(line + 7, shape);
			here = strncmp(shape, wanted, strlen(wanted)) == 0;
		}
		if (here && strstr(line, "elements computed: with the correction 0 differ"))
			return true;
	}
	return false;
}

static void test_found(struct test_model *t, const struct rule *r)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = "exact"};
	struct str text = str_in(&t->arena);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "checked-mutants", &text);
	print_diags(&t->diags);
	if (!tap_ok(ok && is_found(str_text(&text), r->line), "rule %d, %s: found, with the same bits", r->number, r->name))
		printf("# %s\n", ok ? str_text(&text) : "");
}

/* --- proved --- */

static void test_proved(struct test_model *t, const struct rule *r)
{
	struct sub_program p;
	struct mutate_comparison c;
	struct mutate_census census;
	sub_init(&p, &t->arena, "m");
	if (!tap_ok(sub_lower_model(&p, t->model, t->sizes, SUB_AT_MODEL, &t->diags), "rule %d, %s: lowered", r->number, r->name))
		return;
	const struct sub_body *b = &p.bodies.at[p.bodies.n - 1];
	sub_ref y = b->stores.at[0].value.value, z = b->stores.at[1].value.value;
	const struct mutate_form *forms = mutate_find_forms(&p);
	mutate_compare(&p, forms, y, z, &c);
	tap_ok(!c.refused, "compared");
	tap_is((long)c.wrong, r->differ, r->differ ? "wrong where it is" : "equal");
	tap_ok(mutate_compute_all(&p, forms, y, z, &c, &census) && census.missed == 0, "by all elements as well");
}

int main(void)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct test_model t = {0};
		char text[TEXT];
		int length = snprintf(text, sizeof text, "model m\nstructure none\n%s", rules[i].text);
		if (!tap_ok(load_text(&t, "m", text, (size_t)length, ""), "rule %d, %s: parsed", rules[i].number, rules[i].name))
			print_diags(&t.diags);
		else if (rules[i].line)
			test_found(&t, &rules[i]);
		else
			test_proved(&t, &rules[i]);
		free_model(&t);
	}
	return tap_done();
}
