/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What quantised weights say of the programs that use them. */
#include "api/objects.h"
#include "base/checksum.h"
#include "io/quantised.h"

#include <string.h>

const char *weights_model_key(struct arena *a, const struct ra_model *m)
{
	struct str text = str_in(a), key = str_in(a);
	ra_print(m, &text);
	struct checksum c = checksum_of(str_text(&text), text.n);
	for (size_t i = 0; i < sizeof c.bytes; i++)
		str_printf(&key, "%02x", c.bytes[i]);
	return str_text(&key);
}

bool weights_fit_model(struct arena *a, const struct esp_weights *w, const struct ra_model *m,
		       struct diags *diags)
{
	const struct io_quantised *q = w->file->quantised;
	return !q || strcmp(q->model, weights_model_key(a, m)) == 0 ||
	       diag_add(diags, DIAG_QUANTISED_MODEL, (struct diag_at){.file = w->file->path},
			"quantise the weights for this model: espalier quantise",
			"the weights of '%s' were quantised for another model than '%s'", w->file->path,
			m->name);
}

/* Families that make tables change no product that they leave. */
static unsigned rules_of_products(unsigned off)
{
	return off & ~(1u << REWRITE_FAMILY_TABLES);
}

/* Adds the names of a list, a line each. */
static size_t add_kept(struct arena *a, const char *lines, struct rewrite_calibrated *to)
{
	size_t n = 0;
	for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		char *name = arena_take(a, length + 1, 1);
		memcpy(name, lines, length);
		if (to)
			to[n] = (struct rewrite_calibrated){.name = name, .kept = true};
		n++;
	}
	return n;
}

/* The product that a tensor is the bound of; NULL = it is none. */
static const char *read_bound_name(struct arena *a, const char *tensor)
{
	static const char kind[] = "bound(";
	size_t n = strlen(tensor), k = sizeof kind - 1;
	if (strncmp(tensor, kind, k) != 0)
		return NULL;
	char *name = arena_take(a, n, 1);
	memcpy(name, tensor + k, n - k - 1);
	return name;
}

static const struct rewrite_calibration *list_calibrated(struct arena *a, const struct io_safetensors *file)
{
	struct rewrite_calibration *c = ARENA_NEW(a, struct rewrite_calibration);
	size_t most = (size_t)(file->n - file->own) + add_kept(a, file->quantised->kept, NULL);
	struct rewrite_calibrated *product = ARENA_ARRAY(a, struct rewrite_calibrated, most + 1);
	c->n = add_kept(a, file->quantised->kept, product);
	for (int i = file->own; i < file->n; i++) {
		const char *name = read_bound_name(a, file->tensor[i].name);
		if (name)
			product[c->n++] = (struct rewrite_calibrated){.name = name};
	}
	c->product = product;
	return c;
}

/* What the metadata say of the options of a calibration. */
struct said {
	enum rewrite_math math;
	enum precision precision;
	bool finite;
	unsigned off;
};

/* False after `bad-quantised`. */
static bool read_said(const struct esp_weights *w, struct said *to, struct diags *diags)
{
	const struct io_quantised *q = w->file->quantised;
	struct diags unknown;
	diags_init(&unknown, &allocator_default);
	bool ok = rewrite_read_math(q->math, &to->math, &unknown) &&
		  rewrite_read_precision(q->precision, &to->precision, &unknown) &&
		  (to->precision == PRECISION_F32 || precision_traits_of(to->precision)->bytes) &&
		  rewrite_read_assumption(q->assume, &to->finite, &unknown) &&
		  rewrite_read_families(q->rules, &to->off, &unknown);
	diags_free(&unknown);
	return ok || diag_add(diags, DIAG_BAD_QUANTISED, (struct diag_at){.file = w->file->path},
			      "quantise the weights again: espalier quantise",
			      "the quantised weights '%.200s' are damaged: the metadata say precision '%.20s', math '%.20s', "
			      "assume '%.20s' and rules '%.100s', and one of these is not known, or the precision is of neither f32 nor integers",
			      w->file->path, q->precision, q->math, q->assume, q->rules);
}

static const struct rewrite_calibration *make_unfit(struct arena *a)
{
	struct rewrite_calibration *c = ARENA_NEW(a, struct rewrite_calibration);
	c->unfit = true;
	return c;
}

/* Weights that are multiplied in f32 are kept in i8, unless the options say otherwise.  Under other rules, or other
 * arithmetic, a product of the same name may multiply something else; so bounds
 * hold for those of the calibration alone. */
bool weights_set_options(struct arena *a, const struct esp_weights *w, const esp_program_options *from,
			 struct compile_options *o, struct diags *diags)
{
	struct said said;
	if (!w->file->quantised)
		return true;
	if (!read_said(w, &said, diags))
		return false;
	o->math = from->math ? o->math : said.math;
	o->precision = from->precision ? o->precision : said.precision;
	o->finite = from->assume ? o->finite : said.finite;
	if (said.precision == PRECISION_F32 && !from->weights_as)
		o->weights_as = DTYPE_I8;
	bool fits = o->math == said.math && o->finite == said.finite &&
		    rules_of_products(o->rules_off) == rules_of_products(said.off);
	if (o->precision != PRECISION_F32)
		o->calibration = fits ? list_calibrated(a, w->file) : make_unfit(a);
	return true;
}
