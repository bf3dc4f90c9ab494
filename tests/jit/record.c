/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* record BACKEND TARGET: compiles models for a target, runs each by the interpreter and writes to standard
 * output the code and every kernel call of the run, for tests/jit/replay to repeat on that machine (see
 * record.h). */
#include "tests/jit/record.h"
#include "tests/subop/run.h"

static const struct {
	const char *path, *sizes;
	enum precision precision;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30", PRECISION_F32},
    {"examples/childsum/childsum.ra", "D=13 E=10 V=30 C=4", PRECISION_F32},
    {"tests/ra/good/gru.ra", "D=18 E=7", PRECISION_F32},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4", PRECISION_F32},
    {"tests/ra/good/matrix.ra", "D=5 V=30", PRECISION_F32},
    {"tests/models/mixed.ra", "D=11 X=5", PRECISION_F32},
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30", PRECISION_I16},
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30", PRECISION_I8},
    {"examples/childsum/childsum.ra", "D=18 E=10 V=30 C=4", PRECISION_I16},
    {"examples/childsum/childsum.ra", "D=18 E=10 V=30 C=4", PRECISION_I8},
    {"tests/golden/quantised.ra", "D=35", PRECISION_I16},
    {"tests/golden/quantised.ra", "D=35", PRECISION_I8},
    {"examples/childsum/childsum.ra", "D=18 E=10 V=30 C=4", PRECISION_I8X3},
    {"tests/golden/quantised.ra", "D=35", PRECISION_I8X3},
    {"tests/golden/quantised.ra", "D=35", PRECISION_BF16X3},
};

/* The interpreter, and who listens to it. */
struct recorder {
	struct compiled compiled;
	struct image_code interpreter;
};

static void put(const void *bytes, size_t n)
{
	if (n && fwrite(bytes, n, 1, stdout) != 1) {
		perror("record");
		exit(1);
	}
}

static int64_t bytes_of(const struct image_buffer *b, const struct image_frame *frame, void *at)
{
	int64_t rows = b->rows == IMAGE_ONE ? 1 : frame->sizes[b->rows] + image_traits_of(b->kind)->more;
	return at ? rows * b->row_elements * 4 : 0;
}

static void put_buffers(const struct image *image, const struct image_frame *frame)
{
	for (int i = 0; i < image->buffers; i++)
		put(frame->buffers[i], bytes_of(&image->buffer[i], frame, frame->buffers[i]));
}

static bool record(void *self, int kernel, const struct image_frame *frame, const struct image_range *range,
		   struct diags *d)
{
	struct recorder *r = self;
	const struct image *image = &r->compiled.image;
	struct record_call call = {kernel,	  range->begin,	    range->end,	   range->first,
				   range->blocks, range->direction, image->buffers};
	put(&call, sizeof call);
	for (int i = 0; i < image->buffers; i++) {
		int64_t bytes = bytes_of(&image->buffer[i], frame, frame->buffers[i]);
		put(&bytes, sizeof bytes);
	}
	put_buffers(image, frame);
	bool ok = r->interpreter.call(r->interpreter.self, kernel, frame, range, d);
	put_buffers(image, frame);
	return ok;
}

static bool put_code(struct compiled *c, struct arena *a, const char *name, const char *backend_name,
		     struct diags *d)
{
	const struct jit_backend *backend = jit_backend_load(backend_name, d);
	struct jit_options options = {.target = c->sched.target};
	struct jit_objects o;
	struct image_blob blob;
	if (!backend ||
	    !jit_compile(backend, &c->module, &options, (struct jit_threads){.most = 1}, a, &o, d) ||
	    !image_link(a, o.object, o.n, name, c->image.kernels, c->image.kernel_name, &blob, d))
		return false;
	struct record_program p = {.kernels = blob.kernels, .bytes = blob.size};
	snprintf(p.name, sizeof p.name, "%s", name);
	put(&p, sizeof p);
	put(blob.kernel, blob.kernels * sizeof *blob.kernel);
	put(blob.bytes, blob.size);
	return true;
}

static bool run(struct recorder *r, struct test_run *run)
{
	struct rt_source source = {read_weight, NULL};
	struct test_forest forest;
	random_state = 7;
	make_forest(&forest, &r->compiled.image, 3, 12);
	bool bound =
	    rt_bind(&run->binding, &allocator_default, &r->compiled.image, &source, NULL, &run->diags);
	bool open =
	    bound && rt_session_init(&run->session, &allocator_default, &r->compiled.image, &run->diags);
	bool ok = open && run_forest(run, &forest.minibatch);
	if (open)
		rt_session_free(&run->session);
	if (bound)
		rt_binding_free(&run->binding);
	free_forest(&forest);
	return ok;
}

/* Replayed calls have memory of their own for each buffer: no intermediate may stand in the place of another.
 */
static void keep_apart(struct image *image, struct arena *a)
{
	struct image_buffer *buffers = arena_copy(a, image->buffer, image->buffers * sizeof *buffers);
	for (int i = 0; i < image->buffers; i++) {
		buffers[i].home = i;
		buffers[i].first = 0;
		buffers[i].last = image->steps - 1;
	}
	image->buffer = buffers;
}

static bool record_model(size_t model, const char *backend, const char *target)
{
	const char *path = models[model].path, *sizes = models[model].sizes;
	struct test_model t = {0};
	struct test_run r = {0};
	struct recorder recorder;
	struct sub_program p;
	const int limits[] = {30, 30, 30, 30};
	jmp_buf jump;
	diags_init(&r.diags, &allocator_default);
	if (!load_model(&t, path, sizes) || arena_guard(&t.arena, &jump))
		return false;
	sub_init(&p, &t.arena, t.model->name);
	bool ok = sub_lower_model(&p, t.model, t.sizes, SUB_AT_MODEL, &r.diags) &&
		  compile_program_in(models[model].precision, &recorder.compiled, &t.arena, &p, limits, "interpreter", target, NULL,
				  &r.diags) &&
		  put_code(&recorder.compiled, &t.arena, path, backend, &r.diags);
	if (ok) {
		keep_apart(&recorder.compiled.image, &t.arena);
		recorder.interpreter = recorder.compiled.image.code;
		recorder.compiled.image.code = (struct image_code){.call = record, .self = &recorder};
		ok = run(&recorder, &r);
		put(&(struct record_call){.kernel = -1}, sizeof(struct record_call));
	}
	for (size_t i = 0; i < r.diags.n; i++)
		fprintf(stderr, "%s: %s\n", path, r.diags.at[i].message);
	diags_free(&r.diags);
	free_model(&t);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok = argc == 3 && target_find(argv[2]);
	for (size_t i = 0; ok && i < sizeof models / sizeof *models; i++)
		ok = record_model(i, argv[1], argv[2]);
	return ok && fflush(stdout) == 0 ? 0 : 1;
}
