#include "io/file.h"

#include "tests/io/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool holds(const char *path, const char *text)
{
	size_t n;
	const char *bytes = io_read_file(&arena, &diags, path, &n);
	return accepted(bytes) && n == strlen(text) && memcmp(bytes, text, n + 1) == 0;
}

static void reads(void)
{
	size_t n = 1;
	tap_ok(holds(write_file("some", "one\ntwo", 7), "one\ntwo"), "a file is read, with a zero after it");
	tap_ok(holds(write_file("none", "", 0), ""), "an empty file is read");
	tap_ok(!io_read_file(&arena, &diags, path_of("absent"), &n) &&
		   refused(DIAG_CANNOT_READ, "No such file or directory"),
	       "a missing file is refused with the system's reason");
	tap_ok(!io_read_file(&arena, &diags, folder, &n) && refused(DIAG_CANNOT_READ, "directory"),
	       "a directory is refused");
	tap_ok(io_read_file(&arena, &diags, "/proc/self/stat", &n) && accepted(true) && n > 10,
	       "a file that does not tell its size is read");
}

static void reads_limits(void)
{
	size_t n;
	const char *path = write_file("ten", "0123456789", 10);
	tap_ok(io_read_limited(&arena, &diags, path, 10, &n) && accepted(true),
	       "a file as long as the limit is read");
	tap_ok(!io_read_limited(&arena, &diags, path, 9, &n) && refused(DIAG_FILE_TOO_LARGE, "9 bytes"),
	       "a file longer than the limit is refused");
	tap_ok(!io_read_limited(&arena, &diags, "/dev/zero", 300000, &n) &&
		   refused(DIAG_FILE_TOO_LARGE, "300000"),
	       "a stream without end is refused at the limit");
	path = write_file("huge", "", 0);
	tap_ok(truncate(path, (off_t)IO_FILE_LIMIT + 1) == 0 && !io_read_file(&arena, &diags, path, &n) &&
		   refused(DIAG_FILE_TOO_LARGE, "huge"),
	       "a file above the general limit is refused unread");
}

/* Files of /sys claim a page and hold less. */
static void reads_lies(void)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	struct stat st;
	size_t n;
	if (stat(path, &st) != 0 || st.st_size < 4096)
		tap_skip("no such file in /sys", "a file whose size is not what it told is refused");
	else
		tap_ok(!io_read_file(&arena, &diags, path, &n) && refused(DIAG_CANNOT_READ, "size changed"),
		       "a file whose size is not what it told is refused");
}

/* Standard input from a pipe that is filled in pieces; signals without SA_RESTART interrupt the reading. */
static void on_alarm(int signal)
{
	(void)signal;
}

/* The signals come while the reader waits. */
static void feed(int fd)
{
	char piece[1000];
	memset(piece, 'x', sizeof piece);
	for (int i = 0; i < 200; i++) {
		if (i % 10 == 0) {
			usleep(1000);
			kill(getppid(), SIGUSR1);
			usleep(1000);
		}
		if (write(fd, piece, sizeof piece) != sizeof piece)
			_exit(1);
	}
	_exit(0);
}

static void reads_pipes(void)
{
	int ends[2], saved = dup(STDIN_FILENO);
	struct sigaction interrupt = {.sa_handler = on_alarm};
	sigaction(SIGUSR1, &interrupt, NULL);
	if (pipe(ends) != 0)
		return;
	pid_t child = fork();
	if (child == 0)
		feed(ends[1]);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	size_t n = 0;
	const char *bytes = io_read_file(&arena, &diags, "-", &n);
	tap_ok(accepted(bytes) && n == 200000 && bytes[n - 1] == 'x' && bytes[n] == 0,
	       "standard input is read to its end through short reads and signals");
	waitpid(child, NULL, 0);
	dup2(saved, STDIN_FILENO);
	close(saved);
}

static void writes(void)
{
	static struct io_writer w;
	const char *path = path_of("made");
	int before = files_there();
	tap_ok(io_create(&w, &diags, path) && io_puts(&w, "first") && access(path, F_OK) != 0 &&
		   files_there() == before + 1,
	       "nothing stands at the path while a file is written");
	tap_ok(accepted(io_commit(&w)) && holds(path, "first") && files_there() == before + 1,
	       "it is there after the commit, and no temporary file");
	tap_ok(!io_commit(&w) && !io_write(&w, "x", 1) && accepted(true),
	       "a writer that has ended only says no");
	io_create(&w, &diags, path);
	io_puts(&w, "second");
	io_abort(&w);
	io_abort(&w);
	tap_ok(accepted(true) && holds(path, "first") && files_there() == before + 1,
	       "aborting leaves what was there, and no temporary file");
}

static void writes_much(void)
{
	static struct io_writer w;
	static char bytes[50000];
	const char *path = path_of("much");
	memset(bytes, 'y', sizeof bytes);
	bool ok = io_create(&w, &diags, path);
	for (size_t n = 1; n < sizeof bytes; n = 3 * n)
		ok &= io_write(&w, bytes, n);
	ok &= io_write(&w, bytes, sizeof bytes) && io_write(&w, bytes, 0) && io_commit(&w);
	struct stat st;
	tap_ok(accepted(ok) && stat(path, &st) == 0 && st.st_size == (59049 - 1) / 2 + 50000,
	       "pieces smaller and larger than the buffer all arrive");
}

static void writes_over(void)
{
	static struct io_writer w;
	const char *path = write_file("mode", "old", 3), *link = path_of("link");
	struct stat st;
	chmod(path, 0640);
	tap_ok(symlink("mode", link) == 0 && io_create(&w, &diags, link) && io_puts(&w, "new") &&
		   accepted(io_commit(&w)) && holds(path, "new"),
	       "a file behind a symbolic link is replaced");
	tap_ok(lstat(link, &st) == 0 && S_ISLNK(st.st_mode), "the link is still one");
	tap_ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640, "the file keeps its mode");
}

static void write_failures(void)
{
	static struct io_writer w;
	char longest[PATH_MAX + 10];
	tap_ok(!io_create(&w, &diags, path_of("no/such/folder")) &&
		   refused(DIAG_CANNOT_WRITE, "No such file"),
	       "a folder that is not there is refused");
	tap_ok(!io_create(&w, &diags, folder) && refused(DIAG_CANNOT_WRITE, "directory"),
	       "a directory is refused");
	memset(longest, 'p', sizeof longest);
	longest[sizeof longest - 1] = 0;
	tap_ok(!io_create(&w, &diags, longest) && refused(DIAG_CANNOT_WRITE, "name too long"),
	       "a path that is too long is refused");
}

/* Nothing here names a device as a path: a writer that went wrong would replace it. */
static void writes_full(void)
{
	static struct io_writer w;
	int full = open("/dev/full", O_WRONLY), saved = dup(STDOUT_FILENO);
	if (full < 0) {
		tap_skip("no /dev/full", "a full device is noticed at the commit");
		return;
	}
	dup2(full, STDOUT_FILENO);
	bool failed = io_create(&w, &diags, "-") && io_puts(&w, "x") && !io_commit(&w);
	dup2(saved, STDOUT_FILENO);
	close(full);
	close(saved);
	tap_ok(failed && refused(DIAG_CANNOT_WRITE, "No space left on device"),
	       "a full device is noticed at the commit");
	tap_ok(!io_puts(&w, "x") && !io_commit(&w) && accepted(true),
	       "after a failure there is no second diagnostic");
}

/* A limit on the size of files stands for a full disk. */
static void writes_too_much(void)
{
	static struct io_writer w;
	static const char bytes[100000];
	struct rlimit old, small;
	const char *path = write_file("limited", "old", 3);
	int before = files_there();
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){50000, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	bool failed = io_create(&w, &diags, path) && !io_write(&w, bytes, sizeof bytes) && !io_commit(&w);
	setrlimit(RLIMIT_FSIZE, &old);
	tap_ok(failed && refused(DIAG_CANNOT_WRITE, "File too large"),
	       "a disk that takes no more is a diagnostic");
	tap_ok(holds(path, "old") && files_there() == before,
	       "what was there is still there, and nothing else");
}

static void writes_fifo(void)
{
	static struct io_writer w;
	const char *path = path_of("fifo");
	char got[10] = "";
	struct stat st;
	int fd = mkfifo(path, 0600) == 0 ? open(path, O_RDONLY | O_NONBLOCK) : -1;
	bool ok = io_create(&w, &diags, path) && io_puts(&w, "bytes") && io_commit(&w);
	tap_ok(accepted(ok) && read(fd, got, sizeof got) == 5 && stat(path, &st) == 0 && S_ISFIFO(st.st_mode),
	       "what is no regular file is written to, not replaced");
	close(fd);
}

static void writes_pipes(void)
{
	static struct io_writer w;
	int ends[2], saved = dup(STDOUT_FILENO);
	signal(SIGPIPE, SIG_IGN);
	if (pipe(ends) != 0)
		return;
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	bool ok = io_create(&w, &diags, "-") && io_puts(&w, "to a reader") && io_commit(&w);
	char got[20] = "";
	ok &= read(ends[0], got, sizeof got - 1) == 11;
	close(ends[0]);
	bool failed = io_create(&w, &diags, NULL) && io_puts(&w, "to nobody") && !io_commit(&w);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	tap_ok(ok && strcmp(got, "to a reader") == 0, "standard output takes the bytes and stays open");
	tap_ok(failed && refused(DIAG_CANNOT_WRITE, "Broken pipe"),
	       "a reader that went away is a diagnostic");
}

/* Root may write anywhere: only others can be refused. */
static void write_permission(void)
{
	static struct io_writer w;
	const char *path = write_file("locked", "old", 3);
	chmod(path, 0400);
	if (geteuid() == 0)
		tap_skip("run as root", "a file without write permission is refused");
	else
		tap_ok(!io_create(&w, &diags, path) && refused(DIAG_CANNOT_WRITE, "Permission denied"),
		       "a file without write permission is refused");
}

int main(void)
{
	begin_tests();
	reads();
	reads_limits();
	reads_lies();
	reads_pipes();
	writes();
	writes_much();
	writes_over();
	write_failures();
	writes_full();
	writes_too_much();
	writes_fifo();
	writes_pipes();
	write_permission();
	return end_tests();
}
