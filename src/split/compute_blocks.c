/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Computes values in blocks of channels, as the accelerator has them:
 *
 *     %7[n,c,y,x] = add cut0[n,c,y,x], b[c]      ->      %7[n,k,y,x,l] = add cut0[n,k,y,x,l], %6[k,l]     %6[k,l] = assign b[16*k+l]
 *
 * The first dimension is the image times the number of blocks, and the block.  What depends on weights is moved to where a block has
 * it, which is done once, when weights are bound.  Behind the last channel it begins again with the first one, so that no number is
 * there which no channel has. */
#include "split/cutting.h"

enum { PLANE = 1, ROW, COLUMN, LANE, VARS };

const int split_axes_of_blocks[SPLIT_AXES] = {
    [SPLIT_IMAGE] = PLANE - 1, [SPLIT_CHANNEL] = LANE - 1, [SPLIT_ROW] = ROW - 1, [SPLIT_COLUMN] = COLUMN - 1};

struct vta_activations split_count_blocks(const int64_t extent[SPLIT_AXES])
{
	return (struct vta_activations){
	    extent[SPLIT_IMAGE] * vta_blocks(extent[SPLIT_CHANNEL]), VTA_BLOCK, {extent[SPLIT_ROW], extent[SPLIT_COLUMN]}};
}

/* The variables of blocks: of values with equal layouts the same. */
static void name_blocks(struct sub_program *to, const struct split_layout *l, int var[VARS])
{
	struct vta_activations e = split_count_blocks(l->extent);
	const int64_t extent[VARS] = {0, e.images, e.size[0], e.size[1], VTA_BLOCK};
	var[0] = to->node;
	for (int i = 1; i < VARS; i++)
		var[i] = sub_other_dim(to, extent[i], var, i);
}

static struct sub_map map_var(int var)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = var >= 0};
}

/* var / divisor % modulus; without a modulus, 0, the quotient */
static struct sub_map map_digit(int var, int64_t divisor, int64_t modulus)
{
	return (struct sub_map){.function = SUB_DIGIT, .var = var, .scale = 1, .divisor = divisor, .modulus = modulus};
}

/* The channel of a block and a place in it. */
static struct sub_map map_channel(int block, int place, int64_t channels)
{
	struct sub_map m = {.function = SUB_AFFINE, .var = block, .scale = VTA_BLOCK, .var2 = place, .scale2 = 1};
	if (channels % VTA_BLOCK) {
		m.function = SUB_DIGIT;
		m.divisor = 1;
		m.modulus = channels;
	}
	return m;
}

/* The plane of a channel of an image, -1 = there is one: (image * channels of all blocks + channel) / 16.  Variables stand in
 * the order of the value. */
static struct sub_map map_plane(const struct split_layout *l, int image, int channel)
{
	int64_t channels = vta_blocks(l->extent[SPLIT_CHANNEL]) * VTA_BLOCK;
	bool first = l->axis[SPLIT_IMAGE] < l->axis[SPLIT_CHANNEL];
	if (channel < 0)
		return map_var(image);
	struct sub_map m = map_digit(channel, VTA_BLOCK, 0);
	if (image >= 0 && !first)
		m.var2 = image, m.scale2 = channels;
	else if (image >= 0)
		m.var = image, m.scale = channels, m.var2 = channel, m.scale2 = 1;
	return m;
}

/* --- what is there --- */

bool split_has_blocks(const struct cutting *c, uint32_t i)
{
	return c->blocks_of[i] || c->call_of[i];
}

static struct sub_value read_input(const struct cutting *c, int input)
{
	const struct sub_tensor *row = &c->to->inputs.at[input].row;
	struct sub_value v = {.op = SUB_VECTOR, .which = input, .vars = row->rank + 1, .var = {c->to->node}};
	memcpy(v.var + 1, row->var, row->rank * sizeof *row->var);
	return v;
}

int split_find_blocks(struct cutting *c, uint32_t i)
{
	const struct split_layout *l = &c->products->layout[i];
	struct sub_value v = {.vars = VARS};
	if (c->blocks_of[i])
		return c->blocks_of[i] - 1;
	const struct split_product *q = &c->products->all.at[c->products->of_result[i] - 1];
	name_blocks(c->to, l, v.var);
	int input = split_add_input(c, &v, q->requantised ? DTYPE_I32 : split_byte_type(q->tail.low));
	split_add_output(c, i, input, split_count_blocks(l->extent), split_axes_of_blocks);
	c->blocks_of[i] = input + 1;
	return input;
}

sub_ref split_read_blocks(struct cutting *c, uint32_t i)
{
	const struct split_layout *l = &c->products->layout[i];
	const struct sub_value *v = &c->from->values.at[i];
	int axis[SPLIT_AXES];
	struct sub_map map[VARS];
	for (int a = 0; a < SPLIT_AXES; a++)
		axis[a] = l->axis[a] < 0 ? -1 : v->var[l->axis[a]];
	map[0] = map_var(c->to->node);
	map[PLANE] = map_plane(l, axis[SPLIT_IMAGE], axis[SPLIT_CHANNEL]);
	map[ROW] = map_var(axis[SPLIT_ROW]);
	map[COLUMN] = map_var(axis[SPLIT_COLUMN]);
	map[LANE] = axis[SPLIT_CHANNEL] < 0 ? map_var(-1) : map_digit(axis[SPLIT_CHANNEL], 1, VTA_BLOCK);
	sub_ref blocks = sub_add(c->to, read_input(c, split_find_blocks(c, i)), NULL);
	struct sub_value moved = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(c->to, blocks)}, .map = map, .vars = v->vars};
	memcpy(moved.var, v->var, sizeof moved.var);
	return sub_add(c->to, moved, NULL);
}

/* --- constants --- */

/* The variables of a layout that a constant is moved to: those of blocks, and of the image and the block that planes are made of,
 * which are others where there are several images. */
struct names {
	const struct split_layout *l;
	int var[VARS], image, block;
};

static struct names name_layout(struct sub_program *to, const struct split_layout *l)
{
	struct names n = {.l = l, .image = -1};
	name_blocks(to, l, n.var);
	n.block = n.var[PLANE];
	if (l->extent[SPLIT_IMAGE] > 1) {
		int others[VARS + 1];
		memcpy(others, n.var, sizeof n.var);
		others[VARS] = n.image = sub_other_dim(to, l->extent[SPLIT_IMAGE], n.var, VARS);
		n.block = sub_other_dim(to, vta_blocks(l->extent[SPLIT_CHANNEL]), others, VARS + 1);
	}
	return n;
}

/* The axis of a layout that a variable of a value of `from` is; -1 = none, or one of one element. */
static int find_axis(const struct split_layout *l, const struct sub_value *v, int var)
{
	for (int a = 0; a < SPLIT_AXES; a++)
		if (l->axis[a] >= 0 && v->var[l->axis[a]] == var && l->extent[a] > 1)
			return a;
	return -1;
}

/* The index along a dimension of a constant. */
static struct sub_map map_axis(const struct names *n, int axis)
{
	if (axis == SPLIT_CHANNEL)
		return map_channel(n->block, n->var[LANE], n->l->extent[SPLIT_CHANNEL]);
	return map_var(axis == SPLIT_IMAGE ? n->image : axis == SPLIT_ROW ? n->var[ROW] : axis == SPLIT_COLUMN ? n->var[COLUMN] : -1);
}

static void add_var(struct sub_value *v, bool has, int var)
{
	if (has)
		v->var[v->vars++] = var;
}

/* Of an image and a block the plane. */
static sub_ref join_planes(struct sub_program *to, const struct names *n, sub_ref moved)
{
	const struct sub_value *from = sub_at(to, moved);
	int64_t blocks = vta_blocks(n->l->extent[SPLIT_CHANNEL]);
	struct sub_map map[SUB_MAX_VARS];
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(to, moved)}, .map = map, .vars = 1, .var = {n->var[PLANE]}};
	for (int d = 0; d < from->vars; d++) {
		int has = from->var[d];
		bool image = has == n->image, block = has == n->block;
		map[d] = image ? map_digit(n->var[PLANE], blocks, 0) : block ? map_digit(n->var[PLANE], 1, blocks) : map_var(has);
		add_var(&v, !image && !block, has);
	}
	return sub_add(to, v, NULL);
}

/* The parameter of a constant that was moved; the same one where it is moved alike. */
static int find_moved(struct cutting *c, sub_ref moved)
{
	for (size_t i = 0; i < c->moved.n; i++)
		if (c->moved.at[i].value.i == moved.i)
			return c->moved.at[i].param;
	struct split_moved m = {moved, split_add_param(c->to, moved, sub_at(c->to, moved)->dtype, "blocks")};
	vec_push(c->to->arena, &c->moved, m);
	return m.param;
}

/* A parameter that has what was moved, where its elements can be stored. */
static struct sub_use read_moved(struct cutting *c, sub_ref moved)
{
	struct sub_use u = sub_as_is(c->to, moved);
	enum dtype dtype = sub_at(c->to, moved)->dtype;
	if (!u.vars || (dtype != DTYPE_F32 && dtype != DTYPE_I32 && dtype != DTYPE_I64))
		return u;
	int param = find_moved(c, moved);
	const struct sub_tensor *t = &c->to->params.at[param];
	struct sub_value v = {.op = SUB_PARAM, .which = param, .vars = t->rank};
	memcpy(v.var, t->var, t->rank * sizeof *t->var);
	u.value = sub_add(c->to, v, NULL);
	return u;
}

/* An argument that depends on weights alone, in the blocks of a value of `from` that uses it. */
static struct sub_use move_constant(struct cutting *c, uint32_t i, int a)
{
	const struct sub_value *user = &c->from->values.at[i];
	struct sub_use u = user->arg[a];
	struct sub_map map[SUB_MAX_VARS];
	struct names n = name_layout(c->to, &c->products->layout[i]);
	bool has[SPLIT_AXES + 1] = {false};
	for (int d = 0; d < u.vars; d++) {
		int axis = find_axis(n.l, user, u.var[d]);
		map[d] = map_axis(&n, axis);
		has[axis + 1] = true;
	}
	u.value = split_copy_value(c, u.value);
	struct sub_value v = {.op = SUB_ASSIGN, .args = 1, .arg = {sub_as_is(c->to, u.value)}, .map = map};
	add_var(&v, has[SPLIT_IMAGE + 1], n.image);
	add_var(&v, has[SPLIT_CHANNEL + 1], n.block);
	add_var(&v, has[SPLIT_ROW + 1], n.var[ROW]);
	add_var(&v, has[SPLIT_COLUMN + 1], n.var[COLUMN]);
	add_var(&v, has[SPLIT_CHANNEL + 1], n.var[LANE]);
	sub_ref moved = u.vars ? sub_add(c->to, v, NULL) : u.value;
	bool planes = n.image >= 0 && (has[SPLIT_IMAGE + 1] || has[SPLIT_CHANNEL + 1]);
	return read_moved(c, planes ? join_planes(c->to, &n, moved) : moved);
}

/* --- values --- */

static sub_ref copy_operator(struct cutting *c, uint32_t i, const sub_ref *blocks)
{
	struct sub_value v = c->from->values.at[i];
	for (int a = 0; a < v.args; a++)
		v.arg[a] = c->products->constant[v.arg[a].value.i] ? move_constant(c, i, a) : sub_as_is(c->to, blocks[v.arg[a].value.i]);
	return sub_add(c->to, v, NULL);
}

/* What a value is computed of: of a move what is moved. */
static void mark_arguments(const struct cutting *c, uint32_t i, bool *needed)
{
	const struct sub_value *v = &c->from->values.at[i];
	if (v->op == SUB_ASSIGN)
		needed[split_see_through(c->from, sub_as_is(c->from, (sub_ref){i})).value.i] = true;
	for (int a = 0; v->op != SUB_ASSIGN && a < v->args; a++)
		needed[v->arg[a].value.i] |= !c->products->constant[v->arg[a].value.i];
}

static sub_ref copy_one(struct cutting *c, uint32_t i, const sub_ref *blocks)
{
	if (split_has_blocks(c, i))
		return sub_add(c->to, read_input(c, split_find_blocks(c, i)), NULL);
	if (c->from->values.at[i].op == SUB_ASSIGN)
		return blocks[split_see_through(c->from, sub_as_is(c->from, (sub_ref){i})).value.i];
	return copy_operator(c, i, blocks);
}

sub_ref split_copy_blocks(struct cutting *c, sub_ref r)
{
	bool *needed = ARENA_ARRAY(c->products->arena, bool, r.i + 1);
	sub_ref *blocks = ARENA_ARRAY(c->products->arena, sub_ref, r.i + 1);
	needed[r.i] = true;
	for (uint32_t i = r.i; i > 0; i--)
		if (needed[i] && !split_has_blocks(c, i))
			mark_arguments(c, i, needed);
	for (uint32_t i = 1; i <= r.i; i++)
		if (needed[i])
			blocks[i] = copy_one(c, i, blocks);
	return blocks[r.i];
}
