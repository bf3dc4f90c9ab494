/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random linear programs: their boxes mean what is said of them, and what a comparison with a mutant calls equal is equal
 * at every position, by elements that are all computed here.
 *
 *     random_linear_test [FIRST COUNT]     seeds FIRST .. FIRST+COUNT-1; ESPALIER_SEEDS = another COUNT */
#include "mutate/mutate.h"
#include "tests/mutate/linear.h"
#include "tests/sample.h"
#include "tests/tap.h"

enum { SEEDS = 2000 / SAMPLE };

static long checked_lines, compared, equal, partly, refused;

static void print_program(const struct sub_program *p)
{
	for (uint32_t r = 1; r < p->values.n; r++) {
		const struct sub_value *v = &p->values.at[r];
		struct str s = str_in(p->arena);
		for (int i = 0; i < v->vars; i++)
			str_printf(&s, "%s%s:%d", i ? "," : "[", p->vars.at[v->var[i]].name, (int)extent_of(p, v->var[i]));
		str_printf(&s, "%s %s", v->vars ? "]" : "", sub_spelling(v->op));
		for (int a = 0; a < v->args; a++)
			str_printf(&s, " %%%u", v->arg[a].value.i);
		if (v->op == SUB_ASSIGN)
			sub_print_maps(p, v, &s), str_printf(&s, " fill %g", v->fill);
		printf("#   %%%u%s\n", r, str_text(&s));
	}
}

/* --- boxes mean what is said of them --- */

static uint64_t power_of(uint64_t base, int64_t exponent)
{
	uint64_t n = 1, e = (uint64_t)(exponent + (exponent < 0 ? (int64_t)SUB_FIELD_PRIME - 1 : 0));
	for (; e; e >>= 1, base = base * base % SUB_FIELD_PRIME)
		n = e & 1 ? n * base % SUB_FIELD_PRIME : n;
	return n;
}

/* By what an element of a leaf is multiplied when its index along a dimension rises by one. */
static uint64_t ratio_of(sub_ref leaf, int dim, uint64_t seed)
{
	return 2 + mix_bits(seed * 64 + leaf.i * 17 + dim) % (SUB_FIELD_PRIME - 2);
}

/* An element that is multiplied by the same number at every step: so is a term, by one that its motion says. */
static uint64_t draw_powers(const struct sub_program *p, sub_ref leaf, const int64_t *index, uint64_t seed)
{
	uint64_t x = 3 + leaf.i;
	for (int i = 0; i < sub_at(p, leaf)->vars; i++)
		x = x * power_of(ratio_of(leaf, i, seed), index[i]) % SUB_FIELD_PRIME;
	return x;
}

/* The ratios of the terms of a value along one variable, each once. */
static int list_ratios(const struct sub_program *p, const struct mutate_form *form, int vars, int along, uint64_t *ratio)
{
	int n = 0;
	for (int m = 0; m < form->motions; m++) {
		uint64_t x = 1;
		int k = 0;
		for (int f = 0; f < form->motion[m].factors; f++) {
			const struct mutate_factor *factor = &form->motion[m].factor[f];
			for (int d = 0; d < sub_at(p, factor->leaf)->vars; d++)
				x = x * power_of(ratio_of(factor->leaf, d, 1), factor->step[d * vars + along]) % SUB_FIELD_PRIME;
		}
		while (k < n && ratio[k] != x)
			k++;
		ratio[k] = x;
		n += k == n;
	}
	return n;
}

/* Whether elements of neighbours obey the recurrence whose roots are the ratios: their sum of geometric sequences does. */
static bool obeys(const uint64_t *element, int64_t stride, const uint64_t *ratio, int n)
{
	uint64_t x[MUTATE_MAX_MOTIONS + 1];
	for (int i = 0; i <= n; i++)
		x[i] = element[i * stride];
	for (int r = 0; r < n; r++)
		for (int i = 0; i < n - r; i++)
			x[i] = (x[i + 1] + (SUB_FIELD_PRIME - ratio[r]) * x[i]) % SUB_FIELD_PRIME;
	return x[0] == 0;
}

/* Whether the interval of a position along a variable has n further ones. */
static bool goes_on(const struct sub_program *p, const struct mutate_form *form, const struct sub_value *v, int along,
		    int64_t at, int n)
{
	int64_t end = extent_of(p, v->var[along]);
	for (size_t c = form->cuts[along].n; c-- > 0;)
		if (form->cuts[along].at[c] > at)
			end = form->cuts[along].at[c];
	return at + n < end;
}

static bool check_line(const struct elements *e, const struct mutate_form *form, sub_ref r, int along)
{
	const struct sub_value *v = sub_at(e->p, r);
	uint64_t ratio[MUTATE_MAX_MOTIONS];
	int n = list_ratios(e->p, form, v->vars, along, ratio);
	int64_t index[SUB_MAX_VARS] = {0}, stride = 1, at = 0;
	for (int i = along + 1; i < v->vars; i++)
		stride *= extent_of(e->p, v->var[i]);
	do {
		if (goes_on(e->p, form, v, along, index[along], n)) {
			checked_lines++;
			if (!obeys(&e->of[r.i][at], stride, ratio, n))
				return false;
		}
		at++;
	} while (step_index(e->p, v, index));
	return true;
}

/* The values of f32 that comparisons suppose nothing of. */
static const bool *list_leaves(const struct linear *l, const struct mutate_form *forms)
{
	bool *leaf = ARENA_ARRAY(l->p.arena, bool, l->p.values.n);
	for (uint32_t r = 1; r < l->p.values.n; r++)
		leaf[r] = forms[r].kind == MUTATE_LEAF && l->p.values.at[r].dtype == DTYPE_F32;
	return leaf;
}

static bool check_forms(struct linear *l)
{
	const struct mutate_form *forms = mutate_find_forms(&l->p);
	struct elements e = {.p = &l->p, .seed = 1, .draw = draw_powers, .leaf = list_leaves(l, forms)};
	compute_all(&e, &l->arena);
	for (uint32_t r = 1; r < l->p.values.n; r++)
		for (int i = 0; forms[r].kind == MUTATE_LINEAR && i < l->p.values.at[r].vars; i++)
			if (!check_line(&e, &forms[r], (sub_ref){r}, i)) {
				printf("# %%%u moves otherwise along its variable %d\n", r, i);
				return false;
			}
	return true;
}

/* --- comparisons --- */

static uint64_t draw_random(const struct sub_program *p, sub_ref leaf, const int64_t *index, uint64_t seed)
{
	uint64_t x = mix_bits(seed + leaf.i * 1000003u);
	for (int i = 0; i < sub_at(p, leaf)->vars; i++)
		x = mix_bits(x + 0x9e3779b97f4a7c15u * (uint64_t)(index[i] + 1));
	return x % SUB_FIELD_PRIME;
}

static bool is_within(const struct mutate_box *box, int vars, const int64_t *index)
{
	for (int i = 0; i < vars; i++)
		if (index[i] < box->first[i] || index[i] >= box->end[i])
			return false;
	return true;
}

/* Elements that differ lie in boxes that are said to, and each of these has one. */
static bool check_positions(const struct linear *l, const struct mutate_comparison *c, const struct elements *e, sub_ref a,
			    sub_ref b)
{
	const struct sub_value *v = sub_at(&l->p, a);
	bool *found = ARENA_ARRAY(l->p.arena, bool, c->differ.n + 1);
	int64_t index[SUB_MAX_VARS] = {0}, at = 0;
	do {
		bool differs = e[0].of[a.i][at] != e[0].of[b.i][at] || e[1].of[a.i][at] != e[1].of[b.i][at], within = false;
		for (size_t i = 0; i < c->differ.n; i++)
			if (is_within(&c->differ.at[i], c->vars, index))
				within = true, found[i] |= differs;
		if (differs && !within) {
			printf("# an element that differs is called equal: at");
			for (int i = 0; i < v->vars; i++)
				printf(" %d", (int)index[i]);
			printf("; %ld boxes differ, %d classes\n", (long)c->differ.n, c->classes);
			return false;
		}
		at++;
	} while (step_index(&l->p, v, index));
	for (size_t i = 0; i < c->differ.n; i++)
		if (!found[i])
			return printf("# a box that is equal is called different\n"), false;
	return true;
}

static bool check_mutant(struct linear *l, sub_ref original, sub_ref mutant)
{
	const struct mutate_form *forms = mutate_find_forms(&l->p);
	const bool *leaf = list_leaves(l, forms);
	struct elements e[2] = {{.p = &l->p, .seed = 1, .draw = draw_random, .leaf = leaf},
				{.p = &l->p, .seed = 2, .draw = draw_random, .leaf = leaf}};
	struct mutate_comparison c;
	mutate_compare(&l->p, forms, original, mutant, &c);
	if (c.refused) {
		refused++;
		return true;
	}
	compute_all(&e[0], &l->arena);
	compute_all(&e[1], &l->arena);
	compared++;
	equal += !c.differ.n;
	partly += c.differ.n && c.wrong < c.elements;
	return check_positions(l, &c, e, original, mutant);
}

static bool check_seed(uint64_t seed)
{
	struct linear l;
	open_linear(&l, seed);
	if (setjmp(l.jump))
		abort();
	sub_ref original, mutant = {0};
	if (seed % 16)
		make_program(&l), original = l.pool[l.n - 1];
	else
		make_crossings(&l, &original, &mutant);
	for (int attempt = 0; attempt < 4 && (!mutant.i || mutant.i == original.i); attempt++)
		mutant = make_mutant(&l, original);
	bool ok = check_forms(&l) && (!mutant.i || mutant.i == original.i || check_mutant(&l, original, mutant));
	if (!ok) {
		printf("# seed %llu: %%%u and %%%u\n", (unsigned long long)seed, original.i, mutant.i);
		print_program(&l.p);
	}
	close_linear(&l);
	return ok;
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	long count = argc > 2 ? atol(argv[2]) : seeds ? atol(seeds) : SEEDS, failed = 0;
	for (long i = 0; i < count && failed < 3; i++)
		failed += !check_seed(first + (uint64_t)i);
	tap_ok(!failed, "boxes and comparisons of %ld random linear programs", count);
	printf("# %ld runs of elements, %ld mutants compared: %ld equal, %ld in part; %ld refused\n", checked_lines, compared, equal, partly, refused);
	tap_ok(checked_lines > count && partly > count / 40 && equal > count / 20, "the sample has what it is for");
	return tap_done();
}
