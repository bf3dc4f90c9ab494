/* espalier run: a treebank through a model, minibatch by minibatch. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run {
	const struct options *options;
	const char *input;
	struct objects objects;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	esp_treebank *treebank;
	esp_export *export; /* NULL = none is wanted */
	struct output output;
	char **sentences; /* of the minibatch, options->batch of them */
	size_t trees;	  /* written so far */
	double begin, shown;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- progress --- */

/* On a terminal only, unless the results go there themselves, and only for those who have waited a second. */
static bool is_watched(const struct run *r)
{
	return isatty(STDERR_FILENO) && !(r->output.file == stdout && isatty(STDOUT_FILENO));
}

static void show_progress(struct run *r)
{
	double t = now();
	if (t - r->begin < 1 || t - r->shown < 0.1 || !is_watched(r))
		return;
	fprintf(stderr, "\r%zu trees, %.0f %%, %.0f trees/s\033[K", r->trees,
		100 * esp_treebank_progress(r->treebank), (double)r->trees / (t - r->begin));
	r->shown = t;
}

static void clear_progress(struct run *r)
{
	if (r->shown > 0)
		fputs("\r\033[K", stderr);
	r->shown = 0;
}

static int refuse(struct run *r, esp_status status, esp_error *error)
{
	clear_progress(r);
	return report(status, error);
}

/* --- one minibatch --- */

static void forget_sentences(struct run *r)
{
	for (long i = 0; r->sentences && i < r->options->batch; i++) {
		free(r->sentences[i]);
		r->sentences[i] = NULL;
	}
}

/* Reads up to a minibatch; *more is 0 at the end of the file. */
static int read_batch(struct run *r, int *more)
{
	esp_error *error;
	esp_forest_clear(r->forest);
	forget_sentences(r);
	*more = 1;
	for (long i = 0; i < r->options->batch && *more; i++) {
		esp_status status = esp_treebank_next(r->treebank, r->forest, more, &error);
		if (status)
			return refuse(r, status, error);
		if (*more && !(r->sentences[i] = strdup(esp_treebank_sentence(r->treebank)))) {
			complain("no memory for a sentence");
			return EXIT_INPUT;
		}
	}
	return 0;
}

static void write_batch(struct run *r)
{
	struct result result = {
	    .program = r->objects.program, .session = r->session, .at = (enum place)r->options->at};
	for (size_t i = 0; i < esp_forest_structures(r->forest); i++) {
		result.structure = i;
		result.tree = r->trees + i;
		result.nodes = esp_forest_nodes(r->forest, i);
		result.sentence = r->sentences[i];
		(r->options->format == FORMAT_JSON ? write_json : write_text)(r->output.file, &result);
	}
}

/* The library counts inputs in the minibatch, the reader of the message counts trees in the file. */
static int run_batch(struct run *r)
{
	esp_error *error;
	esp_status status = esp_session_run(r->session, r->forest, &error);
	if (status) {
		int exit_status = refuse(r, status, error);
		complain("%s: input 0 above is tree %zu of the file, counted from 0", r->input, r->trees);
		return exit_status;
	}
	if (r->export && (status = esp_export_add(r->export, r->session, &error)))
		return refuse(r, status, error);
	write_batch(r);
	r->trees += esp_forest_structures(r->forest);
	show_progress(r);
	return output_flush(&r->output) ? 0 : EXIT_INPUT;
}

static int run_all(struct run *r)
{
	int more, status;
	do {
		status = read_batch(r, &more);
		if (!status && esp_forest_structures(r->forest))
			status = run_batch(r);
	} while (!status && more);
	clear_progress(r);
	return status;
}

/* --- exports --- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

/* The form is told by the name of the file; one of the two holds a single tensor. */
static bool check_export(const struct options *o)
{
	if (!o->export)
		return !o->tensor || complain("--tensor NAME goes with --export FILE.npy");
	if (ends_with(o->export, ".npy"))
		return o->tensor || complain("%s holds one tensor: give --tensor NAME", o->export);
	if (!ends_with(o->export, ".safetensors"))
		return complain("--export FILE ends in .safetensors or .npy, not '%s'", o->export);
	return !o->tensor || complain("%s holds all tensors: --tensor NAME goes with .npy", o->export);
}

/* Asked before anything runs. */
static bool has_tensor(const esp_program *p, const char *name)
{
	if (strcmp(name, "structure_begin") == 0)
		return true;
	for (size_t i = 0; esp_program_state(p, i); i++)
		if (strcmp(name, esp_program_state(p, i)->name) == 0)
			return true;
	for (size_t i = 0; esp_program_output(p, i); i++)
		if (strcmp(name, esp_program_output(p, i)->name) == 0)
			return true;
	return complain("the model has neither a state nor an output '%s'", name);
}

static int write_export(const struct run *r)
{
	esp_error *error;
	const struct options *o = r->options;
	esp_status status = o->tensor ? esp_export_npy(r->export, o->tensor, o->export, &error)
				      : esp_export_safetensors(r->export, o->export, &error);
	return status ? report(status, error) : 0;
}

/* --- before and after --- */

static int prepare(struct run *r)
{
	esp_error *error;
	const struct options *o = r->options;
	esp_status status =
	    esp_treebank_open(r->objects.context, r->input, r->objects.vocab, &r->treebank, &error);
	if (!status)
		status = esp_binding_create(r->objects.program, r->objects.weights, &r->binding, &error);
	if (!status)
		status = esp_session_create(r->binding, &r->session, &error);
	if (!status)
		status = esp_forest_create(r->objects.program, &r->forest, &error);
	if (!status && o->export)
		status = esp_export_create(r->objects.program, &r->export, &error);
	if (status)
		return report(status, error);
	r->sentences = calloc(o->batch, sizeof *r->sentences);
	if (r->sentences)
		return 0;
	complain("no memory for %ld sentences", o->batch);
	return EXIT_INPUT;
}

static void show_count(uint64_t n, const char *singular, const char *plural, const char *end)
{
	fprintf(stderr, "%llu %s%s", (unsigned long long)n, n == 1 ? singular : plural, end);
}

static void show_timing(const struct run *r)
{
	const esp_costs c = *esp_session_costs(r->session);
	double trees = c.structures ? (double)c.structures : 1;
	show_count(c.structures, "tree", "trees", ", ");
	show_count(c.nodes, "node", "nodes", ", ");
	show_count(c.runs, "minibatch", "minibatches", ", ");
	show_count(c.batches, "batch", "batches", "\n");
	fprintf(stderr, "compile    %10.1f ms, once\n", c.compile * 1e3);
	fprintf(stderr, "bind       %10.1f ms, once\n", c.bind * 1e3);
	fprintf(stderr, "linearize  %10.1f us, %.1f us a tree\n", c.linearize * 1e6,
		c.linearize * 1e6 / trees);
	fprintf(stderr, "run        %10.1f us, %.1f us a tree\n", c.run * 1e6, c.run * 1e6 / trees);
}

static void close_all(struct run *r)
{
	forget_sentences(r);
	free(r->sentences);
	esp_export_free(r->export);
	esp_treebank_free(r->treebank);
	esp_forest_free(r->forest);
	esp_session_free(r->session);
	esp_binding_free(r->binding);
	objects_close(&r->objects);
}

static int run(struct run *r)
{
	int at = r->options->at == PLACE_ALL ? ESP_AT_EVERY_NODE : ESP_AT_ROOT;
	if (!objects_open(&r->objects, r->options, r->options->operand[0], at))
		return r->objects.status;
	if (!has_vocab(&r->objects))
		return EXIT_USAGE;
	if (r->options->tensor && !has_tensor(r->objects.program, r->options->tensor))
		return EXIT_USAGE;
	int status = prepare(r);
	if (!status && !output_open(&r->output, r->options->output))
		return EXIT_INPUT;
	if (status)
		return status;
	r->begin = now();
	status = run_all(r);
	if (!status && r->export)
		status = write_export(r);
	if (status)
		output_abort(&r->output);
	else if (!output_commit(&r->output))
		status = EXIT_INPUT;
	if (!status && r->options->timing)
		show_timing(r);
	return status;
}

int command_run(const struct options *options)
{
	if (!options->weights) {
		complain("run needs --weights FILE");
		return EXIT_USAGE;
	}
	if (!check_export(options))
		return EXIT_USAGE;
	struct run r = {.options = options, .input = options->operand[1]};
	int status = run(&r);
	close_all(&r);
	return status;
}
