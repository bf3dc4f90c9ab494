/* The rules of the sub-operator IR, checked again from the values as they stand. */
#include "subop/subop.h"

#include <stdarg.h>
#include <stdio.h>

struct verifier {
	const struct sub_program *p;
	struct diags *diags;
	bool ok;
};

__attribute__((format(printf, 3, 4))) static void fault(struct verifier *v, uint32_t value, const char *format, ...)
{
	char text[200];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	v->ok = diag_add(v->diags, DIAG_INVALID_SUBOPS, (struct diag_at){0},
			 "this is a fault of the compiler; please report it with the model", "%s: value %%%u: %s",
			 v->p->name, value, text);
}

/* Two names for one dimension must have one range; a row is a dimension of what it is read from. */
static bool same_range(const struct sub_program *p, int a, int b)
{
	const struct sub_var *x = &p->vars.at[a], *y = &p->vars.at[b];
	bool fixed = x->set == SUB_DIM || x->set == SUB_ROW;
	return fixed ? (y->set == SUB_DIM || y->set == SUB_ROW) && x->extent == y->extent : x->set == y->set;
}

static void check_use(struct verifier *v, uint32_t at, const struct sub_use *u)
{
	if (u->value.i == 0 || u->value.i >= at) {
		fault(v, at, "uses %%%u, which does not come before it", u->value.i);
		return;
	}
	const struct sub_value *from = sub_at(v->p, u->value);
	if (u->vars != from->vars) {
		fault(v, at, "names %d of the %d dimensions of %%%u", u->vars, from->vars, u->value.i);
		return;
	}
	for (int i = 0; i < u->vars; i++)
		if (!same_range(v->p, u->var[i], from->var[i]))
			fault(v, at, "dimension %d of %%%u is renamed to one with another range", i, u->value.i);
}

static void check_distinct(struct verifier *v, uint32_t at, const int *var, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			if (var[i] == var[j])
				fault(v, at, "variable %s stands twice", v->p->vars.at[var[i]].name);
}

static bool has_var(const struct sub_value *v, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return true;
	return false;
}

/* Only functions of the structure lead from row to row. */
static bool is_identity(const struct sub_program *p, const struct sub_map *m, int var)
{
	return m->var >= 0 && same_range(p, m->var, var) && m->scale == 1 && m->offset == 0 && m->scale2 == 0;
}

static void check_affine(struct verifier *v, uint32_t at, const struct sub_value *value, int i)
{
	const struct sub_map *m = &value->map[i];
	int var = sub_at(v->p, value->arg[0].value)->var[i];
	int64_t least, most;
	if (v->p->vars.at[var].set != SUB_DIM) {
		if (!is_identity(v->p, m, var))
			fault(v, at, "a row is reached by arithmetic");
	} else if (!sub_map_range(v->p, m, &least, &most)) {
		fault(v, at, "an index has no range");
	} else if (!value->fills && sub_map_leaves(v->p, value, i)) {
		fault(v, at, "an index runs outside its dimension");
	}
}

static void check_maps(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	for (int i = 0; i < value->arg[0].vars; i++) {
		const struct sub_map *m = &value->map[i];
		if ((m->var >= 0 && !has_var(value, m->var)) || (m->scale2 && !has_var(value, m->var2)))
			fault(v, at, "a map uses a variable that the value does not have");
		else if (m->function == SUB_AFFINE)
			check_affine(v, at, value, i);
		else if (m->scale2)
			fault(v, at, "a function of two variables");
	}
}

static void check_reshape(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	const struct sub_value *from = sub_at(v->p, value->arg[0].value);
	struct sub_piece pieces[2 * SUB_MAX_VARS];
	for (int i = 0; i < value->vars || i < from->vars; i++) {
		bool lead = i < value->vars && v->p->vars.at[value->var[i]].set != SUB_DIM;
		bool other = i < from->vars && v->p->vars.at[from->var[i]].set != SUB_DIM;
		if (lead != other || (lead && !same_range(v->p, value->var[i], from->var[i])))
			fault(v, at, "the rows are not those of the argument");
	}
	if (v->ok && sub_reshape_pieces(v->p, value, pieces) < 0)
		fault(v, at, "the numbers of elements differ");
}

static void check_cond(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	int64_t sum = 0;
	for (int a = 0; a < 2; a++) {
		const struct sub_use *u = &value->arg[a];
		int axis = u->vars - (value->vars - value->axis);
		sum += axis >= 0 ? v->p->vars.at[u->var[axis]].extent : 0;
	}
	if (sum != v->p->vars.at[value->var[value->axis]].extent)
		fault(v, at, "the joined extents do not add up");
}

/* What the argument uses say the variables are must be what the value says. */
static void check_inference(struct verifier *v, uint32_t at, const struct sub_value *value)
{
	for (int i = 0; i < value->vars; i++) {
		bool found = false;
		for (int a = 0; a < value->args; a++)
			for (int j = 0; j < value->arg[a].vars; j++)
				found |= value->arg[a].var[j] == value->var[i];
		if (!found)
			fault(v, at, "variable %s comes from no argument", v->p->vars.at[value->var[i]].name);
	}
	for (int a = 0; a < value->args; a++)
		for (int j = 0, at_var = -1; j < value->arg[a].vars; j++) {
			int var = value->arg[a].var[j], k = 0;
			if (sub_class_of(value->op) == SUB_REDUCE && var == value->reduced)
				continue;
			while (k < value->vars && value->var[k] != var)
				k++;
			if (k == value->vars || k <= at_var)
				fault(v, at, "variable %s is lost or out of order", v->p->vars.at[var].name);
			at_var = k;
		}
}

static void check_value(struct verifier *v, uint32_t at)
{
	const struct sub_value *value = &v->p->values.at[at];
	for (int a = 0; a < value->args; a++)
		check_use(v, at, &value->arg[a]);
	check_distinct(v, at, value->var, value->vars);
	if (!v->ok)
		return;
	if (value->op == SUB_ASSIGN)
		check_maps(v, at, value);
	else if (value->op == SUB_COND)
		check_cond(v, at, value);
	else if (value->op == SUB_RESHAPE)
		check_reshape(v, at, value);
	else if (sub_class_of(value->op) != SUB_SOURCE)
		check_inference(v, at, value);
}

bool sub_verify(const struct sub_program *p, struct diags *diags)
{
	struct verifier v = {p, diags, true};
	for (uint32_t i = 1; i < p->values.n && v.ok; i++)
		check_value(&v, i);
	return v.ok;
}

void sub_mark_live(const struct sub_program *p, const struct sub_body *b, bool *live)
{
	for (size_t i = 0; i < b->stores.n; i++)
		live[b->stores.at[i].value.value.i] = true;
	for (uint32_t i = p->values.n; i-- > 1;)
		for (int a = 0; live[i] && a < p->values.at[i].args; a++)
			live[p->values.at[i].arg[a].value.i] = true;
}
