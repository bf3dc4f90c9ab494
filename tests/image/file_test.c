/* Images as bytes: what is written is read again and runs alike; bytes that are damaged are refused, and
 * those that were bent by hand and sealed again do no harm to whoever reads or binds them. */
#include "image/code.h"
#include "image/file.h"
#include "jit/jit.h"
#include "tests/models/helper.h"
#include "tests/sanitizers.h"

#include <stdlib.h>

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"examples/treelstm/treelstm.ra", "D=1 E=1 V=3"},
    {"examples/treelstm/treelstm.ra", "D=64 E=64 V=20"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/ra/good/dag.ra", "D=9 E=10"},
    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/models/nested.ra", "A=5 B=9 C=15 F=6 G=5 V=9"},
    {"tests/models/nested.ra", "A=2 B=1 C=1 F=6 G=5 V=9"},
    {"tests/models/parts.ra", "D=9"},
    {"tests/models/order.ra", "D=5"},
    {"tests/models/members.ra", "V=30 D=18 A=10"},
    {"examples/labelled/matrix.ra", "D=17 E=9 V=30 R=5 C=3"},
    {"tests/models/constants.ra", "V=9 D=11 X=19 L=30"},
};
enum { MODELS = sizeof models / sizeof *models, FOLDING = MODELS - 1 }; /* the last has constants */

/* --- one file --- */

/* Bytes in a block of their exact size, so that tools see who reads past the end. */
struct file {
	unsigned char *bytes;
	size_t n;
};

static struct file copy_file(const struct file *f, size_t n)
{
	struct file copy = {NULL, n};
	if (posix_memalign((void **)&copy.bytes, IMAGE_LINE, n ? n : 1))
		abort();
	memcpy(copy.bytes, f->bytes, n < f->n ? n : f->n);
	return copy;
}

static void write_guarded(struct arena *a, const struct image *image, struct file *f)
{
	jmp_buf escape;
	if (arena_guard(a, &escape))
		return;
	struct str s = str_in(a);
	image_write(image, &s);
	*f = copy_file(&(struct file){(unsigned char *)s.text, s.n}, s.n);
}

static struct file write_image(const struct image *image)
{
	struct arena a;
	struct file f = {0};
	arena_init(&a, &allocator_default);
	write_guarded(&a, image, &f);
	arena_free(&a);
	return f;
}

struct reader {
	struct arena arena;
	struct diags diags;
	struct image image;
	bool ok;
};

static void read_image(struct reader *r, const struct file *f)
{
	static jmp_buf escape;
	arena_init(&r->arena, &allocator_default);
	diags_init(&r->diags, &allocator_default);
	r->ok =
	    !arena_guard(&r->arena, &escape) && image_read(&r->arena, f->bytes, f->n, &r->image, &r->diags);
}

static void free_reader(struct reader *r)
{
	diags_free(&r->diags);
	arena_free(&r->arena);
}

static bool says(const struct reader *r, const char *what)
{
	bool ok = !r->ok && r->diags.n == 1 && r->diags.at[0].id == DIAG_BAD_IMAGE &&
		  strstr(r->diags.at[0].message, what) && r->diags.at[0].hint;
	if (!ok)
		printf("# %s\n", r->diags.n ? r->diags.at[0].message : "it was read");
	return ok;
}

/* --- round trips --- */

static bool same_bytes(const struct file *a, const struct file *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* The same program from the file instead of the compiler. */
static bool runs_alike(struct test_run *compiled, struct reader *read)
{
	struct test_forest forest;
	struct test_run again = {.image = read->image};
	struct rt_source source = {read_weight, NULL};
	int64_t count, n;
	diags_init(&again.diags, &allocator_default);
	arena_init(&again.arena, &allocator_default);
	random_state = 5;
	make_forest(&forest, &compiled->image, 4, 30);
	again.bound =
	    image_code_load(&read->image.blob, &allocator_default, "again", &again.image.code,
			    &again.diags) &&
	    (read->image.packs
		 ? rt_bind_packed(&again.binding, &allocator_default, &again.image, &again.diags)
		 : rt_bind(&again.binding, &allocator_default, &again.image, &source, NULL, &again.diags));
	again.open =
	    again.bound && rt_session_init(&again.session, &allocator_default, &again.image, &again.diags);
	bool ok =
	    again.open && run_forest(compiled, &forest.minibatch) && run_forest(&again, &forest.minibatch);
	int64_t inputs = forest.minibatch.forest.inputs;
	float *wanted = ok ? gather_outputs(compiled, forest.nodes, inputs, &count) : NULL;
	float *found = ok ? gather_outputs(&again, forest.nodes, inputs, &n) : NULL;
	ok = ok && count == n && count > 0 && memcmp(wanted, found, n * sizeof *found) == 0;
	free(wanted);
	free(found);
	end_run(&again);
	free_forest(&forest);
	return ok;
}

static bool has_interface(const struct image *image, const struct ra_model *m, const int64_t *sizes)
{
	bool ok = image->states == (int)m->states.n && image->outputs == (int)m->outputs.n &&
		  image->dimensions == (int)m->symbols.n && strcmp(image->name, m->name) == 0;
	for (int i = 0; ok && i < image->states; i++)
		ok = strcmp(image->state[i].name, m->states.at[i].name) == 0 &&
		     image->state[i].rank == m->states.at[i].shape.rank;
	for (int i = 0; ok && i < image->outputs; i++)
		ok = image->output[i].labels == m->outputs.at[i].labels;
	for (int i = 0; ok && i < image->dimensions; i++)
		ok = image->dimension[i].size == sizes[i];
	return ok;
}

static bool compile_model(struct test_model *t, struct test_run *r, int i)
{
	struct compile_options o = {.backend = usual_backend(), .target = "native"};
	return load_model(t, models[i].path, models[i].sizes) && start_run(r, t, &o);
}

static void test_round_trip(int i)
{
	struct test_model t = {0};
	struct test_run r;
	struct reader read;
	char name[120];
	snprintf(name, sizeof name, "%s %s", strrchr(models[i].path, '/') + 1, models[i].sizes);
	if (!tap_ok(compile_model(&t, &r, i), "%s: compiled", name))
		return;
	tap_ok(has_interface(&r.image, t.model, t.sizes), "%s: the image says what the model says", name);
	r.image.key = "the key";
	struct file f = write_image(&r.image);
	read_image(&read, &f);
	for (size_t k = 0; k < read.diags.n; k++)
		printf("# %s\n", read.diags.at[k].message);
	if (tap_ok(read.ok, "%s: what was written is read, %zu bytes", name, f.n)) {
		struct file again = write_image(&read.image);
		tap_ok(same_bytes(&f, &again), "%s: and written the same", name);
		tap_ok(runs_alike(&r, &read), "%s: and gives the same bits", name);
		tap_ok(strcmp(read.image.key, "the key") == 0, "%s: the key is told", name);
		free(again.bytes);
	}
	free_reader(&read);
	free(f.bytes);
	end_run(&r);
	free_model(&t);
}

/* --- damage --- */

static void test_lengths(const struct file *f)
{
	bool refused = true;
	for (size_t n = 0; n < f->n; n += n < f->n / SAMPLE ? 1 : SAMPLE) {
		struct file part = copy_file(f, n);
		struct reader r;
		read_image(&r, &part);
		refused &= !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_BAD_IMAGE;
		free_reader(&r);
		free(part.bytes);
	}
	tap_ok(refused, "every beginning of a file is refused");
	struct file longer = copy_file(f, f->n + 1);
	struct reader r;
	read_image(&r, &longer);
	tap_ok(says(&r, "not as long"), "and a file with something behind it");
	free_reader(&r);
	free(longer.bytes);
}

static void test_bits(const struct file *f)
{
	bool refused = true;
	for (size_t i = 0; i < f->n; i += SAMPLE) {
		struct file bent = copy_file(f, f->n);
		struct reader r;
		bent.bytes[i] ^= 1 << i / SAMPLE % 8;
		read_image(&r, &bent);
		refused &= !r.ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_BAD_IMAGE;
		free_reader(&r);
		free(bent.bytes);
	}
	tap_ok(refused, "a bit that is wrong is found, wherever it is");
}

/* The stamp stands behind magic and checksum. */
static void test_version(const struct file *f)
{
	struct file bent = copy_file(f, f->n);
	struct reader r;
	bent.bytes[24] ^= 1;
	image_seal(bent.bytes, bent.n);
	read_image(&r, &bent);
	tap_ok(says(&r, "another version"), "a file of another version is refused");
	free_reader(&r);
	free(bent.bytes);
}

/* --- bent by hand --- */

static void *resize_capped(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context;
	return new_size > (1 << 22) ? NULL : allocator_default.resize(NULL, p, old_size, new_size);
}

static const struct allocator capped = {resize_capped, NULL};

/* Weights as a file has them: not without end. */
static bool read_capped(void *context, int param, int64_t first, int64_t count, float *to, struct diags *d)
{
	if (first + count > 1 << 14)
		return diag_add(d, DIAG_BAD_ARGUMENT, (struct diag_at){0}, NULL, "there is no more");
	return read_weight(context, param, first, count, to, d);
}

/* Kernels are not to be trusted: what runs at binding does nothing. */
static bool do_nothing(void *self, int kernel, const struct image_frame *frame,
		       const struct image_range *range, struct diags *d)
{
	(void)self, (void)kernel, (void)frame, (void)range, (void)d;
	return true;
}

/* Everything that is done with an image before it runs. */
static void use(struct image *image)
{
	struct rt_binding binding;
	struct rt_session session;
	struct rt_source source = {read_capped, NULL};
	struct image_code code;
	struct diags d;
	diags_init(&d, &allocator_default);
	image->code.call = do_nothing;
	if (rt_bind(&binding, &capped, image, &source, NULL, &d))
		rt_binding_free(&binding);
	if (rt_session_init(&session, &capped, image, &d))
		rt_session_free(&session);
	if (image_code_load(&image->blob, &capped, "bent", &code, &d))
		image_code_release(&code);
	diags_free(&d);
}

static const int64_t hostile[] = {
    -1, 0, 1, 2, 5, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 32};

static int read_bent(struct file *f)
{
	struct reader r;
	image_seal(f->bytes, f->n);
	read_image(&r, f);
	int ok = r.ok;
	if (ok)
		use(&r.image);
	free_reader(&r);
	return ok;
}

/* Each word in turn becomes each of the hostile numbers, in the frame too, up to where the code begins. */
static void test_words(const struct file *f)
{
	int taken = 0;
	uint64_t code;
	memcpy(&code, f->bytes + 24 + 2 * 8 + 2 * 16, sizeof code);
	for (size_t at = 24; at + 8 <= code; at += 8)
		for (size_t h = 0; h < sizeof hostile / sizeof *hostile; h++) {
			struct file bent = copy_file(f, f->n);
			memcpy(bent.bytes + at, &hostile[h], 8);
			taken += read_bent(&bent);
			free(bent.bytes);
		}
	tap_ok(taken > 0, "words that were bent do no harm, %d such files are read", taken);
}

static void test_random(const struct file *f)
{
	int taken = 0;
	random_state = 11;
	for (int round = 0; round < 3000; round++) {
		struct file bent = copy_file(f, f->n - 8 * (round % 7 == 0) * random_below(40));
		for (int k = 1 + random_below(4); k; k--)
			bent.bytes[24 + random_below(bent.n - 24)] = random_bits() >> 8;
		taken += read_bent(&bent);
		free(bent.bytes);
	}
	tap_ok(taken > 0, "bytes that were bent do no harm, %d such files are read", taken);
}

/* --- packed weights --- */

/* The image that was bound, with the weights that it was bound to; they are in the arena of the run. */
static struct image pack_image(struct test_run *r)
{
	struct image image = r->image;
	struct image_packed *packed = ARENA_ARRAY(&r->arena, struct image_packed, image.recipes);
	for (int i = 0; i < image.recipes; i++)
		packed[i] = image_pack(&image, i, r->binding.packed[i]);
	image.packs = image.recipes;
	image.packed = packed;
	return image;
}

static bool says_of(struct file *f, size_t at, int bit, const char *what)
{
	struct reader r;
	f->bytes[at] ^= bit;
	read_image(&r, f);
	bool ok = says(&r, what);
	free_reader(&r);
	f->bytes[at] ^= bit;
	return ok;
}

static void test_packed(int i)
{
	struct test_model t = {0};
	struct test_run r;
	struct reader read;
	if (!tap_ok(compile_model(&t, &r, i), "%s: compiled and packed", models[i].path))
		return;
	r.image.key = "";
	struct image image = pack_image(&r);
	struct file f = write_image(&image), plain = write_image(&r.image);
	read_image(&read, &f);
	tap_ok(read.ok && read.image.packs == image.recipes && runs_alike(&r, &read),
	       "%s: weights that were written give the same bits", models[i].path);
	struct file again = write_image(&read.image);
	tap_ok(same_bytes(&f, &again), "%s: and are written the same", models[i].path);
	size_t head = (plain.n + 8 * 3 * image.recipes + IMAGE_PAGE) / IMAGE_PAGE * IMAGE_PAGE;
	tap_ok(f.n > head && says_of(&f, head + 4, 16, "checksum of its weights"),
	       "a wrong bit in them is found");
	tap_ok(says_of(&f, 24 + 16 + 3 * 16, 64, "its checksum is wrong"), "and one in their place");
	test_random(&f);
	free_reader(&read);
	free(again.bytes);
	free(plain.bytes);
	free(f.bytes);
	end_run(&r);
	free_model(&t);
}

/* --- what does not hold together --- */

struct bending {
	struct image image;
	struct image_buffer *buffer;
	struct image_recipe *recipe;
	struct image_pack_source *source;
	struct image_output *output;
	struct image_state *state;
	struct image_step *step;
	int64_t *kernel;
	struct image_fold *fold;
	struct image_input *input;
	struct tensor_info *param;
};

static int buffer_of_kind(const struct image *image, enum image_buffer_kind kind)
{
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].kind == kind)
			return i;
	return 0;
}

static void foreign_param(struct bending *b)
{
	b->source->param = image_params(&b->image);
}

static void leaves_param(struct bending *b)
{
	b->source->end[0]++;
}

static void begins_late(struct bending *b)
{
	b->source->begin[0] = b->source->end[0] + 1;
}

static void no_source(struct bending *b)
{
	b->recipe->sources = 0;
}

static void long_walk(struct bending *b)
{
	b->recipe->dim[0].stride = INT32_MAX;
	b->recipe->dim[0].extent = INT32_MAX;
}

static void empty_walk(struct bending *b)
{
	b->recipe->dim[0].extent = 0;
}

static void empty_param(struct bending *b)
{
	b->param->shape[0] = 0;
}

static void huge_param(struct bending *b)
{
	b->param->rank = 3;
	b->param->shape[0] = b->param->shape[1] = b->param->shape[2] = INT32_MAX;
}

static void many_sources(struct bending *b)
{
	b->recipe->dim[0].axis = IMAGE_PACK_SOURCE;
	b->recipe->dim[0].extent = 10000;
}

static void small_weight(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_WEIGHT)].row_elements--;
}

static void foreign_recipe(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_WEIGHT)].which = b->image.recipes;
}

static void foreign_input(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)].which = b->image.inputs;
}

static void wrong_dtype(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)].dtype = TENSOR_I32;
}

static void wrong_rows(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)].rows = IMAGE_EDGES;
}

static void small_state(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)].row_elements = 0;
}

static void vector_for_token(struct bending *b)
{
	b->input->token = false;
	b->input->elements = 1;
}

/* All elements of a row lie on each other there, but those that come from the caller do not. */
static void piled_vectors(struct bending *b)
{
	struct image_buffer *token = &b->buffer[buffer_of_kind(&b->image, IMAGE_TOKEN)];
	token->kind = IMAGE_VECTOR;
	token->dtype = TENSOR_F32;
	b->input->token = false;
	token->rank = b->input->rank = 1;
	token->shape[0] = b->input->shape[0] = b->input->elements = 3;
	token->stride[0] = 0;
}

static void input_shape(struct bending *b)
{
	b->input->elements = 3;
}

static void output_elsewhere(struct bending *b)
{
	b->output->buffer = b->image.buffers;
}

static void output_in_state(struct bending *b)
{
	b->output->buffer = b->state->buffer;
}

static void output_at_root(struct bending *b)
{
	b->output->at_root = !b->output->at_root;
}

static void output_shape(struct bending *b)
{
	b->output->elements++;
}

static void many_labels(struct bending *b)
{
	static const char *const labels[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	b->output->labels = b->output->elements + 1;
	b->output->label = labels;
}

static void state_elsewhere(struct bending *b)
{
	b->state->buffer = b->output->buffer;
}

static void state_shape(struct bending *b)
{
	b->state->shape[0]++;
}

static void layout_of_shared(struct bending *b)
{
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_PLACE)
			b->buffer[i].kind = IMAGE_CHILD_BEGIN;
	b->state->layout = IMAGE_BY_PARENT;
	b->image.shared_children = true;
}

static void unrolled_shared(struct bending *b)
{
	layout_of_shared(b);
	b->state->layout = IMAGE_BY_NODE;
	b->image.unroll = 2;
}

static void unrolled_dense(struct bending *b)
{
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_SCRATCH)
			b->buffer[i].rows = IMAGE_WIDEST;
	b->image.unroll = 2;
}

static void batches_of_one_case(struct bending *b)
{
	b->image.batch_order = IMAGE_BATCH_LEAST;
}

static void place_of_shared(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_PLACE;
	child->which = 0;
	b->image.shared_children = true;
}

static void place_of_edges(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_PLACE;
	child->rows = IMAGE_EDGES;
}

static void long_stride(struct bending *b)
{
	struct image_buffer *state = &b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)];
	state->row_elements = 2;
	state->shape[0] = 2;
	state->stride[0] = 2;
}

static void step_without_kernel(struct bending *b)
{
	b->step->kernel = b->image.kernels;
}

static void step_without_blocks(struct bending *b)
{
	b->step->blocks = 0;
}

static void step_of_many_bytes(struct bending *b)
{
	b->step->block_bytes = INT64_MAX / 2;
}

static void kernel_outside(struct bending *b)
{
	*b->kernel = b->image.blob.size;
}

static void kernels_missing(struct bending *b)
{
	b->image.blob.kernels--;
}

static void odd_alignment(struct bending *b)
{
	b->image.blob.alignment = 24;
}

/* Leaves with a parent and without, inner nodes with a word and others. */
static const struct image_match word_match[] = {{0, 1}}, far_match[] = {{1000, 1}};
static const struct image_case four_cases[] = {{"top", false, -1, IMAGE_NO, 0, NULL},
					       {"leaf", false, -1, IMAGE_YES, 0, NULL},
					       {"word", true, -1, IMAGE_EITHER, 1, word_match},
					       {"inner", true, -1, IMAGE_EITHER, 0, NULL}};

static struct image_case *give_cases(struct bending *b)
{
	static struct image_case cases[IMAGE_MAX_CASES + 1];
	memcpy(cases, four_cases, sizeof four_cases);
	for (int i = 4; i <= IMAGE_MAX_CASES; i++)
		cases[i] = four_cases[3];
	b->image.cases = 4;
	b->image.case_at = cases;
	return cases;
}

static void unrolled_cases(struct bending *b)
{
	give_cases(b);
	b->image.batch_order = IMAGE_BATCH_CASE;
	b->image.unroll = 2;
}

static void unknown_batch_order(struct bending *b)
{
	give_cases(b);
	b->image.batch_order = IMAGE_BATCH_LEAST + 1;
}

static void many_cases(struct bending *b)
{
	give_cases(b);
	b->image.cases = IMAGE_MAX_CASES + 1;
}

static void mixed_cases(struct bending *b)
{
	give_cases(b)[0].inner = true;
}

static void case_of_nothing(struct bending *b)
{
	give_cases(b)[2].match = far_match;
}

static void leaves_of_no_case(struct bending *b)
{
	give_cases(b)[0].parent = IMAGE_YES;
}

static void inner_of_no_case(struct bending *b)
{
	give_cases(b)[3].children = 2;
}

static void step_of_no_case(struct bending *b)
{
	give_cases(b);
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_INNER;
	b->step[b->image.steps - 1].cases = 1 << 4;
}

static void whole_step_of_cases(struct bending *b)
{
	give_cases(b);
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_NODES;
	b->step[b->image.steps - 1].cases = 1;
}

static void edge_data_of_leaves(struct bending *b)
{
	b->input->on_edge = b->input->at_leaf = true;
}

static void edge_data_by_nodes(struct bending *b)
{
	b->input->on_edge = true;
	b->input->at_leaf = false;
}

static void case_of_edges(struct bending *b)
{
	give_cases(b);
	edge_data_by_nodes(b);
}

static void become_members(struct bending *b, enum image_buffer_kind kind, enum image_size rows, int which)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = kind;
	child->rows = rows;
	child->which = which;
}

static void member_begins_by_nodes(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_BEGIN, IMAGE_NODES, 0);
}

static void members_by_inputs(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_LIST, IMAGE_INPUTS, 0);
}

static void second_members(struct bending *b)
{
	become_members(b, IMAGE_MEMBER_LIST, IMAGE_NODES, 1);
}

static void cases_of_none(struct bending *b)
{
	struct image_buffer *child = &b->buffer[buffer_of_kind(&b->image, IMAGE_CHILD)];
	child->kind = IMAGE_CASE;
	child->which = 0;
}

static struct image_packed *give_weights(struct bending *b)
{
	static struct image_packed packed[100];
	static const float zeros[1 << 14];
	for (int i = 0; i < b->image.recipes; i++) {
		packed[i] = (struct image_packed){.at = zeros, .bytes = sizeof(float)};
		for (int d = 0; d < b->recipe[i].dims; d++)
			packed[i].bytes *= b->recipe[i].dim[d].extent;
	}
	b->image.packs = b->image.recipes;
	b->image.packed = packed;
	return packed;
}

static void few_weights(struct bending *b)
{
	give_weights(b);
	b->image.packs--;
}

static void no_weights(struct bending *b)
{
	struct image_packed *packed = give_weights(b);
	for (int i = 0; i < b->image.buffers; i++)
		if (b->buffer[i].kind == IMAGE_WEIGHT && !b->buffer[i].at_binding)
			packed[b->buffer[i].which].bytes = 0;
}

static void short_weights(struct bending *b)
{
	give_weights(b)[b->image.recipes - 1].bytes--;
}

/* These want an image that folds. */

static struct image_fold *first_with_rows(const struct bending *b)
{
	int i = 0;
	while (!b->fold[i].tensor.rank)
		i++;
	return &b->fold[i];
}

static void no_place(struct bending *b)
{
	b->fold->recipe = b->image.recipes;
}

static void foreign_place(struct bending *b)
{
	b->fold->recipe = !b->fold->recipe;
}

static void place_in_blocks(struct bending *b)
{
	b->recipe[first_with_rows(b)->recipe].dim[0].stride = 2;
}

static void small_place(struct bending *b)
{
	first_with_rows(b)->tensor.shape[0] += 100;
}

static void huge_fold(struct bending *b)
{
	b->fold->tensor.rank = 3;
	b->fold->tensor.shape[0] = b->fold->tensor.shape[1] = b->fold->tensor.shape[2] = INT32_MAX;
}

static void fold_without_step(struct bending *b)
{
	b->step->domain = IMAGE_DOMAIN_ONCE;
}

static void step_without_fold(struct bending *b)
{
	b->step[b->image.steps - 1].domain = IMAGE_DOMAIN_BINDING;
}

static void foreign_fold(struct bending *b)
{
	b->source->param = image_params(&b->image);
}

static void state_at_binding(struct bending *b)
{
	b->buffer[buffer_of_kind(&b->image, IMAGE_STATE)].at_binding = true;
}

struct bent {
	const char *what;
	void (*bend)(struct bending *);
	const char *says;
};

static const struct bent fold_bendings[] = {
    {"a folded parameter that lies nowhere", no_place, "no place of its own"},
    {"a folded parameter in another one's place", foreign_place, "no place of its own"},
    {"a place with gaps", place_in_blocks, "no place of its own"},
    {"a place that is too small", small_place, "parameter"},
    {"a folded parameter too large to count", huge_fold, "does not fit 64 bits"},
    {"a folded parameter without a step", fold_without_step, "no step that computes it"},
    {"a step at binding behind others", step_without_fold, "are not the first"},
    {"a recipe of a folded parameter that is not there", foreign_fold, "parameter that there is not"},
    {"a state that belongs to a binding", state_at_binding, "cannot belong to a binding"},
};

static const struct bent bendings[] = {
    {"fewer weights than recipes", few_weights, "not as many as recipes"},
    {"weights that a run misses", no_weights, "where a run needs them"},
    {"weights that are too short", short_weights, "not as long as they are laid out"},
    {"a recipe of a parameter that is not there", foreign_param, "parameter that there is not"},
    {"a recipe past the end of its parameter", leaves_param, "leaves its parameter"},
    {"a recipe that begins behind its end", begins_late, "leaves its parameter"},
    {"a recipe of nothing", no_source, "source that it does not have"},
    {"a recipe without end", long_walk, "walks too far"},
    {"a recipe with an empty dimension", empty_walk, "a recipe is empty"},
    {"an empty parameter", empty_param, "a parameter is empty"},
    {"a parameter too large to count", huge_param, "does not fit 64 bits"},
    {"a recipe of more sources than it has", many_sources, "source that it does not have"},
    {"packed weights of another size", small_weight, "room"},
    {"packed weights without a recipe", foreign_recipe, "something that there is not"},
    {"data of an input that is not there", foreign_input, "something that there is not"},
    {"a state of integers", wrong_dtype, "not as its kind must be"},
    {"tokens by edges", wrong_rows, "not as its kind must be"},
    {"data of edges that leaves read", edge_data_of_leaves, "no edges to read of"},
    {"data of edges by nodes", edge_data_by_nodes, "not as its kind must be"},
    {"a case of what edges carry", case_of_edges, "token that there is not"},
    {"beginnings of members by nodes", member_begins_by_nodes, "not as its kind must be"},
    {"members by inputs", members_by_inputs, "not as its kind must be"},
    {"members of another order", second_members, "something that there is not"},
    {"a state without room", small_state, "room"},
    {"tokens of an input of vectors", vector_for_token, "has not the room"},
    {"vectors in rows of one element", piled_vectors, "has not the room"},
    {"an input of another shape", input_shape, "does not have its elements"},
    {"an output in no buffer", output_elsewhere, "not in its buffer"},
    {"an output in a state's buffer", output_in_state, "not in its buffer"},
    {"an output of other rows", output_at_root, "not in its buffer"},
    {"an output of another shape", output_shape, "elements of its shape"},
    {"an output with a label too many", many_labels, "not a label for each"},
    {"a state in no buffer of its own", state_elsewhere, "not in its buffer"},
    {"a state of another shape", state_shape, "elements of its shape"},
    {"a state by parent where nodes have several", layout_of_shared, "by parent"},
    {"levels unrolled where nodes have several parents", unrolled_shared, "levels are unrolled"},
    {"levels unrolled that share their rows", unrolled_dense, "share their rows"},
    {"batches of cases where there are none", batches_of_one_case, "inner nodes have one"},
    {"batches of cases where levels are unrolled", unrolled_cases, "batches are of cases"},
    {"batches of an order that there is not", unknown_batch_order, "out of its range"},
    {"places where nodes have several parents", place_of_shared, "something that there is not"},
    {"places of edges", place_of_edges, "not as its kind must be"},
    {"a state with elements outside of its row", long_stride, "room"},
    {"a step without a kernel", step_without_kernel, "kernel that there is not"},
    {"a step without blocks", step_without_blocks, "out of its range"},
    {"a step that reads too much to count", step_of_many_bytes, "out of its range"},
    {"more cases than a mask has bits", many_cases, "too many"},
    {"a case of leaves behind one of inner nodes", mixed_cases, "behind one of inner nodes"},
    {"a case of a token that is not there", case_of_nothing, "token that there is not"},
    {"leaves that are of no case", leaves_of_no_case, "of no case"},
    {"inner nodes that are of no case", inner_of_no_case, "of no case"},
    {"a step of a case that is not there", step_of_no_case, "cannot tell apart"},
    {"a step over all nodes of some cases", whole_step_of_cases, "cannot tell apart"},
    {"an array of cases where there are none", cases_of_none, "something that there is not"},
    {"a kernel outside of the code", kernel_outside, "outside of the code"},
    {"fewer kernels than names", kernels_missing, "place for each kernel"},
    {"an odd alignment", odd_alignment, "alignment"},
};

#define OWN(member, n)                                                                                       \
	b.member = arena_copy(a, image->member, (n) * sizeof *image->member), b.image.member = b.member

/* A copy whose first tables can be bent. */
static struct bending copy_image(struct arena *a, const struct image *image)
{
	struct bending b = {.image = *image};
	OWN(buffer, image->buffers);
	OWN(recipe, image->recipes);
	OWN(output, image->outputs);
	OWN(state, image->states);
	OWN(step, image->steps);
	OWN(fold, image->folds);
	OWN(input, image->inputs);
	OWN(param, image->params);
	b.source = arena_copy(a, image->recipe->source, image->recipe->sources * sizeof *b.source);
	b.recipe->source = b.source;
	b.kernel = arena_copy(a, image->blob.kernel, image->blob.kernels * sizeof *b.kernel);
	b.image.blob.kernel = b.kernel;
	return b;
}

static void test_bendings(struct arena *a, const struct image *image, const struct bent *bent, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bending b = copy_image(a, image);
		struct reader r;
		bent[i].bend(&b);
		struct file f = write_image(&b.image);
		read_image(&r, &f);
		tap_ok(says(&r, bent[i].says), "refused: %s", bent[i].what);
		free_reader(&r);
		free(f.bytes);
	}
}

static void test_words_of_cases(const struct test_run *r)
{
	struct bending b = {.image = r->image};
	give_cases(&b);
	struct file f = write_image(&b.image);
	test_words(&f);
	free(f.bytes);
}

static void test_damage(void)
{
	struct test_model t = {0};
	struct test_run r;
	if (!tap_ok(compile_model(&t, &r, 1), "a model to damage"))
		return;
	r.image.key = "key";
	struct file f = write_image(&r.image);
	test_lengths(&f);
	test_bits(&f);
	test_version(&f);
	test_words(&f);
	test_random(&f);
	test_words_of_cases(&r);
	test_bendings(&r.arena, &r.image, bendings, sizeof bendings / sizeof *bendings);
	free(f.bytes);
	end_run(&r);
	free_model(&t);
}

static void test_folds(void)
{
	struct test_model t = {0};
	struct test_run r;
	if (!tap_ok(compile_model(&t, &r, FOLDING) && r.image.folds > 2, "a model with constants to damage"))
		return;
	r.image.key = "key";
	struct file f = write_image(&r.image);
	test_random(&f);
	test_bendings(&r.arena, &r.image, fold_bendings, sizeof fold_bendings / sizeof *fold_bendings);
	free(f.bytes);
	end_run(&r);
	free_model(&t);
}

int main(void)
{
	if (need_backend("images as bytes")) {
		for (int i = 0; i < MODELS; i++)
			test_round_trip(i);
		test_packed(0);
		test_packed(FOLDING);
		test_damage();
		test_folds();
	}
	return tap_done();
}
