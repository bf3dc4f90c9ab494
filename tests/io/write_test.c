/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tensors to files: the bytes, what reads them, and that a file is there whole or not at all. */
#include "io/safetensors.h"
#include "io/write.h"
#include "tests/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* What the writer asks of the disk, in its order: the values of a file, a name, a folder. */
static char disk[8];
static int refuse_sync; /* of these calls, from 1; 0 = none */
static int refuse_with;
static bool refuse_folder; /* opening one fails, with `refuse_with` */

static void note_call(char call)
{
	size_t n = strlen(disk);
	if (n < sizeof disk - 1)
		disk[n] = call;
}

int fsync(int fd)
{
	struct stat st;
	note_call(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'f' : 'v');
	if (!refuse_sync || --refuse_sync)
		return (int)syscall(SYS_fsync, fd);
	errno = refuse_with;
	return -1;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (!refuse_folder || !(flags & O_DIRECTORY))
		return openat(AT_FDCWD, path, flags, mode);
	errno = refuse_with;
	return -1;
}

int rename(const char *from, const char *to)
{
	note_call('n');
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static bool holds(const char *name, const void *bytes, size_t n)
{
	static char got[4096];
	FILE *f = fopen(path_of(name), "rb");
	size_t length = f ? fread(got, 1, sizeof got, f) : 0;
	if (f)
		fclose(f);
	return f && length == n && memcmp(got, bytes, n) == 0;
}

static const int64_t begin[] = {0, 2, 3};
static const float rows[] = {1, 2, 3, 4, 5, -6.5f}, numbers[] = {7, 8};
static const struct io_tensor tensors[] = {
    {"structure_begin", DTYPE_I64, 1, {3}, begin},
    {"a.h", DTYPE_F32, 2, {3, 2}, rows},
    {"sum", DTYPE_F32, 1, {2}, numbers},
    {"none", DTYPE_F32, 3, {0, 2, 2}, NULL},
};

static void safetensors(void)
{
	static const char header[] =
	    "{\"structure_begin\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
	    "\"a.h\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[24,48]},"
	    "\"sum\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[48,56]},"
	    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,2,2],\"data_offsets\":[56,56]}}";
	static char wanted[600];
	uint64_t length = (sizeof header - 1 + 7) / 8 * 8;
	memcpy(wanted, &length, 8);
	memset(wanted + 8, ' ', length);
	memcpy(wanted + 8, header, sizeof header - 1);
	memcpy(wanted + 8 + length, begin, sizeof begin);
	memcpy(wanted + 8 + length + 24, rows, sizeof rows);
	memcpy(wanted + 8 + length + 48, numbers, sizeof numbers);
	tap_ok(io_safetensors_write(&arena, &diags, path_of("t"), tensors, 4) &&
		   holds("t", wanted, 8 + length + 56),
	       "a safetensors file is written, byte for byte");
	tap_is(files_there(), 1, "and nothing beside it");

	struct io_safetensors *w = io_safetensors_open(&arena, &diags, path_of("t"));
	float got[6];
	tap_ok(w && w->n == 4 && io_safetensors_find(w, "a.h") == 1 && w->tensor[1].rank == 2 &&
		   w->tensor[1].shape[0] == 3 && w->tensor[3].shape[0] == 0,
	       "it is read as weights are, I64 and all");
	tap_ok(w && io_safetensors_read_f32(w, &diags, 1, 0, 6, got) && memcmp(got, rows, sizeof rows) == 0,
	       "with the same values");
	tap_ok(w && !io_safetensors_read_f32(w, &diags, 0, 0, 3, got) && refused(DIAG_UNKNOWN_DTYPE, "'I64'"),
	       "an I64 tensor is no weight");
	io_safetensors_close(w);

	struct io_tensor odd = {"a\"b\\c\n", DTYPE_F32, 0, {0}, rows};
	w = io_safetensors_write(&arena, &diags, path_of("t"), &odd, 1)
		? io_safetensors_open(&arena, &diags, path_of("t"))
		: NULL;
	tap_ok(w && w->n == 1 && strcmp(w->tensor[0].name, odd.name) == 0 && w->tensor[0].rank == 0,
	       "names may hold anything");
	io_safetensors_close(w);
}

/* The header as NumPy writes it, without the blanks at its end. */
static bool npy_is(const struct io_tensor *t, const char *header, const void *values, size_t bytes)
{
	char wanted[300] = "\x93NUMPY\x01";
	size_t length = 128 - 10;
	if (10 + strlen(header) + 1 <= 64)
		length = 64 - 10;
	wanted[8] = (char)length;
	memset(wanted + 10, ' ', length);
	memcpy(wanted + 10, header, strlen(header));
	wanted[10 + length - 1] = '\n';
	if (bytes)
		memcpy(wanted + 10 + length, values, bytes);
	return io_npy_write(&arena, &diags, path_of("n.npy"), t) &&
	       holds("n.npy", wanted, 10 + length + bytes);
}

static void npy(void)
{
	tap_ok(npy_is(&tensors[1], "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", rows,
		      sizeof rows),
	       "an .npy file is written, byte for byte");
	tap_ok(npy_is(&tensors[0], "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", begin,
		      sizeof begin),
	       "of one axis");
	tap_ok(npy_is(&tensors[3], "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2, 2), }", NULL, 0),
	       "of no values");
	struct io_tensor number = {"s", DTYPE_F32, 0, {0}, numbers};
	tap_ok(npy_is(&number, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", numbers, 4),
	       "of no axis");
	if (system("python3 -c 'import numpy' 2>/dev/null") != 0) {
		tap_skip("no NumPy", "NumPy reads it");
		return;
	}
	char command[600];
	io_npy_write(&arena, &diags, path_of("n.npy"), &tensors[1]);
	snprintf(command, sizeof command,
		 "python3 -c 'import numpy; a = numpy.load(\"%s\"); "
		 "exit(not (a.dtype == \"float32\" and a.tolist() == [[1, 2], [3, 4], [5, -6.5]]))'",
		 path_of("n.npy"));
	tap_ok(system(command) == 0, "NumPy reads it");
}

/* --- files --- */

static mode_t mode_of(const char *name)
{
	struct stat st;
	return stat(path_of(name), &st) == 0 ? st.st_mode & 07777 : 0;
}

static bool write_bytes(const char *path, const char *text)
{
	struct io_piece piece = {text, (int64_t)strlen(text)};
	return io_write_file(&arena, &diags, path, &piece, 1);
}

static void replaces(void)
{
	mode_t mask = umask(027);
	tap_ok(write_bytes(path_of("f"), "new") && holds("f", "new", 3) && mode_of("f") == 0640,
	       "a new file has the mode that the process gives");
	umask(mask);
	chmod(path_of("f"), 0604);
	tap_ok(write_bytes(path_of("f"), "other") && holds("f", "other", 5) && mode_of("f") == 0604,
	       "one that is replaced keeps its mode");
	struct stat st;
	tap_ok(symlink("f", path_of("link")) == 0 && write_bytes(path_of("link"), "linked") &&
		   holds("f", "linked", 6) && lstat(path_of("link"), &st) == 0 && S_ISLNK(st.st_mode),
	       "a link stays, what it leads to is replaced");
	tap_ok(write_bytes("/dev/null", "nothing"), "a device is written in place");
}

static bool write_with(const char *text, int sync, int error)
{
	memset(disk, 0, sizeof disk);
	refuse_sync = sync;
	refuse_with = error;
	return write_bytes(path_of("power"), text);
}

/* After a power cut there is the old file or the new one. */
static void survives(void)
{
	tap_ok(write_with("old", 0, 0) && strcmp(disk, "vnf") == 0,
	       "the values are on the disk before the name, then the folder is (%s)", disk);
	tap_ok(write_with("new", 1, EINTR) && strcmp(disk, "vvnf") == 0 && holds("power", "new", 3),
	       "an interruption is no failure (%s)", disk);
	int there = files_there();
	tap_ok(!write_with("other", 1, EIO) && refused(DIAG_CANNOT_WRITE, strerror(EIO)) &&
		   holds("power", "new", 3) && files_there() == there,
	       "values that did not get there are told, and the old file stays");
	tap_ok(!write_with("other", 2, ENOSPC) && refused(DIAG_CANNOT_WRITE, "is written, but may not survive") &&
		   holds("power", "other", 5) && files_there() == there,
	       "so is a folder that did not, with the new file in its place");
	static const int none[] = {EINVAL, EBADF, ENOTSUP};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		tap_ok(write_with("last", 2, none[i]) && holds("power", "last", 4),
		       "a file system that syncs no folders is used all the same: %s", strerror(none[i]));
	refuse_folder = true;
	tap_ok(!write_with("none", 0, EMFILE) && refused(DIAG_CANNOT_WRITE, "cannot write") &&
		   holds("power", "last", 4) && files_there() == there && strcmp(disk, "v") == 0,
	       "a folder that cannot be opened is told before anything is changed (%s)", disk);
	tap_ok(write_with("unread", 0, EACCES) && holds("power", "unread", 6),
	       "one that may not be read is trusted");
	refuse_folder = false;
	memset(disk, 0, sizeof disk);
	tap_ok(write_bytes("/dev/null", "nothing") && !*disk, "a device is not asked for any of it");
}

static void read_little(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY);
	_exit(fd < 0 || read(fd, &byte, 1) != 1);
}

/* To a pipe whose reader leaves after a byte of more than the pipe holds. */
static bool write_unread(const char *text)
{
	int status = 1;
	const char *path = path_of("pipe");
	pid_t child = mkfifo(path, 0600) == 0 ? fork() : -1;
	if (child == 0)
		read_little(path);
	bool failed = child > 0 && !write_bytes(path, text) && refused(DIAG_CANNOT_WRITE, strerror(EPIPE));
	unlink(path);
	return failed && waitpid(child, &status, 0) == child && status == 0;
}

/* Signals that a write causes stay inside; those of the host stay where they are. */
static void signals(const char *text)
{
	sigset_t set, now;
	tap_ok(write_unread(text), "so is a reader that has left");
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	bool failed = write_unread(text);
	sigpending(&now);
	tap_ok(failed && !sigismember(&now, SIGPIPE), "no signal is left behind for who blocks it");
	raise(SIGPIPE);
	failed = write_unread(text);
	sigpending(&now);
	tap_ok(failed && sigismember(&now, SIGPIPE), "one that was there before stays");
	sigtimedwait(&set, NULL, &(struct timespec){0});
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void fails(void)
{
	int there = files_there();
	tap_ok(!write_bytes(path_of("absent/f"), "x") && refused(DIAG_CANNOT_WRITE, strerror(ENOENT)),
	       "a folder that is not there is told");
	tap_ok(!write_bytes(folder, "x") && refused(DIAG_CANNOT_WRITE, strerror(EISDIR)),
	       "so is a path that is a folder");
	tap_ok(!write_bytes("", "x") && refused(DIAG_CANNOT_WRITE, ""), "so is no path");
	if (access("/dev/full", W_OK) == 0)
		tap_ok(!write_bytes("/dev/full", "x") && refused(DIAG_CANNOT_WRITE, strerror(ENOSPC)),
		       "so is a full device");
	else
		tap_skip("no /dev/full", "so is a full device");
	static char large[100000];
	memset(large, 'x', sizeof large - 1);
	struct rlimit old, low;
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 50000;
	setrlimit(RLIMIT_FSIZE, &low);
	bool failed = !write_bytes(path_of("f"), large) && refused(DIAG_CANNOT_WRITE, strerror(EFBIG));
	setrlimit(RLIMIT_FSIZE, &old);
	tap_ok(failed, "and a file that stops half-way");
	tap_ok(holds("f", "linked", 6) && files_there() == there,
	       "what was there stays, and no part is left");
	signals(large);
	if (geteuid() == 0) {
		tap_skip("root may write everywhere", "a folder that may not be written is told");
		return;
	}
	chmod(folder, 0500);
	failed = !write_bytes(path_of("g"), "x") && refused(DIAG_CANNOT_WRITE, strerror(EACCES));
	chmod(folder, 0700);
	tap_ok(failed, "a folder that may not be written is told");
}

int main(void)
{
	begin_tests();
	safetensors();
	npy();
	replaces();
	survives();
	fails();
	return end_tests();
}
