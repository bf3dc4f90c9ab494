/* The fusion plan.
 *
 * From each result of a body the planner walks down through what it needs, keeping for each dimension of a
 * value the loops that its index depends on.  A value of the row that is dear and does not depend on some
 * loop around it would be computed again for each turn of that loop: it is stored instead and becomes a
 * target of its own.  So is what is wanted at many places at once, and a reduction that two groups need. This
 * is repeated until nothing more is stored; then targets of one stage and one shape become a group. */
#include "base/map.h"
#include "sched/sched.h"

/* How a dimension is indexed, seen from the target's loops.  Two indices with one `id` are the same expression. */
struct index {
	uint64_t loops; /* it depends on these */
	uint64_t id;
};

/* A target reads another one: `inside` at the very element that is being computed. */
struct edge {
	int to;
	bool inside;
};

/* A reduction that a target computes itself. */
struct reduction {
	sub_ref value;
	uint64_t instance; /* value and index */
	uint64_t shared;   /* the operand that it has in common with its siblings */
};

struct target_value {
	sub_ref value;
	int body, stage, group;
	VEC(struct edge) needs;
	VEC(struct reduction) reductions;
};

struct planner {
	struct sched_plan *plan;
	const struct sub_program *p;
	struct arena *arena;
	VEC(struct target_value) targets;
	bool **dear; /* [body][value] */
	bool changed;
	/* the target at hand */
	int at;
	int loops;
	int64_t extent[64]; /* of each loop; 0 = the rows */
	int reducing;	    /* reductions over a dimension around */
	struct map visited; /* instances */
	int *instances;	    /* of each value in the target at hand */
};

enum {
	RAGGED = 2,	/* what the extent of a loop over edges counts for */
	MAX_PLACES = 16 /* at which a target may want one value: parts of parts multiply */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t both[] = {a, b};
	return hash_bytes(HASH_START, both, sizeof both);
}

static bool is_lead(const struct sub_program *p, int var)
{
	enum sub_set set = p->vars.at[var].set;
	return set == SUB_NODE || set == SUB_INPUT || set == SUB_ROW;
}

static bool has_lead(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	return v->vars && is_lead(p, v->var[0]);
}

/* --- what is dear --- */

/* Computing it means work; reading what is stored does not. */
static void mark_dear(struct planner *pl, int body)
{
	const struct sub_program *p = pl->p;
	for (uint32_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool dear = sub_row_of(v->op)->price == SUB_DEAR;
		for (int a = 0; a < v->args; a++) {
			uint32_t arg = v->arg[a].value.i;
			dear |= pl->dear[body][arg] && !pl->plan->stored[body][arg];
		}
		pl->dear[body][i] = dear;
	}
}

/* --- targets --- */

static int find_target(struct planner *pl, sub_ref value, int body)
{
	for (size_t i = 0; i < pl->targets.n; i++)
		if (pl->targets.at[i].value.i == value.i && pl->targets.at[i].body == body)
			return i;
	vec_push(pl->arena, &pl->targets, (struct target_value){.value = value, .body = body});
	return pl->targets.n - 1;
}

static void mark_stored(struct planner *pl, sub_ref value)
{
	int body = pl->targets.at[pl->at].body;
	pl->plan->stored[body][value.i] = true;
	find_target(pl, value, body);
	pl->changed = true;
}

/* --- the walk --- */

static void walk(struct planner *, sub_ref, const struct index *);

/* Loops around, other than the rows, that a value's index does not depend on, and that turn more than once. */
static bool recomputed(const struct planner *pl, const struct sub_value *v, const struct index *index)
{
	uint64_t used = 0;
	for (int i = 0; i < v->vars; i++)
		used |= index[i].loops;
	for (int l = 0; l < pl->loops; l++)
		if (!(used >> l & 1) && pl->extent[l] > 1)
			return true;
	return false;
}

static int64_t loop_extent(const struct sub_program *p, int var)
{
	return is_lead(p, var) ? 0 : p->vars.at[var].set == SUB_EDGE ? RAGGED : p->vars.at[var].extent;
}

/* The value is wanted at just the element that the target at hand is computing, in a nest that computes all of it: the
 * first half of a product may be wanted at such places, but comes from another nest. */
static bool inside(const struct planner *pl, sub_ref r, const struct index *index)
{
	const struct sub_value *v = sub_at(pl->p, r), *t = sub_at(pl->p, pl->targets.at[pl->at].value);
	if (v->vars != t->vars)
		return false;
	for (int i = 0; i < v->vars; i++)
		if (index[i].id != (uint64_t)i + 1 || loop_extent(pl->p, v->var[i]) != loop_extent(pl->p, t->var[i]))
			return false;
	return true;
}

static void need(struct planner *pl, sub_ref r, const struct index *index)
{
	struct target_value *t = &pl->targets.at[pl->at];
	struct edge e = {find_target(pl, r, t->body), inside(pl, r, index)};
	vec_push(pl->arena, &pl->targets.at[pl->at].needs, e);
}

/* The index of each dimension of an argument, from the names it is used under. */
static void under(const struct sub_value *v, const struct index *index, const struct sub_use *u, int own, struct index own_index,
		  struct index *out)
{
	for (int i = 0; i < u->vars; i++) {
		out[i] = own_index;
		for (int j = 0; u->var[i] != own && j < v->vars; j++)
			if (v->var[j] == u->var[i])
				out[i] = index[j];
	}
}

static void walk_argument(struct planner *pl, const struct sub_value *v, const struct index *index, int a)
{
	struct index out[SUB_MAX_VARS];
	under(v, index, &v->arg[a], -1, (struct index){0}, out);
	walk(pl, v->arg[a].value, out);
}

/* The loop over the last dimension of the target at hand; none when it has no dimension. */
static uint64_t columns_loop(const struct planner *pl)
{
	sub_ref target = pl->targets.at[pl->at].value;
	int vars = sub_at(pl->p, target)->vars;
	return vars > sched_leads(pl->p, target) ? 1ull << (vars - 1) : 0;
}

/* What the products of a reduction share with those of its siblings: the operand that has not the target's columns. */
static uint64_t shared_operand(const struct planner *pl, const struct sub_value *product, const struct index *index)
{
	uint64_t columns = columns_loop(pl);
	for (int a = 0; product->op == SUB_MULTIPLY && a < 2; a++) {
		struct index out[SUB_MAX_VARS];
		uint64_t used = 0, id = product->arg[a].value.i;
		under(product, index, &product->arg[a], -1, (struct index){0}, out);
		for (int i = 0; i < product->arg[a].vars; i++) {
			used |= out[i].loops;
			id = mix(id, out[i].id);
		}
		if (!(used & columns))
			return id;
	}
	return 0;
}

static void walk_reduction(struct planner *pl, sub_ref r, const struct index *index, uint64_t instance)
{
	const struct sub_value *v = sub_at(pl->p, r);
	bool edge = pl->p->vars.at[v->reduced].set == SUB_EDGE;
	struct index out[SUB_MAX_VARS], own = {1ull << pl->loops, mix(pl->loops, edge ? 0 : pl->p->vars.at[v->reduced].extent)};
	pl->extent[pl->loops++] = edge ? RAGGED : pl->p->vars.at[v->reduced].extent;
	under(v, index, &v->arg[0], v->reduced, own, out);
	pl->reducing += !edge;
	walk(pl, v->arg[0].value, out);
	pl->reducing -= !edge;
	if (!edge) {
		uint64_t shared = shared_operand(pl, sub_at(pl->p, v->arg[0].value), out);
		struct reduction found = {r, instance, shared};
		vec_push(pl->arena, &pl->targets.at[pl->at].reductions, found);
	}
	pl->loops--;
}

/* The index of a variable of the value. */
static struct index index_of(const struct sub_value *v, const struct index *index, int var)
{
	for (int i = 0; i < v->vars; i++)
		if (v->var[i] == var)
			return index[i];
	return (struct index){0};
}

static struct index mapped(const struct sub_value *v, const struct index *index, const struct sub_map *m)
{
	struct index at = index_of(v, index, m->var);
	if (m->function == SUB_AFFINE && m->scale == 1 && !m->offset && !m->scale2)
		return at;
	at.id = mix(mix(at.id, m->function), mix(m->which, mix(m->scale, m->offset)));
	if (m->scale2) {
		struct index second = index_of(v, index, m->var2);
		at.loops |= second.loops;
		at.id = mix(at.id, mix(second.id, m->scale2));
	}
	return at;
}

/* Inside a reduction a choice is part of an expression, which has no room for work: what is dear there is stored. */
static void walk_chosen(struct planner *pl, sub_ref r, const struct index *index)
{
	int body = pl->targets.at[pl->at].body;
	if (pl->reducing && pl->dear[body][r.i] && has_lead(pl->p, r) && !pl->plan->stored[body][r.i])
		mark_stored(pl, r);
	walk(pl, r, index);
}

static void walk_assign(struct planner *pl, const struct sub_value *v, const struct index *index)
{
	struct index out[SUB_MAX_VARS];
	bool leaves = false;
	for (int i = 0; i < v->arg[0].vars; i++) {
		out[i] = mapped(v, index, &v->map[i]);
		leaves |= sub_map_leaves(pl->p, v, i);
	}
	(leaves ? walk_chosen : walk)(pl, v->arg[0].value, out);
}

/* A dimension of the argument depends on all dimensions of the value that it shares elements with. */
static void walk_reshape(struct planner *pl, const struct sub_value *v, const struct index *index)
{
	struct index out[SUB_MAX_VARS];
	struct sub_piece pieces[2 * SUB_MAX_VARS];
	int n = sub_reshape_pieces(pl->p, v, pieces);
	for (int i = 0; i < v->vars; i++)
		out[i] = index[i];
	for (int i = 0; i < n; i++) {
		const struct sub_piece *piece = &pieces[i];
		struct index all = {0};
		for (int j = 0; j < piece->out_n; j++) {
			all.loops |= index[piece->out_first + j].loops;
			all.id = mix(all.id, index[piece->out_first + j].id);
		}
		for (int j = 0; j < piece->n; j++)
			out[piece->first + j] = piece->n == 1 && piece->out_n == 1
						    ? index[piece->out_first]
						    : (struct index){all.loops, mix(all.id, j)};
	}
	walk(pl, v->arg[0].value, out);
}

/* Both sides of a concatenation are reached at shifted places. */
static void walk_cond(struct planner *pl, const struct sub_value *v, const struct index *index)
{
	for (int a = 0; a < 2; a++) {
		struct index out[SUB_MAX_VARS], axis = index[v->axis];
		axis.id = mix(axis.id, a + 1);
		under(v, index, &v->arg[a], sub_joined_var(v, a), axis, out);
		walk_chosen(pl, v->arg[a].value, out);
	}
}

static void walk(struct planner *pl, sub_ref r, const struct index *index)
{
	const struct sub_value *v = sub_at(pl->p, r);
	const struct target_value *t = &pl->targets.at[pl->at];
	uint64_t instance = r.i;
	if (sub_class_of(v->op) == SUB_SOURCE)
		return;
	for (int i = 0; i < v->vars; i++)
		instance = mix(instance, index[i].id);
	if (!map_add(&pl->visited, (const char *)&instance, sizeof instance, 1))
		return;
	bool dear = pl->dear[t->body][r.i] && recomputed(pl, v, index),
	     often = ++pl->instances[r.i] > MAX_PLACES;
	if (r.i != t->value.i && !pl->plan->stored[t->body][r.i] && has_lead(pl->p, r) && (dear || often))
		mark_stored(pl, r);
	t = &pl->targets.at[pl->at];
	if (r.i != t->value.i && pl->plan->stored[t->body][r.i]) {
		need(pl, r, index);
		return;
	}
	if (sub_class_of(v->op) == SUB_REDUCE)
		walk_reduction(pl, r, index, instance);
	else if (v->op == SUB_ASSIGN)
		walk_assign(pl, v, index);
	else if (v->op == SUB_COND)
		walk_cond(pl, v, index);
	else if (v->op == SUB_RESHAPE)
		walk_reshape(pl, v, index);
	else
		for (int a = 0; a < v->args; a++)
			walk_argument(pl, v, index, a);
}

static void walk_target(struct planner *pl, int at)
{
	const struct sub_value *v = sub_at(pl->p, pl->targets.at[at].value);
	struct index index[SUB_MAX_VARS];
	pl->at = at;
	pl->targets.at[at].needs.n = pl->targets.at[at].reductions.n = 0;
	pl->visited = map_in(pl->arena);
	memset(pl->instances, 0, pl->p->values.n * sizeof *pl->instances);
	for (pl->loops = 0; pl->loops < v->vars; pl->loops++) {
		index[pl->loops] = (struct index){1ull << pl->loops, pl->loops + 1};
		pl->extent[pl->loops] = loop_extent(pl->p, v->var[pl->loops]);
	}
	walk(pl, pl->targets.at[at].value, index);
}

/* --- stages and groups --- */

static int compare_targets(const struct planner *pl, int a, int b)
{
	const struct target_value *x = &pl->targets.at[a], *y = &pl->targets.at[b];
	if (x->body != y->body)
		return x->body - y->body;
	if (x->stage != y->stage)
		return x->stage - y->stage;
	return (int)x->value.i - (int)y->value.i;
}

/* Target numbers in the order of compare_targets (insertion sort: targets are few). */
static int *sorted_targets(struct planner *pl)
{
	int *order = ARENA_ARRAY(pl->arena, int, pl->targets.n);
	for (size_t i = 0; i < pl->targets.n; i++) {
		size_t j = i;
		for (; j && compare_targets(pl, order[j - 1], i) > 0; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	return order;
}

/* A value's needs have smaller numbers than the value, so one pass in that order settles all stages. */
static void set_stages(struct planner *pl)
{
	for (size_t i = 0; i < pl->targets.n; i++)
		pl->targets.at[i].stage = 0;
	int *order = sorted_targets(pl);
	for (size_t i = 0; i < pl->targets.n; i++) {
		struct target_value *t = &pl->targets.at[order[i]];
		for (size_t e = 0; e < t->needs.n; e++) {
			int least = pl->targets.at[t->needs.at[e].to].stage + !t->needs.at[e].inside;
			t->stage = t->stage > least ? t->stage : least;
		}
	}
}

int sched_leads(const struct sub_program *p, sub_ref r)
{
	const struct sub_value *v = sub_at(p, r);
	int n = 0;
	while (n < v->vars && p->vars.at[v->var[n]].set != SUB_DIM)
		n++;
	return n;
}

/* The group that would hold a target alone. */
static struct sched_group shape_of(const struct planner *pl, const struct target_value *t)
{
	const struct sub_value *v = sub_at(pl->p, t->value);
	int leads = sched_leads(pl->p, t->value);
	struct sched_group g = {.body = t->body, .stage = t->stage, .rows = leads > 0, .edges = leads > 1, .dims = v->vars - leads};
	for (int i = 0; i < g.dims; i++)
		g.extent[i] = pl->p->vars.at[v->var[leads + i]].extent;
	return g;
}

static bool same_shape(const struct sched_group *a, const struct sched_group *b)
{
	return a->body == b->body && a->stage == b->stage && a->rows == b->rows && a->edges == b->edges &&
	       a->dims == b->dims && memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

static const char *group_name(struct planner *pl, int body, int number)
{
	struct str s = str_in(pl->arena);
	str_printf(&s, "%s.%d", pl->p->bodies.at[body].name, number);
	return s.text;
}

static int find_group(struct planner *pl, struct sched_group shape)
{
	int number = 0;
	for (size_t g = 0; g < pl->plan->groups.n; g++) {
		if (same_shape(&pl->plan->groups.at[g], &shape))
			return g;
		number += pl->plan->groups.at[g].body == shape.body;
	}
	shape.name = group_name(pl, shape.body, number);
	vec_push(pl->arena, &pl->plan->groups, shape);
	return pl->plan->groups.n - 1;
}

static void make_groups(struct planner *pl)
{
	int *order = sorted_targets(pl);
	pl->plan->groups.n = 0;
	for (size_t i = 0; i < pl->targets.n; i++) {
		struct target_value *t = &pl->targets.at[order[i]];
		t->group = find_group(pl, shape_of(pl, t));
		vec_push(pl->arena, &pl->plan->groups.at[t->group].targets, t->value);
	}
}

/* A reduction that two groups of a body compute is stored by the first. */
static void store_shared_reductions(struct planner *pl)
{
	size_t n = pl->targets.n;
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < a; b++) {
			const struct target_value *x = &pl->targets.at[a], *y = &pl->targets.at[b];
			if (x->body != y->body || x->group == y->group)
				continue;
			for (size_t i = 0; i < x->reductions.n; i++)
				for (size_t j = 0; j < y->reductions.n; j++)
					if (x->reductions.at[i].value.i == y->reductions.at[j].value.i &&
					    has_lead(pl->p, x->reductions.at[i].value) &&
					    !pl->plan->stored[x->body][x->reductions.at[i].value.i]) {
						pl->at = a;
						mark_stored(pl, x->reductions.at[i].value);
						x = &pl->targets.at[a], y = &pl->targets.at[b];
					}
		}
}

/* Distinct reductions of a group, and the most that share an operand. */
static void count_reductions(struct planner *pl, int group)
{
	struct sched_group *g = &pl->plan->groups.at[group];
	VEC(struct reduction) distinct = {0};
	for (size_t t = 0; t < pl->targets.n; t++) {
		const struct target_value *target = &pl->targets.at[t];
		for (size_t i = 0; target->group == group && i < target->reductions.n; i++) {
			size_t j = 0;
			while (j < distinct.n && distinct.at[j].instance != target->reductions.at[i].instance)
				j++;
			if (j == distinct.n)
				vec_push(pl->arena, &distinct, target->reductions.at[i]);
		}
	}
	g->reductions = distinct.n;
	for (size_t i = 0; i < distinct.n; i++) {
		int same = 0;
		for (size_t j = 0; j < distinct.n; j++)
			same += distinct.at[j].shared == distinct.at[i].shared;
		g->gates = same > g->gates ? same : g->gates;
	}
}

static void add_results(struct planner *pl)
{
	for (size_t b = 0; b < pl->p->bodies.n; b++)
		for (size_t i = 0; i < pl->p->bodies.at[b].stores.n; i++)
			find_target(pl, pl->p->bodies.at[b].stores.at[i].value.value, b);
}

static bool **flags(struct arena *a, size_t bodies, size_t values)
{
	bool **rows = ARENA_ARRAY(a, bool *, bodies);
	for (size_t i = 0; i < bodies; i++)
		rows[i] = ARENA_ARRAY(a, bool, values);
	return rows;
}

void sched_make_plan(struct sched_plan *plan, struct arena *a, const struct sub_program *p)
{
	struct planner pl = {.plan = plan, .p = p, .arena = a};
	*plan = (struct sched_plan){.p = p, .stored = flags(a, p->bodies.n, p->values.n)};
	pl.dear = flags(a, p->bodies.n, p->values.n);
	pl.instances = ARENA_ARRAY(a, int, p->values.n);
	add_results(&pl);
	do {
		pl.changed = false;
		for (int b = 0; b < (int)p->bodies.n; b++)
			mark_dear(&pl, b);
		for (size_t t = 0; t < pl.targets.n; t++)
			walk_target(&pl, t);
		if (pl.changed)
			continue;
		set_stages(&pl);
		make_groups(&pl);
		store_shared_reductions(&pl);
	} while (pl.changed);
	for (size_t g = 0; g < plan->groups.n; g++)
		count_reductions(&pl, g);
}

bool sched_is_stored(const struct sched_plan *plan, int body, sub_ref r)
{
	return plan->stored[body][r.i];
}
