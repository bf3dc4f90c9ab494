/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of directives share by which something moves to another body (`hoist`, `refactor`). */
#ifndef ESPALIER_TESTS_SCHED_MOVING_H
#define ESPALIER_TESTS_SCHED_MOVING_H

#include "compile/explain.h"
#include "tests/models/agree.h"

/* How often one text stands in another. */
static inline int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* --- bits --- */

/* By the interpreter, and if it is to be `compiled`, too. */
static inline bool agrees_with(struct setting *s, struct option_texts o, const char *schedule, bool compiled)
{
	o.schedule = schedule;
	for (int back = 0; back <= compiled; back++) {
		o.backend = back ? usual_backend() : "interpreter";
		if (agrees(s, &o))
			continue;
		printf("# math %s, rules %s, back end %s, schedule %s\n", o.math ? o.math : "default",
		       o.rules, o.backend, schedule);
		return false;
	}
	return true;
}

/* With what moves by itself, and with all that moves, if anything does. */
static inline bool agrees_moved(struct setting *s, struct option_texts o, const char *directive, bool any)
{
	static const char *const others[] = {"", "specialize none\n", "fuse none\ndynamic_batch off\n",
					     "vectorize off\nfuse greedy\n", "fuse grow always\n"};
	char schedule[100];
	bool same = agrees_with(s, o, "", true);
	for (size_t i = 0; same && i < sizeof others / sizeof *others; i++) {
		snprintf(schedule, sizeof schedule, "%s%s%s", any ? directive : "", any ? " all\n" : "",
			 others[i]);
		same = agrees_with(s, o, schedule, i == 0);
	}
	return same;
}

/* Whether all this gives the bits that it gives where nothing moves; these are near to the oracle. */
static inline bool moves_no_bit(const struct test_model *t, struct option_texts o, const char *directive,
				bool any)
{
	struct setting s = {.model = t};
	struct test_run r;
	char off[40];
	double worst;
	snprintf(off, sizeof off, "%s off\n", directive);
	o.schedule = off;
	o.backend = "interpreter";
	bool same = start_run(&r, t, &o);
	if (same) {
		make_forest(&s.forest, &r.image, 5, 30);
		same = begin_setting(&s, &r) && near_oracle(&s, &r, 1e-4, &worst) &&
		       agrees_moved(&s, o, directive, any);
		end_setting(&s);
	}
	end_run(&r);
	return same;
}

/* --- notes --- */

/* Whether the explanation of the model has this line. */
static inline bool explains(struct test_model *t, const char *line)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2"};
	const struct compile_options *options = read_option_texts(&t->arena, &t->diags, &o);
	struct str s = str_in(&t->arena);
	bool ok = options && compile_explain(&t->arena, &t->diags, t->model, t->sizes, options, NULL, false, &s) &&
		  strstr(str_text(&s), line);
	print_diags(&t->diags);
	return ok;
}

/* --- what is refused --- */

/* Whether the model with such a schedule is refused, for this reason and no other. */
static inline bool refuses(struct test_model *t, const char *schedule, const char *why)
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedule};
	struct str s = str_in(&t->arena);
	struct diags d;
	diags_init(&d, &allocator_default);
	bool ok = compile_dump_as(&t->arena, &d, t->model, t->sizes, &o, "sched", &s);
	bool refused = !ok && d.n == 1 && d.at[0].id == DIAG_ILLEGAL_SCHEDULE && strstr(d.at[0].message, why);
	if (!refused)
		print_diags(&d);
	diags_free(&d);
	return refused;
}

/* --- what the verifier finds --- */

/* The first of them. */
static inline struct sub_body *body_of(struct sub_program *p, enum sub_domain domain)
{
	size_t b = 0;
	while (p->bodies.at[b].domain != domain)
		b++;
	return &p->bodies.at[b];
}

static inline bool is_faulty(const struct sched_plan *plan, const char *why)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	bool faulty =
	    !sched_verify(plan, &d) && d.at[0].id == DIAG_INVALID_PLAN && strstr(d.at[0].message, why);
	diags_free(&d);
	return faulty;
}

#endif
