/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
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

int main(void)
{
	begin_tests();
	reads();
	reads_limits();
	reads_lies();
	reads_pipes();
	return end_tests();
}
