/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sizes of dimensions from weights, and every way in which the two can disagree. */
#include "tests/ra/session.h"
#include "tests/tap.h"

#define MODEL                                                                                                \
	"model m\nstructure sequence\ninput word : token\nparam E[V, K]\nparam W[4*D, K]\nparam U[4*D, D + " \
	"1]\n"                                                                                               \
	"param b[D + N]\nstate h[D]\n"                                                                       \
	"node:\n g = W @ E[word] + U @ concat(previous.h, zeros(1))\n h = g[D:2*D] + sum(b)\noutput o = h\n"

/* The tensors that fit, for changing one. */
static const struct tensor_info fitting[] = {
    {"U", DTYPE_F32, 2, {32, 9}},
    {"E", DTYPE_F32, 2, {100, 5}},
    {"W", DTYPE_F32, 2, {32, 5}},
    {"b", DTYPE_F32, 1, {11}},
};
enum { FITTING = sizeof fitting / sizeof *fitting };

static int64_t size_of(const struct session *s, const int64_t *sizes, const char *symbol)
{
	for (size_t i = 0; i < s->model->symbols.n; i++)
		if (strcmp(s->model->symbols.at[i].name, symbol) == 0)
			return sizes[i];
	return -1;
}

static void start_session(struct session *s, const char *text)
{
	session_parse(s, &allocator_default, text, strlen(text));
	if (!s->model)
		printf("# %s\n", s->diags.n ? s->diags.at[0].message : "");
}

static bool bind_tensors(struct session *s, const struct tensor_info *tensors, size_t n, int64_t *sizes)
{
	bool bound = ra_bind(s->model, &s->diags, "w.safetensors", tensors, n, sizes);
	for (size_t i = 0; i < s->diags.n; i++)
		printf("# %s [%s] (%s)\n", s->diags.at[i].message, diag_spelling(s->diags.at[i].id),
		       s->diags.at[i].hint ? s->diags.at[i].hint : "");
	return bound;
}

static void check_fitting(void)
{
	struct session s;
	int64_t sizes[8];
	start_session(&s, MODEL);
	tap_ok(s.model && bind_tensors(&s, fitting, FITTING, sizes) && !s.diags.n,
	       "weights that fit are bound");
	tap_ok(size_of(&s, sizes, "V") == 100 && size_of(&s, sizes, "K") == 5,
	       "bare dimensions get their extents");
	tap_ok(size_of(&s, sizes, "D") == 8, "4*D is solved for D");
	tap_ok(size_of(&s, sizes, "N") == 3, "D + N is solved once D is known");
	session_end(&s);
}

/* Binds the fitting tensors with the i-th one changed and wants exactly one diagnostic. */
static void check_changed(const char *name, int i, struct tensor_info changed, enum diag_id id,
			  const char *mentions)
{
	struct session s;
	int64_t sizes[8];
	struct tensor_info tensors[FITTING];
	memcpy(tensors, fitting, sizeof tensors);
	tensors[i] = changed;
	start_session(&s, MODEL);
	bool bound = bind_tensors(&s, tensors, FITTING, sizes);
	const struct diag *d = s.diags.n == 1 ? &s.diags.at[0] : NULL;
	tap_ok(!bound && d && d->id == id, "%s: %s", name, diag_spelling(id));
	tap_ok(d && (strstr(d->message, mentions) || (d->hint && strstr(d->hint, mentions))),
	       "%s: mentions %s", name, mentions);
	session_end(&s);
}

static void check_names(void)
{
	struct session s;
	int64_t sizes[8];
	struct tensor_info tensors[FITTING];
	memcpy(tensors, fitting, sizeof tensors);
	tensors[3].name = "bb";
	start_session(&s, MODEL);
	tap_ok(!bind_tensors(&s, tensors, FITTING, sizes) && s.diags.n == 2,
	       "a misnamed tensor is missing and extra, and nothing else");
	tap_ok(s.diags.n == 2 && s.diags.at[0].id == DIAG_WEIGHT_MISSING &&
		   strstr(s.diags.at[0].hint, "'bb'"),
	       "what is missing is looked for among the tensors");
	tap_ok(s.diags.n == 2 && s.diags.at[1].id == DIAG_WEIGHT_EXTRA && strstr(s.diags.at[1].hint, "'b'"),
	       "what is left over is looked for among the parameters");
	session_end(&s);
	start_session(&s, MODEL);
	tap_ok(!bind_tensors(&s, NULL, 0, sizes) && s.diags.n == 4,
	       "without tensors every parameter is missing, at once");
	session_end(&s);
	struct tensor_info twice[FITTING + 1];
	memcpy(twice, fitting, sizeof fitting);
	twice[FITTING] = fitting[0];
	start_session(&s, MODEL);
	tap_ok(!bind_tensors(&s, twice, FITTING + 1, sizes) && s.diags.n == 1,
	       "a tensor that is there twice is left over once");
	session_end(&s);
}

/* One parameter, one tensor, one diagnostic. */
static void check_single(const char *name, const char *text, struct tensor_info tensor, enum diag_id id)
{
	struct session s;
	int64_t sizes[8];
	start_session(&s, text);
	tap_ok(s.model && !bind_tensors(&s, &tensor, 1, sizes) && s.diags.n == 1 && s.diags.at[0].id == id,
	       "%s", name);
	session_end(&s);
}

static void check_constant(const char *name, const char *text, struct tensor_info tensor, const char *message)
{
	struct session s;
	int64_t sizes[8];
	start_session(&s, text);
	bool bound = bind_tensors(&s, &tensor, 1, sizes);
	tap_ok(!bound && s.diags.n == 1 && strcmp(s.diags.at[0].message, message) == 0, "%s: %s", name,
	       message);
	session_end(&s);
}

/* A bias as DGL's: the extent that is written as a number must be that, and the other one tells D. */
/* A parameter of one type, a tensor of another. */
static void check_type(const char *declared, enum dtype tensor, bool fits)
{
	struct session s;
	char text[300];
	int64_t sizes[2];
	snprintf(text, sizeof text,
		 "model m\nstructure sequence\nparam b[N] : %s\nstate h[N]\nnode:\n h = cast(b, f32)\noutput "
		 "o = h\n",
		 declared);
	start_session(&s, text);
	bool bound = s.model && bind_tensors(&s, (struct tensor_info[]){{"b", tensor, 1, {4}}}, 1, sizes);
	bool refused = s.diags.n == 1 && s.diags.at[0].id == DIAG_WEIGHT_TYPE && s.diags.at[0].line == 3;
	tap_ok(fits ? bound : !bound && refused, "a tensor of %s is %s a parameter of %s",
	       dtype_traits_of(tensor)->spelling, fits ? "read into" : "refused for", declared);
	session_end(&s);
}

static void check_types(void)
{
	check_type("f32", DTYPE_BF16, true);
	check_type("i32", DTYPE_I8, true);
	check_type("i64", DTYPE_I32, true);
	check_type("i16", DTYPE_U8, true);
	check_type("bool", DTYPE_BOOL, true);
	check_type("f16", DTYPE_F32, false);
	check_type("f16", DTYPE_BF16, false);
	check_type("i32", DTYPE_I64, false);
	check_type("u8", DTYPE_I8, false);
	check_type("i8", DTYPE_U8, false);
	check_type("f32", DTYPE_I8, false);
	check_type("f32", DTYPE_I64, false);
	check_type("bool", DTYPE_U8, false);
}

static void check_leading_one(void)
{
	static const char text[] =
	    "model m\nstructure sequence\nparam b[1, 3*D]\nstate h[3*D]\nnode:\n h = b\noutput o = h\n";
	const struct tensor_info b = {"b", DTYPE_F32, 2, {1, 768}};
	struct session s;
	int64_t sizes[8];
	start_session(&s, text);
	tap_ok(s.model && bind_tensors(&s, &b, 1, sizes) && size_of(&s, sizes, "D") == 256,
	       "of [1, 768] as [1, 3*D] D is 256");
	session_end(&s);
	check_single("an extent of 2 is not 1", text, (struct tensor_info){"b", DTYPE_F32, 2, {2, 768}},
		     DIAG_WEIGHT_CONFLICT);
}

static void check_labels(void)
{
	static const char text[] =
	    "model m\nstructure sequence\nparam b[C]\nstate h[C]\nnode:\n h = b\noutput o = h labels \"no\", \"yes\"\n";
	const struct tensor_info two = {"b", DTYPE_F32, 1, {2}};
	struct session s;
	int64_t sizes[8];
	start_session(&s, text);
	tap_ok(s.model && bind_tensors(&s, &two, 1, sizes), "two labels for two elements");
	session_end(&s);
	check_single("and none for a third", text, (struct tensor_info){"b", DTYPE_F32, 1, {3}}, DIAG_MODEL_LABELS);
}

/* Sizes that are computed of others. */
static void check_computed(void)
{
	static const char text[] =
	    "model m\nstructure sequence\nparam a[H], c[(H - 3)/2 + 1]\nstate h[(H - 1)/4, E/2]\n"
	    "param e[E]\nnode:\n h = zeros((H - 1)/4, E/2) + sum(a) + sum(c) + sum(e)\noutput o = h\n";
	const struct tensor_info fit[] = {
	    {"a", DTYPE_F32, 1, {12}}, {"c", DTYPE_F32, 1, {5}}, {"e", DTYPE_F32, 1, {5}}};
	struct tensor_info other[3];
	struct session s;
	int64_t sizes[8];
	start_session(&s, text);
	tap_ok(s.model && bind_tensors(&s, fit, 3, sizes), "computed sizes that fit are bound");
	tap_ok(s.model && s.model->symbols.n == 5 && ra_given_symbols(s.model) == 2,
	       "they come after those of weights");
	tap_ok(size_of(&s, sizes, "(H + 1)/2") == 6 && size_of(&s, sizes, "(H + 3)/4") == 3 &&
		   size_of(&s, sizes, "E/2") == 2,
	       "and are rounded down");
	session_end(&s);
	memcpy(other, fit, sizeof other);
	other[1].shape[0] = 6;
	start_session(&s, text);
	tap_ok(!bind_tensors(&s, other, 3, sizes) && s.diags.n == 1 && s.diags.at[0].id == DIAG_WEIGHT_CONFLICT,
	       "another extent than the computed one is refused");
	session_end(&s);
}

/* What index notation asks of sizes. */
static void check_indices(void)
{
	struct tensor_info b = {"b", DTYPE_F32, 1, {4}};
	check_single("a window that turns out longer than its axis is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n y[i] = sum(b[i + u] for u in 5)\n"
		     " h = sum(y)\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("an element that turns out to be outside, and has no fill, is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n y[i in N] = b[2*i]\n"
		     " h = sum(y)\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
}

static void check_sizes(void)
{
	check_labels();
	check_computed();
	check_indices();
	struct tensor_info b = {"b", DTYPE_F32, 1, {4}};
	check_single("a dimension of states only has no size",
		     "model m\nstructure sequence\nparam b[N]\nstate h[D]\nnode:\n h = sum(b) + "
		     "zeros(D)\noutput o = h\n",
		     b, DIAG_WEIGHT_UNBOUND);
	check_single("an extent that turns out not positive is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h[N - 4]\nnode:\n h = sum(b) + zeros(N "
		     "- 4)\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("an extent that turns out too large is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h[2147483647 + N]\nnode:\n h = "
		     "zeros(2147483647 + N) + sum(b)\n"
		     "output o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("a state of too many elements is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h[2147483647, 2147483647, "
		     "2147483647]\nnode:\n h = sum(b)\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("a state of one row too many is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h[1048576, 262144 * N + 1]\nnode:\n h = "
		     "sum(b)\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("a value of too many elements is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n h = "
		     "sum(sum(sum(b) + zeros(2147483647, 128 * N + 1)))\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("a parameter of too many elements is refused",
		     "model m\nstructure sequence\nparam b[2147483647, 2147483647]\nstate h\nnode:\n h = "
		     "sum(sum(b))\noutput o = h\n",
		     (struct tensor_info){"b", DTYPE_F32, 2, {2147483647, 2147483647}}, DIAG_WEIGHT_EXTENT);
	check_constant("the message names the shape",
		       "model m\nstructure sequence\nparam b[N]\nstate h[2147483647, 2147483647]\nnode:\n h = "
		       "sum(b)\noutput o = h\n",
		       b, "with w.safetensors, [2147483647, 2147483647] has too many elements");
	check_single(
	    "a slice that turns out to leave its axis is refused",
	    "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n h = sum(b[2:7])\noutput o = h\n", b,
	    DIAG_WEIGHT_EXTENT);
	check_single("a shape that turns out to have another number of elements is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n h = sum(sum(reshape(b, N/3, "
		     "3)))\noutput o = h\n",
		     b, DIAG_WEIGHT_EXTENT);
	check_single("a row that turns out not to be there is refused",
		     "model m\nstructure sequence\nparam b[N]\nstate h\nnode:\n h = b[4]\noutput o = h\n", b,
		     DIAG_WEIGHT_EXTENT);
	check_single("a factor that does not divide the extent is refused",
		     "model m\nstructure sequence\nparam b[3*N]\nstate h\nnode:\n h = sum(b)\noutput o = h\n",
		     b, DIAG_WEIGHT_CONFLICT);
	check_single("a constant that is not the extent is refused",
		     "model m\nstructure sequence\nparam b[5]\nstate h\nnode:\n h = sum(b)\noutput o = h\n",
		     b, DIAG_WEIGHT_CONFLICT);
	check_constant("the message says the number once",
		       "model m\nstructure sequence\nparam b[5]\nstate h\nnode:\n h = sum(b)\noutput o = h\n",
		       b, "axis 0 of 'b' is 4 in w.safetensors, but must be 5");
}

int main(void)
{
	check_fitting();
	check_changed("a vector for a matrix", 2, (struct tensor_info){"W", DTYPE_F32, 1, {32}},
		      DIAG_WEIGHT_RANK, "[4*D, K]");
	check_changed("a second size of K", 2, (struct tensor_info){"W", DTYPE_F32, 2, {32, 6}},
		      DIAG_WEIGHT_CONFLICT, "K is 5 (from 'E')");
	check_changed("a second size of D", 0, (struct tensor_info){"U", DTYPE_F32, 2, {32, 10}},
		      DIAG_WEIGHT_CONFLICT, "D is 8");
	check_changed("an empty axis", 3, (struct tensor_info){"b", DTYPE_F32, 1, {0}}, DIAG_WEIGHT_EXTENT,
		      "[0]");
	check_changed("a huge axis", 1, (struct tensor_info){"E", DTYPE_F32, 2, {1ll << 31, 5}},
		      DIAG_WEIGHT_EXTENT, "2147483648");
	check_names();
	check_types();
	check_leading_one();
	check_sizes();
	return tap_done();
}
