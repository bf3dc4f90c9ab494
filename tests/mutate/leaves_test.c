/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Values of leaves that are computed as inner nodes compute theirs: which are proved to be equal, why others are not, and that all
 * back ends compute the same bits with them, by one loop over all levels where leaves and inner nodes store the same values. */
#include "compile/program_passes.h"
#include "mutate/product_mutant.h"
#include "rewrite/rewrite.h"
#include "tests/backends.h"
#include "tests/models/agree.h"
#include "tests/serve/company.h"

#define STATE "state h[4]\noutput y = h at root\n"
#define CELL                                                                                                          \
	"model m\nstructure tree(*)\ninput x[3]\nparam W[4, 3], V[4, 3], U[4, 4], F[4, 4], b[4], d[4]\n"              \
	"state h[4], c[4]\nnode:\n    s = sum(k.h for k in children)\n    i = sigmoid(W @ x + U @ s + b)\n"           \
	"    c = i * tanh(V @ x + F @ s) + sum(sigmoid(F @ k.h + d) * k.c for k in children)\n    h = i * tanh(c)\n"   \
	"output y = h at root\n"

/* --- proofs --- */

static const struct proof {
	const char *name, *text, *why; /* why the state h of leaves is not computed as that of inner nodes, NULL = it may be */
} proofs[] = {
    {"a cell", CELL, NULL},
    {"a sum that begins with a bias",
     "model m\nstructure tree(*)\ninput x[3]\nparam W[4, 3], b[4]\n" STATE
     "leaf:\n    h = tanh(W @ x + b)\ninner:\n    h = tanh(sum(k.h * k.h for k in children) + b + W @ x)\n", NULL},
    {"an operator of other arguments",
     "model m\nstructure tree(*)\ninput x[4]\nparam W[4, 4], b[4], d[4]\n" STATE
     "leaf:\n    h = tanh(W @ x + b) * x\ninner:\n    h = tanh(W @ x + d + sum(k.h for k in children)) * x\n",
     "it is not proved to be what inner nodes compute"},
    {"another operator",
     "model m\nstructure tree(*)\ninput x[4]\nparam W[4, 4]\n" STATE
     "leaf:\n    h = sigmoid(W @ x)\ninner:\n    h = tanh(W @ x + sum(k.h for k in children))\n",
     "it is not proved to be what inner nodes compute"},
    {"another weight",
     "model m\nstructure tree(*)\ninput x[4]\nparam W[4, 4], V[4, 4]\n" STATE
     "leaf:\n    h = W @ x + x\ninner:\n    h = V @ x + x + sum(k.h for k in children)\n",
     "it is not proved to be what inner nodes compute"},
    {"children by their place",
     "model m\nstructure tree(left, right)\ninput x[4]\nparam W[4, 4]\n" STATE
     "leaf:\n    h = tanh(W @ x)\ninner:\n    h = tanh(W @ x + left.h * right.h)\n", "it reads a child by its place"},
    {"a maximum of children",
     "model m\nstructure tree(*)\ninput x[4]\nparam W[4, 4]\n" STATE
     "leaf:\n    h = tanh(W @ x)\ninner:\n    h = tanh(W @ x + max(k.h for k in children))\n", "it reduces edges by another operator than a sum"},
    {"an input of inner nodes",
     "model m\nstructure tree(*)\ninput x[4], z[4]\nparam W[4, 4]\n" STATE
     "leaf:\n    h = tanh(W @ x)\ninner:\n    h = tanh(W @ x + sum(k.h * z for k in children))\n", "it reads an input that leaves need not have"},
};

static bool open_model(struct test_model *t, struct sub_program *p, const char *text)
{
	struct sub_program lowered;
	bool ok = load_text(t, "m", text, strlen(text), "");
	sub_init(&lowered, &t->arena, "m");
	sub_init(p, &t->arena, "m");
	ok = ok && sub_lower_model(&lowered, t->model, t->sizes, SUB_AT_MODEL, &t->diags);
	if (ok)
		rewrite_contract(p, &lowered, NULL, NULL);
	print_diags(&t->diags);
	return ok;
}

static sub_ref find_stored(const struct sub_program *p, enum sub_domain domain, int state)
{
	for (size_t b = 0; b < p->bodies.n; b++)
		for (size_t i = 0; i < p->bodies.at[b].stores.n; i++) {
			const struct sub_store *s = &p->bodies.at[b].stores.at[i];
			if (p->bodies.at[b].domain == domain && s->to == SUB_TO_STATE && s->which == state)
				return s->value.value;
		}
	return (sub_ref){0};
}

/* Why there is no mutant of a value of leaves like one of inner nodes. */
static const char *refuse_pair(struct sub_program *p, sub_ref leaf, sub_ref inner, bool exact)
{
	struct mutate_relations relations = mutate_relate_values(p);
	struct mutate_regroup r = {.op = MUTATE_LIKE, .n = 2, .value = {leaf, inner}};
	struct mutate_form *forms = ARENA_ARRAY(p->arena, struct mutate_form, p->values.n + MUTATE_ROOM);
	struct mutate_products m;
	sub_ref now[MUTATE_MAX_JOINED];
	const char *why = mutate_refuse_regroup(&relations, &r);
	return why ? why : mutate_make_products(p, &r, exact, MUTATE_ROUNDS, forms, &m, now);
}

static void test_answer(const char *got, const char *wanted, const char *model, const char *what)
{
	if (!tap_ok(got == wanted || (got && wanted && strcmp(got, wanted) == 0), "%s: %s", model, what))
		printf("# got '%s', wanted '%s'\n", got ? got : "a proof", wanted ? wanted : "a proof");
}

static void test_proof(const struct proof *k)
{
	struct test_model t = {0};
	struct sub_program p;
	if (!tap_ok(open_model(&t, &p, k->text), "%s: lowered", k->name))
		return;
	sub_ref leaf = find_stored(&p, SUB_LEAF, 0), inner = find_stored(&p, SUB_INNER, 0);
	test_answer(refuse_pair(&p, leaf, inner, false), k->why, k->name, "leaves like inner nodes");
	test_answer(refuse_pair(&p, inner, leaf, false), "it is no value of leaves alone", k->name, "not the other way");
	test_answer(refuse_pair(&p, leaf, leaf, false), "the other value is none of inner nodes", k->name, "nor leaves like leaves");
	if (!k->why)
		test_answer(refuse_pair(&p, leaf, inner, true), "its sums have other terms, which --math exact does not allow", k->name, "nor exactly");
	free_model(&t);
}

/* --- compiled code --- */

/* Copies all lines of a listing that are of leaves like inner nodes; returns how many. */
static int copy_lines(const char *text, struct str *to)
{
	int n = 0;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		int length = (int)strcspn(line, "\n#"), whole = (int)strcspn(line, "\n");
		const char *like = strstr(line, " like ");
		if (strncmp(line, "mutate ", 7) != 0 || !like || like > line + whole)
			continue;
		str_printf(to, "%.*s\n", length, line);
		n++;
	}
	return n;
}

static void test_back_ends(struct setting *s, const char *schedule)
{
	static const char *const backends[] = {"interpreter", "llvm", "gccjit"};
	for (int i = 0; i < 3; i++) {
		struct option_texts o = {.backend = backends[i], .target = "avx2", .math = "reassociate", .schedule = schedule};
		if (i && !has_backend(backends[i]))
			tap_skip("the back end is not built", "%s", backends[i]);
		else
			tap_ok(agrees(s, &o), "leaves like inner nodes: the same bits by %s", backends[i]);
	}
}

static bool has_step(struct test_model *t, const char *schedule, const char *name)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = "reassociate", .schedule = schedule};
	struct str loops = str_in(&t->arena);
	return compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, "lower", &loops) && strstr(str_text(&loops), name);
}

/* Requests that join and leave, with the bits that sessions give them alone by one loop. */
static void test_requests(const struct test_model *t, const char *schedule)
{
	enum { SERVED = 14 };
	static struct company c;
	static const struct service s = {.limits = {4096, 64, 0}, .each = 4, .leave = true, .how = ""};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = "reassociate", .schedule = schedule};
	struct attendance a;
	bool ok = begin_company(&c, t, o, SERVED, 16);
	struct serve_engine *e = ok ? serve_create(&allocator_default, &c.joined.image, s.limits, &c.joined.diags) : NULL;
	ok = e && serve_all(&c, e, &s, 0, &a) && serve_count(e).rows == 0;
	tap_ok(ok, "a service computes them, too");
	if (!ok)
		print_diags(&c.joined.diags);
	serve_free(e);
	end_company(&c);
}

static void test_cell(void)
{
	struct test_model t = {0};
	struct test_run base = {0};
	struct setting s = {.model = &t};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = "reassociate"};
	bool ok = load_text(&t, "m", CELL, strlen(CELL), "") && start_run(&base, &t, &o);
	print_diags(&t.diags);
	if (!tap_ok(ok, "a cell: compiled"))
		return;
	make_forest(&s.forest, &base.image, 3, 4);
	struct str text = str_in(&t.arena), lines = str_in(&t.arena);
	ok = begin_setting(&s, &base) && compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "checked-mutants", &text);
	if (!tap_ok(ok, "a cell: run"))
		return;
	tap_is(copy_lines(str_text(&text), &lines), 2, "both states of leaves have a mutant");
	tap_ok(strstr(str_text(&text), "wrong with a probability of ") && !strstr(str_text(&text), "wrong with a probability of 1 a position"),
	       "which is proved by all rounds");
	test_back_ends(&s, str_text(&lines));
	str_puts(&lines, "refactor off\n");
	test_back_ends(&s, str_text(&lines));
	tap_ok(has_step(&t, "refactor off\n", "step leaf") && !has_step(&t, str_text(&lines), "step leaf"),
	       "leaves have no kernels of their own then");
	tap_ok(has_step(&t, str_text(&lines), "batch in 0..batches"), "but run through those of inner nodes");
	test_requests(&t, str_text(&lines));
	end_run(&base);
	end_setting(&s);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++)
		test_proof(&proofs[i]);
	test_cell();
	return tap_done();
}
