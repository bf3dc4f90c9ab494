/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The store: what was put there is found again; a folder or a file that others can touch is not used;
 * whatever goes wrong leaves nothing behind. */
#include "io/store.h"
#include "tests/io/files.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

enum { LIMIT = 1 << 20, NOBODY = 65534 };

static const char *path; /* of the store */

static struct checksum key_of(int i)
{
	return checksum_of(&i, sizeof i);
}

static const char *file_of(int key)
{
	struct checksum k = key_of(key);
	struct str s = str_in(&arena);
	str_printf(&s, "%s/", path);
	for (size_t i = 0; i < sizeof k.bytes; i++)
		str_printf(&s, "%02x", k.bytes[i]);
	return str_text(&s);
}

static enum io_store_status put(int key, const void *bytes, size_t n)
{
	struct io_store s;
	struct checksum k = key_of(key);
	enum io_store_status status = io_store_open(&s, path, true);
	if (status == IO_STORE_OK)
		status = io_store_write(&s, &k, bytes, n);
	io_store_close(&s);
	return status;
}

/* `problem` is part of what is said when it fails. */
static enum io_store_status get(int key, void **bytes, size_t *n, const char *problem)
{
	struct io_store s;
	struct checksum k = key_of(key);
	enum io_store_status status = io_store_open(&s, path, false);
	if (status == IO_STORE_OK)
		status = io_store_read(&s, &arena, &k, LIMIT, bytes, n);
	io_store_close(&s);
	if (problem && !strstr(s.problem, problem)) {
		printf("# status %d, said '%s'\n", status, s.problem);
		return IO_STORE_OK;
	}
	return status;
}

static bool holds(int key, const void *bytes, size_t n)
{
	void *found;
	size_t length;
	return get(key, &found, &length, NULL) == IO_STORE_OK && length == n && memcmp(found, bytes, n) == 0;
}

static mode_t mode_of(const char *name)
{
	struct stat st;
	return stat(name, &st) == 0 ? st.st_mode & 07777 : 0;
}

static int files_in(const char *name)
{
	int n = 0;
	DIR *d = opendir(name);
	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return n;
}

static void empty(const char *name)
{
	DIR *d = opendir(name);
	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

/* --- what it is for --- */

static void test_round_trip(void)
{
	void *bytes;
	size_t n;
	umask(0);
	tap_ok(get(1, &bytes, &n, NULL) == IO_STORE_ABSENT && mode_of(path) == 0,
	       "looking for a file makes no folder");
	tap_ok(put(1, "one", 3) == IO_STORE_OK && holds(1, "one", 3), "what was put there is found");
	tap_ok(mode_of(path) == 0700 && mode_of(path_of("a")) == 0700, "folders that were made are private");
	tap_ok(mode_of(file_of(1)) == 0600, "and so are files");
	tap_ok(put(1, "two", 3) == IO_STORE_OK && holds(1, "two", 3), "a file can be replaced");
	tap_ok(put(2, "", 0) == IO_STORE_OK && holds(2, "", 0), "a file may be empty");
	tap_ok(get(3, &bytes, &n, NULL) == IO_STORE_ABSENT, "what was not put there is not found");
	tap_ok(files_in(path) == 2, "nothing else is left in the folder");
	umask(022);
}

/* --- folders --- */

static bool refuses(const char *problem)
{
	void *bytes;
	size_t n;
	return get(1, &bytes, &n, problem) == IO_STORE_REFUSED && put(1, "x", 1) == IO_STORE_REFUSED;
}

static void test_modes(void)
{
	static const mode_t modes[] = {0755, 0750, 0701, 0720, 01777};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		chmod(path, modes[i]);
		tap_ok(refuses("others have access"), "a folder of mode %04o is not used",
		       (unsigned)modes[i]);
	}
	chmod(path, 0700);
	tap_ok(holds(1, "two", 3), "it is used again when it is private again");
}

static void test_owner(void)
{
	if (geteuid() != 0 || chown(path, NOBODY, -1) != 0) {
		tap_skip("not root", "a folder of another user is not used");
		tap_skip("not root", "a file of another user is not used");
		return;
	}
	tap_ok(refuses("belongs to user"), "a folder of another user is not used");
	chown(path, 0, -1);
	void *bytes;
	size_t n;
	chown(file_of(1), NOBODY, -1);
	tap_ok(get(1, &bytes, &n, "others can write") == IO_STORE_DAMAGED,
	       "a file of another user is not used");
	chown(file_of(1), 0, -1);
}

static void test_links(void)
{
	const char *real = path;
	path = path_of("link");
	if (symlink(real, path) != 0)
		puts("# no link");
	tap_ok(refuses("it cannot be opened"), "a link to a folder is not used");
	unlink(path);
	path = write_file("plain", "x", 1);
	tap_ok(refuses("it cannot be opened"), "a file is no folder");
	path = path_of("plain/below");
	tap_ok(refuses("it cannot be opened"), "and nothing can be made below it");
	unlink(path_of("plain"));
	path = "/proc/none/images";
	tap_ok(put(1, "x", 1) == IO_STORE_REFUSED, "a folder that cannot be made is told");
	path = real;
}

/* --- the path to the folder --- */

static bool used(void)
{
	return holds(1, "two", 3);
}

static void test_path_modes(void)
{
	const char *above = path_of("a");
	chmod(above, 0777);
	tap_ok(refuses("others can write in 'a'"), "a folder below one that others can write is not used");
	chmod(above, 01777);
	tap_ok(used(), "unless its sticky bit keeps what is not theirs");
	chmod(above, 0755);
	tap_ok(used(), "others may look into what is above");
	chmod(above, 0770);
	if (chown(above, -1, geteuid()) == 0)
		tap_ok(used(), "a group of the owner alone may write there");
	else
		tap_skip("there is no such group", "a group of the owner alone may write there");
	if (geteuid() == 0 && chown(above, -1, NOBODY) == 0)
		tap_ok(refuses("others can write in 'a'"), "but no other group");
	else
		tap_skip("not root", "but no other group");
	if (geteuid() == 0)
		chown(above, -1, 0);
	chmod(above, 0700);
}

static void test_path_owner(void)
{
	const char *what = "nor one below a folder of another user, and nothing is made there";
	if (geteuid() != 0) {
		tap_skip("not root", "%s", what);
		return;
	}
	const char *real = path;
	mkdir(path_of("theirs"), 0755);
	chown(path_of("theirs"), NOBODY, -1);
	path = path_of("theirs/images");
	tap_ok(put(1, "x", 1) == IO_STORE_REFUSED && files_in(path_of("theirs")) == 0, "%s", what);
	mkdir(path, 0700);
	tap_ok(refuses("'theirs' on the path to it belongs to user"), "not even the user's own");
	rmdir(path);
	rmdir(path_of("theirs"));
	path = real;
}

static void test_path_links(void)
{
	const char *real = path, *link = path_of("way"), *loop = path_of("loop");
	if (symlink("a", link) != 0 || symlink("loop", loop) != 0)
		puts("# no link");
	path = path_of("way/images");
	tap_ok(used(), "a link of the user's on the path is followed");
	if (geteuid() == 0 && lchown(link, NOBODY, -1) == 0)
		tap_ok(refuses("'way' on the path to it belongs to user"), "one of another user is not");
	else
		tap_skip("not root", "one of another user is not");
	unlink(link);
	if (symlink(path_of("a/../a/."), link) != 0)
		puts("# no link");
	tap_ok(used(), "a link may begin at the root, and go up");
	path = path_of("loop/images");
	tap_ok(refuses("it cannot be opened"), "links in a circle end");
	unlink(link);
	unlink(loop);
	path = real;
}

static void test_path_relative(void)
{
	const char *real = path;
	char here[4096];
	bool moved = getcwd(here, sizeof here) && chdir(folder) == 0;
	path = "a/images";
	tap_ok(moved && used(), "a path may begin where the process is");
	chmod(folder, 0777);
	tap_ok(refuses("others can write"), "when others cannot write there");
	chmod(folder, 0700);
	moved = chdir(here) == 0;
	path = real;
}

/* Whoever exchanges the folder after it was opened exchanges nothing. */
static void test_path_exchange(void)
{
	struct io_store s;
	struct checksum k = key_of(1);
	void *bytes;
	size_t n;
	bool opened = io_store_open(&s, path, false) == IO_STORE_OK;
	const char *aside = path_of("a/aside");
	rename(path, aside);
	put(1, "theirs", 6);
	tap_ok(opened && io_store_read(&s, &arena, &k, LIMIT, &bytes, &n) == IO_STORE_OK && n == 3 &&
		   memcmp(bytes, "two", 3) == 0,
	       "a folder that is exchanged after it was opened is the one that was looked at");
	tap_ok(io_store_write(&s, &k, "two", 3) == IO_STORE_OK && holds(1, "theirs", 6),
	       "and the one that is written to");
	io_store_close(&s);
	empty(path);
	rmdir(path);
	rename(aside, path);
}

/* --- what a mode does not say --- */

/* The list that setfacl would write, for one user more. */
static bool let_in(const char *name, const char *list, unsigned user)
{
	enum { OWNER = 1, USER = 2, GROUP = 4, MASK = 16, OTHER = 32, ALL = 7 };
	static const uint32_t version = 2, nobody = UINT32_MAX;
	struct {
		uint16_t tag, rights;
		uint32_t id;
	} entries[] = {{OWNER, ALL, nobody},
		       {USER, ALL, user},
		       {GROUP, 0, nobody},
		       {MASK, ALL, nobody},
		       {OTHER, 0, nobody}};
	char value[sizeof version + sizeof entries];
	memcpy(value, &version, sizeof version);
	memcpy(value + sizeof version, entries, sizeof entries);
	return setxattr(name, list, value, sizeof value, 0) == 0;
}

static void test_lists(void)
{
	void *bytes;
	size_t n;
	if (!let_in(path, "system.posix_acl_access", NOBODY)) {
		tap_skip("no access control lists", "a folder whose list lets another user in is not used");
		return;
	}
	tap_ok(refuses("others have access"), "a folder whose list lets another user in is not used");
	removexattr(path, "system.posix_acl_access");
	chmod(path, 0700);
	let_in(file_of(1), "system.posix_acl_access", NOBODY);
	tap_ok(get(1, &bytes, &n, "others can write") == IO_STORE_DAMAGED, "nor is such a file");
	removexattr(file_of(1), "system.posix_acl_access");
	chmod(file_of(1), 0600);
	let_in(path, "system.posix_acl_default", NOBODY);
	tap_ok(put(9, "nine", 4) == IO_STORE_OK && (mode_of(file_of(9)) & 077) == 0 && holds(9, "nine", 4),
	       "what a folder gives to its files does not open them");
	removexattr(path, "system.posix_acl_default");
	unlink(file_of(9));
}

/* --- files --- */

static void test_files(void)
{
	void *bytes;
	size_t n;
	chmod(file_of(1), 0620);
	tap_ok(get(1, &bytes, &n, "others can write") == IO_STORE_DAMAGED,
	       "a file that a group can write is not used");
	chmod(file_of(1), 0602);
	tap_ok(get(1, &bytes, &n, "others can write") == IO_STORE_DAMAGED, "nor one that all can write");
	chmod(file_of(1), 0600);
	if (symlink(file_of(1), file_of(5)) != 0 || mkfifo(file_of(6), 0600) != 0 ||
	    mkdir(file_of(7), 0700) != 0)
		puts("# no link, pipe or folder");
	tap_ok(get(5, &bytes, &n, "a link") == IO_STORE_DAMAGED, "a link to a file is not used");
	tap_ok(get(6, &bytes, &n, "regular") == IO_STORE_DAMAGED, "a pipe is not waited for");
	tap_ok(get(7, &bytes, &n, "regular") == IO_STORE_DAMAGED, "a folder is not read");
	rmdir(file_of(7));
	if (link(file_of(1), path_of("a/other")) != 0)
		puts("# no link");
	tap_ok(get(1, &bytes, &n, "another name") == IO_STORE_DAMAGED,
	       "a file that has another name is not used");
	unlink(path_of("a/other"));
	static char large[LIMIT + 1];
	put(8, large, sizeof large);
	tap_ok(get(8, &bytes, &n, "too long") == IO_STORE_DAMAGED, "a file that is too long is not read");
	put(5, "five", 4);
	tap_ok(holds(5, "five", 4) && holds(1, "two", 3), "a link is replaced, not followed");
}

static void *refuse_memory(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)old_size;
	if (!new_size)
		free(p);
	return NULL;
}

static void test_memory(void)
{
	static const struct allocator none = {refuse_memory, NULL};
	struct arena poor;
	struct io_store s;
	struct checksum k = key_of(1);
	void *bytes;
	size_t n;
	arena_init(&poor, &none);
	io_store_open(&s, path, false);
	tap_ok(io_store_read(&s, &poor, &k, LIMIT, &bytes, &n) == IO_STORE_REFUSED &&
		   strstr(s.problem, "no memory"),
	       "without memory nothing is read");
	io_store_trim(&s, &poor, 0);
	tap_ok(holds(1, "two", 3), "nor removed");
	io_store_close(&s);
}

/* --- in a process of their own --- */

static bool in_child(bool (*work)(void))
{
	int status = 0;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(!work());
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static char thousands[100000];

/* A signal would end the process. */
static bool write_past_limit(void)
{
	struct rlimit limit = {5000, 5000};
	setrlimit(RLIMIT_FSIZE, &limit);
	return put(20, thousands, sizeof thousands) == IO_STORE_REFUSED &&
	       put(21, thousands, 4000) == IO_STORE_OK;
}

static bool write_without_right(void)
{
	if (geteuid() == 0 && (chown(path, NOBODY, -1) != 0 || chmod(folder, 0755) != 0 ||
			       chmod(path_of("a"), 0755) != 0 || setuid(NOBODY) != 0))
		return false;
	chmod(path, 0500);
	struct io_store s;
	struct checksum k = key_of(22);
	bool ok = io_store_open(&s, path, true) == IO_STORE_OK &&
		  io_store_write(&s, &k, "x", 1) == IO_STORE_REFUSED && strstr(s.problem, "cannot be made");
	io_store_close(&s);
	return ok;
}

enum { SMALL = 64 * 1024 };

/* A disk of 64 KiB under the folder; true when it cannot be had. */
static bool no_small_disk(void)
{
	return unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	       mount("none", path, "tmpfs", 0, "size=64k,mode=0700") != 0;
}

static bool has_small_disk(void)
{
	return !no_small_disk();
}

static bool write_past_disk(void)
{
	if (no_small_disk())
		return false;
	bool small = put(1, "one", 3) == IO_STORE_OK;
	bool refused = put(2, thousands, sizeof thousands) == IO_STORE_REFUSED;
	return small && refused && files_in(path) == 1 && holds(1, "one", 3) && put(3, "x", 1) == IO_STORE_OK;
}

static void test_disks(void)
{
	int before = files_in(path);
	tap_ok(in_child(write_past_limit), "a limit on the size of files is a refusal, no signal");
	tap_ok(files_in(path) == before + 1, "and leaves nothing behind");
	tap_ok(in_child(write_without_right), "a folder that cannot be written is told");
	chmod(path, 0700);
	if (geteuid() == 0)
		chown(path, 0, -1);
	if (in_child(has_small_disk))
		tap_ok(in_child(write_past_disk), "a full disk is a refusal, and leaves nothing behind");
	else
		tap_skip("no right to mount", "a full disk is a refusal, and leaves nothing behind");
}

/* Each file consists of one byte, over and over: a mixture would be seen. */
static bool write_and_read(void)
{
	static char bytes[30000];
	bool ok = true;
	for (int round = 0; ok && round < 100; round++) {
		memset(bytes, 'a' + (getpid() + round) % 26, sizeof bytes);
		ok = put(30 + round % 3, bytes, 10000 + round * 200) == IO_STORE_OK;
		char *found;
		size_t n;
		ok = ok && get(30 + (round + 1) % 3, (void **)&found, &n, NULL) <= IO_STORE_ABSENT;
		for (size_t i = 1;
		     ok && get(30 + round % 3, (void **)&found, &n, NULL) == IO_STORE_OK && i < n; i += n / 7)
			ok = found[i] == found[0];
	}
	return ok;
}

static void test_concurrent(void)
{
	enum { PROCESSES = 4 };
	pid_t child[PROCESSES];
	bool ok = true;
	fflush(stdout);
	for (int i = 0; i < PROCESSES; i++)
		if ((child[i] = fork()) == 0)
			_exit(!write_and_read());
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		waitpid(child[i], &status, 0);
		ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	tap_ok(ok, "processes that write and read at once see whole files only");
}

/* --- trimming --- */

static void age(const char *name, long hours)
{
	struct timespec now, times[2];
	clock_gettime(CLOCK_REALTIME, &now);
	times[0] = times[1] = (struct timespec){now.tv_sec - hours * 3600, 0};
	utimensat(AT_FDCWD, name, times, 0);
}

static void trim(uint64_t limit)
{
	struct io_store s;
	io_store_open(&s, path, false);
	io_store_trim(&s, &arena, limit);
	io_store_close(&s);
}

static void test_trim(void)
{
	void *bytes;
	size_t n;
	empty(path);
	for (int i = 0; i < 100; i++) {
		put(i, thousands, 1000);
		age(file_of(i), 1000 - i);
	}
	trim(100000);
	tap_ok(files_in(path) == 100, "what fits stays");
	trim(50500);
	bool right = true;
	for (int i = 0; i < 100; i++)
		right &= (get(i, &bytes, &n, NULL) == IO_STORE_OK) == (i >= 50);
	tap_ok(right, "what was not used for longest goes first");
	struct stat st;
	tap_ok(stat(file_of(60), &st) == 0 && time(NULL) - st.st_mtime < 3600, "reading is using");
	int left = open(path_of("a/images/.new-1-2-3"), O_CREAT | O_WRONLY, 0600);
	int fresh = open(path_of("a/images/.new-4-5-6"), O_CREAT | O_WRONLY, 0600);
	int other = open(path_of("a/images/README"), O_CREAT | O_WRONLY, 0600);
	close(left), close(fresh), close(other);
	age(path_of("a/images/.new-1-2-3"), 3);
	age(path_of("a/images/README"), 3);
	trim(0);
	tap_ok(access(path_of("a/images/.new-1-2-3"), F_OK) != 0, "what a writer that died has left goes");
	tap_ok(access(path_of("a/images/.new-4-5-6"), F_OK) == 0, "what may still be written stays");
	tap_ok(access(path_of("a/images/README"), F_OK) == 0 && files_in(path) == 2,
	       "and what is no file of the store");
}

int main(void)
{
	begin_tests();
	path = path_of("a/images");
	test_round_trip();
	test_modes();
	test_owner();
	test_links();
	test_path_modes();
	test_path_owner();
	test_path_links();
	test_path_relative();
	test_path_exchange();
	test_lists();
	test_files();
	test_memory();
	test_disks();
	test_concurrent();
	test_trim();
	empty(path);
	rmdir(path);
	rmdir(path_of("a"));
	return end_tests();
}
