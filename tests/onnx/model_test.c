/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* ONNX files through the public interface: read, run by arrays with names, other weights, what the caller
 * decides. */
#include "api/espalier.h"
#include "tests/io/files.h"
#include "tests/onnx/messages.h"
#include "tests/onnx/runnable.h"

static esp_context *context;

static bool is_refused(esp_status status, esp_error **error, esp_status wanted, const char *id)
{
	const esp_diagnostic *d = esp_error_get(*error, 0);
	bool ok = status == wanted && d && strcmp(d->id, id) == 0;
	if (!ok)
		printf("# status %d: %s\n", status, esp_error_text(*error));
	esp_error_free(*error);
	return ok;
}

/* y = Relu(input + w) over `input`[N, 2], w[2] = (1.5, -2). */
static const char *write_model(void)
{
	static int64_t two = 2;
	static float numbers[2] = {1.5f, -2};
	Onnx__TensorShapeProto__Dimension dim[2], *dims[2] = {&dim[0], &dim[1]};
	Onnx__TensorShapeProto shape;
	Onnx__TypeProto__Tensor tensor;
	Onnx__TypeProto type;
	struct parts p;
	init_parts(&p, 13);
	put_node(&p, "", "Add", "input", "w", "sum");
	put_node(&p, "", "Relu", "sum", NULL, "y");
	put_input(&p, "input");
	put_output(&p, "y");
	put_tensor(&p, "w", &two, numbers, 2);
	onnx__type_proto__init(&type);
	onnx__type_proto__tensor__init(&tensor);
	onnx__tensor_shape_proto__init(&shape);
	for (int i = 0; i < 2; i++)
		onnx__tensor_shape_proto__dimension__init(&dim[i]);
	dim[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
	dim[0].dim_param = "N";
	dim[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	dim[1].dim_value = 2;
	shape.dim = dims;
	shape.n_dim = 2;
	tensor.has_elem_type = true;
	tensor.elem_type = 1;
	tensor.shape = &shape;
	type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	type.tensor_type = &tensor;
	p.input[0].type = &type;
	size_t n;
	uint8_t *bytes = pack_parts(&p, &n);
	const char *path = write_file("model.onnx", bytes, n);
	free(bytes);
	return path;
}

static void refuses_arrays(const struct runnable *r, esp_array a)
{
	esp_error *error;
	const size_t other[] = {3, 3}, twelve[] = {5, 3, 2};
	const float space[30] = {0};
	esp_array wrong = a, both[] = {a, a};
	a.elements = space;
	wrong.dtype = ESP_I32;
	tap_ok(
	    is_refused(esp_session_call(r->session, &wrong, 1, &error), &error, ESP_ERROR_INPUT, "bad-array"),
	    "another type is refused");
	wrong = a;
	wrong.shape = other;
	tap_ok(
	    is_refused(esp_session_call(r->session, &wrong, 1, &error), &error, ESP_ERROR_INPUT, "bad-array"),
	    "so is another shape");
	wrong = a;
	wrong.name = "z";
	tap_ok(
	    is_refused(esp_session_call(r->session, &wrong, 1, &error), &error, ESP_ERROR_INPUT, "bad-array"),
	    "and another name");
	tap_ok(is_refused(esp_session_call(r->session, both, 2, &error), &error, ESP_ERROR_INPUT, "bad-array"),
	       "and one twice");
	tap_ok(is_refused(esp_session_call(r->session, NULL, 0, &error), &error, ESP_ERROR_INPUT, "bad-array"),
	       "and none");
	wrong = a;
	wrong.shape = twelve;
	wrong.rank = 3;
	tap_ok(!esp_session_call(r->session, &wrong, 1, NULL) && esp_session_root(r->session, 0, 4) &&
		   !esp_session_root(r->session, 0, 5),
	       "an axis before those of the input is of rows");
}

static void runs(void)
{
	const esp_extent n = {"N", 3};
	const esp_read_options o = {.size = sizeof o, .extent = &n, .extents = 1};
	const float x[6] = {1, 2, 3, 4, -5, 6};
	const size_t shape[] = {3, 2};
	const esp_array a = {"input", ESP_F32, 2, shape, x};
	const char *path = write_model();
	struct runnable r;
	if (tap_ok(open_runnable(context, &r, path, &o, "interpreter"), "a file becomes a program with its own weights")) {
		tap_ok(esp_program_find_input(r.program, "input") == 0 &&
			   esp_program_find_input(r.program, "other") == 1 &&
			   esp_program_find_output(r.program, "y") == 0,
		       "inputs and outputs are found by the names of the graph");
		const float *y =
		    esp_session_call(r.session, &a, 1, NULL) ? NULL : esp_session_root(r.session, 0, 0);
		tap_ok(y && y[0] == 2.5f && y[1] == 0 && y[2] == 4.5f && y[3] == 2 && y[4] == 0 && y[5] == 4,
		       "it runs over an array");
		tap_ok(esp_weights_tensor(r.weights, 0) && esp_weights_elements(r.weights, 0) &&
			   !esp_weights_elements(r.weights, 1),
		       "elements of its tensors can be read");
		refuses_arrays(&r, a);
	}
	close_runnable(&r);
}

static void decides(void)
{
	const esp_extent n = {"N", 1};
	const char *sum = "sum";
	const float x[2] = {1, 1};
	const size_t shape[] = {1, 2};
	const esp_array a = {"input", ESP_F32, 2, shape, x};
	const esp_read_options exported = {
	    .size = sizeof exported, .extent = &n, .extents = 1, .exported = &sum, .exports = 1};
	struct runnable r;
	if (tap_ok(open_runnable(context, &r, write_model(), &exported, "interpreter"), "another value can be the output")) {
		const float *y =
		    esp_session_call(r.session, &a, 1, NULL) ? NULL : esp_session_root(r.session, 0, 0);
		tap_ok(y && y[0] == 2.5f && y[1] == -1, "and is computed");
	}
	close_runnable(&r);
	esp_model *m;
	esp_error *error;
	static const char source[] = "model m\nstructure none\ninput x[2]\noutput y = x + x\n";
	const char *text = write_file("m.ra", source, strlen(source));
	tap_ok(is_refused(esp_model_read_with(context, text, &exported, &m, &error), &error, ESP_ERROR_INPUT,
			  "onnx-choice") &&
		   !m,
	       "of a text there is nothing to decide");
	const esp_extent wrong = {"M", 1};
	const esp_read_options unknown = {.size = sizeof unknown, .extent = &wrong, .extents = 1};
	tap_ok(is_refused(esp_model_read_with(context, write_model(), &unknown, &m, &error), &error,
			  ESP_ERROR_INPUT, "onnx-choice") &&
		   !m,
	       "a size that no extent has is refused");
	const esp_array bad = {"input", ESP_F32, 2, NULL, x};
	const esp_read_options broken = {.size = sizeof broken, .constant = &bad, .constants = 1};
	tap_ok(is_refused(esp_model_read_with(context, write_model(), &broken, &m, &error), &error,
			  ESP_ERROR_ARGUMENT, "bad-argument") &&
		   !m,
	       "so is an array without a shape");
	esp_weights *w;
	tap_ok(!esp_model_read(context, text, &m, NULL) &&
		   is_refused(esp_model_weights(m, &w, &error), &error, ESP_ERROR_ARGUMENT, "bad-argument") &&
		   !w,
	       "a text has no weights");
	esp_model_free(m);
}

/* Memory fails at each of the first requests in turn, until reading succeeds. */
static int left;
static void *resize(void *user, void *p, size_t old, size_t size)
{
	(void)user, (void)old;
	if (size && left-- <= 0)
		return NULL;
	if (size)
		return realloc(p, size);
	free(p);
	return NULL;
}

static void fails_without_memory(void)
{
	const esp_context_options o = {
	    .size = sizeof o, .resize = resize, .cache = ESP_CACHE_OFF, .threads = 1};
	const esp_extent n = {"N", 1};
	const esp_read_options r = {.size = sizeof r, .extent = &n, .extents = 1};
	const char *path = write_model();
	esp_context *c;
	bool ok = true, done = false;
	for (int most = 0; most < 200 && ok && !done; most++) {
		left = 1000;
		esp_model *m = NULL;
		esp_weights *w = NULL;
		ok = esp_context_create(&o, &c, NULL) == ESP_OK;
		left = most;
		esp_status s = esp_model_read_with(c, path, &r, &m, NULL);
		if (!s)
			s = esp_model_weights(m, &w, NULL);
		ok &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		done = s == ESP_OK;
		esp_weights_free(w);
		esp_model_free(m);
		esp_context_free(c);
	}
	tap_ok(ok && done, "each request for memory that fails is an error");
}

int main(void)
{
	const esp_context_options o = {.size = sizeof o, .cache = ESP_CACHE_OFF, .threads = 1};
	begin_tests();
	if (esp_context_create(&o, &context, NULL) != ESP_OK)
		return 99;
	runs();
	decides();
	fails_without_memory();
	esp_context_free(context);
	return end_tests();
}
