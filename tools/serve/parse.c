/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The body of an inference request: {"id", "parameters", "inputs", "outputs"}. Members come in any order,
 * those that are not known are skipped. */
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parse {
	struct scan scan;
	const char *body;
	const struct infer_model *model;
	struct texts texts;
	struct infer_request *request;
	struct infer_failure *failure;
	size_t inputs;
	struct tensor *tensor; /* of the program's inputs, then structure tensors */
	bool has_inputs, has_outputs, has_parameters;
};

/* --- members --- */

static bool refuse_again(struct parse *p, struct span key)
{
	return refuse(p->failure, BAD_REQUEST, "the request has a second \"%.*s\"", SHOW(key));
}

static bool scan_id(struct parse *p, struct span key)
{
	struct span s;
	struct infer_request *r = p->request;
	if (r->id)
		return refuse_again(p, key);
	if (!scan_string(&p->scan, &s))
		return false;
	r->id = malloc(s.n + 1);
	if (!r->id)
		return refuse_memory(p->failure);
	r->id_length = span_copy(s, r->id);
	return true;
}

static bool scan_deadline(struct parse *p)
{
	struct number n;
	float ms;
	if (!scan_number(&p->scan, &n))
		return false;
	if (!number_float(&n, &ms) || !(ms > 0 && ms <= 1e9f))
		return refuse(
		    p->failure, BAD_REQUEST,
		    "parameter 'deadline_ms' must be a number of milliseconds above 0, at most 1000000000");
	p->request->options.deadline = esp_clock() + (int64_t)((double)ms * 1e6);
	return true;
}

static bool scan_priority(struct parse *p)
{
	struct number n;
	int64_t priority;
	if (!scan_number(&p->scan, &n))
		return false;
	if (!number_integer(&n, -1000, 1000, &priority))
		return refuse(p->failure, BAD_REQUEST,
			      "parameter 'priority' must be a whole number from -1000 to 1000");
	p->request->options.priority = (int)priority;
	return true;
}

static bool scan_parameters(struct parse *p, struct span key)
{
	bool first = true;
	struct span name;
	if (p->has_parameters)
		return refuse_again(p, key);
	p->has_parameters = true;
	if (!scan_expect(&p->scan, '{'))
		return false;
	while (scan_key(&p->scan, &name, &first)) {
		bool ok = span_is(name, "deadline_ms") ? scan_deadline(p)
			  : span_is(name, "priority")  ? scan_priority(p)
						       : scan_skip(&p->scan);
		if (!ok)
			return false;
	}
	return !p->scan.fault;
}

/* --- inputs --- */

/* A name as a text for free(); NULL after a failure. */
static char *copy_name(struct parse *p, struct span name)
{
	char *copy = malloc(name.n + 1);
	if (!copy) {
		refuse_memory(p->failure);
		return NULL;
	}
	copy[span_copy(name, copy)] = 0;
	return copy;
}

/* The number of a name among those that the program's inputs or outputs have in their ONNX graph, `n` where there is
 * none; -1 after a failure. */
static int find_graph_name(struct parse *p, struct span name, size_t n,
			   size_t (*find)(const esp_program *, const char *))
{
	char *copy = p->model->arrays ? copy_name(p, name) : NULL;
	if (p->model->arrays && !copy)
		return -1;
	size_t found = copy ? find(p->request->program, copy) : n;
	free(copy);
	return (int)found;
}

static bool refuse_input(struct parse *p, struct span name)
{
	struct body list = {0};
	size_t n;
	for (size_t i = 0; i < p->inputs; i++) {
		body_puts(&list, i ? ", " : "");
		body_puts(&list, esp_program_input(p->request->program, i)->name);
	}
	char *names = body_take(&list, &n);
	refuse(p->failure, BAD_REQUEST, "the model has no input '%.*s': tensors are %s%s%s", SHOW(name),
	       names ? names : "", p->inputs && !p->model->arrays ? ", " : "",
	       p->model->arrays ? ""
				: "child_begin, children, structure_begin, root; or structure alone");
	free(names);
	return false;
}

/* The place for a tensor of the name; NULL after a failure. */
static struct tensor *find_place(struct parse *p, struct span name)
{
	const esp_program *program = p->request->program;
	size_t places = p->inputs + (p->model->arrays ? 0 : STRUCTURE_TENSORS);
	for (size_t i = 0; i < places; i++) {
		const char *known =
		    i < p->inputs ? esp_program_input(program, i)->name : structure_tensor[i - p->inputs];
		if (span_is(name, known))
			return &p->tensor[i];
	}
	int at = find_graph_name(p, name, p->inputs, esp_program_find_input);
	if (at == (int)p->inputs)
		refuse_input(p, name);
	return at >= 0 && at < (int)p->inputs ? &p->tensor[at] : NULL;
}

static bool scan_inputs(struct parse *p, struct span key)
{
	bool first = true;
	struct tensor t;
	if (p->has_inputs)
		return refuse_again(p, key);
	p->has_inputs = true;
	if (!scan_expect(&p->scan, '['))
		return false;
	while (scan_more(&p->scan, ']', &first)) {
		if (!tensor_scan(&p->scan, &t, p->failure))
			return false;
		struct tensor *to = find_place(p, t.name);
		if (!to)
			return false;
		if (to->datatype.text)
			return refuse(p->failure, BAD_REQUEST, "tensor '%.*s' is there twice", SHOW(t.name));
		*to = t;
	}
	return !p->scan.fault;
}

/* --- outputs --- */

/* The number of an output, as many as there are where none has the name. */
static int find_output(const struct parse *p, struct span name)
{
	const esp_program *program = p->request->program;
	int n = (int)esp_program_outputs(program), o = p->model->arrays ? 0 : OUTPUT_BEGINS;
	while (o < n && !span_is(name, o < 0 ? structure_tensor[TENSOR_STRUCTURE_BEGIN]
					     : esp_program_output(program, o)->name))
		o++;
	return o;
}

static bool add_output(struct parse *p, struct span name)
{
	struct infer_request *r = p->request;
	int n = (int)esp_program_outputs(r->program), o = find_output(p, name);
	bool renamed = o == n;
	if (renamed && (o = find_graph_name(p, name, n, esp_program_find_output)) < 0)
		return false;
	if (o == n)
		return refuse(p->failure, BAD_REQUEST, "the model has no output '%.*s'", SHOW(name));
	for (size_t i = 0; i < r->outputs; i++)
		if (r->output[i].number == o)
			return refuse(p->failure, BAD_REQUEST, "output '%.*s' is asked for twice",
				      SHOW(name));
	char *copy = renamed ? copy_name(p, name) : NULL;
	r->output[r->outputs++] = (struct asked){o, copy};
	return !renamed || copy;
}

/* {"name", "parameters"} */
static bool scan_output(struct parse *p)
{
	struct span key, name = {0};
	bool first = true;
	if (!scan_expect(&p->scan, '{'))
		return false;
	while (scan_key(&p->scan, &key, &first)) {
		bool is_name = span_is(key, "name");
		if (is_name && name.text)
			return scan_fault(&p->scan, key.text, "an output has a second name");
		if (!(is_name ? scan_string(&p->scan, &name) : scan_skip(&p->scan)))
			return false;
	}
	if (p->scan.fault)
		return false;
	return name.text ? add_output(p, name)
			 : refuse(p->failure, BAD_REQUEST,
				  "an output has no \"name\": outputs are [{\"name\": ...}, ...]");
}

static bool scan_outputs(struct parse *p, struct span key)
{
	bool first = true;
	if (p->has_outputs)
		return refuse_again(p, key);
	p->has_outputs = true;
	if (!request_make_outputs(p->request, p->failure))
		return false;
	if (!scan_expect(&p->scan, '['))
		return false;
	while (scan_more(&p->scan, ']', &first))
		if (!scan_output(p))
			return false;
	return !p->scan.fault;
}

/* --- the object --- */

static bool scan_member(struct parse *p, struct span key)
{
	if (span_is(key, "id"))
		return scan_id(p, key);
	if (span_is(key, "parameters"))
		return scan_parameters(p, key);
	if (span_is(key, "inputs"))
		return scan_inputs(p, key);
	return span_is(key, "outputs") ? scan_outputs(p, key) : scan_skip(&p->scan);
}

static bool scan_request(struct parse *p)
{
	bool first = true;
	struct span key;
	if (!scan_expect(&p->scan, '{'))
		return false;
	while (scan_key(&p->scan, &key, &first))
		if (!scan_member(p, key))
			return false;
	if (!p->scan.fault && scan_peek(&p->scan))
		scan_fault(&p->scan, p->scan.at, "there is text behind the request");
	return !p->scan.fault &&
	       (p->has_inputs || refuse(p->failure, BAD_REQUEST, "the request has no \"inputs\""));
}

/* --- structures --- */

static bool add_text(void *user, size_t i, struct span s)
{
	struct parse *p = user;
	char where[60], *copy = s.escaped ? malloc(s.n + 1) : NULL;
	snprintf(where, sizeof where, "tensor 'structure', element %zu", i);
	if (s.escaped && !copy)
		return refuse_memory(p->failure);
	size_t n = copy ? span_copy(s, copy) : s.n;
	bool ok = texts_add(&p->texts, where, ESP_FORMAT_AUTO, copy ? copy : s.text, n, true);
	free(copy);
	return ok;
}

static bool read_texts(struct parse *p, const struct tensor *t)
{
	for (size_t i = 0; i < p->inputs + STRUCTURE_TENSORS; i++)
		if (p->tensor[i].datatype.text && &p->tensor[i] != t)
			return refuse(p->failure, BAD_REQUEST,
				      "the tensors 'structure' and '%.*s' exclude each other: texts say all "
				      "of a structure, and go alone",
				      SHOW(p->tensor[i].name));
	if (!span_is(t->datatype, "BYTES"))
		return refuse(p->failure, BAD_REQUEST,
			      "tensor 'structure' has the datatype '%.*s': it must be BYTES, an element for "
			      "each structure",
			      SHOW(t->datatype));
	if (!tensor_check_shape(t, ANY_ROWS, NULL, 0, p->failure) ||
	    !tensor_read_strings(t, add_text, p, p->failure))
		return false;
	return p->request->structures ||
	       refuse(p->failure, BAD_REQUEST,
		      "tensor 'structure' has no elements: there must be one at least");
}

/* A model whose input has the name of a structure tensor is not for the protocol. */
static bool check_names(const struct parse *p)
{
	for (size_t i = 0; !p->model->arrays && i < p->inputs * STRUCTURE_TENSORS; i++) {
		const char *name = structure_tensor[i % STRUCTURE_TENSORS];
		if (strcmp(esp_program_input(p->request->program, i / STRUCTURE_TENSORS)->name, name) == 0)
			return refuse(
			    p->failure, 500,
			    "the model has an input '%s', as a tensor that describes structures is called: "
			    "rename it, or send texts to v1/run",
			    name);
	}
	return true;
}

static bool parse_body(struct parse *p)
{
	if (!check_names(p))
		return false;
	if (!scan_request(p))
		return p->scan.fault
			   ? refuse(p->failure, BAD_REQUEST, "the body is no request in JSON: byte %zu: %s",
				    (size_t)(p->scan.fault_at - p->body), p->scan.fault)
			   : false;
	const struct tensor *text = &p->tensor[p->inputs + TENSOR_STRUCTURE];
	return (text->datatype.text ? read_texts(p, text) : gather_structures(&p->texts, p->tensor)) &&
	       (p->request->outputs ||
		request_all_outputs(p->request, p->failure));
}

static bool check_type(const char *type, struct infer_failure *f)
{
	return !type || is_type(type, "application/json") ||
	       is_type(type, "application/x-www-form-urlencoded") ||
	       refuse(f, BAD_TYPE, "Content-Type is application/json here, not '%.80s'", type);
}

struct infer_request *infer_parse(const struct infer_model *model, const struct infer_limits *limits,
				  const char *type, const char *body, size_t bytes,
				  struct infer_failure *failure)
{
	struct infer_limits most = limits_of(limits);
	if (!check_type(type, failure))
		return NULL;
	struct infer_request *r = check_bytes(&most, bytes, failure) ? request_new(model, failure) : NULL;
	if (!r)
		return NULL;
	struct parse p = {.scan = {.at = body, .end = body + bytes},
			  .body = body,
			  .model = model,
			  .texts = {model, &most, r, failure},
			  .request = r,
			  .failure = failure,
			  .inputs = esp_program_inputs(model->program)};
	p.tensor = calloc(p.inputs + STRUCTURE_TENSORS, sizeof *p.tensor);
	bool ok = (p.tensor || refuse_memory(failure)) && parse_body(&p);
	free(p.tensor);
	if (ok)
		return r;
	infer_free(r);
	return NULL;
}
