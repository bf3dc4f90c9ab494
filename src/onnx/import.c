/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From a checked graph to a model without a structure: a batch has one row, which holds whole tensors. */
#include "onnx/import.h"

static bool refuse_value(const struct onnx_importer *im, const struct onnx_value *v, enum diag_id id,
			 const char *hint, const char *what)
{
	return diag_add(im->diags, id, (struct diag_at){.file = im->graph->file}, hint, "'%.120s' %s",
			v->name, what);
}

/* --- names --- */

static bool collides(const struct onnx_importer *im, const char *prefix)
{
	size_t n = strlen(prefix);
	for (size_t i = 0; i < im->graph->values; i++) {
		const char *name = im->graph->value[i].name;
		if (strncmp(name, prefix, n) == 0 && name[n] >= '0' && name[n] <= '9')
			return true;
	}
	return false;
}

/* Names of indices that no value of the graph has. */
static const char *free_prefix(const struct onnx_importer *im, const char *letter)
{
	struct str s = str_in(im->arena);
	str_puts(&s, letter);
	while (collides(im, str_text(&s)))
		str_puts(&s, "_");
	return str_text(&s);
}

bool onnx_start_target(struct arena *a, struct diags *diags, const struct onnx_graph *graph,
		       struct onnx_target *t)
{
	const struct onnx_importer im = {.arena = a, .graph = graph};
	*t = (struct onnx_target){
	    .names = map_in(a), .axis = free_prefix(&im, "i"), .reduced = free_prefix(&im, "r")};
	t->builder =
	    ra_builder_new(a, diags, 1, onnx_spell_name(a, *graph->name ? graph->name : "graph"), "none");
	if (!t->builder)
		return false;
	ra_builder_at(t->builder, graph->file, 0);
	ra_builder_body(t->builder, RA_BODY_NODE);
	return true;
}

/* --- inputs and constants --- */

static bool take_constant(struct onnx_importer *im, const struct onnx_value *v, struct onnx_operand *x)
{
	const struct onnx_op o = {.arena = im->arena};
	if (!onnx_check_value(im->arena, im->diags, im->graph, v, v->constant->rank))
		return false;
	*x = onnx_constant(&o, v->constant);
	return true;
}

static bool find_operand(struct onnx_importer *im, int value)
{
	const struct onnx_value *v = &im->graph->value[value];
	if (im->operand[value].given)
		return true;
	if (v->constant)
		return take_constant(im, v, &im->operand[value]);
	if (v->input >= 0)
		return onnx_take_input(im->arena, im->diags, im->graph, v, &im->operand[value]);
	return refuse_value(im, v, DIAG_ONNX_SHAPE, NULL, "is no value that a node of the graph computes");
}

/* --- nodes --- */

/* Marks the values that nodes or outputs need: the graph has no node in vain, but nodes have outputs that
 * nothing uses. */
static void mark_needed(struct onnx_importer *im)
{
	const struct onnx_graph *g = im->graph;
	for (size_t i = 0; i < g->outputs; i++)
		im->needed[g->output[i]] = true;
	for (size_t n = 0; n < g->nodes; n++)
		for (size_t i = 0; i < g->node[n].inputs; i++)
			if (g->node[n].input[i] >= 0)
				im->needed[g->node[n].input[i]] = true;
}

/* The outputs of a node up to the last that is needed. */
static int needed_outputs(const struct onnx_importer *im, const struct onnx_node *n)
{
	size_t outs = n->outputs;
	while (outs && (n->output[outs - 1] < 0 || !im->needed[n->output[outs - 1]]))
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
		if (!find_operand(im, n->input[i]))
			return false;
		o->in[i] = im->operand[n->input[i]];
	}
	while (o->ins && !o->in[o->ins - 1].given)
		o->ins--;
	return true;
}

static bool keep_outputs(struct onnx_importer *im, const struct onnx_op *o)
{
	for (int i = 0; i < o->outs; i++) {
		if (o->node->output[i] < 0 || !im->needed[o->node->output[i]])
			continue;
		if (!o->out[i].given)
			return onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "its output %d is not computed",
					      i);
		im->operand[o->node->output[i]] = o->out[i];
	}
	return true;
}

/* Nothing is written, and nothing said of it, where an operator lacks an input that it needs. */
static bool check_written(const struct onnx_importer *im, const struct onnx_op *o, bool written)
{
	for (int i = 0; i < o->outs; i++)
		written &= !o->out[i].given || o->out[i].source || o->out[i].id;
	return written || im->diags->n > im->faults ||
	       onnx_op_refuse(o, DIAG_ONNX_OPERATOR, NULL, "an input that it needs is left out");
}

static bool write_node(struct onnx_importer *im, const struct onnx_node *n)
{
	struct onnx_op o = {
	    .arena = im->arena, .diags = im->diags, .graph = im->graph, .node = n, .target = &im->target};
	if (!find_inputs(im, &o))
		return false;
	o.row = onnx_find_operator(im->diags, im->graph, n,
				   o.ins && o.in[0].given ? o.in[0].type : ONNX_UNKNOWN_TYPE);
	if (!o.row || !onnx_check_attributes(&o))
		return false;
	if (n->outputs > ONNX_OUTPUT_LIMIT)
		return onnx_op_refuse(&o, DIAG_ONNX_OPERATOR, NULL, "it has more than %d outputs",
				      ONNX_OUTPUT_LIMIT);
	o.out = ARENA_ARRAY(im->arena, struct onnx_operand, n->outputs + 1);
	o.outs = needed_outputs(im, n);
	bool written = onnx_is_foldable(&o) ? onnx_fold_node(&o) : o.row->write(&o);
	return check_written(im, &o, written) && written && keep_outputs(im, &o);
}

/* --- the whole --- */

static bool write_outputs(struct onnx_importer *im)
{
	const struct onnx_op o = {
	    .arena = im->arena, .diags = im->diags, .graph = im->graph, .target = &im->target};
	ra_builder_body(im->target.builder, RA_BODY_OUTPUT);
	for (size_t i = 0; i < im->graph->outputs; i++) {
		int value = im->graph->output[i];
		if (!find_operand(im, value))
			return false;
		uint32_t id = onnx_use(&o, &im->operand[value]);
		ra_builder_output(im->target.builder,
				  onnx_spell_name(im->arena, im->graph->value[value].name), id,
				  RA_AT_EVERY_NODE, NULL, 0);
	}
	return true;
}

static bool take_name(struct onnx_importer *im, const struct onnx_value *v)
{
	const char *name = onnx_spell_name(im->arena, v->name);
	return map_add(&im->target.names, name, strlen(name), 0) ||
	       refuse_value(im, v, DIAG_ONNX_NAME, "rename one of them",
			    "has the name of another input or output");
}

static bool take_output_names(struct onnx_importer *im)
{
	bool good = true;
	for (size_t i = 0; i < im->graph->outputs; i++)
		good &= take_name(im, &im->graph->value[im->graph->output[i]]);
	return good;
}

static bool write_graph(struct onnx_importer *im)
{
	bool good = take_output_names(im);
	mark_needed(im);
	for (size_t n = 0; good && n < im->graph->nodes; n++)
		good = write_node(im, &im->graph->node[n]);
	return good && write_outputs(im);
}

bool onnx_import(struct arena *a, struct diags *diags, const struct onnx_graph *graph, struct onnx_model *out)
{
	struct onnx_importer im = {.arena = a, .diags = diags, .graph = graph, .faults = diags->n};
	im.operand = ARENA_ARRAY(a, struct onnx_operand, graph->values + 1);
	im.needed = ARENA_ARRAY(a, bool, graph->values + 1);
	if (!onnx_start_target(a, diags, graph, &im.target) || !write_graph(&im))
		return false;
	*out = (struct onnx_model){ra_builder_finish(im.target.builder), im.target.weights.at,
				   im.target.weights.n};
	return out->model != NULL;
}
