/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs as C: written to a folder, compiled alone by a compiler of C without a warning, and run, they give the bytes of
 * the interpreter; what cannot be written is refused.  With arguments: MODEL ["NAME=SIZE ..."] [vta] ... */
#include "api/objects.h"
#include "io/write.h"
#include "tests/api/support.h"
#include "tests/models/helper.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

enum { ROWS = 3, MOST = 16 };

/* A model and its sizes; weights are random. */
struct subject {
	const char *path, *sizes; /* as "D=5 E=3" */
	const char *text;	  /* NULL = it is in the file */
	const char *precision;	  /* NULL = as usual, as for the processor that it is for */
	const char *target;
	const char *accelerator;  /* NULL = the host alone */
	int64_t stack;		  /* rows of the program that one of the model's is; 0 = 1 */
	int special;		  /* one in so many weights and inputs is infinite, tiny or no number; 0 = none */
};

/* A recurrence along an axis, of floats and of integers. */
static const char scan_text[] = "model steps\nstructure none\ninput x[T, E], n[T] : i32\nparam W[E, D], U[D, D], place[T] : i32\n"
				"state p[T, D]\nnode:\n    p = x @ W\n"
				"traversal up over T\nstate h[D], i : i32\n"
				"leaf:\n    h = at_step(p)\n    i = at_step(n)\n"
				"inner:\n    h = tanh(at_step(p) + previous.h @ U)\n    i = 3 * previous.i + at_step(n) - at_step(place)\n"
				"output last[d] = h[T - 1, d]\noutput all = h\noutput sums = i\n";

/* Elements of every type, and operators of integers, of truth and of floats. */
static const char types_text[] =
    "model kinds\nstructure none\ninput x[E], n : i32, on : bool, b[E] : u8\n"
    "param W[D, E] : f16, V[D, E] : bf16, step[D] : i8, far[D] : i64\n"
    "node:\n    h = where(on, W @ x, -1)\n"
    "output y = exp(-abs(h)) + V @ x\noutput counts = step * n\noutput totals = far * 3 - cast(n, i64)\n"
    "output bytes[e] = cast(b[e], i32) + 1\noutput large = sum(h) > 0\n";

/* A batch of images, of which each is a row of the program. */
static const char bounded_text[] = "model bounded\nstructure none\ninput x[2, 5] within 8, z[2, 3] : f16 within 8\nparam W[D, 5]\n"
				   "output y = W @ x[0] + sum(z[1])\n";
static const char batch_text[] = "model batch\nstructure none\ninput x[4, C, 6, 6]\nparam W[K, C, 3, 3], V[K, K]\nnode:\n"
				 "    a[b, k, i, j] = sum(W[k, c, u, v] * x[b, c, i + u - 1, j + v - 1] for c, u, v)\n"
				 "    m[b, k] = sum(a[b, k, i, j] for i, j) * 0.25\n"
				 "output y = maximum(a, 0)\noutput z[b, l] = sum(V[k, l] * m[b, k] for k)\n";

/* Products of bytes with a zero point, in rows that are stacks: requantised by the accelerator and by the host, of several blocks and
 * of fewer channels than one has. */
static const char quantised_text[] =
    "model quantised\n"
    "structure none\n"
    "input x[2, 3, 7, 6] : u8\n"
    "param w0[20, 3, 3, 3] : i8\n"
    "param b0[20, 1, 1] : i32\n"
    "param w1[5, 20, 1, 1] : i8\n"
    "param w2[5, 3, 3] : i8\n"
    "node:\n"
    "    s0[i0, i1, i2 in 4, i3 in 3] = sum(w0[i1, r1, r2, r3] * (x - 121)[i0, r1, 2*i2 + r2 - 1, 2*i3 + r3 - 1] for r1, r2, r3)\n"
    "    q0 = cast(minimum(maximum(round(cast(s0 + b0, f32) * 0.0009765625) + 7, 0), 255), i32)\n"
    "    s1[i0, i1, i2 in 4, i3 in 3] = sum(w1[i1, r1, r2, r3] * (q0 - 7)[i0, r1, i2 + r2, i3 + r3] for r1, r2, r3)\n"
    "    q1 = cast(minimum(maximum(round(cast(s1, f32) * 0.00138671875) + -40, -128), 127), i32)\n"
    "    s2[i0, i1, i2 in 4, i3 in 3] = sum(w2[i1, r2, r3] * (q1 + 40)[i0, i1, i2 + r2 - 1, i3 + r3 - 1] for r2, r3)\n"
    "    q2 = cast(minimum(maximum(round(cast(s2, f32) * 0.00390625) + 3, -128), 127), i32)\n"
    "output y0 = q0\n"
    "output y2 = q2\n";

/* What a program is run with, and what it gives. */
struct trial {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	void *in[MOST];
	char where[64];
};

static bool report(bool ok, esp_error *error)
{
	if (!ok)
		printf("# %s", error ? esp_error_text(error) : "no error\n");
	esp_error_free(error);
	return ok;
}

static const char *file_of(const struct trial *t, const char *name)
{
	static char path[4][400];
	static int next;
	char *to = path[next++ % 4];
	snprintf(to, sizeof path[0], "%s/%s", t->where, name);
	return to;
}

/* A file of the trial's folder with this text. */
static const char *write_model(const struct trial *t, const char *text)
{
	const char *path = file_of(t, "model.ra");
	FILE *f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
	return path;
}

static bool write_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(bytes, 1, n, f) == n;
	return f && fclose(f) == 0 && ok;
}

/* --- weights, inputs --- */

static struct io_tensor draw_parameter(const struct trial *t, struct arena *a, size_t i, const int64_t *sizes)
{
	size_t rank, elements = 1;
	struct io_tensor p = {.dtype = t->model->graph->params.at[i].dtype};
	p.name = esp_model_param(t->model, i, sizes, p.shape, TENSOR_MAX_RANK, &rank);
	p.rank = (int)rank;
	for (size_t d = 0; d < rank; d++)
		elements *= (size_t)p.shape[d];
	void *values = arena_take(a, elements + 1, 8);
	put_elements(p.dtype, (int)i, 0, (int64_t)elements, values);
	p.values = values;
	return p;
}

/* Draws the parameters of a model and writes them to a file; those of 8 bytes stand first. */
static bool draw_weights(struct trial *t, const int64_t *sizes, struct arena *a, struct diags *d)
{
	size_t params = t->model->graph->params.n;
	struct io_tensor *tensor = ARENA_ARRAY(a, struct io_tensor, params + 1);
	int n = 0;
	for (int wide = 1; wide >= 0; wide--)
		for (size_t i = 0; i < params; i++)
			if ((t->model->graph->params.at[i].dtype == DTYPE_I64) == wide)
				tensor[n++] = draw_parameter(t, a, i, sizes);
	return io_safetensors_write(a, d, file_of(t, "w.safetensors"), tensor, n);
}

static size_t row_bytes(const esp_input *in)
{
	return in->elements * esp_dtype_size(in->dtype);
}

/* Draws rows of all inputs, for the call and for the program in C. */
static bool draw_inputs(struct trial *t)
{
	bool ok = true;
	for (size_t i = 0; i < esp_program_inputs(t->program); i++) {
		const struct image_input *in = &t->program->interface.input[i];
		int64_t n = ROWS * (int64_t)esp_program_input(t->program, i)->elements;
		char name[32];
		t->in[i] = malloc(n * 8 + 1);
		put_elements(in->dtype, FIRST_CARRIED + (int)i, 0, n, t->in[i]);
		for (int64_t k = 0; in->limit && k < n; k++)
			((int32_t *)t->in[i])[k] = random_below((int)in->limit);
		snprintf(name, sizeof name, "in%zu", i);
		ok &= write_bytes(file_of(t, name), t->in[i], ROWS * row_bytes(esp_program_input(t->program, i)));
	}
	return ok;
}

static bool call_session(struct trial *t, esp_error **error)
{
	esp_array array[MOST];
	size_t shape[MOST][8], inputs = esp_program_inputs(t->program);
	for (size_t i = 0; i < inputs; i++) {
		const esp_input *in = esp_program_input(t->program, i);
		shape[i][0] = ROWS;
		memcpy(shape[i] + 1, in->shape, in->rank * sizeof *in->shape);
		array[i] = (esp_array){in->name, in->dtype, in->rank + 1, shape[i], t->in[i]};
	}
	return !esp_session_call(t->session, array, inputs, error);
}

/* --- the program in C --- */

static const char *type_of(esp_dtype t)
{
	static const char *const type[] = {[ESP_F32] = "float",   [ESP_F16] = "uint16_t", [ESP_BF16] = "uint16_t", [ESP_I8] = "int8_t",
					   [ESP_U8] = "uint8_t",  [ESP_I16] = "int16_t",  [ESP_I32] = "int32_t",   [ESP_I64] = "int64_t",
					   [ESP_BOOL] = "uint8_t"};
	return type[t];
}

static void declare_argument(FILE *f, const char *kind, size_t i, esp_dtype type, size_t elements)
{
	fprintf(f, "static %s %s%zu[%zu];\n", type_of(type), kind, i, elements * ROWS + 1);
}

static void transfer_argument(FILE *f, const char *function, const char *kind, size_t i, const char *mode)
{
	fprintf(f, "\tf = fopen(\"%s%zu\", \"%s\");\n\tif (!f || %s(%s%zu, 1, sizeof %s%zu - sizeof *%s%zu, f) != sizeof %s%zu - sizeof *%s%zu || fclose(f))\n\t\treturn 9;\n",
		kind, i, mode, function, kind, i, kind, i, kind, i, kind, i, kind, i);
}

static void call_run(FILE *f, const struct trial *t, const char *rows)
{
	fprintf(f, "subject_run(%s", rows);
	for (size_t i = 0; i < esp_program_inputs(t->program); i++)
		fprintf(f, ", in%zu", i);
	for (size_t i = 0; i < esp_program_outputs(t->program); i++)
		fprintf(f, ", out%zu", i);
	fprintf(f, ")");
}

/* A host: reads the inputs, runs, and writes the outputs; no rows, and fewer than none, are answered first. */
static bool write_host(const struct trial *t)
{
	FILE *f = fopen(file_of(t, "host.c"), "w");
	if (!f)
		return false;
	fputs("#include \"subject.h\"\n#include <stdio.h>\n", f);
	for (size_t i = 0; i < esp_program_inputs(t->program); i++)
		declare_argument(f, "in", i, esp_program_input(t->program, i)->dtype, esp_program_input(t->program, i)->elements);
	for (size_t i = 0; i < esp_program_outputs(t->program); i++)
		declare_argument(f, "out", i, esp_program_output(t->program, i)->dtype, esp_program_output(t->program, i)->elements);
	fputs("int main(void)\n{\n\tFILE *f;\n", f);
	for (size_t i = 0; i < esp_program_inputs(t->program); i++)
		transfer_argument(f, "fread", "in", i, "rb");
	fputs("\tif (", f);
	call_run(f, t, "0");
	fputs(" != subject_DONE || ", f);
	call_run(f, t, "-1");
	fputs(" != subject_BAD_ROWS)\n\t\treturn 8;\n\tint status = ", f);
	call_run(f, t, "3");
	fputs(";\n\tif (status)\n\t\treturn status;\n", f);
	for (size_t i = 0; i < esp_program_outputs(t->program); i++)
		transfer_argument(f, "fwrite", "out", i, "wb");
	fputs("\treturn 0;\n}\n", f);
	return fclose(f) == 0;
}

/* The status of a command in the folder of the trial, of which it shows the first lines when it fails. */
static int run_command(const struct trial *t, const char *command)
{
	char line[1000];
	snprintf(line, sizeof line, "cd %s && { %s; } >log 2>&1 || { s=$?; sed 's/^/# /; 5q' log; exit $s; }", t->where, command);
	fflush(stdout);
	int status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static const char *name_compiler(void)
{
	const char *cc = getenv("ESPALIER_CC");
	return cc ? cc : "cc";
}

static int compile_source(const struct trial *t, const char *usual)
{
	const char *options = getenv("ESPALIER_CC_OPTIONS");
	char line[400];
	snprintf(line, sizeof line, "%s -std=c11 -Wall -Wextra -Werror %s *.c -o host -lm", name_compiler(), options ? options : usual);
	return run_command(t, line);
}

static bool has_compiler(void)
{
	char line[400];
	snprintf(line, sizeof line, "%s --version >/dev/null 2>&1", name_compiler());
	return system(line) == 0;
}

/* --- comparison --- */

/* Which of several NaNs a sum gives is for the processor to choose. */
static void join_nans(const esp_output *out, void *row)
{
	float *f = row;
	for (size_t i = 0; out->dtype == ESP_F32 && i < out->elements; i++)
		f[i] = isnan(f[i]) ? NAN : f[i];
}

static bool same_row(const esp_output *out, void *row, const void *wanted)
{
	size_t bytes = out->elements * esp_dtype_size(out->dtype);
	void *copy = memcpy(malloc(bytes + 1), wanted, bytes);
	join_nans(out, row);
	join_nans(out, copy);
	bool same = memcmp(row, copy, bytes) == 0;
	free(copy);
	return same;
}

/* Whether the file of an output has the rows of the session. */
static bool compare_output(const struct trial *t, size_t o)
{
	const esp_output *out = esp_program_output(t->program, o);
	size_t bytes = out->elements * esp_dtype_size(out->dtype), different = 0;
	char name[32], *row = malloc(bytes + 1);
	snprintf(name, sizeof name, "out%zu", o);
	FILE *f = fopen(file_of(t, name), "rb");
	for (size_t r = 0; f && r < ROWS; r++)
		different += fread(row, 1, bytes, f) != bytes || !same_row(out, row, esp_session_root_elements(t->session, o, r));
	if (different)
		printf("# %zu of %d rows of %s differ\n", different, ROWS, out->name);
	bool ok = f && !different && fgetc(f) == EOF;
	if (f)
		fclose(f);
	free(row);
	return ok;
}

static bool compare_outputs(const struct trial *t)
{
	bool ok = esp_program_outputs(t->program) > 0;
	for (size_t o = 0; o < esp_program_outputs(t->program); o++)
		ok &= compare_output(t, o);
	return ok;
}

/* --- trials --- */

static void remove_files(struct trial *t)
{
	DIR *d = opendir(t->where);
	const struct dirent *e;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlink(file_of(t, e->d_name));
	if (d)
		closedir(d);
	rmdir(t->where);
}

static void close_trial(struct trial *t)
{
	esp_session_free(t->session);
	esp_binding_free(t->binding);
	esp_program_free(t->program);
	esp_weights_free(t->weights);
	esp_model_free(t->model);
	for (int i = 0; i < MOST; i++)
		free(t->in[i]);
	if (!getenv("ESPALIER_KEEP"))
		remove_files(t);
}

static bool make_weights(struct trial *t, const int64_t *sizes, esp_error **error)
{
	struct arena a;
	struct diags d;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	diags_init(&d, &allocator_default);
	bool ok = !arena_guard(&a, &jump) && draw_weights(t, sizes, &a, &d) &&
		  !esp_weights_open(t->context, file_of(t, "w.safetensors"), &t->weights, error);
	diags_free(&d);
	arena_free(&a);
	return ok;
}

/* The program, its weights and its results by the interpreter. */
static bool open_trial(struct trial *t, const struct subject *s)
{
	esp_error *error = NULL;
	strcpy(t->where, "/tmp/espalier-source-XXXXXX");
	if (!mkdtemp(t->where))
		return false;
	esp_program_options o = {.size = sizeof o, .backend = "interpreter", .precision = s->precision, .target = s->target, .accelerator = s->accelerator};
	struct test_model sized = {0};
	bool ok = !esp_model_read(t->context, s->text ? write_model(t, s->text) : s->path, &t->model, &error);
	special_each = s->special;
	if (ok && esp_model_weights(t->model, &t->weights, NULL)) { /* it is no file of a graph */
		sized.model = t->model->graph;
		set_sizes(&sized, s->sizes);
		ok = make_weights(t, sized.sizes, &error);
	}
	ok = ok && !esp_program_create(t->model, t->weights, &o, &t->program, &error) &&
	     !esp_binding_create(t->program, t->weights, &t->binding, &error) &&
	     !esp_session_create(t->binding, &t->session, &error) && draw_inputs(t) && call_session(t, &error);
	if (ok && s->stack && image_stack(&t->program->image) != s->stack)
		return tap_ok(false, "rows are stacks of %lld", (long long)s->stack);
	if (ok && s->accelerator && !t->program->image.calls)
		return tap_ok(false, "the accelerator computes a part");
	return report(ok, error);
}

static bool save_source(const struct trial *t, esp_error **error)
{
	esp_save_options o = {.size = sizeof o, .form = ESP_SAVE_SOURCE, .symbol = "subject", .weights = t->weights};
	return !esp_program_save(t->program, t->where, &o, error);
}

/* Compares what was computed by C with what the host computes alone. */
static bool compare_with_host(const struct trial *t)
{
	struct trial host = *t;
	esp_error *error = NULL;
	esp_program_options o = {.size = sizeof o, .backend = "interpreter"};
	bool ok = !esp_program_create(t->model, t->weights, &o, &host.program, &error) &&
		  !esp_binding_create(host.program, t->weights, &host.binding, &error) &&
		  !esp_session_create(host.binding, &host.session, &error) && call_session(&host, &error) && compare_outputs(&host);
	esp_session_free(host.session);
	esp_binding_free(host.binding);
	esp_program_free(host.program);
	return report(ok, error);
}

/* Another device in place of the executor, which refuses: the program says so. */
static bool refuse_device(const struct trial *t)
{
	static const char device[] = "#include \"subject_device.h\"\n"
				     "int subject_device_run(const unsigned char *i, size_t n, unsigned char *m, size_t b)\n"
				     "{\n\treturn i == NULL || n == 0 || m == NULL || b == 0 ? 0 : -1;\n}\n";
	return write_bytes(file_of(t, "subject_executor.c"), device, sizeof device - 1) && compile_source(t, "-O0") == 0 &&
	       run_command(t, "./host; test $? = 5") == 0;
}

static void check_device(const struct trial *t)
{
	tap_ok(compare_with_host(t), "and those of the host alone");
	tap_ok(refuse_device(t), "a device that fails is told");
}

/* The last element of the first input is no number. */
static bool refuse_number(const struct trial *t)
{
	const esp_input *in = esp_program_input(t->program, 0);
	float *elements = t->in[0];
	elements[ROWS * in->elements - 1] = NAN;
	return write_bytes(file_of(t, "in0"), elements, ROWS * row_bytes(in)) && run_command(t, "./host; test $? = 4") == 0;
}

static void try_subject(esp_context *context, const struct subject *s, const char *optimisation)
{
	struct trial t = {.context = context};
	esp_error *error = NULL;
	const char *name = strrchr(s->path, '/') + 1;
	random_state = 7;
	if (tap_ok(open_trial(&t, s), "%s runs", name)) {
		bool saved = save_source(&t, &error);
		tap_ok(report(saved, error) && write_host(&t), "%s is written as C", name);
		if (!has_compiler()) {
			tap_skip("there is no compiler of C", "%s is compiled", name);
			close_trial(&t);
			return;
		}
		tap_ok(compile_source(&t, optimisation) == 0, "which compiles alone without a warning");
		tap_ok(run_command(&t, "./host") == 0 && compare_outputs(&t), "and gives the bytes of the interpreter");
		if (s->accelerator)
			check_device(&t);
		if (esp_program_input(t.program, 0)->within > 0)
			tap_ok(refuse_number(&t), "what is not within its bound is refused");
	}
	close_trial(&t);
}

/* --- what is refused --- */

static void check_refusal(esp_program *program, const char *where, esp_save_options o, const char *id, const char *what)
{
	esp_error *error = NULL;
	esp_status status = esp_program_save(program, where, &o, &error);
	tap_ok(status && error && strstr(esp_error_text(error), id), "%s is refused", what);
	esp_error_free(error);
}

static void check_option(const char *math, const char *text, const char *id, const char *what)
{
	struct kit k = {0};
	esp_program_options o = {.size = sizeof o, .backend = "interpreter", .math = math};
	esp_error *error = NULL;
	bool ok = !esp_context_create(NULL, &k.context, &error) &&
		  !esp_model_parse(k.context, "m.ra", text, strlen(text), &k.model, &error) &&
		  !esp_weights_open(k.context, write_wide_weights("w", 2), &k.weights, &error) &&
		  !esp_program_create(k.model, k.weights, &o, &k.program, &error);
	if (!report(ok, error))
		abort();
	check_refusal(k.program, folder, (esp_save_options){.size = sizeof(esp_save_options), .form = ESP_SAVE_SOURCE, .symbol = "m", .weights = k.weights}, id, what);
	free_kit(&k);
}

static const char plain_text[] = "model m\nstructure none\ninput word : token\nparam E[V, D]\nparam W[D, D]\noutput y = W @ E[word]\n";

static void check_refusals(esp_context *context)
{
	const struct subject plain = {.sizes = "V=4 D=2", .text = plain_text};
	struct trial t = {.context = context};
	const esp_save_options o = {.size = sizeof o, .form = ESP_SAVE_SOURCE, .symbol = "m"};
	esp_save_options named = o;
	if (!make_folder() || !open_trial(&t, &plain))
		abort();
	check_refusal(t.program, t.where, o, "bad-argument", "source without weights");
	named.weights = t.weights;
	check_refusal(t.program, "/nonexistent/folder", named, "cannot-write", "a folder that cannot be made");
	named.symbol = "2b";
	check_refusal(t.program, t.where, named, "bad-argument", "a name that is no identifier");
	named.symbol = NULL;
	check_refusal(t.program, t.where, named, "bad-argument", "no name");
	close_trial(&t);
	check_option("reassociate", tiny_model, "no-source", "a model with a structure");
	check_option("fast", plain_text, "no-source", "a program to which denormals are zeros");
	remove_folder((const char *const[]){"w"}, 1);
}

static const struct subject subjects[] = {
    {.path = "tests/models/perceptron.ra", .sizes = "E=6 H=19 V=30", .special = 40},
    {.path = "tools/init/none.ra", .sizes = "F=2 D=9 L=4"},
    {.path = "examples/lenet/lenet.ra", .sizes = "F=2 G=3 D=9 E=5"},
    {.path = "tests/models/positions.ra", .sizes = "H=5 X=12"},
    {.path = "tests/golden/dot.ra", .sizes = "K=33 N=19"},
    {.path = "tests/models/rows.ra", .sizes = "D=17", .precision = "i8"},
    {.path = "tests/models/rows.ra", .sizes = "D=17", .precision = "i8x3"},
    {.path = "tests/models/rows.ra", .sizes = "D=17", .precision = "f16"},
    {.path = "tests/models/rows.ra", .sizes = "D=17", .precision = "bf16"},
    {.path = "tests/models/rows.ra", .sizes = "D=40", .precision = "bf16x1"},
    {.path = "tests/models/rows.ra", .sizes = "D=40", .precision = "bf16x3", .target = "amx"},
    {.path = "tests/models/rows.ra", .sizes = "D=70", .precision = "i16", .target = "amx"},
    {.path = "/steps", .sizes = "T=5 E=3 D=9", .text = scan_text},
    {.path = "/types", .sizes = "D=9 E=5", .text = types_text},
    {.path = "/bounded", .sizes = "D=9", .text = bounded_text},
    {.path = "/batch", .sizes = "C=3 K=5", .text = batch_text, .stack = 4},
    {.path = "tests/tflite/cases/chain.tflite", .sizes = ""},
    {.path = "tests/tflite/cases/chain.tflite", .sizes = "", .accelerator = "vta"},
    {.path = "/quantised", .sizes = "", .text = quantised_text, .accelerator = "vta"},
    {.path = "tests/tflite/cases/depthwise.tflite", .sizes = "", .accelerator = "vta"},
    {.path = "tests/onnx/qlinear/QDQ/model.onnx", .sizes = "", .accelerator = "vta"},
};

int main(int argc, char **argv)
{
	esp_context *context;
	if (esp_context_create(NULL, &context, NULL))
		return 1;
	for (int i = 1; i < argc; i++) {
		struct subject s = {.path = argv[i], .sizes = ""};
		if (i + 1 < argc && strchr(argv[i + 1], '='))
			s.sizes = argv[++i];
		if (i + 1 < argc && strcmp(argv[i + 1], "vta") == 0)
			s.accelerator = argv[++i];
		try_subject(context, &s, "-O2");
	}
	/* Optimising takes a compiler of C most of the time, and a sanitizer sees nothing of it. */
	for (size_t i = 0; argc == 1 && i < sizeof subjects / sizeof *subjects; i += SHADOWED ? 3 : 1) {
		struct subject s = subjects[i];
		s.path = s.text ? s.path : source_path(s.path);
		try_subject(context, &s, in_sample(i) ? "-O2" : "-O0");
	}
	if (argc == 1)
		check_refusals(context);
	esp_context_free(context);
	return tap_done();
}
