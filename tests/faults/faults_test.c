/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the system may refuse, it refuses: each call of a kind that the command makes fails once, for every
 * one of them. Then the command ends with a diagnostic or with the right result; files are complete, as they
 * were, or not there. */
#include "tests/api/support.h"
#include "tests/backends.h"
#include "tests/faults/inject.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

/* --- what is run --- */

/* QUICK uses compile nothing.  COMPILES: the compiler and the loader are part of it, whose own failures are
 * not ours to prevent, but to tell.  APART: so they are, in a process of their own, which may lack memory as
 * well.  HAS_THREADS: it is the threads that are refused.  TIMES: what it says is never twice the same, and
 * it is slow: files alone are looked at. */

#define MODEL "tiny.ra", "trees.ptb", "--weights", "w.safetensors", "--vocab", "words.txt"
#define SLOWLY "--backend", "interpreter", "--threads", "1"
/* Stands for the back end that is usual here: when its plug-in cannot be looked at the command would take
 * another, whose code has other bytes. */
#define BACKEND "(the usual back end)"

static const struct use {
	const char *what;
	const char *argument[20];
	const char *output[3]; /* files that it writes below work/ */
	enum { QUICK, COMPILES, APART, HAS_THREADS, TIMES } kind;
} uses[] = {
    {"check", {"check", MODEL}, {NULL}, QUICK},
    {"run", {"run", MODEL, SLOWLY}, {NULL}, QUICK},
    {"run of JSON",
     {"run", "tiny.ra", "trees.json", "--weights", "w.safetensors", SLOWLY, "--format", "json"},
     {NULL},
     QUICK},
    {"run to files",
     {"run", MODEL, SLOWLY, "--at", "all", "--output", "work/out", "--export", "work/out.safetensors"},
     {"out", "out.safetensors"},
     QUICK},
    {"run to a tensor",
     {"run", MODEL, SLOWLY, "--export", "work/out.npy", "--tensor", "twice"},
     {"out.npy"},
     QUICK},
    {"compare", {"compare", MODEL, SLOWLY, "--ref", "ref.safetensors"}, {NULL}, QUICK},
    {"dump",
     {"dump", "ilir", "tiny.ra", "--weights", "w.safetensors", "--backend", "interpreter", "--output",
      "work/dump"},
     {"dump"},
     QUICK},
    {"explain", {"explain", "tiny.ra", "--weights", "w.safetensors"}, {NULL}, QUICK},
    {"init", {"init", "work/new.ra"}, {"new.ra"}, QUICK},
    {"a compilation", {"run", MODEL, "--threads", "1", "--cache-dir", "cold"}, {NULL}, COMPILES},
    {"a program that was kept", {"run", MODEL, "--threads", "1", "--cache-dir", "warm"}, {NULL}, COMPILES},
    {"ahead of time",
     {"compile", "tiny.ra", "--weights", "w.safetensors", "--threads", "1", "--no-cache", "--pack", "--backend",
      BACKEND, "-o", "work/tiny.espalier"},
     {"tiny.espalier"},
     COMPILES},
    {"an object and its header",
     {"compile", "compiled-tiny.ra", "--threads", "1", "-o", "work/tiny.o"},
     {"tiny.o", "tiny.h"},
     COMPILES},
    {"a saved program",
     {"run", "compiled-tiny.ra", "trees.ptb", "--vocab", "words.txt", "--threads", "1"},
     {NULL},
     COMPILES},
    {"a helper that compiles",
     {"run", MODEL, "--threads", "1", "--no-cache", "--compile-in", "helper"},
     {NULL},
     APART},
    {"threads that compile", {"run", MODEL, "--threads", "4", "--no-cache"}, {NULL}, HAS_THREADS},
    {"a team",
     {"run", "wide.ra", "many.ptb", "--weights", "wide.safetensors", "--vocab", "words.txt", "--threads", "4",
      "--no-cache"},
     {NULL},
     HAS_THREADS},
    {"bench with files",
     {"bench", "tiny.ra", SLOWLY, "--sizes", "D=8,V=10", "--batches", "1", "--minibatches", "1", "--runs",
      "1", "--keep", "work"},
     {"structures.txt", "weights.safetensors"},
     TIMES},
};
enum { USES = sizeof uses / sizeof *uses };

static const struct inject faults[] = {
    {"open: no permission", INJECT_OPEN, EACCES, false},
    {"open: too many files", INJECT_OPEN, EMFILE, true},
    {"open: interrupted", INJECT_OPEN, EINTR, false},
    {"read: the disk fails", INJECT_READ, EIO, false},
    {"read: interrupted", INJECT_READ, EINTR, false},
    {"read: less than asked for", INJECT_READ, 0, true},
    {"write: the disk is full", INJECT_WRITE, ENOSPC, false},
    {"write: interrupted", INJECT_WRITE, EINTR, false},
    {"write: less than asked for", INJECT_WRITE, 0, true},
    {"map: no memory", INJECT_MAP, ENOMEM, false},
    {"map: no memory any more", INJECT_MAP, ENOMEM, true},
    {"rename: no permission", INJECT_RENAME, EACCES, false},
    {"look: no permission", INJECT_LOOK, EACCES, false},
    {"change: the disk fails", INJECT_CHANGE, EIO, false},
    {"sync: the disk fails", INJECT_SYNC, EIO, false},
    {"sync: interrupted", INJECT_SYNC, EINTR, false},
    {"talk: interrupted", INJECT_TALK, EINTR, false},
    {"talk: no memory", INJECT_TALK, ENOMEM, false},
    {"start: no more processes", INJECT_SPAWN, EAGAIN, false},
    {"threads: no more than n", INJECT_THREAD, EAGAIN, true},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static char command[4096];

/* --- files --- */

/* What a file holds, NULL when there is none; to be freed. */
static char *contents(const char *path, size_t *n)
{
	struct stat st;
	FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "rb") : NULL;
	if (!f)
		return NULL;
	char *bytes = calloc(st.st_size + 1, 1);
	*n = fread(bytes, 1, st.st_size, f);
	fclose(f);
	return bytes;
}

static bool same_files(const char *a, const char *b)
{
	size_t n = 0, m = 0;
	char *x = contents(a, &n), *y = contents(b, &m);
	bool same = x && y && n == m && memcmp(x, y, n) == 0;
	free(x);
	free(y);
	return same;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool is_output(const struct use *u, const char *name)
{
	for (int i = 0; u->output[i]; i++)
		if (strcmp(u->output[i], name) == 0)
			return true;
	return false;
}

/* Every file of a use is complete or, when it failed, not there; and nothing else is. */
static bool outputs_are_whole(const struct use *u, bool failed)
{
	char path[300], good[300];
	bool whole = true;
	DIR *d = opendir("work");
	for (struct dirent *e; d && (e = readdir(d));)
		whole &= e->d_name[0] == '.' || is_output(u, e->d_name);
	if (d)
		closedir(d);
	for (int i = 0; u->output[i]; i++) {
		snprintf(path, sizeof path, "work/%s", u->output[i]);
		snprintf(good, sizeof good, "good/%s", u->output[i]);
		whole &= exists(path) ? same_files(path, good) : failed;
	}
	return whole;
}

/* A file that is being written has a name that begins so, or ends with what no output ends with. */
static bool nothing_half_kept(void)
{
	bool none = true;
	DIR *d = opendir("cold/images");
	for (struct dirent *e; d && (e = readdir(d));)
		none &= strncmp(e->d_name, ".new-", 5) != 0;
	if (d)
		closedir(d);
	return none;
}

static void clean(void)
{
	if (system("rm -rf work cold && mkdir work") != 0)
		puts("# cannot remove work");
}

/* --- one run --- */

static bool run_use(const struct use *u, const struct inject *f, long n, struct outcome *o)
{
	char *argv[22] = {command};
	for (int i = 0; u->argument[i]; i++)
		argv[i + 1] = (char *)(strcmp(u->argument[i], BACKEND) == 0 ? usual_backend() : u->argument[i]);
	clean();
	return inject_run(f, n, ".ra", argv, "out", "err", o);
}

static bool says_something(void)
{
	size_t n = 0;
	char *text = contents("err", &n);
	bool says = text && (strstr(text, "error") || strstr(text, "espalier"));
	free(text);
	return says;
}

static const char *judge(const struct use *u, const struct inject *f, const struct outcome *o)
{
	if (o->hung)
		return "it hung";
	if (o->signal)
		return "it crashed";
	if (o->status > 1)
		return "it ended with a strange status";
	if (o->status == 1 && !f->error && u->kind == QUICK)
		return "it takes a part of what it asked for as a failure";
	if (o->status == 1 && !says_something())
		return "it failed without a word";
	if (o->status == 0 && u->kind != TIMES && !same_files("out", "good.out"))
		return "it succeeded with another result";
	if (!outputs_are_whole(u, o->status != 0))
		return "a file is half written, or left behind";
	return nothing_half_kept() ? NULL : "the cache has half a file";
}

static void tell(const struct use *u, const struct inject *f, long n, const struct outcome *o,
		 const char *why)
{
	size_t length = 0;
	char *text = contents("err", &length);
	printf("# %s, %s, n = %ld: %s (status %d, signal %d)\n# %.300s\n", u->what, f->what, n, why,
	       o->status, o->signal, text ? text : "");
	free(text);
}

/* --- all of them --- */

enum { MOST_SHOWN = 3 };

/* A model to start from takes the place of nothing. */
static bool replaces_files(const struct use *u)
{
	return u->output[0] && strcmp(u->argument[0], "init") != 0;
}

/* LLVM ends the process when memory is out, and so does a sanitizer whose own is. */
static bool applies(const struct use *u, const struct inject *f)
{
	if (SHADOWED && f->kind == INJECT_MAP)
		return false;
	bool files = f->kind == INJECT_WRITE || f->kind == INJECT_RENAME || f->kind == INJECT_SYNC;
	if (f->kind == INJECT_TALK || f->kind == INJECT_SPAWN)
		return u->kind == APART;
	if (f->kind == INJECT_SYNC && !replaces_files(u))
		return false;
	switch (u->kind) {
	case COMPILES:
		return !(f->kind == INJECT_MAP && f->on);
	case APART:
		return f->kind != INJECT_THREAD;
	case HAS_THREADS:
		return f->kind == INJECT_THREAD;
	case TIMES:
		return files && f->error != EINTR;
	default:
		return f->kind != INJECT_THREAD;
	}
}

/* Of the calls every second is let fail, of compilations, which make many, every eighth; all, with ESPALIER_STRIDE=1. */
static long stride(const struct use *u, const struct inject *f)
{
	const char *told = getenv("ESPALIER_STRIDE");
	int usual = u->kind == APART ? 12 : u->kind == COMPILES ? 8 : 2;
	if (f->kind == INJECT_SYNC)
		return 1;
	return told && atol(told) > 0 ? atol(told) : usual * SAMPLE;
}

/* Of each file its values and its folder are put on the disk; that this failed is always told. */
static bool syncs_all(const struct use *u, const struct inject *f, long runs, long failed)
{
	long outputs = 0;
	while (outputs < 3 && u->output[outputs])
		outputs++;
	return f->kind != INJECT_SYNC ||
	       (runs >= 2 * outputs && failed == (f->error == EINTR ? 0 : runs));
}

/* Returns how often the fault was met; -1 = that cannot be said here. */
static long try_fault(const struct use *u, const struct inject *f)
{
	long n = 0, runs = 0, wrong = 0, failed = 0;
	struct outcome o;
	do {
		if (!run_use(u, f, n, &o)) {
			tap_skip("processes cannot be traced", "%s, %s", u->what, f->what);
			return -1;
		}
		const char *why = judge(u, f, &o);
		if (why && wrong++ < MOST_SHOWN)
			tell(u, f, n, &o, why);
		failed += o.status != 0;
		runs += o.hit;
		n += stride(u, f);
	} while (o.hit);
	tap_ok(!wrong && syncs_all(u, f, runs, failed),
	       "%s, %s: of %ld times %ld are told, in the others the result is right", u->what, f->what, runs,
	       failed);
	return runs;
}

/* The result without a fault. */
static bool make_good(const struct use *u)
{
	static const struct inject none = {"nothing", INJECT_RENAME, EACCES, false};
	struct outcome o;
	if (!run_use(u, &none, 1000000, &o) || o.status != 0 || o.signal) {
		tell(u, &none, 0, &o, "it does not work");
		return false;
	}
	return rename("out", "good.out") == 0 && system("rm -rf good && cp -r work good") == 0;
}

static void test_use(const struct use *u, const char *only)
{
	long met = 0;
	if (!tap_ok(make_good(u), "%s works", u->what))
		return;
	for (int i = 0; i < FAULTS; i++)
		if (applies(u, &faults[i]) && (!only || strstr(faults[i].what, only)))
			met |= try_fault(u, &faults[i]);
	tap_ok(met != 0, "%s meets faults", u->what);
}

/* --- files to run on --- */

static void write_wide(void)
{
	enum { D = 192 };
	static float E[4 * D], W[D * D];
	for (int i = 0; i < 4 * D; i++)
		E[i] = i % 5;
	for (int i = 0; i < D * D; i++)
		W[i] = i % D == i / D;
	write_weights("wide.safetensors", (const struct tensor[]){{"E", 4, D, E}, {"W", D, D, W}}, 2);
	write_text("wide.ra", tiny_model);
	FILE *f = fopen(path_of("many.ptb"), "w");
	for (int i = 0; i < 64; i++)
		fputs("(1 (1 (1 a) (1 b)) (1 (1 c) (1 (1 a) (1 b))))\n", f);
	fclose(f);
}

static bool write_files(void)
{
	make_folder();
	write_text("tiny.ra", tiny_model);
	write_weights("w.safetensors", tiny_weights, 2);
	write_text("words.txt", "a\nb\nc\n<unk>\n");
	write_text("trees.ptb", "(2 (2 a) (2 b))\n(2 (2 (2 a) (2 b)) (2 C))\n(2 zz)\n");
	write_text("trees.json", "{\"children\": [[], [], [0, 1]], \"data\": {\"word\": [0, 1, -1]}}\n");
	write_wide();
	return chdir(folder) == 0;
}

static bool make_references(void)
{
	char line[6000];
	snprintf(
	    line, sizeof line,
	    "mkdir work && '%s' run tiny.ra trees.ptb --weights w.safetensors --vocab words.txt --backend "
	    "interpreter --export ref.safetensors >/dev/null",
	    command);
	return system(line) == 0;
}

/* Keeps a program, and saves one under a name that faults count from; false when there is no compiler. */
static bool warm_up(void)
{
	char line[10000];
	snprintf(line, sizeof line,
		 "'%s' run tiny.ra trees.ptb --weights w.safetensors --vocab words.txt --cache-dir warm "
		 ">/dev/null 2>err && '%s' compile tiny.ra --weights w.safetensors --no-cache --pack -o "
		 "compiled-tiny.ra 2>err",
		 command, command);
	return system(line) == 0;
}

static bool needs_compiler(const struct use *u)
{
	return u->kind == COMPILES || u->kind == APART || u->kind == HAS_THREADS;
}

/* The command itself, not the script that libtool puts before it. */
static void find_command(void)
{
	const char *told = getenv("ESPALIER");
	char path[2000], *slash;
	if (!realpath(told ? told : "./espalier", path))
		strcpy(path, "espalier");
	slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) : 0;
	snprintf(command, sizeof command, "%.*s/.libs/espalier", length, path);
	if (!exists(command)) {
		strcpy(command, path);
		return;
	}
	char libraries[2100];
	snprintf(libraries, sizeof libraries, "%.*s/.libs", length, path);
	setenv("LD_LIBRARY_PATH", libraries, 1);
}

/* With arguments: the uses, and the faults, of these names. */
int main(int argc, char **argv)
{
	find_command();
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the leak checker traces the process itself */
	if (!write_files() || !tap_ok(make_references(), "the command works"))
		return tap_done();
	bool compiler = warm_up();
	for (int i = 0; i < USES; i++)
		if (argc > 1 && !strstr(uses[i].what, argv[1]))
			continue;
		else if (needs_compiler(&uses[i]) && !compiler)
			tap_skip("no back end", "%s", uses[i].what);
		else
			test_use(&uses[i], argc > 2 ? argv[2] : NULL);
	if (chdir("/") == 0) {
		char line[200];
		snprintf(line, sizeof line, "rm -rf '%s'", folder);
		(void)!system(line);
	}
	return tap_done();
}
