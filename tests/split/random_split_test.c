/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random networks of quantised convolutions and products with matrices give the same bytes on the host alone, and where the
 * accelerator, its executor here, computes what a random split leaves to it: with scales that are powers of two and others, zero
 * points, also such as are no bytes, borders, strides, several inputs and results, values that several read, crops, and steps of
 * the host in between: additions, numbers of each channel, of each place or of each image, pools, bounds.  With arguments: SEEDxCOUNT. */
#include "tests/models/helper.h"

#include <stdarg.h>

enum { MOST_LAYERS = 6, MOST_INPUTS = 2, MOST_TEXT = 16384 };

/* Activations that a layer made, or the input. */
struct made {
	char name[16];
	int channels, size[2], zero;
	bool is_signed, is_read;
};

struct drawn {
	char inputs[MOST_TEXT], params[MOST_TEXT], body[MOST_TEXT], outputs[MOST_TEXT];
	int images, layers, made;
	struct made value[6 * MOST_LAYERS + MOST_INPUTS];
};

static void append(char *text, const char *format, ...)
{
	va_list args;
	size_t n = strlen(text);
	va_start(args, format);
	vsnprintf(text + n, MOST_TEXT - n, format, args);
	va_end(args);
}

/* --- formulas --- */

static int draw_zero(bool is_signed)
{
	static const int signed_zeros[] = {0, 0, -128, 3, -40, 127}, unsigned_zeros[] = {128, 128, 0, 121, 7, 255};
	int i = random_below(6);
	return is_signed ? signed_zeros[i] : unsigned_zeros[i];
}

/* What is added to quotients: the zero point, seldom a number that no byte has. */
static double draw_added(const struct made *m)
{
	static const double others[] = {0.5, -0.25, 100.75, 300, 1000, -700};
	return random_below(8) ? m->zero : others[random_below(6)];
}

/* Of sums, as ONNX means it. */
static void put_even(char *to, const char *sums, const struct made *m)
{
	double factor = 1.0 / (1 << (4 + random_below(9)));
	if (!random_below(4))
		factor *= 0.71;
	append(to, "cast(minimum(maximum(round(cast(%s, f32) * %.12g) + %g, %d), %d), i32)", sums, factor, draw_added(m),
	       m->is_signed ? -128 : 0, m->is_signed ? 127 : 255);
}

/* As TensorFlow Lite does, of numbers that are signed. */
static void put_twice(char *to, const struct made *m, int layer)
{
	int shift = 2 + random_below(9);
	long long half = 1ll << (shift - 1), low = -128 + random_below(2) * 20;
	append(to, "minimum(maximum(cast(quotient(v%d - cast(v%d < 0, i64) + %lld, %lld) - %lld, i32) + %d, %lld), 127)", layer, layer,
	       (1ll << 32) + half, 1ll << shift, 1ll << (32 - shift), m->zero, low);
}

static void put_product(char *to, int layer, const char *sums)
{
	int multiplier = random_below(4) ? 1073741824 : 1451468422;
	append(to, "    v%d = quotient((cast(%s, i64) + 2147483648) * %d * 1 + 1073741824, 2147483648) - %d\n", layer, sums, multiplier,
	       multiplier);
}

/* --- layers --- */

static struct made *draw_input(struct drawn *d)
{
	return &d->value[random_below(3) ? d->made - 1 : random_below(d->made)];
}

static struct made *add_made(struct drawn *d, const char *prefix, int layer)
{
	struct made *m = &d->value[d->made];
	snprintf(m->name, sizeof m->name, "%s%d", prefix, layer);
	m->is_signed = random_below(2);
	m->zero = draw_zero(m->is_signed);
	return m;
}

static void put_offset(char *to, const struct made *m)
{
	if (m->zero)
		append(to, "(%s %c %d)", m->name, m->zero < 0 ? '+' : '-', abs(m->zero));
	else
		append(to, "%s", m->name);
}

static void put_sums(struct drawn *d, const struct made *x, struct made *y, int layer)
{
	int kernel[2] = {1 + random_below(3), 1 + random_below(3)}, stride = 1 + random_below(2), border = random_below(2);
	char index[2][64];
	for (int a = 0; a < 2; a++) {
		int before = border && kernel[a] > 1, room = x->size[a] + 2 * before - kernel[a];
		if (room < 0)
			kernel[a] = 1, before = 0, room = x->size[a] - 1;
		y->size[a] = room / stride + 1;
		snprintf(index[a], sizeof index[a], "%d*i%d + r%d - %d", stride, a + 2, a + 2, before);
	}
	bool depthwise = !random_below(4);
	y->channels = depthwise ? x->channels : 1 + random_below(40);
	append(d->params, "param w%d[%d, ", layer, y->channels);
	if (!depthwise)
		append(d->params, "%d, ", x->channels);
	append(d->params, "%d, %d] : i8\n", kernel[0], kernel[1]);
	append(d->body, "    s%d[i0, i1, i2 in %d, i3 in %d] = sum(w%d[i1, %sr2, r3] * ", layer, y->size[0], y->size[1], layer,
	       depthwise ? "" : "r1, ");
	put_offset(d->body, x);
	append(d->body, "[i0, %s, %s, %s] for %sr2, r3)\n", depthwise ? "i1" : "r1", index[0], index[1], depthwise ? "" : "r1, ");
}

/* A product of whole images with a matrix. */
static void put_matrix(struct drawn *d, const struct made *x, struct made *y, int layer)
{
	int inputs = x->channels * x->size[0] * x->size[1];
	y->channels = 1 + random_below(40);
	y->size[0] = y->size[1] = 1;
	append(d->params, "param w%d[%d, %d] : i8\n", layer, inputs, y->channels);
	append(d->body, "    s%d = reshape(reshape(", layer);
	put_offset(d->body, x);
	append(d->body, ", %d, %d) @ w%d, %d, %d, 1, 1)\n", d->images, inputs, layer, d->images, y->channels);
}

static void put_layer(struct drawn *d, int layer)
{
	struct made *x = draw_input(d);
	struct made *y = add_made(d, "q", layer);
	char sums[64];
	x->is_read = true;
	if (random_below(6))
		put_sums(d, x, y, layer);
	else
		put_matrix(d, x, y, layer);
	bool added = random_below(4);
	if (added)
		append(d->params, "param b%d[%d, 1, 1] : i32\n", layer, y->channels);
	snprintf(sums, sizeof sums, added ? "s%d + b%d" : "s%d", layer, layer);
	bool twice = y->is_signed && random_below(2);
	if (twice)
		put_product(d->body, layer, sums);
	append(d->body, "    q%d = ", layer);
	if (twice)
		put_twice(d->body, y, layer);
	else
		put_even(d->body, sums, y);
	append(d->body, "\n");
	d->made++;
}

/* --- steps of the host --- */

static int low_of(const struct made *m)
{
	return m->is_signed ? -128 : 0;
}

static int high_of(const struct made *m)
{
	return m->is_signed ? 127 : 255;
}

/* A value that the host makes of another one, of its size and type. */
static struct made *follow(struct drawn *d, struct made *from, const char *prefix)
{
	struct made *m = &d->value[d->made];
	from->is_read = true;
	*m = *from;
	m->is_read = false;
	snprintf(m->name, sizeof m->name, "%s%d", prefix, d->made++);
	return m;
}

static void put_clamped(struct drawn *d, const struct made *m, const char *text)
{
	append(d->body, "    %s = minimum(maximum(%s, %d), %d)\n", m->name, text, low_of(m), high_of(m));
}

/* A value of the same shape, or NULL; it may be the same one. */
static struct made *find_like(struct drawn *d, const struct made *a)
{
	for (int tries = 0; tries < 8; tries++) {
		struct made *b = &d->value[random_below(d->made)];
		if (a->channels == b->channels && a->size[0] == b->size[0] && a->size[1] == b->size[1])
			return b;
	}
	return NULL;
}

/* A residual, or a number. */
static void put_plain_sum(struct drawn *d, struct made *a)
{
	char text[128];
	struct made *b = find_like(d, a);
	struct made *m = follow(d, a, "h");
	if (b)
		b->is_read = true;
	snprintf(text, sizeof text, "%s %c %s", a->name, b ? '+' : '-', b ? b->name : "3");
	put_clamped(d, m, text);
}

/* As ONNX's QLinearAdd does: two scales, of powers of two or not. */
static void put_scaled_sum(struct drawn *d, struct made *a)
{
	static const double scales[] = {1, 0.5, 0.25, 0.125, 0.71, 1.3};
	struct made *b = find_like(d, a);
	if (!b)
		return;
	struct made *m = follow(d, a, "a");
	b->is_read = true;
	append(d->body, "    %s = cast(minimum(maximum(round(cast(%s - %d, f32) * %g + cast(%s - %d, f32) * %g) + %d, %d), %d), i32)\n", m->name,
	       a->name, a->zero + 128, scales[random_below(6)], b->name, b->zero + 128, scales[random_below(6)], m->zero, low_of(m), high_of(m));
}

/* With a number of each channel, of i8 or f32, which is added or multiplied. */
static void put_list(struct drawn *d, struct made *a)
{
	char text[128];
	struct made *m = follow(d, a, "l");
	bool real = random_below(2);
	append(d->params, "param p%s[%d, 1, 1]%s\n", m->name, m->channels, real ? "" : " : i8");
	snprintf(text, sizeof text, real ? "cast(round(cast(%s, f32) * p%s), i32)" : "%s + p%s", a->name, m->name);
	put_clamped(d, m, text);
}

/* What depends on the row and the column alone, or on the image. */
static void put_places(struct drawn *d, struct made *a)
{
	char text[128];
	struct made *m = follow(d, a, "g");
	bool images = random_below(2);
	append(d->params, images ? "param p%s[%d, %d, 1, 1] : i8\n" : "param p%s[%d, %d] : i8\n", m->name, images ? d->images : a->size[0],
	       images ? a->channels : a->size[1]);
	snprintf(text, sizeof text, "%s - p%s", a->name, m->name);
	put_clamped(d, m, text);
}

/* Windows without a border. */
static void put_pool(struct drawn *d, struct made *a)
{
	struct made *m = follow(d, a, "m");
	int size[2], stride = 1 + random_below(2);
	bool mean = random_below(2);
	for (int i = 0; i < 2; i++) {
		size[i] = 1 + random_below(a->size[i] < 3 ? a->size[i] : 3);
		m->size[i] = (a->size[i] - size[i]) / stride + 1;
	}
	if (mean)
		stride = 1, size[0] = a->size[0], size[1] = a->size[1], m->size[0] = m->size[1] = 1;
	append(d->body, "    w%s[i0, i1, i2 in %d, i3 in %d] = %s(%s[i0, i1, %d*i2 + u, %d*i3 + v] for u in %d, v in %d)\n", m->name, m->size[0],
	       m->size[1], mean ? "sum" : "max", a->name, stride, stride, size[0], size[1]);
	append(d->body, mean ? "    %s = quotient(w%s, %d)\n" : "    %s = w%s\n", m->name, m->name, size[0] * size[1]);
}

static void put_relu(struct drawn *d, struct made *a)
{
	char text[64];
	struct made *m = follow(d, a, "u");
	snprintf(text, sizeof text, "maximum(%s, %d)", a->name, a->zero);
	put_clamped(d, m, text);
}

static void put_between(struct drawn *d)
{
	static void (*const steps[])(struct drawn *, struct made *) = {put_plain_sum, put_scaled_sum, put_scaled_sum, put_list, put_places, put_pool, put_relu};
	steps[random_below(7)](d, &d->value[random_below(4) ? d->made - 1 : random_below(d->made)]);
}

/* A part of an image, from its first element on or from another one. */
static void put_crop(struct drawn *d)
{
	struct made *x = draw_input(d);
	struct made *m = follow(d, x, "c");
	int first[2];
	for (int a = 0; a < 2; a++) {
		m->size[a] = 1 + random_below(x->size[a]);
		first[a] = random_below(2) ? random_below(x->size[a] - m->size[a] + 1) : 0;
	}
	append(d->body, "    %s = %s[%d:%d, %d:%d]\n", m->name, x->name, first[0], first[0] + m->size[0], first[1], first[1] + m->size[1]);
}

static void put_input(struct drawn *d, int input)
{
	struct made *x = &d->value[d->made++];
	*x = (struct made){.channels = 1 + random_below(20), .size = {3 + random_below(8), 3 + random_below(8)}, .is_signed = random_below(2)};
	x->zero = draw_zero(x->is_signed);
	if (input && random_below(2))
		x->channels = d->value[0].channels, memcpy(x->size, d->value[0].size, sizeof x->size);
	snprintf(x->name, sizeof x->name, "x%d", input);
	append(d->inputs, "input %s[%d, %d, %d, %d] : %s\n", x->name, d->images, x->channels, x->size[0], x->size[1], x->is_signed ? "i8" : "u8");
}

static void draw_network(struct drawn *d, char *text)
{
	*d = (struct drawn){.images = 1 + random_below(3), .layers = 1 + random_below(MOST_LAYERS)};
	int inputs = 1 + !random_below(3);
	for (int input = 0; input < inputs; input++)
		put_input(d, input);
	for (int layer = 0; layer < d->layers; layer++) {
		if (!random_below(4))
			put_crop(d);
		put_layer(d, layer);
		for (int steps = random_below(3); steps > 0; steps--)
			put_between(d);
	}
	for (int i = 0; i < d->made; i++)
		if (!d->value[i].is_read || (i >= inputs && !random_below(6)))
			append(d->outputs, "output y%d = %s\n", i, d->value[i].name);
	snprintf(text, 5 * MOST_TEXT, "model network\nstructure none\n%s%snode:\n%s%s", d->inputs, d->params, d->body, d->outputs);
}

/* Which products the host keeps: none, or about a fourth of them. */
static void draw_split(char *text, size_t room, int products)
{
	bool any = random_below(2);
	snprintf(text, room, "vta");
	for (int i = 0; i < products; i++)
		if (any && !random_below(4))
			snprintf(text + strlen(text), room - strlen(text), ",-%d", i);
}

/* --- runs --- */

/* The outputs of a run, or NULL; sets how many there are, and the steps of the accelerator. */
static double *run_on(const struct test_model *t, const char *accelerator, const char *backend, int rows, int64_t *count, int *calls)
{
	const struct option_texts o = {.backend = backend, .accelerator = accelerator};
	struct test_run r;
	struct test_forest f;
	double *all = NULL;
	if (start_run(&r, t, &o)) {
		make_forest(&f, &r.image, rows, 1);
		if (run_forest(&r, &f.minibatch))
			all = gather_outputs(&r, f.nodes, f.minibatch.forest.inputs, count);
		free_forest(&f);
	}
	*calls = r.image.calls;
	end_run(&r);
	return all;
}

static bool compare_targets(const char *text, const char *split, const char *backend, int *calls)
{
	struct test_model t;
	int64_t n = 0, m = 0;
	int none, rows = 1 + random_below(3);
	bool ok = load_text(&t, "network", text, strlen(text), "");
	double *host = ok ? run_on(&t, NULL, backend, rows, &n, &none) : NULL,
	       *vta = host ? run_on(&t, split, backend, rows, &m, calls) : NULL;
	ok = vta && n == m && !none && memcmp(host, vta, n * sizeof *host) == 0;
	free(host);
	free(vta);
	free_model(&t);
	return ok;
}

int main(int argc, char **argv)
{
	static char text[5 * MOST_TEXT], split[8 * MOST_LAYERS];
	static struct drawn d;
	const char *backend = usual_backend();
	int seed = 1, count = 60, total = 0, with = 0, failed = 0;
	if (argc > 1 && sscanf(argv[1], "%dx%d", &seed, &count) != 2)
		return 99;
	for (int i = 0; i < count; i++) {
		int calls = 0;
		random_state = (uint64_t)(seed + i) * 0x9E3779B97F4A7C15u;
		weights_drawn = random_bits();
		draw_network(&d, text);
		draw_split(split, sizeof split, d.layers);
		if (!compare_targets(text, split, i % 2 ? "interpreter" : backend, &calls)) {
			failed++;
			printf("# %d, split by %s:\n# ", seed + i, split);
			for (const char *c = text; *c; c++)
				printf(*c == '\n' ? "\n# " : "%c", *c);
		}
		total += calls;
		with += calls > 0;
	}
	tap_ok(!failed, "host and accelerator give the same bytes in %d networks", count);
	tap_ok(with * 2 > count && total > count, "the accelerator computes functions of most of them: %d of %d, %d functions", with, count, total);
	return tap_done();
}
