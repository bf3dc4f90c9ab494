/* Which values are computed as part of another one.
 *
 * Nested additions are one sum of terms, a product that a sum adds up is half of a fused multiply-add, and one reduction
 * goes on where its neighbour in the sum ended.  Whether that is so decides about rounding; hence it is decided here, by
 * the values of the body alone, and no plan stores a part: results have the same bits whatever is stored. */
#include "sched/plan.h"

bool sched_has_lead(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->vars && p->vars.at[v->var[0]].set != SUB_DIM;
}

static bool adds_up(enum sub_op op)
{
	return sub_class_of(op) == SUB_REDUCE && sub_row_of(op)->combine == SUB_ADD;
}

bool sched_is_contraction(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return adds_up(v->op) && sub_at(p, v->arg[0].value)->op == SUB_MULTIPLY;
}

bool sched_is_index(const struct sub_program *p, const struct sched_values *values, sub_ref r)
{
	return sub_class_of(sub_at(p, r)->op) == SUB_MOVE && values->uses[r.i] == 1 && !values->result[r.i];
}

void sched_mark_dear(const struct sub_program *p, const bool *stored, bool *dear)
{
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		dear[i] = sub_row_of(v->op)->price == SUB_DEAR;
		for (int a = 0; a < v->args; a++) {
			uint32_t arg = v->arg[a].value.i;
			dear[i] |= dear[arg] && !stored[arg];
		}
	}
}

int64_t sched_loop_extent(const struct sub_program *p, int var)
{
	const struct sub_var *v = &p->vars.at[var];
	return v->set == SUB_DIM ? v->extent : v->set == SUB_EDGE ? SCHED_RAGGED : 0;
}

double sched_row_elements(const struct sub_program *p, const struct sub_value *v)
{
	double n = 1;
	for (int i = 0; i < v->vars; i++) {
		int64_t extent = sched_loop_extent(p, v->var[i]);
		n *= extent ? extent : 1;
	}
	return n;
}

static bool can_be_term(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->op == SUB_ADD || v->op == SUB_MULTIPLY || (v->op == SUB_SUM && p->vars.at[v->reduced].set == SUB_DIM);
}

/* Terms have all variables of their sum: what is repeated along one would be computed for each turn of it. */
static bool same_variables(const struct sub_value *v, const struct sub_use *u)
{
	return v->vars == u->vars && memcmp(v->var, u->var, v->vars * sizeof *v->var) == 0;
}

static void find_terms(struct sched_values *values, const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	for (int a = 0; v->op == SUB_ADD && a < 2; a++) {
		sub_ref term = v->arg[a].value;
		if (values->uses[term.i] == 1 && can_be_term(p, term) && same_variables(v, &v->arg[a]))
			values->part_of[term.i] = values->part_of[r.i].i ? values->part_of[r.i] : r;
	}
}

static void count_uses(struct sched_values *values, const struct sub_program *p, const struct sub_body *b)
{
	for (size_t i = 0; i < b->stores.n; i++) {
		uint32_t r = b->stores.at[i].value.value.i;
		values->uses[r]++;
		values->result[r] = true;
	}
	for (uint32_t i = 1; i < p->values.n; i++)
		for (int a = 0; values->live[i] && a < p->values.at[i].args; a++)
			values->uses[p->values.at[i].arg[a].value.i]++;
}

/* Products that sums alone want. */
static void find_products(struct sched_values *values, const struct sub_program *p)
{
	for (uint32_t i = 1; i < p->values.n; i++)
		values->product[i] = values->live[i] && p->values.at[i].op == SUB_MULTIPLY && !values->result[i];
	for (uint32_t i = 1; i < p->values.n; i++)
		for (int a = 0; values->live[i] && !adds_up(p->values.at[i].op) && a < p->values.at[i].args; a++)
			values->product[p->values.at[i].arg[a].value.i] = false;
}

void sched_find_parts(struct sched_values *values, struct arena *a, const struct sub_program *p, int body)
{
	size_t n = p->values.n;
	*values = (struct sched_values){
	    .live = ARENA_ARRAY(a, bool, n),	   .result = ARENA_ARRAY(a, bool, n), .uses = ARENA_ARRAY(a, int, n),
	    .product = ARENA_ARRAY(a, bool, n),	   .part_of = ARENA_ARRAY(a, sub_ref, n), .dear = ARENA_ARRAY(a, bool, n),
	    .kept = ARENA_ARRAY(a, bool, n),	   .block = ARENA_ARRAY(a, int, n),
	};
	sub_mark_live(p, &p->bodies.at[body], values->live);
	count_uses(values, p, &p->bodies.at[body]);
	find_products(values, p);
	for (uint32_t i = n; i-- > 1;)
		if (values->live[i])
			find_terms(values, p, (sub_ref){i});
}

sub_ref sched_whole(const struct sched_values *values, sub_ref r)
{
	return values->part_of[r.i].i ? values->part_of[r.i] : r;
}
