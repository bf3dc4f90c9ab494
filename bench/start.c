/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* start [-n TIMES] COMMAND MODEL.ra WEIGHTS VOCAB TREES
 *
 * Times a process from its start to its first result and to its end: with nothing in the cache (new), with the description of
 * the machine, which the first process measures and keeps (cold), and with its program, too (warm); and one that only
 * prints its version (none). COMMAND is the program `espalier` itself (build/.libs/espalier, not libtool's wrapper
 * script). The kinds alternate. Prints the median, the least and the most of TIMES runs each, and the medians of the
 * phases that --timing prints. */
#include "bench/timing.h"

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PHASES = 4, MOST = 1000 };

/* The command prints "linearize" and "run" in microseconds. */
static const struct {
	const char *name;
	double to_ms;
} phases[PHASES] = {{"compile", 1}, {"bind", 1}, {"linearize", 1e-3}, {"run", 1e-3}};

struct sample {
	double first, process, phase[PHASES]; /* milliseconds; first: until the first byte of the output */
};

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "start: %s\n", what);
	exit(1);
}

/* Reads the output after the process has ended: the pipe holds all of it. */
static void read_phases(int fd, struct sample *s)
{
	char text[4000], *at;
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	for (int i = 0; i < PHASES; i++) {
		char line[20];
		snprintf(line, sizeof line, "\n%s ", phases[i].name);
		if (!(at = strstr(text, line)))
			give_up(text);
		s->phase[i] = atof(at + strlen(line)) * phases[i].to_ms;
	}
}

/* Reads all output; returns when the first byte came. */
static double read_output(int fd)
{
	char text[4000];
	ssize_t n = read(fd, text, 1);
	double first = 1e3 * read_clock();
	if (n != 1)
		give_up("the command writes nothing");
	while (read(fd, text, sizeof text) > 0)
		;
	return first;
}

static void make_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC))
		give_up("no pipe");
}

/* Runs a process with `fd` as its standard error, to which it writes a page at most. */
static struct sample time_process(char **arguments, int fd)
{
	posix_spawn_file_actions_t actions;
	struct sample s;
	int status, output[2];
	pid_t child;
	make_pipe(output);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
	double begin = 1e3 * read_clock();
	if (posix_spawn(&child, arguments[0], &actions, NULL, arguments, environ))
		give_up("the command cannot be started");
	close(output[1]);
	s.first = read_output(output[0]) - begin;
	if (waitpid(child, &status, 0) != child)
		give_up("the command is lost");
	s.process = 1e3 * read_clock() - begin;
	close(output[0]);
	posix_spawn_file_actions_destroy(&actions);
	return s;
}

static struct sample run_command(char **argv)
{
	char *arguments[] = {argv[0],	"run",	 argv[1], "--weights", argv[2],
			     "--vocab", argv[3], argv[4], "--timing",  NULL};
	int fds[2];
	make_pipe(fds);
	struct sample s = time_process(arguments, fds[1]);
	close(fds[1]);
	read_phases(fds[0], &s);
	close(fds[0]);
	return s;
}

static struct sample say_version(char **argv)
{
	char *arguments[] = {argv[0], "--version", NULL};
	struct sample s = time_process(arguments, STDERR_FILENO);
	memset(s.phase, 0, sizeof s.phase);
	return s;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static double median_of(const struct sample *s, int n, size_t at)
{
	static double x[MOST];
	for (int i = 0; i < n; i++)
		memcpy(&x[i], (const char *)&s[i] + at, sizeof *x);
	qsort(x, n, sizeof *x, by_size);
	return x[n / 2];
}

/* The median, the least and the most of a time. */
static void print_time(const char *what, const struct sample *s, int n, size_t at)
{
	double least = median_of(s, 1, at), most = least;
	for (int i = 0; i < n; i++) {
		double x = median_of(&s[i], 1, at);
		least = x < least ? x : least;
		most = x > most ? x : most;
	}
	printf(" %s %7.2f ms (least %.2f, most %.2f)", what, median_of(s, n, at), least, most);
}

static void print_sample(const char *what, const struct sample *s, int n)
{
	printf("%-5s", what);
	print_time("process", s, n, offsetof(struct sample, process));
	print_time(", first result", s, n, offsetof(struct sample, first));
	for (int i = 0; i < PHASES && s->phase[PHASES - 1]; i++)
		printf(", %s %.3f", i ? phases[i].name : "load or compile",
		       median_of(s, n, offsetof(struct sample, phase[i])));
	printf("\n");
}

static void remove_below(const char *folder, const char *name)
{
	char command[200];
	snprintf(command, sizeof command, "rm -rf '%s/%s'", folder, name);
	if (system(command))
		give_up("the cache cannot be emptied");
}

int main(int argc, char **argv)
{
	static struct sample new[MOST], cold[MOST], warm[MOST], none[MOST];
	char folder[] = "/tmp/espalier-start-XXXXXX";
	int n = 21;
	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		n = atoi(argv[2]);
		argv += 2, argc -= 2;
	}
	if (argc != 6 || n < 1 || n > MOST || !mkdtemp(folder))
		give_up("usage: start [-n TIMES] COMMAND MODEL.ra WEIGHTS VOCAB TREES");
	setenv("XDG_CACHE_HOME", folder, 1);
	for (int i = 0; i < n; i++) {
		remove_below(folder, "espalier");
		new[i] = run_command(argv + 1);
		remove_below(folder, "espalier/images");
		cold[i] = run_command(argv + 1);
		warm[i] = run_command(argv + 1);
		none[i] = say_version(argv + 1);
	}
	print_sample("new", new, n);
	print_sample("cold", cold, n);
	print_sample("warm", warm, n);
	print_sample("none", none, n);
	remove_below(folder, "espalier");
	rmdir(folder);
	return 0;
}
