/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models made by calls: the same text as those read from a file; and memory that runs out is told in the end. */
#include "tests/api/built.h"

/* --- models of the tests, by hand --- */

static esp_value affine(esp_builder *b, esp_value W, esp_value x, esp_value bias)
{
	return CALL(b, "+", CALL(b, "@", W, x), bias);
}

static esp_value param(esp_builder *b, const char *prefix, const char *gate, const char *suffix,
		       const char *shape)
{
	char name[64];
	snprintf(name, sizeof name, "%s%s%s", prefix, gate, suffix);
	return esp_builder_param(b, name, shape);
}

static const char *const classes[] = {"very negative", "negative", "neutral", "positive", "very positive"};

enum { I, FL, FR, O, U, GATES };

static esp_value gate(esp_builder *b, const esp_value *U_left, const esp_value *U_right,
		      const esp_value *bias, int g)
{
	esp_value left = esp_builder_child(b, 0, "h"), right = esp_builder_child(b, 1, "h");
	esp_value sum = CALL(
	    b, "+", CALL(b, "+", CALL(b, "@", U_left[g], left), CALL(b, "@", U_right[g], right)), bias[g]);
	return esp_builder_call(b, g == U ? "tanh" : "sigmoid", &sum, 1);
}

static void finish_cell(esp_builder *b, esp_value c, esp_value o)
{
	esp_builder_assign(b, "c", c);
	esp_builder_assign(b, "h", CALL(b, "*", o, CALL(b, "tanh", esp_builder_get(b, "c"))));
}

static esp_builder *build_treelstm(void)
{
	static const char *const gates[GATES] = {"i", "fl", "fr", "o", "u"}, *const leaf[] = {"i", "o", "u"};
	esp_value W[3], leaf_bias[3], left[GATES], right[GATES], bias[GATES], v[GATES];
	esp_builder *b;
	if (esp_builder_create(context, "treelstm", "tree(left, right)", &b, NULL))
		return NULL;
	esp_value word = esp_builder_token(b, "word"),
		  embedding = esp_builder_param(b, "embedding.weight", "V, E");
	for (int g = 0; g < 3; g++)
		W[g] = param(b, "leaf.W_", leaf[g], "", "D, E");
	for (int g = 0; g < 3; g++)
		leaf_bias[g] = param(b, "leaf.b_", leaf[g], "", "D");
	for (int g = 0; g < GATES; g++) {
		left[g] = param(b, "node.U_", gates[g], "_left", "D, D");
		right[g] = param(b, "node.U_", gates[g], "_right", "D, D");
	}
	for (int g = 0; g < GATES; g++)
		bias[g] = param(b, "node.b_", gates[g], "", "D");
	esp_value out = esp_builder_param(b, "output.weight", "5, D"),
		  out_bias = esp_builder_param(b, "output.bias", "5");
	esp_builder_state(b, "h", "D");
	esp_builder_state(b, "c", "D");

	esp_builder_body(b, ESP_BODY_LEAF);
	esp_value x = esp_builder_lookup(b, embedding, word);
	for (int g = 0; g < 3; g++)
		v[g] = CALL(b, g == 2 ? "tanh" : "sigmoid", affine(b, W[g], x, leaf_bias[g]));
	finish_cell(b, CALL(b, "*", v[0], v[2]), v[1]);

	esp_builder_body(b, ESP_BODY_INNER);
	for (int g = 0; g < GATES; g++)
		v[g] = gate(b, left, right, bias, g);
	esp_value c =
	    CALL(b, "+", CALL(b, "*", v[I], v[U]), CALL(b, "*", v[FL], esp_builder_child(b, 0, "c")));
	finish_cell(b, CALL(b, "+", c, CALL(b, "*", v[FR], esp_builder_child(b, 1, "c"))), v[O]);

	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_value logits = affine(b, out, esp_builder_get(b, "h"), out_bias);
	esp_builder_output(b, "logits", logits, ESP_AT_EVERY_NODE, NULL, 0);
	esp_builder_output(b, "sentiment", CALL(b, "softmax", logits), ESP_AT_EVERY_NODE, classes, 5);
	return b;
}

static esp_builder *build_childsum(void)
{
	static const char *const gates[] = {"i", "f", "o", "u"};
	esp_value W[4], U[4], bias[4], v[4];
	esp_builder *b;
	if (esp_builder_create(context, "childsum", "tree(*)", &b, NULL))
		return NULL;
	esp_value word = esp_builder_token(b, "word"), embedding = esp_builder_param(b, "embedding", "V, E");
	for (int g = 0; g < 4; g++)
		W[g] = param(b, "W_", gates[g], "", "D, E");
	for (int g = 0; g < 4; g++)
		U[g] = param(b, "U_", gates[g], "", "D, D");
	for (int g = 0; g < 4; g++)
		bias[g] = param(b, "b_", gates[g], "", "D");
	esp_builder_state(b, "h", "D");
	esp_builder_state(b, "c", "D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value x = esp_builder_lookup(b, embedding, word), h = esp_builder_child(b, ESP_EACH_CHILD, "h");
	esp_value s = esp_builder_children(b, "sum", h), wf = affine(b, W[1], x, bias[1]);
	for (int g = 0; g < 4; g++) {
		esp_value a = CALL(b, "+", CALL(b, "@", W[g], x), CALL(b, "@", U[g], s));
		v[g] = CALL(b, g == 3 ? "tanh" : "sigmoid", CALL(b, "+", a, bias[g]));
	}
	esp_value f = CALL(b, "sigmoid", CALL(b, "+", wf, CALL(b, "@", U[1], h)));
	esp_value kept =
	    esp_builder_children(b, "sum", CALL(b, "*", f, esp_builder_child(b, ESP_EACH_CHILD, "c")));
	finish_cell(b, CALL(b, "+", CALL(b, "*", v[0], v[3]), kept), v[2]);
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "vector", esp_builder_get(b, "h"), ESP_AT_ROOT, NULL, 0);
	return b;
}

static esp_builder *build_gru(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "gru", "sequence", &b, NULL))
		return NULL;
	esp_value x = esp_builder_input(b, "x", "E");
	esp_value W = esp_builder_param(b, "weight_ih", "3*D, E"),
		  U = esp_builder_param(b, "weight_hh", "3*D, D");
	esp_value wb = esp_builder_param(b, "bias_ih", "3*D"),
		  ub = esp_builder_param(b, "bias_hh", "D + 2*D");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value h = esp_builder_child(b, 0, "h"), v = affine(b, W, x, wb), w = affine(b, U, h, ub);
	esp_value r =
	    CALL(b, "sigmoid",
		 CALL(b, "+", esp_builder_slice(b, v, -1, NULL, "D"), esp_builder_slice(b, w, -1, NULL, "D")));
	esp_value z =
	    CALL(b, "sigmoid",
		 CALL(b, "+", esp_builder_slice(b, v, -1, "D", "2*D"), esp_builder_slice(b, w, -1, "D", "2*D")));
	esp_value n = CALL(b, "tanh",
			   CALL(b, "+", esp_builder_slice(b, v, -1, "2*D", NULL),
				CALL(b, "*", r, esp_builder_slice(b, w, -1, "2*D", NULL))));
	esp_value left = CALL(b, "*", CALL(b, "-", esp_builder_number(b, 1), z), n);
	esp_builder_assign(b, "h", CALL(b, "+", left, CALL(b, "*", z, h)));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "last", esp_builder_get(b, "h"), ESP_AT_ROOT, NULL, 0);
	return b;
}

/* Whatever a builder has, once at least. */
static const char everything[] =
    "model all\nstructure dag(2)\ninput word : token\ninput x[D]\nparam E[V, D]\nparam scale\n"
    "state h[D], n\n"
    "leaf:\n y = zeros(D) + E[word]\n h = maximum(x, -y) / dimension(2*D)\n n = -0.5\n"
    "inner:\n h = (t = sum((q = exp(k.h); q / (q + 1)) for k in children); t - t[D - D:D])\n"
    " n = max(k.n * scale for k in children) + children[1].n + sum(concat(h, h, x))\n"
    "output first = (t = h * n; t + t) at root labels \"a \\\"b\\\"\", \"c\\\\d\"\n"
    "output again = first at root\n"
    "output last = abs(first) + transpose(E) @ zeros(V) at every node\n";

static esp_builder *build_everything(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "all", "dag(2)", &b, NULL))
		return NULL;
	esp_builder_body(b, ESP_BODY_LEAF);
	esp_value word = esp_builder_token(b, "word"), x = esp_builder_input(b, "x", "D");
	esp_value E = esp_builder_param(b, "E", " V,D "), scale = esp_builder_param(b, "scale", NULL);
	esp_value y = CALL(b, "+", esp_builder_zeros(b, "D"), esp_builder_lookup(b, E, word));
	esp_builder_state(b, "h", "D");
	esp_builder_state(b, "n", "");
	esp_builder_assign(
	    b, "h", CALL(b, "/", CALL(b, "maximum", x, CALL(b, "-", y)), esp_builder_dimension(b, "2*D")));

	esp_builder_body(b, ESP_BODY_INNER);
	esp_value q = CALL(b, "exp", esp_builder_child(b, ESP_EACH_CHILD, "h"));
	esp_value t =
	    esp_builder_children(b, "sum", CALL(b, "/", q, CALL(b, "+", q, esp_builder_number(b, 1))));
	esp_builder_assign(b, "h", CALL(b, "-", t, esp_builder_slice(b, t, -1, "D - D", "D")));

	esp_builder_body(b, ESP_BODY_LEAF);
	esp_builder_assign(b, "n", esp_builder_number(b, -0.5));

	esp_builder_body(b, ESP_BODY_INNER);
	esp_value n = CALL(b, "*", esp_builder_child(b, ESP_EACH_CHILD, "n"), scale),
		  h = esp_builder_get(b, "h");
	n = CALL(b, "+", esp_builder_children(b, "max", n), esp_builder_child(b, 1, "n"));
	esp_builder_assign(b, "n", CALL(b, "+", n, CALL(b, "sum", CALL(b, "concat", h, h, x))));

	esp_builder_body(b, ESP_BODY_OUTPUT);
	t = CALL(b, "*", esp_builder_get(b, "h"), esp_builder_get(b, "n"));
	esp_value first = CALL(b, "+", t, t);
	esp_builder_output(b, "first", first, ESP_AT_ROOT, (const char *const[]){"a \"b\"", "c\\d"}, 2);
	esp_builder_output(b, "again", first, ESP_AT_ROOT, NULL, 0);
	esp_value last = CALL(b, "@", CALL(b, "transpose", E), esp_builder_zeros(b, "V"));
	last = CALL(b, "+", CALL(b, "abs", esp_builder_get(b, "first")), last);
	esp_builder_output(b, "last", last, ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

/* A DAG from its roots to its leaves. */
static esp_builder *build_down(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "down", "dag(*)", &b, NULL))
		return NULL;
	esp_value x = esp_builder_input(b, "x", "E"), W = esp_builder_param(b, "W", "D, E"),
		  U = esp_builder_param(b, "U", "D, D");
	esp_builder_traversal(b, "down");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value h = esp_builder_parent(b, ESP_EACH_PARENT, "h");
	esp_value s = esp_builder_parents(b, "sum", CALL(b, "*", CALL(b, "sigmoid", h), h));
	esp_builder_assign(b, "h", CALL(b, "tanh", CALL(b, "+", CALL(b, "@", W, x), CALL(b, "@", U, s))));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "o", esp_builder_get(b, "h"), ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

static const char updown_text[] =
    "model updown\nstructure tree(left, right)\ninput x[D]\nparam W[D, D]\nstate h[D]\n"
    "leaf:\n h = x\ninner:\n h = tanh(W @ left.h + right.h)\n"
    "traversal down\nstate g[D]\nroot:\n g = h\nbelow:\n g = tanh(W @ parent.g) + parent.h * h\noutput o = g + h\n";

static esp_builder *build_updown(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "updown", "tree(left, right)", &b, NULL))
		return NULL;
	esp_value x = esp_builder_input(b, "x", "D"), W = esp_builder_param(b, "W", "D, D");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_LEAF);
	esp_builder_assign(b, "h", x);
	esp_builder_body(b, ESP_BODY_INNER);
	esp_value a = CALL(b, "@", W, esp_builder_child(b, 0, "h"));
	esp_builder_assign(b, "h", CALL(b, "tanh", CALL(b, "+", a, esp_builder_child(b, 1, "h"))));
	esp_builder_traversal(b, "down");
	esp_builder_state(b, "g", "D");
	esp_builder_body(b, ESP_BODY_ROOT);
	esp_builder_assign(b, "g", esp_builder_get(b, "h"));
	esp_builder_body(b, ESP_BODY_BELOW);
	a = CALL(b, "tanh", CALL(b, "@", W, esp_builder_parent(b, ESP_THE_PARENT, "g")));
	esp_value kept = CALL(b, "*", esp_builder_parent(b, ESP_THE_PARENT, "h"), esp_builder_get(b, "h"));
	esp_builder_assign(b, "g", CALL(b, "+", a, kept));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "o", CALL(b, "+", esp_builder_get(b, "g"), esp_builder_get(b, "h")),
			   ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

/* --- the same text --- */

static char *built_text(esp_builder *b)
{
	esp_model *m;
	esp_error *error;
	if (esp_builder_finish(b, &m, &error))
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	esp_builder_free(b);
	return m ? text_of(m) : NULL;
}

/* Attention over the nodes of an input. */
static const char attention[] =
    "model attention\n"
    "structure tree(*)\n"
    "input x[D]\n"
    "param v[D]\n"
    "state h[D]\n"
    "node:\n"
    "    h = x + sum(k.h for k in children)\n"
    "output score = v @ h at every node\n"
    "output read = (m = max(n.score for n in nodes); sum(exp(n.score - m) * n.h for n in nodes)) at root\n";

static esp_builder *build_attention(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "attention", "tree(*)", &b, NULL))
		return NULL;
	esp_value x = esp_builder_input(b, "x", "D"), v = esp_builder_param(b, "v", "D");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value h = esp_builder_children(b, "sum", esp_builder_child(b, ESP_EACH_CHILD, "h"));
	esp_builder_assign(b, "h", CALL(b, "+", x, h));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "score", CALL(b, "@", v, esp_builder_get(b, "h")), ESP_AT_EVERY_NODE, NULL, 0);
	esp_value score = esp_builder_member(b, "score"), m = esp_builder_members(b, "max", score);
	esp_value weight = CALL(b, "exp", CALL(b, "-", score, m));
	esp_value read = esp_builder_members(b, "sum", CALL(b, "*", weight, esp_builder_member(b, "h")));
	esp_builder_output(b, "read", read, ESP_AT_ROOT, NULL, 0);
	return b;
}

/* What edges carry, of each child and by slot. */
static const char edges[] = "model edges\n"
			    "structure dag(left, right)\n"
			    "input word : token\n"
			    "edge rel : token\n"
			    "edge x[F]\n"
			    "param E[V, D]\n"
			    "param U[R, D, D]\n"
			    "param W[D, F]\n"
			    "state h[D]\n"
			    "node:\n"
			    "    s = sum(U[k.rel] @ k.h + W @ k.x for k in children)\n"
			    "    h = E[word] + U[left.rel] @ right.h + W @ right.x + s\n"
			    "output o = h\n";

static esp_builder *build_edges(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "edges", "dag(left, right)", &b, NULL))
		return NULL;
	esp_value word = esp_builder_token(b, "word");
	esp_builder_edge_token(b, "rel");
	esp_builder_edge(b, "x", "F");
	esp_value E = esp_builder_param(b, "E", "V, D"), U = esp_builder_param(b, "U", "R, D, D"),
		  W = esp_builder_param(b, "W", "D, F");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_NODE);
	esp_value each = esp_builder_lookup(b, U, esp_builder_child(b, ESP_EACH_CHILD, "rel"));
	esp_value message = CALL(b, "+", CALL(b, "@", each, esp_builder_child(b, ESP_EACH_CHILD, "h")),
				 CALL(b, "@", W, esp_builder_child(b, ESP_EACH_CHILD, "x")));
	esp_value s = esp_builder_children(b, "sum", message);
	esp_value left = esp_builder_lookup(b, U, esp_builder_child(b, 0, "rel"));
	esp_value h = CALL(b, "+", esp_builder_lookup(b, E, word), CALL(b, "@", left, esp_builder_child(b, 1, "h")));
	h = CALL(b, "+", h, CALL(b, "@", W, esp_builder_child(b, 1, "x")));
	esp_builder_assign(b, "h", CALL(b, "+", h, s));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "o", esp_builder_get(b, "h"), ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

static const char cases[] = "model cases\nstructure tree(*)\ninput tag : token\nparam E[V, D]\nstate h[D]\n"
			    "case number = leaf when tag == 1\ncase pair = inner when children == 2 and tag == 2\n"
			    "leaf:\n h = E[tag]\ninner:\n h = sum(k.h for k in children)\n"
			    "number:\n h = zeros(D)\npair:\n h = tanh(sum(k.h for k in children))\noutput o = h\n";

static esp_builder *build_cases(void)
{
	esp_builder *b;
	if (esp_builder_create(context, "cases", "tree(*)", &b, NULL))
		return NULL;
	esp_value tag = esp_builder_token(b, "tag"), E = esp_builder_param(b, "E", "V, D");
	esp_builder_state(b, "h", "D");
	int number = esp_builder_case(b, "number", ESP_BODY_LEAF, "tag == 1");
	int pair = esp_builder_case(b, "pair", ESP_BODY_INNER, "children == 2 and tag == 2");
	esp_builder_body(b, ESP_BODY_LEAF);
	esp_builder_assign(b, "h", esp_builder_lookup(b, E, tag));
	esp_builder_body(b, ESP_BODY_INNER);
	esp_builder_assign(b, "h", esp_builder_children(b, "sum", esp_builder_child(b, ESP_EACH_CHILD, "h")));
	esp_builder_body(b, number);
	esp_builder_assign(b, "h", esp_builder_zeros(b, "D"));
	esp_builder_body(b, pair);
	esp_value sum = esp_builder_children(b, "sum", esp_builder_child(b, ESP_EACH_CHILD, "h"));
	esp_builder_assign(b, "h", CALL(b, "tanh", sum));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "o", esp_builder_get(b, "h"), ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

static void check_same(const char *name, esp_builder *b, const char *text, size_t length)
{
	char *built = built_text(b), *wanted = read_model(text, length);
	bool same = built && wanted && strcmp(built, wanted) == 0;
	if (!same)
		printf("# built:\n%s# read:\n%s", built ? built : "", wanted ? wanted : "");
	tap_ok(same, "%s: built and read, it prints as one text", name);
	char *again = built ? read_model(built, strlen(built)) : NULL;
	tap_ok(again && strcmp(again, built) == 0, "%s: which reads as the same model", name);
	esp_text_free(built);
	esp_text_free(wanted);
	esp_text_free(again);
}

static void check_file(const char *name, esp_builder *b)
{
	char path[4096], text[8192];
	const char *srcdir = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/ra/good/%s.ra", srcdir ? srcdir : ".", name);
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;
	if (f)
		fclose(f);
	check_same(name, b, text, n);
}

/* --- memory --- */

static esp_builder *(*const builders[])(void) = {build_treelstm, build_everything, build_childsum, build_gru,
						    build_edges, build_attention, build_cases};

static esp_status build_in(struct account *a, esp_builder *(*build)(void), esp_error **error)
{
	esp_context_options options = {.size = sizeof options, .resize = account_resize, .user = a};
	esp_context *kept = context;
	esp_model *m = NULL;
	*error = NULL;
	esp_status s = esp_context_create(&options, &context, error);
	if (!s) {
		esp_builder *b = build();
		s = b ? esp_builder_finish(b, &m, error) : ESP_ERROR_MEMORY;
		esp_builder_free(b);
		esp_context_free(context);
	}
	esp_model_free(m);
	context = kept;
	return s;
}

static void check_memory(void)
{
	for (size_t i = 0; i < sizeof builders / sizeof *builders; i++) {
		bool memory = true, kept = true;
		esp_status s = ESP_ERROR_MEMORY;
		long n = 0;
		for (; s && n < 10000; n++) {
			struct account a = {.left = n};
			esp_error *error;
			s = build_in(&a, builders[i], &error);
			memory &= s == ESP_OK || s == ESP_ERROR_MEMORY;
			esp_error_free(error);
			kept &= a.blocks == 0 && a.bytes == 0 && !a.wrong;
		}
		tap_ok(!s && n > 3 && memory, "memory running out at any of %ld requests is told", n - 1);
		tap_ok(kept, "and all is given back");
	}
}

int main(void)
{
	if (esp_context_create(NULL, &context, NULL))
		return 1;
	check_file("treelstm", build_treelstm());
	check_file("childsum", build_childsum());
	check_file("gru", build_gru());
	check_file("down", build_down());
	check_same("updown", build_updown(), updown_text, sizeof updown_text - 1);
	check_same("all", build_everything(), everything, sizeof everything - 1);
	check_same("edges", build_edges(), edges, sizeof edges - 1);
	check_same("attention", build_attention(), attention, sizeof attention - 1);
	check_same("cases", build_cases(), cases, sizeof cases - 1);
	check_memory();
	esp_context_free(context);
	return tap_done();
}
