/* Models made by calls: the same text as those read from a file; every mistake is told where it was made; and
 * memory that runs out is told in the end. */
#include "tests/api/support.h"

#include <math.h>

static esp_context *context;

#define AT(b) esp_builder_at(b, __FILE__, __LINE__)
#define CALL(b, function, ...)                                                                               \
	esp_builder_call(b, function, (const esp_value[]){__VA_ARGS__},                                      \
			 sizeof((const esp_value[]){__VA_ARGS__}) / sizeof(esp_value))

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
		 CALL(b, "+", esp_builder_slice(b, v, NULL, "D"), esp_builder_slice(b, w, NULL, "D")));
	esp_value z =
	    CALL(b, "sigmoid",
		 CALL(b, "+", esp_builder_slice(b, v, "D", "2*D"), esp_builder_slice(b, w, "D", "2*D")));
	esp_value n = CALL(b, "tanh",
			   CALL(b, "+", esp_builder_slice(b, v, "2*D", NULL),
				CALL(b, "*", r, esp_builder_slice(b, w, "2*D", NULL))));
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
	esp_builder_assign(b, "h", CALL(b, "-", t, esp_builder_slice(b, t, "D - D", "D")));

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
	esp_value x = esp_builder_input(b, "x", "E"), W = esp_builder_param(b, "W", "D, E"), U = esp_builder_param(b, "U", "D, D");
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
	esp_builder_output(b, "o", CALL(b, "+", esp_builder_get(b, "g"), esp_builder_get(b, "h")), ESP_AT_EVERY_NODE, NULL, 0);
	return b;
}

/* --- the same text --- */

static char *text_of(esp_model *m)
{
	char *text = NULL;
	esp_error *error;
	if (esp_model_print(m, &text, &error))
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	esp_model_free(m);
	return text;
}

static char *read_model(const char *text, size_t length)
{
	esp_model *m;
	esp_error *error;
	if (esp_model_parse(context, "text", text, length, &m, &error))
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	return m ? text_of(m) : NULL;
}

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

/* --- mistakes --- */

/* Inside of `node:`, with x[D], W[D, D], word and a value of the body declared; h is yet to be assigned. */
struct frame {
	esp_builder *b, *other;
	esp_value x, W, word, v, each;
};

static void no_name(struct frame *f)
{
	esp_builder_param(f->b, NULL, "D");
}

static void no_arguments(struct frame *f)
{
	esp_builder_call(f->b, "tanh", NULL, 1);
}

static void bad_name(struct frame *f)
{
	esp_builder_param(f->b, "2x", "D");
}

static void two_names(struct frame *f)
{
	esp_builder_param(f->b, "a b", "D");
}

static void braces(struct frame *f)
{
	esp_builder_param(f->b, "U_{i, o}", "D");
}

static void reserved(struct frame *f)
{
	esp_builder_state(f->b, "node", "D");
}

static void bad_shape(struct frame *f)
{
	esp_builder_param(f->b, "U", "D,");
}

static void brackets(struct frame *f)
{
	esp_builder_param(f->b, "U", "[D]");
}

static void product_shape(struct frame *f)
{
	esp_builder_param(f->b, "U", "D*D");
}

static void zero_shape(struct frame *f)
{
	esp_builder_param(f->b, "U", "0");
}

static void four_axes(struct frame *f)
{
	esp_builder_zeros(f->b, "D, D, D, D");
}

static void matrix_input(struct frame *f)
{
	esp_builder_input(f->b, "y", "D, D");
}

static void twice(struct frame *f)
{
	esp_builder_param(f->b, "x", "D");
}

static void builtin(struct frame *f)
{
	esp_builder_call(f->b, "zeros", NULL, 0);
}

static void unknown_function(struct frame *f)
{
	CALL(f->b, "tahn", f->v);
}

static void function_name(struct frame *f)
{
	CALL(f->b, "tanh(", f->v);
}

static void arity(struct frame *f)
{
	CALL(f->b, "tanh", f->v, f->v);
}

static void operator_arity(struct frame *f)
{
	CALL(f->b, "+", f->v);
}

static void no_value(struct frame *f)
{
	CALL(f->b, "tanh", (esp_value){0});
}

static void other_builder(struct frame *f)
{
	CALL(f->b, "tanh", esp_builder_number(f->other, 1));
}

static void other_body(struct frame *f)
{
	esp_builder_body(f->b, ESP_BODY_OUTPUT);
	CALL(f->b, "tanh", f->v);
	esp_builder_body(f->b, ESP_BODY_NODE);
}

static void no_body(struct frame *f)
{
	CALL(f->other, "tanh", esp_builder_number(f->other, 1));
	esp_error *error;
	esp_builder_finish(f->other, &(esp_model *){0}, &error);
	tap_ok(esp_error_get(error, 0) && strcmp(esp_error_get(error, 0)->id, "misplaced-name") == 0,
	       "a call outside of all bodies is misplaced");
	esp_error_free(error);
	CALL(f->b, "tanh", (esp_value){0});
}

static void bad_body(struct frame *f)
{
	esp_builder_body(f->b, 0);
}

static void second_body(struct frame *f)
{
	esp_builder_body(f->b, ESP_BODY_LEAF);
	esp_builder_assign(f->b, "h", f->x);
	esp_builder_body(f->b, ESP_BODY_NODE);
}

static void not_a_number(struct frame *f)
{
	esp_builder_number(f->b, NAN);
}

static void large_number(struct frame *f)
{
	esp_builder_number(f->b, 1e39);
}

static void look_up_vector(struct frame *f)
{
	esp_builder_lookup(f->b, f->W, f->x);
}

static void look_up_value(struct frame *f)
{
	esp_builder_lookup(f->b, f->W, f->v);
}

static void look_up_in_value(struct frame *f)
{
	esp_builder_lookup(f->b, f->v, f->word);
}

static void token_as_value(struct frame *f)
{
	CALL(f->b, "tanh", f->word);
}

static void bad_slice(struct frame *f)
{
	esp_builder_slice(f->b, f->v, "D", "D");
}

static void slice_text(struct frame *f)
{
	esp_builder_slice(f->b, f->v, "D:", NULL);
}

static void two_dimensions(struct frame *f)
{
	esp_builder_dimension(f->b, "D, D");
}

static void unknown_dimension(struct frame *f)
{
	esp_builder_zeros(f->b, "Q");
}

static void bad_slot(struct frame *f)
{
	esp_builder_child(f->b, 2, "h");
}

static void negative_slot(struct frame *f)
{
	esp_builder_child(f->b, -2, "h");
}

static void unknown_child_state(struct frame *f)
{
	esp_builder_child(f->b, 0, "g");
}

static void unknown_each_state(struct frame *f)
{
	esp_builder_child(f->b, ESP_EACH_CHILD, "g");
}

static void product_of_parents(struct frame *f)
{
	esp_builder_parents(f->b, "mean", f->each);
}

static void other_parent(struct frame *f)
{
	esp_builder_parent(f->b, 1, "h");
}

static void sideways(struct frame *f)
{
	esp_builder_traversal(f->b, "sideways");
}

static void product_of_children(struct frame *f)
{
	esp_builder_children(f->b, "mean", f->each);
}

static void assign_each(struct frame *f)
{
	esp_builder_assign(f->b, "h", f->each);
}

static void output_each(struct frame *f)
{
	esp_builder_body(f->b, ESP_BODY_OUTPUT);
	esp_builder_output(f->b, "p", esp_builder_child(f->b, ESP_EACH_CHILD, "h"), ESP_AT_ROOT, NULL, 0);
	esp_builder_body(f->b, ESP_BODY_NODE);
}

static void children_in_output(struct frame *f)
{
	esp_builder_body(f->b, ESP_BODY_OUTPUT);
	esp_builder_children(f->b, "sum", esp_builder_child(f->b, ESP_EACH_CHILD, "h"));
	esp_builder_body(f->b, ESP_BODY_NODE);
}

static void get_nothing(struct frame *f)
{
	esp_builder_get(f->b, "nothing");
}

static void get_early(struct frame *f)
{
	esp_builder_get(f->b, "h");
}

static void get_value_name(struct frame *f)
{
	esp_builder_get(f->b, "%4");
}

static void assign_unknown(struct frame *f)
{
	esp_builder_assign(f->b, "hh", f->v);
}

static void assign_param(struct frame *f)
{
	esp_builder_assign(f->b, "W", f->v);
}

static void assign_twice(struct frame *f)
{
	esp_builder_assign(f->b, "h", f->v);
	esp_builder_assign(f->b, "h", f->v);
}

static void assign_shape(struct frame *f)
{
	esp_builder_assign(f->b, "h", f->W);
}

static void assign_nothing(struct frame *f)
{
	esp_builder_state(f->b, "g", NULL);
}

static void assign_in_output(struct frame *f)
{
	esp_builder_body(f->b, ESP_BODY_OUTPUT);
	esp_builder_assign(f->b, "h", f->x);
	esp_builder_body(f->b, ESP_BODY_NODE);
}

static void output_of_body(struct frame *f)
{
	esp_builder_output(f->b, "p", f->v, ESP_AT_ROOT, NULL, 0);
}

static void output_of_input(struct frame *f)
{
	esp_builder_output(f->b, "p", f->x, ESP_AT_ROOT, NULL, 0);
}

static void output_nowhere(struct frame *f)
{
	esp_builder_output(f->b, "p", f->W, ESP_AT_MODEL, NULL, 0);
}

static void output_twice(struct frame *f)
{
	esp_builder_output(f->b, "o", f->W, ESP_AT_ROOT, NULL, 0);
}

static void no_labels(struct frame *f)
{
	esp_builder_output(f->b, "p", f->W, ESP_AT_ROOT, NULL, 2);
}

static void null_label(struct frame *f)
{
	esp_builder_output(f->b, "p", f->W, ESP_AT_ROOT, (const char *const[]){"a", NULL}, 2);
}

static void long_label(struct frame *f)
{
	esp_builder_output(f->b, "p", f->W, ESP_AT_ROOT, (const char *const[]){"two\nlines"}, 1);
}

static void labelled_matrix(struct frame *f)
{
	esp_builder_output(f->b, "p", f->W, ESP_AT_ROOT, (const char *const[]){"a"}, 1);
}

static void shapes(struct frame *f)
{
	CALL(f->b, "+", f->v, esp_builder_zeros(f->b, "2*D"));
}

static void unused(struct frame *f)
{
	esp_builder_param(f->b, "U", "D");
}

static const struct {
	const char *name, *id, *message;
	void (*make)(struct frame *);
} mistakes[] = {
    {"a name that is NULL", "bad-argument", "esp_builder_param: 'name' must not be NULL", no_name},
    {"arguments that are NULL", "bad-argument", "'arguments' must not be NULL", no_arguments},
    {"a name that begins with a digit", "bad-number", "'2x'", bad_name},
    {"two names", "syntax", "expected the end, but 'b' stands here", two_names},
    {"a pattern of names", "syntax", "expected the name of a parameter", braces},
    {"a word of the language", "reserved-word", "'node'", reserved},
    {"a shape that ends early", "syntax", "but the text ends", bad_shape},
    {"a shape in brackets", "syntax", "expected a dimension, but '[' stands here", brackets},
    {"a dimension that is a product", "bad-dimension", "'D'", product_shape},
    {"an extent of 0", "bad-dimension", "'0' is not positive", zero_shape},
    {"four axes", "wrong-rank", "at most 3 axes, not 4", four_axes},
    {"an input that is a matrix", "wrong-rank", "'y' is not a vector", matrix_input},
    {"a name declared twice", "duplicate-name", "'x' is already an input", twice},
    {"a function of dimensions", "unknown-function", "'zeros' takes dimensions", builtin},
    {"a function that is not there", "unknown-function", "'tahn'", unknown_function},
    {"a function that is no name", "syntax", "expected the end, but '(' stands here", function_name},
    {"too many arguments", "wrong-arguments", "'tanh' takes 1 argument, not 2", arity},
    {"too few operands", "wrong-arguments", "'+' takes 2 arguments, not 1", operator_arity},
    {"no value", "bad-argument", "none was passed", no_value},
    {"a value of another builder", "bad-argument", "another builder", other_builder},
    {"a value of another body", "misplaced-name", "'tanh(W @ x)' is a value of 'node:'", other_body},
    {"a call in no body", "bad-argument", "none was passed", no_body},
    {"a body that there is not", "bad-argument", "'body' must be one of", bad_body},
    {"a second body for leaves", "duplicate-name", "'leaf:' gives nodes a second body", second_body},
    {"a number that is none", "bad-number", "nan", not_a_number},
    {"a number that is too large", "bad-number", "1e+39", large_number},
    {"a look-up with a vector", "bad-lookup", "'x' is not an input that is a token", look_up_vector},
    {"a look-up with a value", "bad-lookup", "'tanh(W @ x)' is not an input", look_up_value},
    {"a look-up in a value", "bad-lookup", "'tanh(W @ x)' has no rows", look_up_in_value},
    {"a token as a value", "not-a-value", "'word' is a token", token_as_value},
    {"an empty slice", "bad-slice", "'tanh(W @ x)[D:D]'", bad_slice},
    {"an end that is two", "syntax", "expected the end, but ':' stands here", slice_text},
    {"two dimensions for one", "syntax", "expected the end", two_dimensions},
    {"a dimension that is not declared", "unknown-name", "no dimension is named 'Q'", unknown_dimension},
    {"a child that there is not", "bad-child", "no child 2: a node has 2", bad_slot},
    {"a child below 0", "bad-child", "no child -2", negative_slot},
    {"a state that a child has not", "unknown-name", "'g' is no state", unknown_child_state},
    {"a state that no child has", "unknown-name", "'g' is no state", unknown_each_state},
    {"a mean over parents", "syntax", "'mean' does not range over parents", product_of_parents},
    {"another parent", "bad-argument", "'which' must be", other_parent},
    {"a traversal sideways", "syntax", "'sideways' stands here", sideways},
    {"a mean over children", "syntax", "'mean' does not range over children", product_of_children},
    {"a state that differs from child to child", "misplaced-name", "'each child.h' differs", assign_each},
    {"an output that does", "misplaced-name", "'each child.h' differs", output_each},
    {"a sum over children in an output", "misplaced-name", "outputs cannot range over children",
     children_in_output},
    {"a name that means nothing", "unknown-name", "nothing is named 'nothing'", get_nothing},
    {"a state before it is assigned", "misplaced-name", "'h' is used before this body assigns it", get_early},
    {"a name of the builder's own", "bad-character", "0x25", get_value_name},
    {"a value for no state", "unknown-name", "no state is named 'hh'", assign_unknown},
    {"a value for a parameter", "unknown-name", "no state is named 'W'", assign_param},
    {"a state assigned twice", "duplicate-name", "'h' is assigned twice", assign_twice},
    {"a state of another shape", "shape-mismatch", "the state 'h' is [D], its value 'W' is [D, D]",
     assign_shape},
    {"a state that is not assigned", "missing-state", "'node:' does not assign 'g'", assign_nothing},
    {"a state assigned in an output", "misplaced-name", "'h' is assigned where", assign_in_output},
    {"an output of a body's value", "misplaced-name", "'tanh(W @ x)' is a value of 'node:'", output_of_body},
    {"an output of an input", "misplaced-name", "'x' is an input", output_of_input},
    {"an output nowhere", "bad-argument", "'at' must be ESP_AT_ROOT or", output_nowhere},
    {"an output declared twice", "duplicate-name", "'o' is already an output", output_twice},
    {"labels that are NULL", "bad-argument", "'label' must not be NULL", no_labels},
    {"a label that is NULL", "bad-string", "a label of 'p' is NULL", null_label},
    {"a label of two lines", "bad-string", "a label of 'p' holds", long_label},
    {"labels of a matrix", "wrong-labels", "the output 'p' is [D, D]", labelled_matrix},
    {"shapes that differ", "shape-mismatch", "'tanh(W @ x) + zeros(2*D)': [D] + [2*D]", shapes},
    {"a parameter that nothing needs", "unused-parameter", "'U'", unused},
};

enum { LINE = 1234 };

/* The mistake at its line, the rest at others. */
static esp_status make(void (*mistake)(struct frame *), esp_error **error)
{
	struct frame f;
	esp_model *m;
	esp_builder_create(context, "m", "tree(left, right)", &f.b, NULL);
	esp_builder_create(context, "other", "sequence", &f.other, NULL);
	esp_builder_at(f.b, "frame.c", 1);
	f.x = esp_builder_input(f.b, "x", "D");
	f.word = esp_builder_token(f.b, "word");
	f.W = esp_builder_param(f.b, "W", "D, D");
	esp_value E = esp_builder_param(f.b, "E", "V, D");
	esp_builder_state(f.b, "h", "D");
	esp_builder_body(f.b, ESP_BODY_NODE);
	f.v = CALL(f.b, "tanh", CALL(f.b, "@", f.W, f.x));
	f.each = esp_builder_child(f.b, ESP_EACH_CHILD, "h");
	if (mistake) {
		esp_builder_at(f.b, "mistake.c", LINE);
		mistake(&f);
	}
	esp_builder_at(f.b, "frame.c", 2);
	if (mistake != assign_twice && mistake != assign_shape && mistake != assign_each)
		esp_builder_assign(f.b, "h", CALL(f.b, "+", f.v, esp_builder_lookup(f.b, E, f.word)));
	esp_builder_body(f.b, ESP_BODY_OUTPUT);
	esp_builder_output(f.b, "o", esp_builder_get(f.b, "h"), ESP_AT_ROOT, NULL, 0);
	if (mistake == output_twice)
		esp_builder_at(f.b, "mistake.c", LINE);
	esp_status s = esp_builder_finish(f.b, &m, error);
	esp_builder_free(f.b);
	esp_builder_free(f.other);
	esp_model_free(m);
	return s;
}

/* Told with its id and message, and at its line unless the fault shows elsewhere. */
static bool is_told(const esp_error *error, const char *id, const char *message, bool elsewhere)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	return d && strcmp(d->id, id) == 0 && strstr(d->message, message) &&
	       (elsewhere || (d->file && strcmp(d->file, "mistake.c") == 0 && d->line == LINE));
}

static void check_mistakes(void)
{
	esp_error *error;
	tap_ok(make(NULL, &error) == ESP_OK && !error, "what the mistakes are made in is right");
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		void (*mistake)(struct frame *) = mistakes[i].make;
		bool elsewhere = mistake == assign_nothing || mistake == output_twice;
		esp_status wanted =
		    strcmp(mistakes[i].id, "bad-argument") == 0 ? ESP_ERROR_ARGUMENT : ESP_ERROR_INPUT;
		esp_status s = make(mistake, &error);
		bool told = is_told(error, mistakes[i].id, mistakes[i].message, elsewhere);
		if (!told || esp_error_count(error) != 1)
			printf("# %s", esp_error_text(error));
		tap_ok(s == wanted && told && esp_error_count(error) == 1, "%s is told", mistakes[i].name);
		esp_error_free(error);
	}
}

static void check_heads(void)
{
	static const struct {
		const char *name, *structure, *id;
	} heads[] = {
	    {"", "sequence", "syntax"},
	    {"a b", "sequence", "syntax"},
	    {"model", "sequence", "reserved-word"},
	    {"m", "forest", "bad-structure"},
	    {"m", "tree", "syntax"},
	    {"m", "tree()", "bad-structure"},
	    {"m", "tree(0)", "bad-structure"},
	    {"m", "tree(a.b)", "bad-structure"},
	    {"m", "tree(2) x", "syntax"},
	    {"m", "", "bad-structure"},
	    {NULL, "sequence", "bad-argument"},
	    {"m", NULL, "bad-argument"},
	};
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		esp_builder *b = (esp_builder *)&b;
		esp_error *error;
		esp_status s = esp_builder_create(context, heads[i].name, heads[i].structure, &b, &error);
		tap_ok(s && !b && error_is(error, heads[i].id), "'%s', '%s' is refused as %s",
		       heads[i].name ? heads[i].name : "NULL",
		       heads[i].structure ? heads[i].structure : "NULL", heads[i].id);
	}
}

/* The text that was passed stands below the message. */
static void check_source(void)
{
	esp_builder *b;
	esp_error *error;
	esp_builder_create(context, "m", "sequence", &b, NULL);
	esp_builder_at(b, "shape.c", 3);
	esp_builder_param(b, "W", "D, 2*");
	esp_builder_at(b, NULL, 0);
	esp_builder_param(b, "V", "2*");
	esp_builder_finish(b, &(esp_model *){0}, &error);
	const esp_diagnostic *d = esp_error_get(error, 0), *e = esp_error_get(error, 1);
	tap_ok(d && d->source && strcmp(d->source, "D, 2*") == 0 && d->line == 3 && !d->column,
	       "a diagnostic has the text that was passed");
	tap_ok(e && !e->file && !e->line, "one without a place has none");
	tap_ok(strstr(esp_error_text(error),
		      "shape.c:3: error: expected a dimension, but the text ends [syntax]\n    D, 2*\n"),
	       "and is printed with the text");
	esp_error_free(error);
	esp_builder_free(b);
}

static void check_missing(void)
{
	esp_builder *b;
	esp_model *m;
	esp_error *error;
	esp_builder_create(context, "m", "sequence", &b, NULL);
	tap_ok(esp_builder_finish(b, &m, &error) == ESP_ERROR_INPUT && !m && esp_error_count(error) == 4 &&
		   strstr(esp_error_text(error), "esp_builder_output"),
	       "an empty model lacks a state, two bodies and an output, and is told which calls make them");
	tap_ok(error_is(error, "missing-declaration"), "as one of a text does");
	tap_ok(esp_builder_finish(b, &m, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "a builder is finished once");
	tap_ok(esp_builder_param(b, "W", "D").id == 0 && esp_builder_number(b, 1).id == 0,
	       "and takes no calls after that");
	esp_builder_free(b);
	tap_ok(esp_builder_finish(NULL, &m, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "NULL is no builder");
	tap_ok(esp_builder_number(NULL, 1).id == 0, "and gives no values");
	esp_builder_at(NULL, "x", 1);
	esp_builder_assign(NULL, "h", (esp_value){1});
	esp_builder_free(NULL);
}

static void check_closed(void)
{
	esp_context *c;
	esp_builder *b;
	esp_model *m;
	esp_error *error;
	esp_context_create(NULL, &c, NULL);
	esp_builder_create(c, "m", "sequence", &b, NULL);
	esp_context_close(c, NULL);
	tap_ok(esp_builder_finish(b, &m, &error) == ESP_ERROR_CLOSED && !m &&
		   error_is(error, "context-closed"),
	       "a builder of a closed context cannot be finished");
	esp_builder_free(b);
	esp_context_free(c);
}

/* --- calls at random --- */

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
		return esp_builder_slice(r->b, any(r), below(2) ? NULL : text(), below(2) ? NULL : text());
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

/* --- memory --- */

static esp_builder *(*const builders[])(void) = {build_treelstm, build_everything, build_childsum, build_gru,
						    build_edges, build_attention};

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
	check_mistakes();
	check_heads();
	check_source();
	check_missing();
	check_closed();
	check_random();
	check_memory();
	esp_context_free(context);
	return tap_done();
}
