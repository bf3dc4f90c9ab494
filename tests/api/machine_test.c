/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The description of this machine: where it comes from, how it is kept, and that what is wrong with it stops
 * nobody. The one test that measures, since it is about that. */
#include "base/checksum.h"
#include "tests/api/support.h"
#include "tests/backends.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

static char weights[100], kept[300]; /* the file of the description */

struct heard {
	atomic_int unusable, damaged, others;
};

static void hear(void *user, const esp_diagnostic *d)
{
	struct heard *h = user;
	atomic_int *count = strcmp(d->id, "cache-unusable") == 0	? &h->unusable
			    : strcmp(d->id, "cache-entry-damaged") == 0 ? &h->damaged
									: &h->others;
	(*count)++;
}

static esp_context *context_of(int machine, const char *folder, struct heard *h)
{
	esp_context *c = NULL;
	esp_context_options o = {
	    .size = sizeof o, .machine = machine, .threads = 2, .cache_dir = folder, .log = hear, .user = h};
	*h = (struct heard){0};
	tap_ok(esp_context_create(&o, &c, NULL) == ESP_OK, "a context");
	return c;
}

/* The text of a context's description, in static memory. */
static const char *describe(int machine, const char *folder, int measure, struct heard *h)
{
	static char text[6000];
	char *copy = NULL;
	esp_context *c = context_of(machine, folder, h);
	text[0] = 0;
	if (esp_context_machine(c, measure, &copy, NULL) == ESP_OK)
		snprintf(text, sizeof text, "%s", copy);
	esp_text_free(copy);
	esp_context_free(c);
	return text;
}

static bool is_from(int machine, const char *folder, const char *source, struct heard *h)
{
	char line[60];
	snprintf(line, sizeof line, "\nsource %s\n", source);
	return strstr(describe(machine, folder, 0, h), line);
}

/* How many files the folder has; the last becomes `kept`. */
static int files_in(const char *folder)
{
	int n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.') {
			n++;
			snprintf(kept, sizeof kept, "%.150s/%.100s", folder, e->d_name);
		}
	if (d)
		closedir(d);
	return n;
}

/* --- texts of the file --- */

static size_t read_kept(char *text, size_t size)
{
	FILE *f = fopen(kept, "r");
	size_t n = f ? fread(text, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	return n;
}

static void write_kept(const char *text)
{
	FILE *f = fopen(kept, "w");
	fputs(text, f);
	fclose(f);
}

/* The text with `other` in place of what is from `word` to the end of the line, and the checksum of that. */
static void write_changed(const char *text, const char *word, const char *other)
{
	char changed[4000];
	const char *at = strstr(text, word), *end = strchr(at, '\n');
	int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, other, end);
	n = strstr(changed, "\nchecksum ") + 1 - changed;
	struct checksum sum = checksum_of(changed, n);
	n += sprintf(changed + n, "checksum ");
	for (size_t i = 0; i < sizeof sum.bytes; i++)
		n += sprintf(changed + n, "%02x", sum.bytes[i]);
	strcpy(changed + n, "\n");
	write_kept(changed);
}

/* --- cases --- */

static bool refuses(const char *folder, const char *why)
{
	struct heard h;
	bool ok = is_from(ESP_MACHINE_KEPT, folder, "system", &h);
	return tap_ok(ok && h.damaged == 1 && !h.others, "%s is ignored, and told", why);
}

static void test_file(const char *folder, const char *machines)
{
	struct heard h;
	char text[4000];
	tap_ok(is_from(ESP_MACHINE_DEFAULTS, folder, "defaults", &h) && !h.damaged && !h.unusable,
	       "the description of a usual machine");
	tap_ok(is_from(ESP_MACHINE_KEPT, folder, "system", &h) && files_in(machines) == 0,
	       "without a file the system is asked, and nothing kept");
	char *own = strdup(describe(ESP_MACHINE_KEPT, folder, 1, &h));
	tap_ok(strstr(own, "source measured") && files_in(machines) == 1 && !h.unusable,
	       "measured on request, and kept");
	struct stat st;
	tap_ok(stat(kept, &st) == 0 && (st.st_mode & 0777) == 0600, "where nobody else can write");
	tap_ok(strcmp(describe(ESP_MACHINE_KEPT, folder, 0, &h), own) == 0, "others read the same");
	tap_ok(is_from(ESP_MACHINE_DEFAULTS, folder, "defaults", &h), "who wants a usual machine does not");
	free(own);
	size_t n = read_kept(text, sizeof text);
	write_changed(text, "peak ", "peak 77 ops/ns");
	tap_ok(strstr(describe(ESP_MACHINE_KEPT, folder, 0, &h), "\npeak 77 ops/ns") && !h.damaged,
	       "a file that says something else is believed");
	write_changed(text, "peak ", "peak 1e30 ops/ns");
	refuses(folder, "a peak that no machine has");
	write_changed(text, "l1_rate ", "");
	refuses(folder, "a file without a number");
	write_changed(text, "identity ", "identity another");
	refuses(folder, "a file of another processor");
	write_changed(text, "espalier machine ", "espalier machine 2");
	tap_ok(is_from(ESP_MACHINE_KEPT, folder, "system", &h) && !h.damaged && !h.others,
	       "a file of another version is ignored, and no damage");
	tap_ok(strstr(describe(ESP_MACHINE_MEASURED, folder, 0, &h), "source system") && !h.damaged,
	       "also where the machine may be measured");
	write_changed(text, "espalier machine ", "espalier gadget");
	refuses(folder, "a file that is no description");
	char damaged[4000];
	strcpy(damaged, text);
	damaged[n / 2] ^= 1;
	write_kept(damaged);
	refuses(folder, "a file of which a bit was changed");
	strcpy(damaged, text);
	damaged[n - 20] = 0;
	write_kept(damaged);
	refuses(folder, "a file that was cut off");
	write_kept("");
	refuses(folder, "an empty file");
	chmod(kept, 0666);
	refuses(folder, "a file that others can write");
	chmod(kept, 0600);
	write_kept(text);
	tap_ok(is_from(ESP_MACHINE_KEPT, folder, "measured", &h) && !h.damaged,
	       "the file as it was is read again");
}

/* Whether the machine is measured, though that cannot be kept. Where other programs take the processors away for long, numbers may
 * come out that no machine has, which are not used: then it is measured again. */
static bool measures_unkept(const char *folder)
{
	struct heard h;
	bool measured = false;
	for (int i = 0; i < 4 && !measured; i++)
		measured = strstr(describe(ESP_MACHINE_KEPT, folder, 1, &h), "source measured");
	return measured && h.unusable == 1;
}

static void test_folder(const char *folder, const char *machines)
{
	struct heard h;
	chmod(machines, 0755);
	tap_ok(is_from(ESP_MACHINE_KEPT, folder, "system", &h) && h.unusable == 1,
	       "a folder that others look into is not used, and told");
	tap_ok(measures_unkept(folder), "what is measured is told where it cannot be kept");
	chmod(machines, 0700);
	tap_ok(is_from(ESP_MACHINE_KEPT, path_of("w.safetensors"), "system", &h),
	       "nor is a file in place of a folder");
}

/* A program of the tiny model, compiled for this machine. */
static bool compiles(const char *folder, char *times, size_t size)
{
	struct heard h;
	struct kit k = {.context = context_of(ESP_MACHINE_MEASURED, folder, &h)};
	char *text = NULL;
	bool ok =
	    esp_model_parse(k.context, "m.ra", tiny_model, strlen(tiny_model), &k.model, NULL) == ESP_OK &&
	    esp_weights_open(k.context, weights, &k.weights, NULL) == ESP_OK &&
	    esp_program_create(k.model, k.weights, NULL, &k.program, NULL) == ESP_OK &&
	    esp_program_prepare(k.program, NULL) == ESP_OK &&
	    esp_program_times(k.program, &text, NULL) == ESP_OK;
	snprintf(times, size, "%s", ok ? text : "");
	esp_text_free(text);
	free_kit(&k);
	return ok && !h.damaged && !h.unusable;
}

static bool was_found(const char *times)
{
	return strstr(times, "find") && !strstr(times, "lower");
}

static void test_programs(const char *folder, const char *machines)
{
	char times[6000], text[4000], again[4000];
	struct stat before, after;
	unlink(kept);
	tap_ok(compiles(folder, times, sizeof times) && !was_found(times) && files_in(machines) == 1,
	       "the first program has the machine measured");
	size_t n = read_kept(text, sizeof text);
	tap_ok(stat(kept, &before) == 0 && compiles(folder, times, sizeof times) && was_found(times),
	       "the second start finds the program");
	tap_ok(stat(kept, &after) == 0 && before.st_ino == after.st_ino &&
		   before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
		   before.st_mtim.tv_nsec == after.st_mtim.tv_nsec && files_in(machines) == 1,
	       "and leaves the description alone");
	write_changed(text, "peak ", "peak 77 ops/ns");
	tap_ok(compiles(folder, times, sizeof times) && !was_found(times),
	       "a machine that is another has programs of its own");
	read_kept(again, sizeof again);
	tap_ok(strstr(again, "\npeak 77 ops/ns") && strlen(again) <= n + 10,
	       "what is kept is not measured again");
	write_kept(text);
	tap_ok(compiles(folder, times, sizeof times) && was_found(times), "the one before has its own still");
}

static void test_arguments(void)
{
	esp_context *c = NULL;
	esp_error *error = NULL;
	esp_context_options o = {.size = sizeof o, .machine = 3};
	tap_ok(esp_context_create(&o, &c, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "a source that does not exist is refused");
	setenv("ESPALIER_MACHINE", "bogus", 1);
	tap_ok(esp_context_create(NULL, &c, &error) == ESP_ERROR_ARGUMENT && !c &&
		   error_is(error, "bad-argument"),
	       "in the environment, too");
	o.machine = ESP_MACHINE_DEFAULTS;
	tap_ok(esp_context_create(&o, &c, NULL) == ESP_OK, "which nobody reads when the options decide");
	esp_context_free(c);
	unsetenv("ESPALIER_MACHINE");
	size_t i = 0;
	while (esp_target(i))
		i++;
	tap_ok(i > 1 && strcmp(esp_target(0), "native") == 0 && !esp_target(i + 1) && !esp_target((size_t)-1),
	       "targets have names, this machine first");
}

int main(void)
{
	char folder[100], machines[100];
	unsetenv("ESPALIER_MACHINE");
	make_folder();
	strcpy(weights, write_weights("w.safetensors", tiny_weights, 2));
	strcpy(folder, path_of("cache"));
	strcpy(machines, path_of("cache/machines"));
	test_arguments();
	test_file(folder, machines);
	test_folder(folder, machines);
	if (need_backend("programs for a machine"))
		test_programs(folder, machines);
	char command[200];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		printf("# %s failed\n", command);
	unlink(weights);
	rmdir(path_of(""));
	return tap_done();
}
