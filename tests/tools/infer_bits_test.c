/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random structures with inputs of all types, as arrays and as bodies, flat and in lists: results have the
 * bits of esp_session_run with the arrays, also in the text of the response. */
#include "serve/body.h"
#include "tests/tools/served.h"

#include <jansson.h>

static const char typed_model[] =
    "model kinds\n"
    "structure dag(*)\n"
    "input word : token, x[3], y[3, 3], half[3] : f16, brain[3] : bf16, mask[3] : bool\n"
    "input small : i8, tiny : u8, middle : i16, kind : i32, large : i64\n"
    "edge rel : token\n"
    "edge gain[3]\n"
    "param E[V, 3]\n"
    "state h[3]\n"
    "state size : i64\n"
    "node:\n"
    "    h = where(mask, E[word], 0) + y @ x + half + brain * 3 + cast(small + cast(tiny, i32) + middle, "
    "f32) * 0.01 + "
    "sum(tanh(k.h) * 0.5 + E[k.rel] + k.gain for k in children)\n"
    "    size = large * 3 + cast(kind, i64) + sum(k.size for k in children)\n"
    "output all = h at every node\n"
    "output sizes = size at every node\n"
    "output flags = h > 1 at every node\n"
    "output low = cast(size, i32) at root\n"
    "output sums = tanh(h) at root\n";
static const float rows[] = {0.25f, 1, -2, 0.1f, 0.2f, 0.3f, 1e-3f, 7, 0, 3, 3, 0.7f};
static const struct tensor typed_weights[] = {{"E", 4, 3, rows}};

enum { NODES = 30, EDGES = 60, INPUTS = 16, MOST_ELEMENTS = EDGES * 9 };

/* A minibatch as arrays over all nodes and edges; numbers are rows. */
struct drawn {
	int32_t nodes, edges, structures;
	int32_t child_begin[NODES + 1], children[EDGES], begin[NODES + 1], root[NODES];
	union elements {
		float f32[MOST_ELEMENTS];
		int64_t i64[MOST_ELEMENTS];
		uint8_t bytes[MOST_ELEMENTS * 8];
	} data[INPUTS];
};

static uint64_t seed = 4101842887655102017u;

static uint64_t draw(void)
{
	seed ^= seed >> 21;
	seed ^= seed << 35;
	seed ^= seed >> 4;
	return seed * 2685821657736338717u >> 16;
}

/* --- what is drawn --- */

static void draw_element(union elements *to, const esp_input *in, size_t i)
{
	uint64_t v = draw();
	if (in->is_token)
		((int32_t *)to->bytes)[i] = (int32_t)(v % 4);
	else if (in->dtype == ESP_F32)
		to->f32[i] = (float)((double)(int64_t)(v % 2000001 - 1000000) / (v % 7 ? 1e6 : 3e-3 * 1e9));
	else if (in->dtype == ESP_F16)
		((uint16_t *)to->bytes)[i] =
		    (uint16_t)(v % 0x4400 | (v >> 20 & 0x8000)); /* below 4, denormals too */
	else if (in->dtype == ESP_BF16)
		((uint16_t *)to->bytes)[i] = (uint16_t)(v % 0x4080 | (v >> 20 & 0x8000));
	else if (in->dtype == ESP_BOOL)
		to->bytes[i] = v % 2;
	else
		memcpy(to->bytes + i * esp_dtype_size(in->dtype), &v, esp_dtype_size(in->dtype));
}

static void draw_data(struct drawn *d, const esp_program *p)
{
	const esp_input *in;
	for (size_t i = 0; (in = esp_program_input(p, i)); i++)
		for (size_t e = 0; e < in->elements * (in->on_edges ? d->edges : d->nodes); e++)
			draw_element(&d->data[i], in, e);
}

/* Children come before their parents. */
static void draw_structures(struct drawn *d, int structures, bool chains)
{
	d->nodes = d->edges = 0;
	d->structures = structures;
	for (int s = 0; s < structures; s++) {
		int first = d->nodes, nodes = 1 + (int)(draw() % (NODES / structures));
		d->begin[s] = first;
		for (int n = first; n < first + nodes; n++) {
			d->child_begin[n] = d->edges;
			for (int c = chains ? 1 : (int)(draw() % 3); n > first && c > 0 && d->edges < EDGES;
			     c--)
				d->children[d->edges++] =
				    chains ? n - 1 : first + (int)(draw() % (n - first));
		}
		d->nodes += nodes;
		d->root[s] = chains || draw() % 2 ? d->nodes - 1 : first + (int)(draw() % nodes);
	}
	d->child_begin[d->nodes] = d->edges;
	d->begin[structures] = d->nodes;
}

/* --- as a forest --- */

static bool add_all(esp_forest *f, const struct drawn *d, const esp_program *p)
{
	bool ok = true;
	for (int s = 0; s < d->structures; s++) {
		int32_t first = d->begin[s], end = d->begin[s + 1], begin[NODES + 1], children[EDGES];
		const void *data[INPUTS];
		const esp_input *in;
		for (int n = first; n <= end; n++)
			begin[n - first] = d->child_begin[n] - d->child_begin[first];
		for (int e = 0; e < begin[end - first]; e++)
			children[e] = d->children[d->child_begin[first] + e] - first;
		for (size_t i = 0; (in = esp_program_input(p, i)); i++)
			data[i] = d->data[i].bytes + (size_t)(in->on_edges ? d->child_begin[first] : first) *
							 in->elements * esp_dtype_size(in->dtype);
		esp_structure structure = {sizeof structure, end - first,	 begin,
					   children,	     d->root[s] - first, data};
		ok &= esp_forest_add(f, &structure, NULL) == ESP_OK;
	}
	return ok;
}

/* --- as a body --- */

static void put_lists(struct body *b, const void *elements, esp_dtype dtype, const size_t *shape, size_t rank)
{
	size_t row = esp_dtype_size(dtype);
	for (size_t i = 1; i < rank; i++)
		row *= shape[i];
	body_puts(b, "[");
	if (rank == 1)
		body_elements(b, elements, dtype, shape[0]);
	for (size_t i = 0; rank > 1 && i < shape[0]; i++) {
		body_puts(b, i ? ", " : "");
		put_lists(b, (const char *)elements + i * row, dtype, shape + 1, rank - 1);
	}
	body_puts(b, "]");
}

static const char *const datatypes[] = {NULL,	 "FP32",  "FP16",  "BF16",  "INT8",
					"UINT8", "INT16", "INT32", "INT64", "BOOL"};

static void put_tensor(struct body *b, const char *name, const void *elements, esp_dtype dtype,
		       const size_t *shape, size_t rank, bool flat)
{
	size_t all = 1;
	body_puts(b, b->text[b->n - 1] == '[' ? "{\"name\":\"" : ",\n{\"name\":\"");
	body_puts(b, name);
	body_puts(b, "\",\"shape\":[");
	for (size_t i = 0; i < rank; i++) {
		body_puts(b, i ? "," : "");
		body_integer(b, (int64_t)shape[i]);
		all *= shape[i];
	}
	body_puts(b, "],\"datatype\":\"");
	body_puts(b, datatypes[dtype]);
	body_puts(b, "\",\"data\":");
	put_lists(b, elements, dtype, flat ? &all : shape, flat ? 1 : rank);
	body_puts(b, "}");
}

static void put_indices(struct body *b, const char *name, const int32_t *v, size_t n)
{
	put_tensor(b, name, v, ESP_I32, &n, 1, true);
}

static char *write_request(const struct drawn *d, const esp_program *p, bool flat, bool chains)
{
	struct body b = {0};
	const esp_input *in;
	size_t n;
	body_puts(&b, "{\"inputs\":[");
	for (size_t i = 0; (in = esp_program_input(p, i)); i++) {
		size_t shape[8] = {in->on_edges ? d->edges : d->nodes};
		memcpy(shape + 1, in->shape, in->rank * sizeof *shape);
		put_tensor(&b, in->name, d->data[i].bytes, in->dtype, shape, in->rank + 1, flat);
	}
	if (!chains) {
		put_indices(&b, "children", d->children, d->edges);
		put_indices(&b, "child_begin", d->child_begin, d->nodes + 1);
		put_indices(&b, "root", d->root, d->structures);
	}
	if (d->structures > 1)
		put_indices(&b, "structure_begin", d->begin, d->structures + 1);
	body_puts(&b, "]}");
	return body_take(&b, &n);
}

/* --- comparison --- */

static bool same_element(const json_t *v, const void *row, esp_dtype dtype, size_t i)
{
	float f = (float)json_number_value(v);
	if (dtype == ESP_F32)
		return json_is_number(v) && memcmp(&f, (const float *)row + i, sizeof f) == 0;
	if (dtype == ESP_BOOL)
		return json_is_boolean(v) && json_is_true(v) == ((const uint8_t *)row)[i];
	return json_is_integer(v) && json_integer_value(v) == (dtype == ESP_I64 ? ((const int64_t *)row)[i]
										: ((const int32_t *)row)[i]);
}

/* Whether the response has the results of the session's last run, over structures in order. */
static bool same_results(const char *response, const struct served *s, const esp_forest *f)
{
	json_t *all = response ? json_loads(response, 0, NULL) : NULL,
	       *outputs = json_object_get(all, "outputs");
	const esp_output *out;
	bool ok = json_array_size(outputs) == esp_program_outputs(s->program);
	for (size_t o = 0; (out = esp_program_output(s->program, o)); o++) {
		const json_t *data = json_object_get(json_array_get(outputs, o), "data");
		size_t at = 0;
		for (size_t i = 0; i < esp_forest_structures(f); i++)
			for (size_t n = 0; n < (out->at_root ? 1 : esp_forest_nodes(f, i)); n++)
				for (size_t e = 0; e < out->elements; e++)
					ok &= same_element(json_array_get(data, at++),
							   esp_session_output_elements(s->session, o, i, n),
							   out->dtype, e);
		ok &= at == json_array_size(data);
	}
	json_decref(all);
	return ok;
}

static bool agrees(struct served *s, struct drawn *d, bool flat, bool chains)
{
	struct infer_failure why = {0};
	esp_forest *f;
	char *body = write_request(d, s->program, flat, chains), *response = NULL;
	bool ok = esp_forest_create(s->program, &f, NULL) == ESP_OK && add_all(f, d, s->program) &&
		  esp_session_run(s->session, f, NULL) == ESP_OK;
	response = respond(s, infer_parse(&s->model, NULL, NULL, body, strlen(body), &why), &why);
	ok = ok && same_results(response, s, f);
	if (!ok)
		printf("# %s\n# %s\n", body, response ? response : "");
	free(response);
	free(body);
	esp_forest_free(f);
	return ok;
}

static void test_agreement(struct served *s)
{
	static struct drawn d;
	bool one = true, many = true, chains = true;
	for (int i = 0; i < 60; i++) {
		int kind = i % 3;
		draw_structures(&d, kind == 0 ? 1 : 1 + (int)(draw() % 5), kind == 2);
		draw_data(&d, s->program);
		bool ok = agrees(s, &d, i / 3 % 2, kind == 2);
		one &= kind != 0 || ok;
		many &= kind != 1 || ok;
		chains &= kind != 2 || ok;
	}
	tap_ok(one,
	       "a structure as tensors of all types has the bits of a session's run, in both directions");
	tap_ok(many, "so have several");
	tap_ok(chains, "and those whose children are left out");
}

int main(void)
{
	struct served s;
	if (!make_folder()) {
		puts("Bail out! no temporary folder");
		return 99;
	}
	if (serve(&s, typed_model, typed_weights, 1, "a\nb\n"))
		test_agreement(&s);
	stop(&s);
	remove_folder((const char *const[]){"w.safetensors", "words.txt"}, 2);
	return tap_done();
}
