/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* schedules MODEL.ra WEIGHTS VOCAB TREES [--threads N] [--repeats N] SCHEDULE...
 *
 * Runs one model under several schedules alternately, over minibatches of 1, 10 and 64 trees with outputs
 * at the root. Prints microseconds per tree for linearizing and running: the least and the median of the
 * rounds, each of which runs 64 trees. A SCHEDULE is a file, or directives separated by `;`. */
#include "bench/library.h"

enum { MOST = 8, TREES = 64, SIZES = 3, MOST_ROUNDS = 2000 };

static const int sizes[SIZES] = {1, 10, 64};

/* One program and its minibatches of every size. */
struct side {
	const char *name;
	struct server server;
	esp_forest *forest[SIZES][TREES];
	int forests[SIZES];
	double times[SIZES][MOST_ROUNDS];
};

static char *read_schedule(const char *what)
{
	static char text[1 << 16];
	FILE *f = fopen(what, "r");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : (size_t)snprintf(text, sizeof text, "%s", what);
	text[n] = 0;
	for (char *c = text; !f && *c; c++)
		*c = *c == ';' ? '\n' : *c;
	if (f)
		fclose(f);
	return text;
}

static void read_trees(struct side *s, esp_context *c, esp_program *p, esp_vocab *vocab, const char *trees)
{
	for (int size = 0; size < SIZES; size++) {
		esp_treebank *bank;
		int more = 1;
		esp_treebank_options reading = {.size = sizeof reading, .vocab = vocab};
		check_status(esp_treebank_open(c, trees, &reading, &bank, &error));
		s->forests[size] = TREES / sizes[size];
		for (int i = 0; i < s->forests[size]; i++) {
			check_status(esp_forest_create(p, &s->forest[size][i], &error));
			for (int t = 0; more && t < sizes[size]; t++)
				check_status(esp_treebank_next(bank, s->forest[size][i], &more, &error));
		}
		esp_treebank_free(bank);
	}
}

static void open_side(struct side *s, esp_context *c, char **argv, const char *schedule)
{
	esp_model *m;
	esp_weights *w;
	esp_vocab *vocab;
	esp_program_options options = {
	    .size = sizeof options, .at = ESP_AT_ROOT, .schedule = read_schedule(schedule)};
	s->name = schedule;
	check_status(esp_model_read(c, argv[1], &m, &error));
	check_status(esp_weights_open(c, argv[2], &w, &error));
	check_status(esp_vocab_open(c, argv[3], &vocab, &error));
	s->server = open_server(m, w, &options);
	read_trees(s, c, s->server.program, vocab, argv[4]);
	esp_model_free(m);
	esp_weights_free(w);
	esp_vocab_free(vocab);
}

static double round_of(struct side *s, int size)
{
	double begin = 1e6 * read_clock();
	for (int i = 0; i < s->forests[size]; i++)
		check_status(esp_session_run(s->server.session, s->forest[size][i], &error));
	return (1e6 * read_clock() - begin) / (s->forests[size] * sizes[size]);
}

static void print_side(struct side *s, int rounds)
{
	for (int size = 0; size < SIZES; size++) {
		double *t = s->times[size];
		qsort(t, rounds, sizeof *t, compare_doubles);
		printf("  batch %-3d %8.2f %8.2f", sizes[size], t[0], t[rounds / 2]);
	}
	printf("   %.60s\n", s->name);
}

int main(int argc, char **argv)
{
	static struct side side[MOST];
	esp_context_options shared = {.size = sizeof shared, .threads = 1};
	esp_context *context;
	int n = 0, rounds = 40, at = 5;
	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2)
		if (strcmp(argv[at], "--threads") == 0)
			shared.threads = atoi(argv[at + 1]);
		else if (strcmp(argv[at], "--repeats") == 0)
			rounds = atoi(argv[at + 1]);
	if (at >= argc || argc - at > MOST || rounds < 1 || rounds > MOST_ROUNDS)
		give_up(
		    "usage: schedules MODEL.ra WEIGHTS VOCAB TREES [--threads N] [--repeats N] SCHEDULE...");
	check_status(esp_context_create(&shared, &context, &error));
	for (; at < argc; at++)
		open_side(&side[n++], context, argv, argv[at]);
	for (int r = -1; r < rounds; r++)
		for (int size = 0; size < SIZES; size++)
			for (int i = 0; i < n; i++) {
				int which = (i + r + 1) % n;
				double t = round_of(&side[which], size);
				if (r >= 0)
					side[which].times[size][r] = t;
			}
	printf("microseconds a tree: least, median\n");
	for (int i = 0; i < n; i++)
		print_side(&side[i], rounds);
	return 0;
}
