/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Mutants that are generated: with its correction each is the original at every element, by another evaluation than the one
 * that proved it; the search finds those that are known; what is chosen by a schedule gives the same bits.
 *
 *     generated_test [FIRST COUNT]     seeds of random convolutions; ESPALIER_SEEDS = another COUNT */
#include "compile/program_passes.h"
#include "mutate/mutant_lines.h"
#include "tests/mutate/known_lines.h"
#include "tests/sample.h"

enum { ALL_SEEDS = 60, SEEDS = ALL_SEEDS / SAMPLE, LAYOUTS = 12, TEXT = 2000 };

/* --- random convolutions --- */

static void write_convolution(char *text, size_t room)
{
	int batch = 1 + random_below(4), in = 1 + random_below(3), out = 1 + random_below(3), kernel = 1 + random_below(3), stride = 1 + random_below(3);
	int dilation = 1 + random_below(stride > 1 ? 1 : 3), pad = random_below(3), h = 7 + random_below(6), w = 7 + random_below(6);
	snprintf(text, room,
		 "model m\nstructure none\ninput x[%d, %d, %d, %d]\nparam W[%d, %d, %d, %d], b[%d]\n"
		 "output y = conv(x, W, stride=%d, pad=%d, dilation=%d, bias=b)\n",
		 batch, in, h, w, out, in, kernel, 1 + random_below(3), out, stride, pad, dilation);
}

static struct mutate_layout random_layout(const struct mutate_site *s)
{
	struct mutate_layout l = {{{false}}};
	for (int changes = 1 + random_below(3); changes > 0; changes--) {
		struct mutate_change *c = &l.of[random_below(s->dims)];
		const struct mutate_dim *d = &s->dim[c - l.of];
		bool window = d->kernel > 1 || d->step > 1;
		c->border = window && random_below(3) == 0;
		c->piece = (enum mutate_piece)random_below(MUTATE_PIECES);
		c->by = !window && random_below(2) ? (int)d->extent : 2 + random_below(3);
		c->place = (enum mutate_place)random_below(MUTATE_PLACES);
		c->before = c->place == MUTATE_BEFORE ? 2 + random_below(2) : 0;
	}
	return l;
}

struct case_of {
	struct oracle o;
	sub_ref site;
};

static bool open_case(struct case_of *c, struct test_model *t)
{
	struct mutate_site site;
	if (!open_oracle(&c->o, t))
		return false;
	for (uint32_t i = 1; i < c->o.p.values.n; i++)
		if (mutate_find_site(&c->o.p, (sub_ref){i}, &site))
			c->site = (sub_ref){i};
	return true;
}

static long applied, refused, corrected, failed;

static void try_layout(struct case_of *c, struct test_model *t, const struct mutate_layout *l)
{
	char name[40];
	struct sub_program to;
	int wrong;
	sub_init(&to, &t->arena, "m");
	struct mutate_choice choice = {.value = {name, snprintf(name, sizeof name, "output.v%u", c->site.i)}, .layout = *l};
	sub_ref *now = ARENA_ARRAY(&t->arena, sub_ref, c->o.p.values.n);
	if (mutate_apply(&to, &c->o.p, &choice, 1, false, now, &wrong)) {
		refused++;
		return;
	}
	applied++;
	for (uint32_t i = 1; i < to.values.n; i++)
		if (to.values.at[i].op == SUB_COND) {
			corrected++;
			break;
		}
	if (agrees_with_oracle(&c->o, &to, &t->diags))
		return;
	struct str s = str_in(&t->arena);
	mutate_print_layout(l, &s);
	printf("# wrong: %s\n", str_text(&s));
	print_diags(&t->diags);
	failed++;
}

static void try_seed(int seed)
{
	struct test_model t = {0};
	struct case_of c = {.site = {0}};
	struct mutate_site site;
	char text[TEXT];
	random_state = 1000 + (uint64_t)seed;
	write_convolution(text, sizeof text);
	if (!load_text(&t, "m", text, strlen(text), "") || !open_case(&c, &t)) {
		printf("# seed %d cannot be read:\n%s", seed, text);
		failed++;
	} else if (c.site.i && mutate_find_site(&c.o.p, c.site, &site)) {
		long before = failed;
		for (int i = 0; i < LAYOUTS; i++) {
			struct mutate_layout l = random_layout(&site);
			try_layout(&c, &t, &l);
		}
		if (failed > before)
			printf("# of seed %d:\n%s", seed, text);
	}
	free_model(&t);
}

static void test_random(int first, int count)
{
	for (int seed = first; seed < first + count; seed++)
		try_seed(seed);
	printf("# %ld mutants applied, %ld of them corrected, %ld layouts refused\n", applied, corrected, refused);
	tap_is(failed, 0, "mutants of random convolutions are the original at every element");
	if (count >= ALL_SEEDS) /* fewer may have none */
		tap_ok(applied > count / 2 && corrected > 0, "and there are such, some of them corrected");
}

/* --- the search, and schedules --- */

static const struct known {
	const char *name, *math, *text;
	const char *line[4]; /* some of those that are to be found */
} known[] = {
    {"batch into width", "exact",
     "model m\nstructure none\ninput x[2, 3, 6, 8]\nparam W[4, 3, 3, 3], b[4]\noutput y = relu(conv(x, W, pad=1, bias=b))\n",
     {"part 0 2 before 3", "part 0 2 before 3 border 3", "part 3 2 batch"}},
    {"a dilated convolution", "exact",
     "model m\nstructure none\ninput x[3, 8, 8]\nparam W[4, 3, 3, 3], b[4]\noutput y = relu(conv(x, W, pad=2, dilation=2, bias=b))\n",
     {"phase 1 2 batch phase 2 2 batch", "phase 1 2 batch"}},
    {"a strided convolution", "reassociate",
     "model m\nstructure none\ninput x[3, 8, 8]\nparam W[4, 3, 3, 3], b[4]\noutput y = relu(conv(x, W, pad=1, stride=2, bias=b))\n",
     {"phase 1 2 channels phase 2 2 channels", "phase 2 2 channels"}},
    {"a strided convolution, exactly", "exact",
     "model m\nstructure none\ninput x[3, 8, 8]\nparam W[4, 3, 3, 3], b[4]\noutput y = relu(conv(x, W, pad=1, stride=2, bias=b))\n",
     {"part 2 2 batch"}},
};

static void test_known(const struct known *k)
{
	struct known_run r;
	bool ok = begin_known(&r, k->name, k->math, k->text);
	if (ok)
		test_lines(&r, k->name);
	for (int i = 0; ok && i < 4 && k->line[i]; i++) {
		char wanted[TEXT];
		snprintf(wanted, sizeof wanted, " %s  #", k->line[i]);
		tap_ok(strstr(r.text, wanted) != NULL, "%s: %s is found", k->name, k->line[i]);
	}
	end_known(&r);
}

int main(int argc, char **argv)
{
	const char *seeds = getenv("ESPALIER_SEEDS");
	test_random(argc > 1 ? atoi(argv[1]) : 1, argc > 2 ? atoi(argv[2]) : seeds ? atoi(seeds) : SEEDS);
	for (size_t i = 0; argc == 1 && i < sizeof known / sizeof *known; i++)
		test_known(&known[i]);
	return tap_done();
}
