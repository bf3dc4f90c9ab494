/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs that are kept: found without a compiler, not found when anything is another, and never a reason to
 * fail.  What their keys depend on: cache_keys_test.c. */
#include "compile/cache.h"
#include "image/image_file.h"
#include "tests/api/support.h"
#include "tests/backends.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char weights[100];
static char images[100];				    /* the folder of the cache that most tests use */

static const char other_model[] =
    EMBEDDED("other", "tree(left, right)") "    h = W @ left.h - right.h\noutput difference = h at root\n";

/* --- the folder --- */

static int files_there(char *name)
{
	int n = 0;
	DIR *d = opendir(images);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.') {
			n++;
			sprintf(name, "%s/%.40s", images, e->d_name);
		}
	if (d)
		closedir(d);
	return n;
}

static void empty_folder(void)
{
	char name[200];
	while (files_there(name))
		unlink(name);
}

/* --- a program through the public interface --- */

struct heard {
	atomic_int count[2]; /* cache-unusable, cache-entry-damaged */
	atomic_int others;
	char message[300];
};

static void hear(void *user, const esp_diagnostic *d)
{
	struct heard *h = user;
	if (strcmp(d->id, "cache-unusable") == 0)
		h->count[0]++;
	else if (strcmp(d->id, "cache-entry-damaged") == 0)
		h->count[1]++;
	else
		h->others++;
	snprintf(h->message, sizeof h->message, "%s", d->message);
}

struct use {
	const char *model, *folder, *schedule;
	const char *target, *backend;
	int cache;
	uint64_t limit;
	struct account *account;
	struct heard *heard;
};

static void *account_of(void *user, void *p, size_t old_size, size_t new_size)
{
	return account_resize(((struct use *)user)->account, p, old_size, new_size);
}

static void hear_use(void *user, const esp_diagnostic *d)
{
	hear(((struct use *)user)->heard, d);
}

static esp_status make_program(struct kit *k, struct use *u, esp_error **error)
{
	esp_status s;
	const char *model = u->model ? u->model : tiny_model;
	esp_context_options o = {.size = sizeof o,
				 .resize = u->account ? account_of : NULL,
				 .log = u->heard ? hear_use : NULL,
				 .user = u,
				 .cache = u->cache,
				 .cache_dir = u->folder,
				 .cache_limit = u->limit};
	esp_program_options p = {
	    .size = sizeof p, .target = u->target, .backend = u->backend, .schedule = u->schedule};
	memset(k, 0, sizeof *k);
	if ((s = esp_context_create(&o, &k->context, error)) ||
	    (s = esp_model_parse(k->context, "m.ra", model, strlen(model), &k->model, error)) ||
	    (s = esp_weights_open(k->context, weights, &k->weights, error)) ||
	    (s = esp_program_create(k->model, k->weights, &p, &k->program, error)))
		return s;
	return esp_binding_create(k->program, k->weights, &k->binding, error);
}

static esp_status run_program(struct kit *k, struct use *u, esp_error **error)
{
	esp_status s = make_program(k, u, error);
	if (s || (s = esp_forest_create(k->program, &k->forest, error)) ||
	    (s = esp_session_create(k->binding, &k->session, error)) ||
	    (s = esp_forest_add(k->forest, &pair, error)))
		return s;
	return esp_session_run(k->session, k->forest, error);
}

/* Whether a program is made, runs, and gives what it should. */
static bool works(struct use *u)
{
	struct kit k;
	esp_error *error = NULL;
	bool ok = run_program(&k, u, &error) == ESP_OK;
	if (!ok)
		printf("# %s", esp_error_text(error));
	const float *row = ok ? esp_session_root(k.session, 0, 0) : NULL;
	ok = row && (u->model ? row[0] == -1 && row[1] == -3 : row[0] == 10 && row[1] == 10);
	esp_error_free(error);
	free_kit(&k);
	return ok;
}

/* In a process of its own, so that this one stays without a compiler. */
static bool works_elsewhere(struct use *u)
{
	int status = 0;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(!works(u));
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_mapped(const char *what)
{
	char line[600];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "r");
	while (f && fgets(line, sizeof line, f))
		found |= strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return found;
}

static bool has_compiler_mapped(void)
{
	char name[60];
	bool found = is_mapped("libLLVM") || is_mapped("libgccjit");
	for (int i = 0; jit_backend_name(i); i++) {
		snprintf(name, sizeof name, "/espalier-%s.so", jit_backend_name(i));
		found |= is_mapped(name);
	}
	return found;
}

/* --- what it is for --- */

static void test_warm(const char *backend)
{
	struct heard heard = {0};
	struct use u = {.folder = folder, .heard = &heard, .backend = backend};
	struct stat before, after;
	char name[200];
	empty_folder();
	tap_ok(works_elsewhere(&u) && files_there(name) == 1, "a program that %s compiled is kept", backend);
	stat(name, &before);
	tap_ok(works(&u), "another process finds it, and gets the same results");
	tap_ok(!has_compiler_mapped(), "without loading a compiler");
	stat(name, &after);
	tap_ok(before.st_ino == after.st_ino && files_there(name) == 1, "and keeps nothing anew");
	tap_ok(!heard.count[0] && !heard.count[1] && !heard.others, "all of which needs no comment");
}

/* What a program tells of itself, as one text. */
static void tell(const esp_program *p, char *text, size_t size)
{
	int64_t value;
	FILE *f = fmemopen(text, size, "w");
	for (size_t i = 0; esp_program_size(p, i, &value); i++)
		fprintf(f, "%s=%lld ", esp_program_size(p, i, NULL), (long long)value);
	for (size_t i = 0; i < esp_program_inputs(p); i++) {
		const esp_input *in = esp_program_input(p, i);
		fprintf(f, "%s %d %zu %zu, ", in->name, in->is_token, in->elements, in->rank);
	}
	for (size_t i = 0; i < esp_program_outputs(p); i++) {
		const esp_output *o = esp_program_output(p, i);
		fprintf(f, "%s %zu %zu %zu %d, ", o->name, o->elements, o->rank, o->rank ? o->shape[0] : 0,
			o->at_root);
	}
	fclose(f);
}

static void test_interface(void)
{
	struct use found = {.folder = folder}, compiled = {.folder = folder, .cache = ESP_CACHE_OFF};
	struct kit k, l;
	char a[500] = "", b[500] = "", *text = NULL;
	tap_ok(make_program(&k, &found, NULL) == ESP_OK && make_program(&l, &compiled, NULL) == ESP_OK,
	       "a program that was found beside one that was compiled");
	tell(k.program, a, sizeof a);
	tell(l.program, b, sizeof b);
	tap_ok(strlen(a) > 30 && strcmp(a, b) == 0, "they tell the same of themselves: %s", a);
	tap_ok(esp_program_dump(k.program, "sched", &text, NULL) == ESP_OK && text && *text,
	       "one that was found can be dumped");
	esp_text_free(text);
	free_kit(&k);
	free_kit(&l);
}

static void test_not_kept(void)
{
	char name[200];
	struct use off = {.folder = folder, .cache = ESP_CACHE_OFF},
		   slow = {.folder = folder, .backend = "interpreter"};
	empty_folder();
	tap_ok(works(&off) && !files_there(name), "nothing is kept when the cache is off");
	tap_ok(works(&slow) && !files_there(name), "programs that are interpreted are not kept");
}

/* --- damage --- */

static void shorten(const char *name)
{
	if (truncate(name, 200) != 0)
		puts("# cannot truncate");
}

static void flip(const char *name)
{
	int fd = open(name, O_RDWR);
	char c = 0;
	if (pread(fd, &c, 1, 3000) != 1 || (c ^= 4, pwrite(fd, &c, 1, 3000)) != 1)
		puts("# cannot flip");
	close(fd);
}

static void open_up(const char *name)
{
	chmod(name, 0666);
}

static void make_link(const char *name)
{
	unlink(name);
	if (symlink("/etc/passwd", name) != 0)
		puts("# cannot link");
}

static void make_empty(const char *name)
{
	if (truncate(name, 0) != 0)
		puts("# cannot truncate");
}

static const struct {
	const char *what;
	void (*damage)(const char *name);
	const char *says;
} damages[] = {
    {"a file that was cut off", shorten, "not as long"},
    {"a file with a wrong bit", flip, "checksum"},
    {"a file that others can write", open_up, "others can write"},
    {"a link", make_link, "link"},
    {"an empty file", make_empty, "shorter"},
};

static void test_damage(void)
{
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		struct heard heard = {0};
		struct use u = {.folder = folder, .heard = &heard};
		struct stat st;
		char name[200];
		empty_folder();
		works_elsewhere(&u);
		if (!tap_ok(files_there(name) == 1, "a program to be replaced by %s", damages[i].what))
			continue;
		damages[i].damage(name);
		tap_ok(works(&u) && heard.count[1] == 1 && !heard.count[0] &&
			   strstr(heard.message, damages[i].says),
		       "%s: told as cache-entry-damaged, the model is compiled", damages[i].what);
		tap_ok(lstat(name, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 077) && works(&u) &&
			   heard.count[1] == 1,
		       "%s: the file is replaced", damages[i].what);
	}
}

/* A file that was given the name of another. */
static void test_foreign(void)
{
	struct heard heard = {0};
	struct use u = {.folder = folder, .heard = &heard}, other = {.folder = folder, .model = other_model};
	char mine[200], theirs[200];
	empty_folder();
	works_elsewhere(&u);
	files_there(mine);
	rename(mine, path_of("aside"));
	works_elsewhere(&other);
	files_there(theirs);
	rename(theirs, mine);
	tap_ok(works(&u) && heard.count[1] == 1 && strstr(heard.message, "another program"),
	       "a program under the name of another is not run");
	unlink(path_of("aside"));
}

/* --- folders --- */

enum { OTHER = 65534 };

static void test_folder(void)
{
	struct heard heard = {0};
	struct use u = {.folder = folder, .heard = &heard};
	struct kit k;
	char name[200];
	empty_folder();
	chmod(images, 0755);
	tap_ok(works(&u) && heard.count[0] == 1 && strstr(heard.message, "others have access") &&
		   !files_there(name),
	       "a folder that others can look into is told as cache-unusable, and not used");
	chmod(images, 0700);
	memset(&heard, 0, sizeof heard);
	u.folder = "/proc/none";
	tap_ok(make_program(&k, &u, NULL) == ESP_OK && esp_program_prepare(k.program, NULL) == ESP_OK &&
		   heard.count[0] == 1,
	       "a folder that cannot be made is told");
	esp_program *again = NULL;
	esp_program_options p = {.size = sizeof p, .at = ESP_AT_EVERY_NODE};
	tap_ok(esp_program_create(k.model, k.weights, &p, &again, NULL) == ESP_OK &&
		   esp_program_prepare(again, NULL) == ESP_OK && heard.count[0] == 1,
	       "once in a context");
	esp_program_free(again);
	free_kit(&k);
	u.heard = NULL;
	tap_ok(works(&u), "nobody need listen");
}

/* Such as /tmp/espalier, made by whoever came first. */
static void test_foreign_folder(void)
{
	const char *what = "below a folder of another user nothing is kept, and nothing found";
	struct heard heard = {0};
	const char *theirs = path_of("theirs"), *below = path_of("theirs/images");
	struct use u = {.folder = theirs, .heard = &heard};
	if (geteuid() != 0) {
		tap_skip("not root", "%s", what);
		return;
	}
	mkdir(theirs, 0777);
	bool ready = works_elsewhere(&u) && access(below, F_OK) == 0 && chown(theirs, OTHER, -1) == 0;
	tap_ok(ready && works(&u) && heard.count[0] == 1 && strstr(heard.message, "belongs to user") &&
		   !heard.count[1] && !heard.others,
	       "%s", what);
	char command[200];
	snprintf(command, sizeof command, "rm -rf '%s'", theirs);
	if (system(command) != 0)
		puts("# something is left");
}

/* Code is a copy: whoever writes to the file of a program that runs changes nothing. */
static void test_in_use(void)
{
	struct use u = {.folder = folder};
	struct kit k;
	char name[200];
	empty_folder();
	works_elsewhere(&u);
	bool ok = run_program(&k, &u, NULL) == ESP_OK && files_there(name) == 1 && !is_mapped(name);
	make_empty(name);
	ok = ok && esp_session_run(k.session, k.forest, NULL) == ESP_OK;
	const float *row = ok ? esp_session_root(k.session, 0, 0) : NULL;
	tap_ok(row && row[0] == 10 && row[1] == 10,
	       "a file that is changed while its program is used changes nothing");
	free_kit(&k);
}

static bool kept_in(const char *name)
{
	char path[300];
	struct use u = {0};
	struct stat st;
	snprintf(path, sizeof path, "%s/%s/espalier/images", folder, name);
	bool ok = works_elsewhere(&u) && stat(path, &st) == 0 && (st.st_mode & 0777) == 0700;
	char command[400];
	snprintf(command, sizeof command, "rm -rf '%s/%s'", folder, name);
	return system(command) == 0 && ok;
}

static void test_environment(void)
{
	setenv("XDG_CACHE_HOME", path_of("xdg"), 1);
	setenv("HOME", path_of("home"), 1);
	tap_ok(kept_in("xdg"), "programs are kept below XDG_CACHE_HOME");
	setenv("XDG_CACHE_HOME", "xdg", 1);
	tap_ok(kept_in("home/.cache"), "or in ~/.cache, when that is not absolute");
	unsetenv("XDG_CACHE_HOME");
	tap_ok(kept_in("home/.cache"), "or is not set");
	unsetenv("HOME");
	struct heard heard = {0};
	struct use u = {.heard = &heard};
	tap_ok(works(&u) && !heard.count[0], "and nowhere, silently, without either");
	rmdir(path_of("home"));
}

static void test_limit(void)
{
	struct use u = {.folder = folder}, other = {.folder = folder, .model = other_model};
	struct stat st;
	char mine[200], name[200];
	empty_folder();
	works(&u);
	files_there(mine);
	stat(mine, &st);
	other.limit = st.st_size + st.st_size / 2;
	tap_ok(works(&other) && files_there(name) == 1 && strcmp(name, mine) != 0,
	       "the program that was not used for longest goes when the limit is reached");
	other.limit = 10;
	empty_folder();
	tap_ok(works(&other) && !files_there(name), "a program above the limit is not kept");
}

/* --- a compiler that was changed --- */

static void test_tools(void)
{
	struct arena a;
	struct diags notices;
	jmp_buf escape;
	struct cache cache = {.folder = folder};
	struct stat st;
	const char *file = write_text("compiler", "one");
	stat(file, &st);
	struct image_tool tool = {file, st.st_size,
				  st.st_mtim.tv_sec * (int64_t)1000000000 + st.st_mtim.tv_nsec};
	struct image image = {.name = "m",
			      .key = "k",
			      .target = "generic",
			      .extensions = "",
			      .tools = 1,
			      .tool = &tool,
			      .blob = {.alignment = 1}},
		     found;
	arena_init(&a, &allocator_default);
	diags_init(&notices, &allocator_default);
	if (arena_guard(&a, &escape))
		return;
	cache_keep(&cache, &allocator_default, &image, &notices);
	tap_ok(cache_find(&cache, &a, "k", &found, &notices) && strcmp(found.name, "m") == 0,
	       "an image is found");
	tap_ok(!cache_find(&cache, &a, "l", &found, &notices), "not by another key");
	write_text("compiler", "two!");
	tap_ok(!cache_find(&cache, &a, "k", &found, &notices), "nor when the compiler has changed");
	unlink(file);
	tap_ok(!cache_find(&cache, &a, "k", &found, &notices), "or is gone");
	tap_ok(notices.n == 0, "which is no news");
	diags_free(&notices);
	arena_free(&a);
}

/* --- a process with more rights than its caller --- */

enum { CALLER = 1, OWNER = 2, OUT_OF_REACH = 127 };

/* The whole of this program when it is started for that: 0 = it kept an image. */
static int keep_one(const char *where)
{
	struct diags notices;
	struct cache cache = {.folder = where};
	struct image image = {
	    .name = "m", .key = "k", .target = "generic", .extensions = "", .blob = {.alignment = 1}};
	diags_init(&notices, &allocator_default);
	cache_keep(&cache, &allocator_default, &image, &notices);
	diags_free(&notices);
	char name[200];
	snprintf(name, sizeof name, "%s/images", where);
	return access(name, F_OK) != 0;
}

/* Starts a copy of this program as another user; with `mode` 04755 it has the rights of its owner. */
static int start_copy(const char *program, mode_t mode, const char *where)
{
	int status = 0;
	if (chmod(program, mode) != 0)
		return -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		if (setgid(CALLER) == 0 && setuid(CALLER) == 0)
			execl(program, program, "keep", where, NULL);
		_exit(2);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_rights(void)
{
	const char *what = "a process with more rights than its caller has no cache";
	const char *program = path_of("program"), *where = path_of("open");
	char command[600];
	snprintf(command, sizeof command, "cp /proc/%ld/exe '%s' && mkdir -m 1777 '%s' && chmod 1777 '%s'",
		 (long)getpid(), program, where, where);
	bool ready = geteuid() == 0 && system(command) == 0 && chmod(folder, 0711) == 0 &&
		     chown(program, OWNER, -1) == 0;
	int plain = ready ? start_copy(program, 0755, where) : OUT_OF_REACH;
	if (plain == 2 || plain == OUT_OF_REACH) {
		tap_skip("not root, or the program or a library is out of reach", "%s", what);
	} else if (tap_ok(plain == 0, "a process with the rights of its caller has one")) {
		snprintf(command, sizeof command, "rm -rf '%s/images'", where);
		tap_ok(system(command) == 0 && start_copy(program, 04755, where) == 1, "%s", what);
	}
	chmod(folder, 0700);
	snprintf(command, sizeof command, "rm -rf '%s' '%s'", program, where);
	if (system(command) != 0)
		puts("# something is left");
}

/* --- many at once, and without memory --- */

static void *work(void *u)
{
	return works(u) ? u : NULL;
}

static void test_threads(void)
{
	enum { THREADS = 6 };
	pthread_t thread[THREADS];
	struct use u = {.folder = folder};
	char name[200];
	bool ok = true;
	empty_folder();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, &u);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(thread[i], &result);
		ok &= result != NULL;
	}
	tap_ok(ok && files_there(name) == 1, "threads that miss at once all succeed");
}

static void test_memory(void)
{
	struct use u = {.folder = folder};
	bool memory = true, kept = true;
	esp_status s = ESP_ERROR_MEMORY;
	long n = 0;
	works(&u);
	for (; s && n < 10000; n++) {
		struct account a = {.left = n};
		struct kit k;
		u.account = &a;
		s = run_program(&k, &u, NULL);
		memory &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		free_kit(&k);
		kept &= a.blocks == 0 && a.bytes == 0 && !a.wrong;
	}
	tap_ok(s == ESP_OK && memory, "memory that runs out on the way is told, at any of %ld requests", n);
	tap_ok(kept, "and nothing is lost");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "keep") == 0)
		_exit(keep_one(argv[2])); /* no leak checker can look at what has borrowed rights */
	if (!need_backend("the cache"))
		return tap_done();
	make_folder();
	snprintf(weights, sizeof weights, "%s", write_weights("w.safetensors", tiny_weights, 2));
	snprintf(images, sizeof images, "%s/images", folder);
	for (int i = 0; backend_at(i); i++)
		test_warm(backend_at(i));
	skip_backends();
	test_interface();
	test_not_kept();
	test_damage();
	test_foreign();
	test_folder();
	test_foreign_folder();
	test_in_use();
	test_limit();
	test_tools();
	test_rights();
	test_threads();
	test_memory();
	test_environment();
	empty_folder();
	rmdir(images);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
