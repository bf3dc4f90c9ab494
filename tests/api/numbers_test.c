/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Numbers at the edge: zeros of both signs, denormals, infinities, what is not a number.  They follow IEEE
 * 754 unless the math is fast.  The floating-point modes of the caller do not change the bits of results, and
 * are restored when a call returns. */
#include "tests/api/support.h"
#include "tests/backends.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

#if defined __x86_64__
#include <xmmintrin.h>
#endif

/* --- every operator over all pairs --- */

static const float special[] = {0.0f,	  -0.0f,     1.0f,     -1.0f,  0.7f,	-3.5f,
				INFINITY, -INFINITY, NAN,      1e-40f, -3e-42f, FLT_MIN,
				-FLT_MIN, FLT_MAX,   -FLT_MAX, 1e-20f, 3e19f,	88.0f};
enum { SPECIAL = sizeof special / sizeof *special, PAIRS = SPECIAL * SPECIAL };

static double add(double x, double y)
{
	return (float)x + (float)y;
}

static double subtract(double x, double y)
{
	return (float)x - (float)y;
}

static double multiply(double x, double y)
{
	return (float)x * (float)y;
}

static double divide(double x, double y)
{
	return (float)x / (float)y;
}

static double by_root(double x, double y)
{
	return x / sqrtf((float)y);
}

static double steepness(double x, double y)
{
	(void)y;
	return fabsf(1 / sqrtf((float)x));
}

static double third(double x, double y)
{
	(void)y;
	return x / 3;
}

static double negate(double x, double y)
{
	(void)y;
	return -x;
}

static double absolute(double x, double y)
{
	(void)y;
	return fabs(x);
}

static double root(double x, double y)
{
	(void)y;
	return sqrtf((float)x);
}

static double greater(double x, double y)
{
	return isnan(x) || x > y ? x : y;
}

static double positive(double x, double y)
{
	(void)y;
	return isnan(x) || x > 0 ? x : 0;
}

static double exponential(double x, double y)
{
	(void)y;
	return exp(x);
}

static double logarithm(double x, double y)
{
	(void)y;
	return log(x);
}

static double tangent(double x, double y)
{
	(void)y;
	return tanh(x);
}

static double logarithm_above_1(double x, double y)
{
	(void)y;
	return log1p(x);
}

static double error_function(double x, double y)
{
	(void)y;
	return erf(x);
}

static double soft_positive(double x, double y)
{
	(void)y;
	return isnan(x) ? x : fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double sigmoid(double x, double y)
{
	(void)y;
	return 1 / (1 + exp(-x));
}

/* Where the sigmoid vanishes, its logarithm is infinite. */
static double cut(double x, double y)
{
	(void)y;
	return isnan(x) ? x : fmax(log(1 / (1 + exp(-x))), -100);
}

static const struct operation {
	const char *name, *text;
	double (*is)(double x, double y);
	bool exact;  /* to the bit, but for what NaNs hold; else nearly */
	bool unsure; /* of the sign of a zero */
} operators[] = {
    {"sum", "x + y", add, true, false},
    {"difference", "x - y", subtract, true, false},
    {"product", "x * y", multiply, true, false},
    {"quotient", "x / y", divide, true, false},
    {"negative", "-x", negate, true, false},
    {"absolute", "abs(x)", absolute, true, false},
    {"root", "sqrt(x)", root, true, false},
    {"greater", "maximum(x, y)", greater, true, true},
    {"positive", "relu(x)", positive, true, true},
    {"exponential", "exp(x)", exponential, false, false},
    {"logarithm", "log(x)", logarithm, false, false},
    {"tangent", "tanh(x)", tangent, false, false},
    {"logarithm_above_1", "log1p(x)", logarithm_above_1, false, false},
    {"error_function", "erf(x)", error_function, false, false},
    {"soft_positive", "softplus(x)", soft_positive, false, false},
    {"logistic", "sigmoid(x)", sigmoid, false, false},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static char pairs_path[128], model_text[4000];

/* One node, whose word is a row of each table. */
static void write_pairs(void)
{
	static float x[PAIRS], y[PAIRS];
	char *p = model_text;
	for (int i = 0; i < PAIRS; i++) {
		x[i] = special[i / SPECIAL];
		y[i] = special[i % SPECIAL];
	}
	const struct tensor tensors[] = {{"X", 1, PAIRS, x}, {"Y", 1, PAIRS, y}};
	strcpy(pairs_path, write_weights("pairs.safetensors", tensors, 2));
	p += sprintf(p, "model pairs\nstructure tree(*)\ninput word : token\nparam X[V, D], Y[V, D]\n");
	for (int i = 0; i < OPERATORS; i++)
		p += sprintf(p, "state %s[D]\n", operators[i].name);
	p += sprintf(p, "node:\n    x = X[word]\n    y = Y[word]\n");
	for (int i = 0; i < OPERATORS; i++)
		p += sprintf(p, "    %s = %s\n", operators[i].name, operators[i].text);
	for (int i = 0; i < OPERATORS; i++)
		p += sprintf(p, "output of_%s = %s at root\n", operators[i].name, operators[i].name);
}

struct made {
	struct kit kit;
	bool ok;
};

static const int32_t one_begin[] = {0, 0}, one_word[] = {0};
static const void *const one_data[] = {one_word};
static const esp_structure one = {sizeof one, 1, one_begin, NULL, 0, one_data};

/* What an output is at the root of the only structure. */
static const float *row_of(const struct made *m, size_t output)
{
	return m->ok ? esp_session_root(m->kit.session, output, 0) : NULL;
}

static struct made make(const char *text, const char *path, const char *backend, const char *math,
			int threads)
{
	struct made m = {0};
	struct kit *k = &m.kit;
	esp_error *error = NULL;
	esp_context_options c = {.size = sizeof c, .threads = threads, .cache = ESP_CACHE_OFF};
	esp_program_options o = {.size = sizeof o, .backend = backend, .math = math};
	m.ok = !esp_context_create(&c, &k->context, &error) &&
	       !esp_model_parse(k->context, "numbers.ra", text, strlen(text), &k->model, &error) &&
	       !esp_weights_open(k->context, path, &k->weights, &error) &&
	       !esp_program_create(k->model, k->weights, &o, &k->program, &error) &&
	       !esp_binding_create(k->program, k->weights, &k->binding, &error) &&
	       !esp_forest_create(k->program, &k->forest, &error) &&
	       !esp_session_create(k->binding, &k->session, &error);
	if (!m.ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return m;
}

static bool run_one(struct made *m)
{
	m->ok = m->ok && !esp_forest_add(m->kit.forest, &one, NULL) &&
		!esp_session_run(m->kit.session, m->kit.forest, NULL);
	return m->ok;
}


static bool is_as_wanted(const struct operation *op, float got, double wanted)
{
	float rounded = (float)wanted;
	if (isnan(wanted) || isnan(got))
		return isnan(wanted) && isnan(got);
	if (rounded == 0 && got == 0)
		return op->unsure || signbit(got) == signbit(rounded);
	if (op->exact || isinf(rounded) || isinf(got))
		return got == rounded;
	return fabs(got - wanted) <= 1e-6 * fabs(wanted) + 1e-44;
}

static void test_operator(const struct made *m, int i, const char *backend, const char *math)
{
	const float *row = row_of(m, i);
	int wrong = 0;
	for (int p = 0; row && p < PAIRS; p++) {
		float x = special[p / SPECIAL], y = special[p % SPECIAL];
		double wanted = operators[i].is(x, y);
		if (!is_as_wanted(&operators[i], row[p], wanted) && wrong++ < 3)
			printf("# %s of %g and %g is %g, not %g\n", operators[i].name, x, y, row[p], wanted);
	}
	tap_ok(row && !wrong, "%s is as IEEE 754 has it, %s, %s", operators[i].text, backend, math);
}

/* Bits, but for those of a NaN. */
static bool same_rows(const float *a, const float *b, int n)
{
	for (int i = 0; a && b && i < n; i++)
		if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) {
			printf("# at %d: %a and %a\n", i, a[i], b[i]);
			return false;
		}
	return a && b;
}

static const char *const maths[] = {"exact", "reassociate", "fast"};
enum { FAST = 2, MATHS };

static void test_operators(void)
{
	for (int k = 0; k < MATHS; k++) {
		struct made slow = make(model_text, pairs_path, "interpreter", maths[k], 1);
		run_one(&slow);
		for (int i = 0; k < FAST && i < OPERATORS; i++)
			test_operator(&slow, i, "interpreter", maths[k]);
		for (int c = 0; backend_at(c); c++) {
			struct made quick = make(model_text, pairs_path, backend_at(c), maths[k], 1);
			run_one(&quick);
			for (int i = 0; i < OPERATORS; i++)
				tap_ok(same_rows(row_of(&slow, i), row_of(&quick, i), PAIRS),
				       "%s has the same bits compiled, %s, %s", operators[i].text,
				       backend_at(c), maths[k]);
			free_kit(&quick.kit);
		}
		free_kit(&slow.kit);
	}
}

/* --- functions of the prelude at points --- */

/* By their definitions, in binary64. */
static const struct point {
	const char *text;
	double x, wanted, tolerance; /* relative */
} points[] = {
    {"gelu(x)", 1, 0.8413447460685429, 3e-7},
    {"gelu(x)", -1, -0.15865525393145707, 1e-6},
    {"gelu(x)", 3, 2.99595030590511, 3e-7},
    {"gelu(x)", -2.5, -0.015524163314440398, 1e-5},
    {"gelu(x)", 0, 0, 0},
    {"gelu_tanh(x)", 1, 0.8411919906082768, 3e-7},
    {"gelu_tanh(x)", -2.5, -0.015084266089998577, 1e-5},
    {"softplus(x)", -20, 2.0611536203143810e-9, 3e-7},
    {"softplus(x)", -80, 1.8048513878454153e-35, 3e-7},
    {"softplus(x)", 20, 20.000000002061153, 3e-7},
};
enum { POINTS = sizeof points / sizeof *points };

static void test_points(const char *backend)
{
	char text[4000], *p = text, path[128];
	float x[POINTS];
	for (int i = 0; i < POINTS; i++)
		x[i] = (float)points[i].x;
	const struct tensor tensor = {"X", 1, POINTS, x};
	strcpy(path, write_weights("points.safetensors", &tensor, 1));
	p += sprintf(p, "model points\nstructure tree(*)\ninput word : token\nparam X[V, %d]\nstate x[%d]\n", POINTS,
		     POINTS);
	p += sprintf(p, "node:\n    x = X[word]\n");
	for (int i = 0; i < POINTS; i++)
		p += sprintf(p, "output o%d = %s at root\n", i, points[i].text);
	struct made m = make(text, path, backend, "reassociate", 1);
	run_one(&m);
	for (int i = 0; i < POINTS; i++) {
		double got = m.ok ? row_of(&m, i)[i] : NAN;
		tap_ok(fabs(got - points[i].wanted) <= points[i].tolerance * fabs(points[i].wanted),
		       "%s at %g is %.9g, got %.9g, %s", points[i].text, points[i].x, points[i].wanted, got, backend);
	}
	free_kit(&m.kit);
}

/* --- what nodes carry: nothing is known ahead --- */

/* A vector by a number is a product with its reciprocal only where that is the same but for rounding. */
static const struct operation carried[] = {
    {"quotient", "x / max(y)", divide, true, false},
    {"magnitude", "abs(x)", absolute, true, false},
    {"steepness", "abs(1 / sqrt(x))", steepness, true, false},
    {"by_root", "x / sqrt(max(y))", by_root, false, false},
    {"third", "x / 3", third, false, false},
    {"cut", "maximum(log(sigmoid(x)), -100)", cut, false, false},
};
enum { CARRIED = sizeof carried / sizeof *carried };

static char carried_text[1000];

static void write_carried(void)
{
	char *p = carried_text;
	p += sprintf(p, "model carried\nstructure tree(*)\ninput x[%d], y[1]\nparam X[V, D], Y[V, D]\n",
		     SPECIAL);
	for (int i = 0; i < CARRIED; i++)
		p += sprintf(p, "state %s[%d]\n", carried[i].name, SPECIAL);
	p += sprintf(p, "node:\n");
	for (int i = 0; i < CARRIED; i++)
		p += sprintf(p, "    %s = %s\n", carried[i].name, carried[i].text);
	for (int i = 0; i < CARRIED; i++)
		p += sprintf(p, "output of_%s = %s at root\n", carried[i].name, carried[i].name);
	sprintf(p, "output weights = sum(sum(X + Y)) at root\n");
}

/* A structure of one node for each y. */
static bool run_carried(struct made *m)
{
	for (int i = 0; m->ok && i < SPECIAL; i++) {
		const void *const data[] = {special, &special[i]};
		const esp_structure s = {sizeof s, 1, one_begin, NULL, 0, data};
		m->ok = !esp_forest_add(m->kit.forest, &s, NULL);
	}
	m->ok = m->ok && !esp_session_run(m->kit.session, m->kit.forest, NULL);
	return m->ok;
}

static void test_carried_by(const char *backend, int math)
{
	struct made m = make(carried_text, pairs_path, backend, maths[math], 1);
	bool ran = run_carried(&m);
	for (int i = 0; i < CARRIED; i++) {
		int wrong = 0;
		for (int p = 0; ran && p < PAIRS; p++) {
			float x = special[p % SPECIAL], y = special[p / SPECIAL];
			float got =
			    ((const float *)esp_session_root(m.kit.session, i, p / SPECIAL))[p % SPECIAL];
			double wanted = carried[i].is(x, y);
			if (!is_as_wanted(&carried[i], got, wanted) && wrong++ < 3)
				printf("# %s of %g and %g is %g, not %g\n", carried[i].name, x, y, got,
				       wanted);
		}
		tap_ok(ran && !wrong, "%s of what a node carries is as IEEE 754 has it, %s, %s",
		       carried[i].text, backend, maths[math]);
	}
	free_kit(&m.kit);
}

static void test_carried(void)
{
	for (int k = 0; k < FAST; k++) {
		test_carried_by("interpreter", k);
		for (int c = 0; backend_at(c); c++)
			test_carried_by(backend_at(c), k);
	}
}

/* --- fast: denormals are zeros --- */

static void test_flush(const char *backend)
{
	struct made m = make(model_text, pairs_path, backend, "fast", 1);
	bool none = run_one(&m);
	for (int i = 0; none && i < OPERATORS; i++)
		for (int p = 0; p < PAIRS && operators[i].is != negate && operators[i].is != absolute; p++)
			none &= fpclassify(row_of(&m, i)[p]) != FP_SUBNORMAL;
#if defined __x86_64__ || defined __aarch64__
	tap_ok(none, "with fast math no result is a denormal, %s", backend);
#else
	tap_skip("denormals are not flushed here", "with fast math no result is a denormal, %s", backend);
#endif
	free_kit(&m.kit);
}

/* --- how the caller computes --- */

/* Sums of products that round, and denormals that count or do not, over enough rows for a team. */
enum { WIDE = 192, TREES = 64 };

static const char wide_model[] =
    "model wide\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\nparam W[D, D]\n"
    "state h[D]\nleaf:\n    h = 0.1 * E[word]\ninner:\n    h = W @ (left.h + right.h)\n"
    "output all = h * 0.3 at every node\n";
static char wide_path[128];

static void write_wide(void)
{
	static float E[4 * WIDE], W[WIDE * WIDE];
	for (int i = 0; i < 4 * WIDE; i++)
		E[i] = (float)(i * 37 % 101 - 50) * (i % 3 ? 1e-38f : 0.013f);
	for (int i = 0; i < WIDE * WIDE; i++)
		W[i] = (float)(i * 53 % 89 - 44) * (i % 5 ? 0.0021f : 1e-39f);
	const struct tensor tensors[] = {{"E", 4, WIDE, E}, {"W", WIDE, WIDE, W}};
	strcpy(wide_path, write_weights("wide.safetensors", tensors, 2));
}

/* Floating-point modes that a caller may have set. */
static void round_up(void)
{
	fesetround(FE_UPWARD);
}

static void round_to_zero(void)
{
	fesetround(FE_TOWARDZERO);
}

static void trap(void)
{
	feclearexcept(FE_ALL_EXCEPT);
	feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

static void flush(void)
{
#if defined __x86_64__
	_mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

static void as_usual(void) {}

static const struct {
	const char *what;
	void (*set)(void);
} modes[] = {{"as usual", as_usual},
	     {"rounding up", round_up},
	     {"rounding to zero", round_to_zero},
	     {"trapping", trap},
	     {"flushing denormals", flush}};
enum { MODES = sizeof modes / sizeof *modes };

struct state {
	int rounding, traps, flags;
	unsigned control;
};

static struct state state_now(void)
{
	struct state s = {fegetround(), fegetexcept(), fetestexcept(FE_ALL_EXCEPT), 0};
#if defined __x86_64__
	s.control = _mm_getcsr();
#endif
	return s;
}

static bool fill_wide(struct kit *k)
{
	static const int32_t begin[] = {0, 0, 0, 2, 2, 4}, children[] = {0, 1, 2, 3},
			     words[] = {0, 1, -1, 2, -1};
	const void *const data[] = {words};
	const esp_structure tree = {sizeof tree, 5, begin, children, 4, data};
	bool ok = true;
	for (int i = 0; ok && i < TREES; i++)
		ok = !esp_forest_add(k->forest, &tree, NULL);
	return ok;
}

static void copy_rows(const struct kit *k, float *rows)
{
	for (int node = 0; node < 5; node++)
		memcpy(rows + node * WIDE, esp_session_output(k->session, 0, TREES - 1, node),
		       WIDE * sizeof *rows);
}

/* Compiles and runs in the caller's mode `set`; copies the rows. */
static bool run_wide(const char *backend, const char *math, int threads, void (*set)(void), float *rows,
		     bool *kept)
{
	fenv_t before;
	fegetenv(&before);
	set();
	struct state first = state_now();
	struct made m = make(wide_model, wide_path, backend, math, threads);
	m.ok = m.ok && fill_wide(&m.kit);
	for (int run = 0; m.ok && run < (threads > 1 ? 20 : 1); run++)
		m.ok = !esp_session_run(m.kit.session, m.kit.forest, NULL);
	struct state last = state_now();
	*kept = memcmp(&first, &last, sizeof first) == 0;
	fesetenv(&before);
	if (m.ok)
		copy_rows(&m.kit, rows);
	free_kit(&m.kit);
	return m.ok;
}

static void test_callers(const char *backend, const char *math, int threads)
{
	static float usual[5 * WIDE], rows[5 * WIDE];
	for (int i = 0; i < MODES; i++) {
		bool kept,
		    ran = run_wide(backend, math, i ? threads : 1, modes[i].set, i ? rows : usual, &kept);
		tap_ok(ran && kept && (!i || memcmp(rows, usual, sizeof rows) == 0),
		       "a caller that computes %s gets the same bits and keeps its mode: %s, %s, %d threads",
		       modes[i].what, backend, math, i ? threads : 1);
	}
}

/* Another program of the same model and weights, in the same context. */
static struct kit beside(const struct kit *k, const char *math)
{
	struct kit other = {0};
	esp_program_options o = {.size = sizeof o, .math = math};
	if (esp_program_create(k->model, k->weights, &o, &other.program, NULL) ||
	    esp_binding_create(other.program, k->weights, &other.binding, NULL) ||
	    esp_forest_create(other.program, &other.forest, NULL) ||
	    esp_session_create(other.binding, &other.session, NULL))
		puts("# it cannot be made");
	return other;
}

/* Threads of one team run programs with different floating-point modes. */
static void test_alternating(void)
{
	static float fast[5 * WIDE], exact[5 * WIDE], rows[5 * WIDE];
	bool kept, right = true;
	bool differ = run_wide(usual_backend(), "fast", 1, as_usual, fast, &kept) &&
		      run_wide(usual_backend(), "exact", 1, as_usual, exact, &kept) &&
		      memcmp(fast, exact, sizeof fast) != 0;
	struct made m = make(wide_model, wide_path, usual_backend(), "fast", 3);
	struct kit other = beside(&m.kit, "exact");
	bool ok = m.ok && fill_wide(&m.kit) && fill_wide(&other);
	for (int run = 0; ok && run < 40; run++) {
		const struct kit *k = run % 2 ? &other : &m.kit;
		ok = !esp_session_run(k->session, k->forest, NULL);
		copy_rows(k, rows);
		right &= memcmp(rows, run % 2 ? exact : fast, sizeof rows) == 0;
	}
	tap_ok(differ && ok && right, "programs with fast and with exact math alternate on one team");
	free_kit(&other);
	free_kit(&m.kit);
}

int main(void)
{
	make_folder();
	write_pairs();
	write_wide();
	write_carried();
	skip_backends();
	test_operators();
	test_points("interpreter");
	for (int c = 0; backend_at(c); c++)
		test_points(backend_at(c));
	test_carried();
	test_flush("interpreter");
	test_callers("interpreter", "exact", 1);
	if (backend_at(0)) {
		test_flush(usual_backend());
		test_callers(usual_backend(), "exact", 3);
		test_callers(usual_backend(), "fast", 3);
		test_alternating();
	}
	remove_folder((const char *const[]){"pairs.safetensors", "wide.safetensors", "points.safetensors"}, 3);
	return tap_done();
}
