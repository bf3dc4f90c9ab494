/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of kinds of buffers: a row for each, which agrees with itself, and which the text of the loops can name. */
#include "tests/ilir/support.h"

/* Whether kinds whose contents are numbers of nodes, edges and positions have elements of i32 and known rows. */
static bool agrees_with_itself(const struct image_buffer_traits *t)
{
	bool numbers = t->content == IMAGE_HOLDS_STRUCTURE || t->content == IMAGE_HOLDS_SORTS;
	bool sizes = t->rows == IMAGE_ANY || (t->rows >= 0 && t->rows < IMAGE_SIZES);
	bool weights = (t->content == IMAGE_HOLDS_WEIGHTS) == (t->memory == IMAGE_IN_BINDING);
	bool data = (t->content == IMAGE_HOLDS_DATA) == (t->which == IMAGE_COUNTS_INPUTS);
	bool sorts = (t->content == IMAGE_HOLDS_SORTS) == (t->which == IMAGE_COUNTS_SORTS);
	return sizes && weights && data && sorts && (!numbers || t->dtype == DTYPE_I32) &&
	       (t->more == 0 || (t->more == 1 && numbers)) && (t->memory != IMAGE_IN_ORDER || numbers) &&
	       (t->memory != IMAGE_IN_THREAD || t->content == IMAGE_HOLDS_RESULTS || (numbers && t->rows == IMAGE_ONE));
}

static bool is_spelled_once(int kind)
{
	const char *spelling = image_traits_of(kind)->spelling;
	for (int other = 0; other < IMAGE_BUFFER_KINDS; other++)
		if (other != kind && strcmp(image_traits_of(other)->spelling, spelling) == 0)
			return false;
	return *spelling;
}

/* Whether a module that declares such a buffer is read, with this kind, and printed as it was. */
static bool is_read_back(int kind)
{
	const struct image_buffer_traits *t = image_traits_of(kind);
	char text[200];
	snprintf(text, sizeof text, "module m\ndim d\nbuffer b : %s 0 %s [nodes%s:d]\n", t->spelling,
		 t->dtype == DTYPE_I32 ? "i32" : "f32", t->more ? "+1" : "");
	struct bench b;
	bool same = bench_parse(&b, text) && b.m->buffers.at[1].kind == kind && strcmp(bench_text(&b), text) == 0 &&
		    ilir_traits_of(&b.m->buffers.at[1]) == t && ilir_verify(b.m, 0, "read", &b.diags);
	bench_close(&b);
	return same;
}

static void test_begins(void)
{
	for (int kind = 0; kind < IMAGE_BUFFER_KINDS; kind++) {
		const struct image_buffer_traits *t = image_traits_of(kind);
		const char *end = strstr(t->spelling, "_begin");
		tap_ok((end && !end[6]) == (t->more == 1 && t->rows != IMAGE_ONE), "%s has %d rows more", t->spelling, t->more);
	}
}

int main(void)
{
	for (int kind = 0; kind < IMAGE_BUFFER_KINDS; kind++) {
		const struct image_buffer_traits *t = image_traits_of(kind);
		if (!tap_ok(t->spelling && t->meaning && *t->meaning, "kind %d has a row", kind))
			continue;
		tap_ok(agrees_with_itself(t), "%s: what it holds, whose it is and its rows agree", t->spelling);
		tap_ok(is_spelled_once(kind), "%s: no other kind is spelled so", t->spelling);
		tap_ok(is_read_back(kind), "%s: a buffer of it is printed as it was read", t->spelling);
	}
	struct ilir_buffer_decl local = {.kind = ILIR_REGISTER}, unused = {.kind = ILIR_UNUSED};
	tap_ok(!ilir_traits_of(&local) && !ilir_traits_of(&unused),
	       "registers and unused buffers have no kind of an image");
	test_begins();
	return tap_done();
}
