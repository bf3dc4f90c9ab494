/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a checked graph to a model without a structure: a batch has one row, which holds whole tensors. */
#include "onnx/import.h"

static bool refuse_value(const struct onnx_importer *im, const struct onnx_value *v, enum diag_id id,
			 const char *hint, const char *what)
{
	return diag_add(im->diags, id, (struct diag_at){.file = im->scope->graph->file}, hint, "'%.120s' %s",
			v->name, what);
}

/* --- graphs of nodes --- */

typedef void visit_graph(const struct onnx_graph *, void *context);

static void visit_graphs(const struct onnx_node *n, visit_graph *visit, void *context)
{
	for (size_t i = 0; i < n->attributes; i++)
		if (n->attribute[i].kind == ONNX_KIND_GRAPH)
			visit(n->attribute[i].graph, context);
}

static bool has_graphs(const struct onnx_node *n)
{
	for (size_t i = 0; i < n->attributes; i++)
		if (n->attribute[i].kind == ONNX_KIND_GRAPH)
			return true;
	return false;
}

/* --- names --- */

/* Whether a name of the graph, or of one in it, is a prefix and a number. */
struct collision {
	const char *prefix;
	bool found;
};

static void find_collision(const struct onnx_graph *g, void *context)
{
	struct collision *c = context;
	size_t n = strlen(c->prefix);
	for (size_t i = 0; i < g->values; i++) {
		const char *name = g->value[i].name;
		c->found |= strncmp(name, c->prefix, n) == 0 && name[n] >= '0' && name[n] <= '9';
	}
	for (size_t i = 0; i < g->nodes; i++)
		visit_graphs(&g->node[i], find_collision, c);
}

/* Names of indices that no value of the graph has. */
static const char *free_prefix(struct arena *a, const struct onnx_graph *g, const char *letter)
{
	struct str s = str_in(a);
	str_puts(&s, letter);
	for (;;) {
		struct collision c = {.prefix = str_text(&s)};
		find_collision(g, &c);
		if (!c.found)
			return c.prefix;
		str_puts(&s, "_");
	}
}

bool onnx_start_target(const struct onnx_importer *im, struct arena *a, struct onnx_target *t)
{
	const struct onnx_graph *graph = im->whole;
	const char *name = onnx_spell_name(a, *graph->name ? graph->name : "graph");
	*t = (struct onnx_target){
	    .names = map_in(im->arena), .kept = map_in(im->arena), .axis = im->axis, .reduced = im->reduced};
	t->builder = ra_builder_new(a, im->diags, 1, name, "none");
	if (!t->builder)
		return false;
	ra_builder_at(t->builder, graph->file, 0);
	ra_builder_drop_unused(t->builder);
	ra_builder_body(t->builder, RA_BODY_NODE);
	return true;
}

struct ra_model *onnx_finish_target(struct onnx_target *t)
{
	struct ra_model *model = ra_builder_finish(t->builder);
	size_t kept = 0;
	for (size_t i = 0; model && i < t->weights.n && kept < model->params.n; i++)
		if (strcmp(t->weights.at[i].name, model->params.at[kept].name) == 0)
			t->weights.at[kept++] = t->weights.at[i];
	t->weights.n = kept;
	return model;
}

/* --- inputs and constants --- */

static bool take_constant(struct onnx_importer *im, const struct onnx_value *v, struct onnx_operand *x)
{
	const struct onnx_op o = {.arena = im->arena};
	if (!onnx_check_value(im->arena, im->diags, im->scope->graph, v, v->constant->rank))
		return false;
	*x = onnx_constant(&o, v->constant);
	return true;
}

/* Finds the operand of a value, from the graphs around on where it is one of theirs. */
static bool find_operand(struct onnx_importer *im, struct onnx_scope *scope, int value)
{
	const struct onnx_value *v = &scope->graph->value[value];
	struct onnx_operand *x = &scope->operand[value];
	if (x->given)
		return true;
	if (v->outer >= 0 && scope->around) {
		if (!find_operand(im, scope->around, v->outer))
			return false;
		*x = scope->around->operand[v->outer];
		return true;
	}
	if (v->constant)
		return take_constant(im, v, x);
	if (v->input >= 0 && !scope->around)
		return onnx_take_input(im->arena, im->diags, scope->graph, v, x);
	return refuse_value(im, v, DIAG_ONNX_SHAPE, NULL, "is no value that a node of the graph computes");
}

/* --- nodes --- */

/* Marks the values that nodes or outputs need: the graph has no node in vain, but nodes have outputs that
 * nothing uses. */
static void mark_used_outside(const struct onnx_graph *g, void *context)
{
	bool *needed = context;
	for (size_t i = 0; i < g->values; i++)
		if (g->value[i].outer >= 0)
			needed[g->value[i].outer] = true;
}

void onnx_mark_needed(const struct onnx_graph *g, bool *needed)
{
	for (size_t i = 0; i < g->outputs; i++)
		needed[g->output[i]] = true;
	for (size_t n = 0; n < g->nodes; n++) {
		for (size_t i = 0; i < g->node[n].inputs; i++)
			if (g->node[n].input[i] >= 0)
				needed[g->node[n].input[i]] = true;
		visit_graphs(&g->node[n], mark_used_outside, needed);
	}
}

/* The outputs of a node up to the last that is needed. */
static int needed_outputs(const struct onnx_importer *im, const struct onnx_node *n)
{
	size_t outs = n->outputs;
	while (outs && (n->output[outs - 1] < 0 || !im->scope->needed[n->output[outs - 1]]))
		outs--;
	return (int)outs;
}

static bool find_inputs(struct onnx_importer *im, struct onnx_op *o)
{
	const struct onnx_node *n = o->node;
	o->in = ARENA_ARRAY(im->arena, struct onnx_operand, n->inputs + ONNX_INPUT_ROOM);
	o->ins = (int)n->inputs;
	for (int i = 0; i < o->ins; i++) {
		if (n->input[i] < 0)
			continue;
		if (!find_operand(im, im->scope, n->input[i]))
			return false;
		o->in[i] = im->scope->operand[n->input[i]];
	}
	while (o->ins && !o->in[o->ins - 1].given)
		o->ins--;
	return true;
}

static bool keep_outputs(struct onnx_importer *im, const struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++) {
		if (o->node->output[i] < 0 || !im->scope->needed[o->node->output[i]])
			continue;
		if (!o->out[i].given)
			return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "its output %d is not computed",
					      i);
		if (!onnx_check_extents(o, &o->out[i].shape))
			return false;
		im->scope->operand[o->node->output[i]] = o->out[i];
	}
	return true;
}

/* Nothing is written, and nothing said of it, where an operator lacks an input that it needs. */
static bool check_written(const struct onnx_importer *im, const struct onnx_op *o, bool written)
{
	for (int i = 0; i < o->outs; i++)
		written &= !o->out[i].given || o->out[i].source || o->out[i].id;
	return written || im->diags->n ||
	       onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "an input that it needs is left out");
}

static bool write_operator(struct onnx_importer *im, struct onnx_op *o)
{
	bool folded = false;
	if (!has_graphs(o->node) && onnx_is_foldable(o) && !onnx_fold_node(im, o, &folded))
		return false;
	return folded || o->row->write(o);
}

static bool write_node(struct onnx_importer *im, const struct onnx_node *n)
{
	struct onnx_op o = {.importer = im,
			    .arena = im->arena,
			    .diags = im->diags,
			    .graph = im->scope->graph,
			    .node = n,
			    .target = &im->target};
	if (!find_inputs(im, &o))
		return false;
	o.row = onnx_find_operator(im->diags, o.graph, n,
				   o.ins && o.in[0].given ? o.in[0].type : ONNX_UNKNOWN_TYPE);
	if (!o.row || !onnx_check_attributes(&o))
		return false;
	if (n->outputs > ONNX_OUTPUT_LIMIT)
		return onnx_op_refuse(&o, DIAG_ONNX_OPERATOR, NULL, "it has more than %d outputs",
				      ONNX_OUTPUT_LIMIT);
	o.out = ARENA_ARRAY(im->arena, struct onnx_operand, n->outputs + 1);
	o.outs = needed_outputs(im, n);
	bool written = write_operator(im, &o);
	return check_written(im, &o, written) && written && keep_outputs(im, &o);
}

/* --- the whole --- */

static bool write_outputs(struct onnx_importer *im)
{
	const struct onnx_op o = {
	    .arena = im->arena, .diags = im->diags, .graph = im->scope->graph, .target = &im->target};
	if (!im->whole->outputs)
		return diag_add(im->diags, DIAG_ONNX_GRAPH, (struct diag_at){.file = im->whole->file},
				"name values that are to be computed, with --outputs",
				"the graph has no outputs");
	ra_builder_body(im->target.builder, RA_BODY_OUTPUT);
	for (size_t i = 0; i < im->scope->graph->outputs; i++) {
		int value = im->scope->graph->output[i];
		if (!find_operand(im, im->scope, value))
			return false;
		uint32_t id = onnx_use(&o, &im->scope->operand[value]);
		if (!id)
			return false;
		ra_builder_output(im->target.builder,
				  onnx_spell_name(im->arena, im->scope->graph->value[value].name), id,
				  RA_AT_EVERY_NODE, NULL, 0);
	}
	return true;
}

static bool take_name(struct onnx_importer *im, const struct onnx_value *v)
{
	const char *name = onnx_spell_name(im->arena, v->name);
	return map_add(&im->target.names, name, strlen(name), ONNX_NAME_TAKEN) ||
	       refuse_value(im, v, DIAG_ONNX_NAME, "rename one of them",
			    "has the name of another input or output");
}

static bool take_output_names(struct onnx_importer *im)
{
	bool good = true;
	for (size_t i = 0; i < im->scope->graph->outputs; i++)
		good &= take_name(im, &im->scope->graph->value[im->scope->graph->output[i]]);
	return good;
}

/* Inputs are declared when they are first used: until then nothing else gets their names. */
static void reserve_input_names(struct onnx_importer *im)
{
	for (size_t i = 0; i < im->whole->inputs; i++) {
		const struct onnx_value *v = &im->whole->value[im->whole->input[i]];
		const char *name = onnx_spell_name(im->arena, v->name);
		if (!v->constant)
			map_add(&im->target.names, name, strlen(name), ONNX_NAME_OF_INPUT);
	}
}

/* Nodes of graphs count as often as they are written, and so do the graphs. */
static bool write_nodes(struct onnx_importer *im, const struct onnx_graph *g)
{
	const struct onnx_node *around = im->node;
	bool good = true;
	for (size_t n = 0; good && n < g->nodes; n++) {
		im->node = &g->node[n];
		im->arena->limit += ONNX_IMPORT_OF_NODE;
		good = ++im->written <= ONNX_MAX_WRITTEN ? write_node(im, im->node)
							 : onnx_refuse(im->diags, g, im->node, DIAG_MODEL_LARGE, NULL,
								       "with graphs of nodes, more than %d nodes are written",
								       ONNX_MAX_WRITTEN);
	}
	im->node = around;
	return good;
}

static struct onnx_scope *open_scope(struct onnx_importer *im, const struct onnx_graph *g)
{
	struct onnx_scope *scope = ARENA_NEW(im->arena, struct onnx_scope);
	*scope = (struct onnx_scope){.graph = g,
				     .around = im->scope,
				     .operand = ARENA_ARRAY(im->arena, struct onnx_operand, g->values + 1),
				     .needed = ARENA_ARRAY(im->arena, bool, g->values + 1)};
	onnx_mark_needed(g, scope->needed);
	return scope;
}

/* The first inputs of a graph are operands. */
static bool set_inputs(struct onnx_scope *scope, const struct onnx_op *o, const struct onnx_operand *in, int ins)
{
	if (scope->graph->inputs < (size_t)ins)
		return onnx_op_refuse(o, DIAG_ONNX_GRAPH, NULL, "its graph has fewer than %d inputs", ins);
	for (int i = 0; i < ins; i++)
		scope->operand[scope->graph->input[i]] = in[i];
	return true;
}

static bool take_outputs(struct onnx_importer *im, struct onnx_operand *out)
{
	const struct onnx_graph *g = im->scope->graph;
	for (size_t i = 0; i < g->outputs; i++) {
		if (!find_operand(im, im->scope, g->output[i]))
			return false;
		out[i] = im->scope->operand[g->output[i]];
	}
	return true;
}

bool onnx_write_graph(const struct onnx_op *o, const struct onnx_graph *g, const struct onnx_operand *in, int ins,
		      struct onnx_operand *out)
{
	struct onnx_importer *im = o->importer;
	struct onnx_scope *around = im->scope, *scope = open_scope(im, g);
	if (++im->written > ONNX_MAX_WRITTEN)
		return onnx_op_refuse(o, DIAG_MODEL_LARGE, NULL, "it writes more than %d graphs and nodes", ONNX_MAX_WRITTEN);
	im->scope = scope;
	bool good = set_inputs(scope, o, in, ins) && write_nodes(im, g) && take_outputs(im, out);
	im->scope = around;
	return good;
}

/* Callers see inputs and outputs under the names that the graph has. */
static void set_source_names(const struct onnx_importer *im, struct ra_model *model)
{
	const struct onnx_graph *g = im->whole;
	for (size_t i = 0; i < model->outputs.n; i++)
		model->outputs.at[i].source_name = arena_string(im->arena, g->value[g->output[i]].name);
	for (size_t i = 0; i < model->inputs.n; i++)
		for (size_t k = 0; k < g->inputs; k++) {
			const char *name = g->value[g->input[k]].name;
			if (strcmp(onnx_spell_name(im->arena, name), model->inputs.at[i].name) == 0)
				model->inputs.at[i].source_name = arena_string(im->arena, name);
		}
}

static bool has_input_from(const struct ra_model *model, const char *name)
{
	for (size_t i = 0; i < model->inputs.n; i++)
		if (strcmp(model->inputs.at[i].source_name, name) == 0)
			return true;
	return false;
}

/* Lists the inputs of the graph that callers may give, and the model lacks. */
static void list_unread(const struct onnx_importer *im, const struct ra_model *model)
{
	const struct onnx_graph *g = im->whole;
	const struct onnx_value **unread = ARENA_ARRAY(im->arena, const struct onnx_value *, g->inputs + 1);
	im->out->unread = unread;
	for (size_t i = 0; i < g->inputs; i++) {
		const struct onnx_value *v = &g->value[g->input[i]];
		if (!v->constant && !has_input_from(model, v->name))
			unread[im->out->unreads++] = v;
	}
}

/* Lists the operators of the graph, but for constants. */
static void set_layers(const struct onnx_importer *im, struct ra_model *model)
{
	for (size_t n = 0; n < im->whole->nodes; n++) {
		const struct onnx_node *node = &im->whole->node[n];
		struct ra_layer layer = {arena_string(im->arena, node->op), arena_string(im->arena, node->name)};
		if (strcmp(node->op, "Constant") != 0)
			vec_push(im->arena, &model->layers, layer);
	}
}

static bool write_whole(struct onnx_importer *im)
{
	im->scope = open_scope(im, im->whole);
	im->axis = free_prefix(im->arena, im->whole, "i");
	im->reduced = free_prefix(im->arena, im->whole, "r");
	if (!onnx_start_target(im, im->arena, &im->target) || !take_output_names(im))
		return false;
	reserve_input_names(im);
	if (!write_nodes(im, im->whole) || !write_outputs(im))
		return false;
	struct ra_model *model = onnx_finish_target(&im->target);
	*im->out = (struct onnx_model){.model = model, .weight = im->target.weights.at, .weights = im->target.weights.n};
	if (!model)
		return false;
	set_source_names(im, model);
	list_unread(im, model);
	set_layers(im, model);
	return true;
}

/* --- the bound --- */

static bool refuse_memory(const struct onnx_importer *im, size_t most)
{
	static const char hint[] = "extents far beyond the tensors of the file are at fault, or a sequence is very "
				   "long: give other sizes, or let the model compute it when it runs";
	const long long mebibytes = (long long)(most >> 20);
	if (im->node)
		return onnx_refuse(im->diags, im->scope->graph, im->node, DIAG_MODEL_LARGE, hint,
				   "with it the import takes more than %lld MiB", mebibytes);
	return diag_add(im->diags, DIAG_MODEL_LARGE, (struct diag_at){.file = im->whole->file}, hint,
			"the import takes more than %lld MiB", mebibytes);
}

static void begin_attempt(struct onnx_importer *im)
{
	diags_free(im->diags);
	arena_free(&im->scratch);
	im->arena->limit = im->arena->bytes + ONNX_IMPORT_LEAST + ONNX_IMPORT_MULTIPLE * (size_t)im->whole->bytes;
	im->written = 0;
	im->evaluated = 0;
	im->scope = NULL;
	im->node = NULL;
	im->attempts.again = im->attempts.scans = false;
}

/* Where a body cannot be a step, its iterations are unrolled in the next attempt.  Where the rest of the graph fails
 * that scans are part of, perhaps because it needs constants that a loop computes, all iterations are. */
static bool write_attempts(struct onnx_importer *im)
{
	struct onnx_attempts *t = &im->attempts;
	const struct arena before = *im->arena;
	for (;;) {
		begin_attempt(im);
		if (write_whole(im))
			return true;
		if (t->unroll || !t->scans)
			return false;
		if (!t->again)
			diags_move(&t->before, &t->said);
		t->unroll = !t->again || t->n == ONNX_MAX_UNROLLED;
		arena_rewind(im->arena, &before);
	}
}

/* What is said of a graph that is too large when it is unrolled was said before, of the graph with scans. */
static void report_attempts(struct onnx_attempts *t, struct diags *diags)
{
	bool large = t->said.n && t->said.at[0].id == DIAG_MODEL_LARGE;
	diags_move(diags, large && t->before.n ? &t->before : &t->said);
	diags_free(&t->before);
	diags_free(&t->said);
}

/* Writes the graph in as much memory as may be taken.  Escapes as the arena does when other memory is out. */
static bool write_bounded(struct onnx_importer *im, struct diags *diags)
{
	struct arena *a = im->arena;
	jmp_buf escape, *const outer = a->escape;
	const size_t limit = a->limit, before = a->bytes;
	volatile bool good = false, done = false;
	arena_init(&im->scratch, a->allocator);
	if (!arena_guard(a, &escape)) {
		good = write_attempts(im);
		done = true;
	}
	const bool full = a->full || im->scratch.full;
	const size_t most = a->limit - before;
	a->escape = outer;
	a->limit = limit;
	a->full = false;
	arena_free(&im->scratch);
	if (!done && full)
		good = refuse_memory(im, most);
	report_attempts(&im->attempts, diags);
	if (!done && !full)
		arena_escape(a);
	return good;
}

bool onnx_import(struct arena *a, struct diags *diags, const struct onnx_graph *graph, struct onnx_model *out)
{
	struct onnx_importer *im = ARENA_NEW(a, struct onnx_importer);
	*im = (struct onnx_importer){.arena = a, .diags = &im->attempts.said, .whole = graph, .out = out};
	diags_init(&im->attempts.said, diags->allocator);
	diags_init(&im->attempts.before, diags->allocator);
	return write_bounded(im, diags);
}
