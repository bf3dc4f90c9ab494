/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Every mistake in calls that build a model is told where it was made. */
#include "tests/api/built.h"

#include <math.h>

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

static void nine_axes(struct frame *f)
{
	esp_builder_zeros(f->b, "D, D, D, D, D, D, D, D, D");
}

static void nine_axes_input(struct frame *f)
{
	esp_builder_input(f->b, "y", "D, D, D, D, D, D, D, D, D");
}

static void no_axis(struct frame *f)
{
	esp_builder_call_along(f->b, "sum", 1, &f->v, 1);
}

static void operator_axis(struct frame *f)
{
	esp_builder_call_along(f->b, "+", 0, (esp_value[]){f->v, f->v}, 2);
}

static void slice_axis(struct frame *f)
{
	esp_builder_slice(f->b, f->v, -2, NULL, "D");
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

static void look_up_half(struct frame *f)
{
	esp_builder_lookup(f->b, f->W, esp_builder_number(f->b, 0.5));
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
	esp_builder_slice(f->b, f->v, -1, "D", "D");
}

static void slice_text(struct frame *f)
{
	esp_builder_slice(f->b, f->v, -1, "D:", NULL);
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
    {"nine axes", "wrong-rank", "at most 8 axes, not 9", nine_axes},
    {"an input of nine axes", "wrong-rank", "at most 8 axes, not 9", nine_axes_input},
    {"an axis that there is not", "wrong-rank", "[D] has no axis 1", no_axis},
    {"an axis of an operator", "wrong-arguments", "'+' works along no axis", operator_axis},
    {"a slice of no axis", "wrong-rank", "[D] has no axis -2", slice_axis},
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
    {"a look-up with a vector", "bad-lookup", "'x' is not an input that is an i32", look_up_vector},
    {"a look-up with a half", "bad-lookup", "'0.5' is not the number of a row", look_up_half},
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

int main(void)
{
	if (esp_context_create(NULL, &context, NULL))
		return 1;
	check_mistakes();
	check_heads();
	check_source();
	check_missing();
	check_closed();
	esp_context_free(context);
	return tap_done();
}
