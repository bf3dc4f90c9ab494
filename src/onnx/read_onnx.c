/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* From bytes to messages: models, single tensors. */
#include "onnx/reading.h"
#include "onnx/scan_bytes.h"

#include <string.h>

/* Whether nothing but these bytes and more memory was asked for. */
static void *unpack(struct onnx_reading *r, const ProtobufCMessageDescriptor *d, const void *bytes, size_t n)
{
	if (!onnx_scan_bytes(r->diags, r->file, d, &onnx__node_proto__descriptor, bytes, n))
		return NULL;
	ProtobufCMessage *message = onnx_unpack(r->arena, d, bytes, n);
	if (!message)
		onnx_report(r, DIAG_BAD_ONNX, NULL, "'%s' is no %s of ONNX", r->file, d->short_name);
	return message;
}

/* --- versions --- */

static bool read_opset(struct onnx_reading *r, const Onnx__OperatorSetIdProto *from, struct onnx_opset *to)
{
	const char *domain = onnx_text_of(from->domain);
	*to = (struct onnx_opset){strcmp(domain, "ai.onnx") == 0 ? "" : domain, from->version};
	for (const struct onnx_opset *before = r->opset; before < to; before++)
		if (strcmp(before->domain, to->domain) == 0)
			return onnx_report(r, DIAG_ONNX_OPSET, NULL,
					   "operators of the domain '%.100s' are imported twice", to->domain);
	if (*to->domain ? to->version >= 1 : to->version >= 1 && to->version <= ONNX_LAST_OPSET)
		return true;
	return onnx_report(
	    r, DIAG_ONNX_OPSET, "convert the model: onnx.version_converter.convert_version(model, 21)",
	    "the model asks for version %lld of the operators of %s%.100s%s; supported are 1 to %d",
	    (long long)to->version, *to->domain ? "'" : "the standard", to->domain, *to->domain ? "'" : "",
	    ONNX_LAST_OPSET);
}

/* Before version 3 of the format models imported nothing, and had version 1 of the standard's operators.  Later
 * ones say it, at the end of most files. */
static bool read_opsets(struct onnx_reading *r)
{
	size_t n = r->model->n_opset_import;
	struct onnx_opset *opset = ARENA_ARRAY(r->arena, struct onnx_opset, n + 1);
	r->opset = opset;
	if (n > ONNX_MAX_DOMAINS)
		return onnx_report(r, DIAG_ONNX_OPSET, NULL,
				   "operators of %zu domains are imported; at most %d are read", n,
				   ONNX_MAX_DOMAINS);
	for (size_t i = 0; i < n; i++)
		if (!read_opset(r, r->model->opset_import[i], &opset[i]))
			return false;
	if (!n && r->model->ir_version >= 3)
		return onnx_report(r, DIAG_ONNX_OPSET, "copy the file again: its end may be cut off",
				   "the model says of no version of operators that it was written for");
	if (!n)
		opset[n++] = (struct onnx_opset){"", 1};
	r->opsets = n;
	return true;
}

static bool read_model(struct onnx_reading *r, const void *bytes, size_t n, struct onnx_graph **out)
{
	r->model = unpack(r, &onnx__model_proto__descriptor, bytes, n);
	if (!r->model || !read_opsets(r))
		return false;
	if (!r->model->graph)
		return onnx_report(r, DIAG_BAD_ONNX, NULL, "'%s' has no graph", r->file);
	if (r->model->n_functions)
		return onnx_report(
		    r, DIAG_BAD_ONNX,
		    "write their operators in their places: onnx.inliner.inline_local_functions(model)",
		    "the model has functions of its own, as '%.100s', which are not supported",
		    onnx_text_of(r->model->functions[0]->name));
	*out = onnx_make_graph(r, NULL, r->model->graph);
	return *out;
}

bool onnx_read_graph(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n,
		     const struct onnx_choices *choices, struct onnx_graph **out)
{
	struct onnx_reading r = {
	    .arena = arena, .diags = diags, .file = arena_string(arena, file), .choices = choices};
	r.used = ARENA_ARRAY(arena, bool, choices ? choices->sizes + 1 : 1);
	*out = NULL;
	if (!read_model(&r, bytes, n, out))
		return false;
	(*out)->bytes = (int64_t)n + r.external;
	return true;
}

bool onnx_read_tensor(struct arena *arena, struct diags *diags, const char *file, const void *bytes, size_t n,
		      struct onnx_tensor *out)
{
	struct onnx_reading r = {.arena = arena, .diags = diags, .file = arena_string(arena, file)};
	const Onnx__TensorProto *t = unpack(&r, &onnx__tensor_proto__descriptor, bytes, n);
	return t && onnx_make_tensor(&r, "the tensor", t, out);
}
