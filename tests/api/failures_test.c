/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the n-th request, for every n, in every part of a program's life, for models with
 * whatever models may have: a status, nothing lost, and the same part works when it is asked for again. */
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/sample.h"

enum { SIZE = 4, AXES = 8 };

/* --- what is run --- */

static const char brackets[] = "(1 (2 a) (0 (1 b) (2 c)))\n(0 (3 a))\n(X (1 (2 (1 a) (1 d)) (2 b) (0 c)))\n";
static const char phrases[] =
    "{\"children\": [[], [], [0, 1]], \"data\": {\"word\": [\"a\", \"b\", \"c\"]}}\n";
static const char conllu[] =
    "# text = a b c\n"
    "1\ta\ta\tN\t_\t_\t2\tb\t2:b|3:a\t_\n2\tb\tb\tV\t_\t_\t0\ta\t0:a\t_\n"
    "3\tc\tc\tN\t_\t_\t2\tc\t2:c\t_\n\n1\td\td\tN\t_\t_\t0\ta\t0:a\t_\n\n";
static const char labelled[] =
    "{\"children\": [[], [], [0, 1], [0, 2]], \"text\": \"a b\",\n"
    " \"data\": {\"word\": [\"a\", \"b\", null, null], \"rel\": [[], [], [0, 1], [2, 3]],\n"
    "  \"x\": [[], [], [[1, 2, 3, 4], [0, 1, 0, 1]], [[1, 1, 1, 1], [2, 2, 2, 2]]]}}\n";
static const char vectors[] =
    "{\"children\": [[], [], [0, 1]], \"data\": {\"x\": [[1, 2, 3, 4], [0, 1, 0, 1], null]}}\n";
static const char chain[] =
    "{\"children\": [[], [0], [1]], \"data\": {\"x\": [[1, 2, 3, 4], [0, 1, 0, 1], [1, 0, 0, 1]],"
    "\"word\": [0, 1, 2]}}\n";

static esp_status build_model(esp_context *, esp_model **, esp_error **);

static const struct subject {
	const char *what, *model; /* a file; NULL = by build_model */
	const char *text;	  /* of structures */
	esp_treebank_options reading;
	const char *backend; /* NULL = the usual one */
} subjects[] = {
    {"sums over children", "tests/golden/edges.ra", phrases, {.format = ESP_FORMAT_JSON}, "interpreter"},
    {"labels on edges, JSON", "tests/models/labels.ra", labelled, {.format = ESP_FORMAT_JSON}, "interpreter"},
    {"sums over nodes, a graph",
     "tests/models/members.ra",
     conllu,
     {.format = ESP_FORMAT_CONLLU, .graph = ESP_GRAPH_ENHANCED},
     "interpreter"},
    {"vectors", "tests/models/mixed.ra", vectors, {.format = ESP_FORMAT_JSON}, "interpreter"},
    {"two traversals, CoNLL-U",
     "examples/updown/updown.ra",
     conllu,
     {.format = ESP_FORMAT_CONLLU},
     "interpreter"},
    {"cases, brackets", "examples/typed/typed.ra", brackets, {.format = ESP_FORMAT_BRACKETS}, "interpreter"},
    {"a sequence both ways", "tests/models/bilstm.ra", chain, {.format = ESP_FORMAT_JSON}, "interpreter"},
    {"a model that is built, binarized",
     NULL,
     brackets,
     {.collapse = 1, .binarize = ESP_BINARIZE_LEFT},
     "interpreter"},
    {"compiled code", "tests/models/labels.ra", labelled, {.format = ESP_FORMAT_JSON}, NULL},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* h = tanh(W @ (left.h + right.h)), words in the leaves. */
static esp_status build_model(esp_context *c, esp_model **out, esp_error **error)
{
	esp_builder *b;
	esp_status s = esp_builder_create(c, "built", "tree(left, right)", &b, error);
	if (s)
		return s;
	esp_value E = esp_builder_param(b, "E", "V, D"), W = esp_builder_param(b, "W", "D, D"),
		  word = esp_builder_token(b, "word");
	esp_builder_state(b, "h", "D");
	esp_builder_body(b, ESP_BODY_LEAF);
	esp_builder_assign(b, "h", esp_builder_lookup(b, E, word));
	esp_builder_body(b, ESP_BODY_INNER);
	esp_value sum = esp_builder_call(
	    b, "+", (esp_value[]){esp_builder_child(b, 0, "h"), esp_builder_child(b, 1, "h")}, 2);
	esp_value product = esp_builder_call(b, "@", (esp_value[]){W, sum}, 2);
	esp_builder_assign(b, "h", esp_builder_call(b, "tanh", &product, 1));
	esp_builder_body(b, ESP_BODY_OUTPUT);
	esp_builder_output(b, "top", esp_builder_get(b, "h"), ESP_AT_EVERY_NODE, NULL, 0);
	s = esp_builder_finish(b, out, error);
	esp_builder_free(b);
	return s;
}

/* --- the parts of a life --- */

struct life {
	const struct subject *subject;
	const char *weights_path, *trees_path, *export_path;
	struct kit kit;
	esp_export *results;
};

static const char *words_path;

static esp_status make_model(struct life *l, esp_error **error)
{
	char path[1000];
	const char *srcdir = getenv("srcdir");
	if (!l->subject->model)
		return build_model(l->kit.context, &l->kit.model, error);
	snprintf(path, sizeof path, "%s/%s", srcdir ? srcdir : ".", l->subject->model);
	return esp_model_read(l->kit.context, path, &l->kit.model, error);
}

static esp_status load(struct life *l, esp_error **error)
{
	struct kit *k = &l->kit;
	esp_program_options o = {.size = sizeof o, .backend = l->subject->backend, .at = ESP_AT_EVERY_NODE};
	esp_status s;
	if ((s = make_model(l, error)) ||
	    (s = esp_weights_open(k->context, l->weights_path, &k->weights, error)))
		return s;
	return esp_program_create(k->model, k->weights, &o, &k->program, error);
}

static void unload(struct life *l)
{
	struct kit *k = &l->kit;
	esp_program_free(k->program);
	esp_weights_free(k->weights);
	esp_model_free(k->model);
	k->program = NULL, k->weights = NULL, k->model = NULL;
}

static esp_status compile(struct life *l, esp_error **error)
{
	return esp_program_prepare(l->kit.program, error);
}

/* The code goes with its program only: another one takes its place. */
static void uncompile(struct life *l)
{
	esp_program_options o = {.size = sizeof o, .backend = l->subject->backend, .at = ESP_AT_EVERY_NODE};
	esp_program_free(l->kit.program);
	esp_program_create(l->kit.model, l->kit.weights, &o, &l->kit.program, NULL);
}

static esp_status bind(struct life *l, esp_error **error)
{
	struct kit *k = &l->kit;
	esp_status s = esp_binding_open(k->program, k->weights, &k->binding, error);
	if (s || (s = esp_binding_swap(k->binding, k->weights, error)))
		return s;
	esp_binding_free(k->binding);
	s = esp_binding_create(k->program, k->weights, &k->binding, error);
	return s ? s : esp_binding_swap(k->binding, k->weights, error);
}

static void unbind(struct life *l)
{
	esp_binding_free(l->kit.binding);
	l->kit.binding = NULL;
}

static esp_status read_structures(struct life *l, esp_error **error)
{
	struct kit *k = &l->kit;
	esp_treebank_options o = l->subject->reading;
	esp_status s = esp_vocab_open(k->context, words_path, &k->vocab, error);
	int more = 1;
	o.size = sizeof o;
	o.vocab = k->vocab;
	if (s || (s = esp_treebank_open(k->context, l->trees_path, &o, &k->treebank, error)) ||
	    (s = esp_forest_create(k->program, &k->forest, error)))
		return s;
	while (more)
		if ((s = esp_treebank_next(k->treebank, k->forest, &more, error)))
			return s;
	return esp_forest_check(k->forest, error);
}

static void forget_structures(struct life *l)
{
	struct kit *k = &l->kit;
	esp_forest_free(k->forest);
	esp_treebank_free(k->treebank);
	esp_vocab_free(k->vocab);
	k->forest = NULL, k->treebank = NULL, k->vocab = NULL;
}

static esp_status run(struct life *l, esp_error **error)
{
	struct kit *k = &l->kit;
	esp_status s;
	if ((s = esp_session_create(k->binding, &k->session, error)) ||
	    (s = esp_session_record(k->session, 1, error)) ||
	    (s = esp_session_run(k->session, k->forest, error)) ||
	    (s = esp_export_create(k->program, &l->results, error)) ||
	    (s = esp_export_add(l->results, k->session, error)) ||
	    (s = esp_export_safetensors(l->results, l->export_path, error)))
		return s;
	return esp_export_npy(l->results, "structure_begin", l->export_path, error);
}

static void end_run(struct life *l)
{
	esp_export_free(l->results);
	esp_session_free(l->kit.session);
	l->results = NULL, l->kit.session = NULL;
}

static esp_status dump(struct life *l, const char *stage, esp_error **error)
{
	char *text;
	esp_status s = esp_program_dump(l->kit.program, stage, &text, error);
	esp_text_free(text);
	return s;
}

static esp_status tell(struct life *l, esp_error **error)
{
	static const char *const stages[] = {"ra", "subop", "derivation", "sched", "choices", "ilir"};
	struct kit *k = &l->kit;
	char *text = NULL;
	esp_status s = esp_model_print(k->model, &text, error);
	esp_text_free(text);
	if (s || (s = esp_program_explain(k->program, ESP_FORM_JSON, &text, error)))
		return s;
	esp_text_free(text);
	if ((s = esp_program_times(k->program, &text, error)))
		return s;
	esp_text_free(text);
	for (size_t i = 0; !s && i < sizeof stages / sizeof *stages; i++)
		s = dump(l, stages[i], error);
	return s;
}

static void tell_nothing(struct life *l)
{
	(void)l;
}

static const struct part {
	const char *what;
	esp_status (*make)(struct life *, esp_error **);
	void (*undo)(struct life *); /* of whatever was made of it */
	long tries;
} parts[] = {
    {"loading", load, unload, 60}, {"compiling", compile, uncompile, 10},
    {"binding", bind, unbind, 60}, {"reading", read_structures, forget_structures, 60},
    {"running", run, end_run, 60}, {"telling", tell, tell_nothing, 10},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* --- every n --- */

/* A sum over all that the last run left. */
static double results_of(const struct life *l)
{
	double sum = 0;
	const struct kit *k = &l->kit;
	for (size_t o = 0; k->session && o < esp_program_outputs(k->program); o++)
		for (size_t s = 0; s < esp_forest_structures(k->forest); s++)
			for (size_t e = 0; e < esp_program_output(k->program, o)->elements; e++)
				sum = 3 * sum + esp_session_root(k->session, o, s)[e];
	return sum;
}

struct found {
	long requests;
	bool memory, kept, again, told;
};

static void try_request(struct life *l, struct account *a, const struct part *p, double right,
			struct found *f)
{
	esp_error *error;
	long blocks = a->blocks, bytes = a->bytes;
	a->left = f->requests++;
	esp_status s = p->make(l, &error);
	a->left = -1;
	f->memory &= s == ESP_ERROR_MEMORY;
	f->told &= esp_error_count(error) && *esp_error_text(error);
	if (s && s != ESP_ERROR_MEMORY)
		printf("# request %ld: %s", f->requests - 1, esp_error_text(error));
	esp_error_free(error);
	p->undo(l);
	/* A program that was made anew is as large as the one before. */
	f->kept &= p->make == compile || (a->blocks == blocks && a->bytes == bytes);
	f->again &= p->make(l, NULL) == ESP_OK && (p->make != run || results_of(l) == right);
	p->undo(l);
	f->kept &= p->make == compile || (a->blocks == blocks && a->bytes == bytes);
}

/* How many requests a part makes, which is done. */
static long count_requests(struct life *l, struct account *a, const struct part *p)
{
	enum { MANY = 1000000 };
	a->left = MANY;
	esp_error *error = NULL;
	bool ok = p->make(l, &error) == ESP_OK;
	long n = MANY - a->left;
	a->left = -1;
	if (!ok)
		printf("# %s: %s", p->what, esp_error_text(error));
	esp_error_free(error);
	return ok ? n : -1;
}

/* Of parts that take long some requests are let fail, evenly; all with ESPALIER_STRIDE=1. */
static long stride(const struct part *p, long requests)
{
	const char *told = getenv("ESPALIER_STRIDE");
	return told && atol(told) > 0 ? atol(told) : requests * SAMPLE / p->tries + 1;
}

static bool test_part(struct life *l, struct account *a, const struct part *p)
{
	struct found f = {0, true, true, true, true};
	long n = count_requests(l, a, p);
	double right = results_of(l);
	if (!tap_ok(n >= 0, "%s, %s works", l->subject->what, p->what))
		return false;
	p->undo(l);
	while (f.requests < n) {
		try_request(l, a, p, right, &f);
		f.requests += stride(p, n) - 1;
	}
	tap_ok(f.memory && f.told && f.kept && f.again, "%s, %s: of %ld requests each may fail%s%s%s%s",
	       l->subject->what, p->what, n, f.memory ? "" : "; not all are told as such",
	       f.told ? "" : "; not all are told", f.kept ? "" : "; something is lost",
	       f.again ? "" : "; it does not work again");
	return p->make(l, NULL) == ESP_OK;
}

/* --- files --- */

static const char *write_model_weights(const esp_model *m)
{
	static char header[1 << 14], file[1 << 18];
	int64_t sizes[32], shape[AXES];
	size_t data = 0, rank;
	const char *name;
	for (int i = 0; i < 32; i++)
		sizes[i] = SIZE;
	strcpy(header, "{");
	static float all[1 << 15];
	for (size_t i = 0; (name = esp_model_param(m, i, sizes, shape, AXES, &rank)); i++) {
		size_t n = 1;
		sprintf(header + strlen(header), "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? "," : "",
			name);
		for (size_t d = 0; d < rank; d++) {
			sprintf(header + strlen(header), "%s%lld", d ? "," : "", (long long)shape[d]);
			n *= shape[d];
		}
		sprintf(header + strlen(header), "],\"data_offsets\":[%zu,%zu]}", data * 4, (data + n) * 4);
		for (size_t e = 0; e < n; e++, data++)
			all[data] = (float)(data * 37 % 64) / 64 - 0.5f;
	}
	strcat(header, "}");
	uint64_t length = strlen(header);
	memcpy(file, &length, 8);
	memcpy(file + 8, header, length);
	memcpy(file + 8 + length, all, data * 4);
	return write_file("w.safetensors", file, 8 + length + data * 4);
}

static void test_subject(const struct subject *subject)
{
	struct account a = {.left = -1};
	const esp_context_options o = memory_of(&a);
	struct life l = {.subject = subject};
	char path[3][128];
	esp_context_create(&o, &l.kit.context, NULL);
	l.trees_path = strcpy(path[0], write_text("trees", subject->text));
	l.export_path = strcpy(path[1], path_of("export"));
	if (make_model(&l, NULL) == ESP_OK)
		l.weights_path = strcpy(path[2], write_model_weights(l.kit.model));
	esp_model_free(l.kit.model);
	l.kit.model = NULL;
	int made = 0;
	while (made < PARTS && test_part(&l, &a, &parts[made]))
		made++;
	while (made-- > 0)
		parts[made].undo(&l);
	unload(&l);
	esp_context_free(l.kit.context);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "%s: all is given back", subject->what);
}

int main(void)
{
	char path[128];
	make_folder();
	words_path = strcpy(path, write_text("words", "a\nb\nc\n<unk>\n"));
	for (int i = 0; i < SUBJECTS; i++)
		if (subjects[i].backend || need_backend("%s", subjects[i].what))
			test_subject(&subjects[i]);
	remove_folder((const char *const[]){"w.safetensors", "trees", "words", "export"}, 4);
	return tap_done();
}
