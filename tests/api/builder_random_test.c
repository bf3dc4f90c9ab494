/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Calls at random: of whatever is called a model comes, or a diagnostic. */
#include "tests/api/built.h"

#include <math.h>

static unsigned random_state;

static int below(int n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (int)((random_state >> 8) % (unsigned)n);
}

/* Mostly right, so that what is built gets somewhere. */
static const char *text(void)
{
	static const char *const texts[] = {"h",
					    "c",
					    "W",
					    "x",
					    "word",
					    "D",
					    "D, D",
					    "2*D",
					    "n",
					    "o",
					    "p",
					    "",
					    "0",
					    "D+",
					    "left",
					    "left.h",
					    "%1",
					    "each child.h",
					    "in",
					    "\xff",
					    "a\nb",
					    "D,D,D,D",
					    "1e9",
					    "[",
					    "9999999999999999999",
					    "#",
					    "U_{a,b}",
					    "%s"};
	return texts[below(below(3) ? 11 : (int)(sizeof texts / sizeof *texts))];
}

enum { VALUES = 60 };

struct random_calls {
	esp_builder *b;
	esp_value value[VALUES];
	int n;
};

static esp_value any(const struct random_calls *r)
{
	if (below(200) == 0)
		return (esp_value){(uint32_t)below(1 << 30)};
	return r->n ? r->value[below(r->n)] : (esp_value){0};
}

static esp_value random_call(struct random_calls *r)
{
	static const char *const functions[] = {"+",	"-",	      "*",	"/",	  "@",	 "tanh",
						"exp",	"softmax",    "concat", "sum",	  "max", "transpose",
						"relu", "layer_norm", "zeros",	"nothing"};
	int f = below(16), n = below(4) ? f < 5 || f == 8 ? 2 : 1 : below(5);
	esp_value arg[] = {any(r), any(r), any(r), any(r)};
	return esp_builder_call(r->b, functions[f], arg, (size_t)n);
}

static esp_value random_value(struct random_calls *r)
{
	switch (below(9)) {
	case 0:
		return esp_builder_get(r->b, text());
	case 1:
		return esp_builder_child(r->b, below(5) - 1, text());
	case 2:
		return esp_builder_children(r->b, below(9) ? "sum" : text(), any(r));
	case 3:
		return esp_builder_slice(r->b, any(r), below(4) - 2, below(2) ? NULL : text(),
					 below(2) ? NULL : text());
	case 4:
		return below(2) ? esp_builder_zeros(r->b, text()) : esp_builder_dimension(r->b, text());
	case 5:
		return esp_builder_lookup(r->b, any(r), any(r));
	case 6:
		return esp_builder_number(r->b, below(9) ? below(100) - 50 : HUGE_VAL);
	default:
		return random_call(r);
	}
}

static void random_declaration(struct random_calls *r)
{
	const char *const label[] = {"a", text(), "c"};
	switch (below(6)) {
	case 0:
		r->value[r->n++ % VALUES] = esp_builder_param(r->b, text(), text());
		break;
	case 1:
		esp_builder_state(r->b, text(), text());
		break;
	case 2:
		esp_builder_output(r->b, text(), any(r), below(3), label, (size_t)below(4));
		break;
	default:
		esp_builder_assign(r->b, below(4) ? "h" : text(), any(r));
	}
}

/* Either the model can be printed and read, or it is told why not. */
static bool random_model(unsigned seed)
{
	struct random_calls r = {0};
	esp_model *m;
	esp_error *error;
	random_state = seed;
	esp_builder_create(context, "m", below(2) ? "dag(left, right)" : "tree(*)", &r.b, NULL);
	r.value[r.n++] = esp_builder_input(r.b, "x", "D");
	r.value[r.n++] = esp_builder_token(r.b, "word");
	r.value[r.n++] = esp_builder_param(r.b, "W", "D, D");
	esp_builder_state(r.b, "h", "D");
	for (int calls = below(60); calls && r.n < VALUES; calls--) {
		if (below(8) == 0)
			esp_builder_body(r.b, below(40) ? 1 + below(4) : 9);
		esp_value v = random_value(&r);
		if (v.id)
			r.value[r.n++] = v;
		if (below(12) == 0 && r.n < VALUES)
			random_declaration(&r);
	}
	esp_status s = esp_builder_finish(r.b, &m, &error);
	bool right = s == ESP_OK ? m && !error : !m && esp_error_count(error) && *esp_error_text(error);
	esp_error_free(error);
	esp_builder_free(r.b);
	esp_model_free(m);
	return right;
}

/* Calls whose shapes are right: all but a value of each child that is not summed up. */
static bool random_body(unsigned seed, int *built)
{
	struct random_calls r = {0};
	esp_model *m;
	random_state = seed;
	esp_builder_create(context, "m", "dag(2)", &r.b, NULL);
	r.value[r.n++] = esp_builder_input(r.b, "x", "D");
	esp_builder_state(r.b, "h", "D");
	esp_builder_body(r.b, ESP_BODY_NODE);
	r.value[r.n++] = esp_builder_child(r.b, 0, "h");
	r.value[r.n++] = esp_builder_child(r.b, 1, "h");
	r.value[r.n++] = esp_builder_child(r.b, ESP_EACH_CHILD, "h");
	esp_value h = r.value[0];
	for (int i = below(30); i; i--) {
		static const char *const functions[] = {"+", "-", "*", "maximum"};
		esp_value v =
		    below(5) ? esp_builder_call(r.b, functions[below(4)], (esp_value[]){any(&r), any(&r)}, 2)
			     : esp_builder_children(r.b, "sum", any(&r));
		if (v.id)
			r.value[r.n++] = h = v;
	}
	esp_builder_assign(r.b, "h", CALL(r.b, "+", esp_builder_children(r.b, "sum", h), r.value[0]));
	esp_builder_body(r.b, ESP_BODY_OUTPUT);
	esp_builder_output(r.b, "o", esp_builder_get(r.b, "h"), ESP_AT_ROOT, NULL, 0);
	esp_builder_finish(r.b, &m, NULL);
	esp_builder_free(r.b);
	if (!m)
		return true;
	char *once = text_of(m), *again = once ? read_model(once, strlen(once)) : NULL;
	bool same = again && strcmp(once, again) == 0;
	*built += same;
	esp_text_free(once);
	esp_text_free(again);
	return same;
}

static void check_random(void)
{
	int right = 0, built = 0, rounds = 3000;
	for (int i = 0; i < rounds; i++)
		right += random_model((unsigned)i);
	tap_is(right, rounds, "whatever is called, a model comes of it or a diagnostic");
	right = 0;
	for (int i = 0; i < rounds; i++)
		right += random_body((unsigned)i, &built);
	tap_is(right, rounds, "a model that is built can be printed, and read as the same");
	printf("# %d were built\n", built);
	tap_ok(built > rounds / 2, "most are");
}

int main(void)
{
	if (esp_context_create(NULL, &context, NULL))
		return 1;
	check_random();
	esp_context_free(context);
	return tap_done();
}
