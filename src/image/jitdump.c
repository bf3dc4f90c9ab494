/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The format is that of tools/perf/Documentation/jitdump-specification.txt in the sources of Linux: a header,
 * and records with the time of CLOCK_MONOTONIC, which perf record has with -k 1.  perf finds the file because
 * a page of it is mapped executable. */
#include "image/jitdump.h"

#include "base/checksum.h"
#include "base/str.h"
#include "image/code.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- the format --- */

struct head {
	uint32_t magic, version, bytes, machine, padding, process;
	uint64_t time, flags;
};

enum kind { LOAD = 0, LINES = 2, UNWINDING = 4 };

struct record {
	uint32_t kind, bytes; /* with this */
	uint64_t time;
};

struct load {
	uint32_t process, thread;
	uint64_t address, at, bytes, number;
};

struct lines {
	uint64_t address, rows;
};

struct row {
	uint64_t address;
	uint32_t line, discriminator;
};

struct unwinding {
	uint64_t bytes, header_bytes, mapped_bytes;
};

enum { MAGIC = 0x4a695444, FORMAT = 1 };

/* --- the file --- */

/* Of this process: perf takes one dump of each. */
static struct {
	pthread_mutex_t lock;
	int fd;
	long process; /* that has opened it, 0 = none */
	atomic_ullong functions;
	char folder[400];
} dump = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static bool refuse_dump(const char *path, const char *why, struct diags *diags)
{
	return diag_add(diags, DIAG_PERF_MAP_UNUSABLE, (struct diag_at){.file = path},
			"name a folder that can be written with JITDUMPDIR, or do without the dump",
			"code cannot be dumped in '%s': %s", path, why);
}

static uint64_t clock_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static bool write_bytes(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	while (n) {
		ssize_t done = write(fd, at, n);
		if (done < 0 && errno != EINTR)
			return false;
		if (done > 0) {
			at += done;
			n -= done;
		}
	}
	return true;
}

/* The folders above are made where they are missing; the last one is new. */
static bool make_folder(struct diags *diags)
{
	const char *above = secure_getenv("JITDUMPDIR");
	above = above && *above ? above : secure_getenv("HOME");
	above = above && *above ? above : ".";
	int n = snprintf(dump.folder, sizeof dump.folder, "%s/.debug", above);
	if (n > (int)sizeof dump.folder - 40)
		return refuse_dump(above, "its name is too long", diags);
	mkdir(dump.folder, S_IRWXU);
	snprintf(dump.folder + n, sizeof dump.folder - n, "/jit");
	mkdir(dump.folder, S_IRWXU);
	snprintf(dump.folder + n, sizeof dump.folder - n, "/jit/espalier-XXXXXX");
	return mkdtemp(dump.folder) || refuse_dump(dump.folder, strerror(errno), diags);
}

/* The mapping tells perf of the file, and stays. */
static bool begin_file(const char *path, struct diags *diags)
{
	struct head h = {.magic = MAGIC,
			 .version = FORMAT,
			 .bytes = sizeof h,
			 .machine = IMAGE_OWN_MACHINE,
			 .process = getpid(),
			 .time = clock_time()};
	dump.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (dump.fd < 0 || !write_bytes(dump.fd, &h, sizeof h) ||
	    mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, dump.fd, 0) == MAP_FAILED)
		return refuse_dump(path, strerror(errno), diags);
	return true;
}

static bool open_dump(struct diags *diags)
{
	char path[sizeof dump.folder + 40];
	if (dump.process == getpid())
		return dump.fd >= 0 || refuse_dump(dump.folder, "it could not be made before", diags);
	dump.process = getpid();
	dump.fd = -1; /* a parent's stays open: it is the parent's to write */
	if (!make_folder(diags))
		return false;
	snprintf(path, sizeof path, "%s/jit-%ld.dump", dump.folder, dump.process);
	return begin_file(path, diags);
}

/* Writes the listing under the name of its content, and returns its path. */
static const char *write_listing(struct arena *arena, const char *model, const char *listing)
{
	struct checksum sum = checksum_of(listing, strlen(listing));
	struct str path = str_in(arena);
	str_printf(&path, "%s/%.100s-%02x%02x%02x%02x.loops", dump.folder, model, sum.bytes[0], sum.bytes[1],
		   sum.bytes[2], sum.bytes[3]);
	for (char *c = path.text + strlen(dump.folder) + 1; *c; c++)
		*c = *c == '/' ? '_' : *c;
	int fd = open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd >= 0) {
		(void)!write_bytes(fd, listing, strlen(listing));
		close(fd);
	}
	return path.text;
}

/* --- records --- */

static void append_bytes(struct str *s, const void *bytes, size_t n)
{
	str_add(s, bytes, n);
}

static size_t begin_record(struct str *s, enum kind kind)
{
	size_t at = s->n;
	append_bytes(s, &(struct record){kind, 0, clock_time()}, sizeof(struct record));
	return at;
}

static void end_record(struct str *s, size_t at)
{
	uint32_t bytes = s->n - at;
	memcpy(s->text + at + offsetof(struct record, bytes), &bytes, sizeof bytes);
}

/* Debug information stands before the code that it is about. */
static void put_lines(struct str *s, const char *path, const struct image_function *f)
{
	const struct image_line *line;
	int n = image_lines_of(f, &line);
	if (!n)
		return;
	size_t at = begin_record(s, LINES);
	append_bytes(s, &(struct lines){(uintptr_t)f->at, n}, sizeof(struct lines));
	for (int i = 0; i < n; i++) {
		int64_t place = line[i].place > f->place ? line[i].place : f->place;
		append_bytes(s, &(struct row){(uintptr_t)f->at + place - f->place, line[i].line, 0},
		    sizeof(struct row));
		append_bytes(s, path, strlen(path) + 1);
	}
	end_record(s, at);
}

/* perf puts frame information behind the code, at the next multiple of 8. */
static void put_unwinding(struct str *s, const struct image_function *f)
{
	struct image_frames frames = image_frames_of(f);
	int64_t distance = (f->bytes + 7) / 8 * 8,
		bytes = image_copy_frame(&frames, f->place, distance, NULL);
	if (!bytes)
		return;
	unsigned char *copy = arena_take(s->arena, bytes + IMAGE_FRAME_HEADER, 1);
	image_copy_frame(&frames, f->place, distance, copy);
	image_put_frame_header(copy + bytes, copy, bytes, distance);
	size_t at = begin_record(s, UNWINDING);
	append_bytes(s,
	    &(struct unwinding){bytes + IMAGE_FRAME_HEADER, IMAGE_FRAME_HEADER, bytes + IMAGE_FRAME_HEADER},
	    sizeof(struct unwinding));
	append_bytes(s, copy, bytes + IMAGE_FRAME_HEADER);
	str_add(s, "\0\0\0\0\0\0\0", -s->n % 8);
	end_record(s, at);
}

static void put_load(struct str *s, const char *model, const struct image_function *f)
{
	size_t at = begin_record(s, LOAD);
	append_bytes(s,
	    &(struct load){getpid(), syscall(SYS_gettid), (uintptr_t)f->at, (uintptr_t)f->at, f->bytes,
			   atomic_fetch_add(&dump.functions, 1)},
	    sizeof(struct load));
	str_printf(s, "%.150s:%.150s", model, f->name);
	append_bytes(s, "", 1);
	append_bytes(s, f->at, f->bytes);
	end_record(s, at);
}

static bool begin_dump(struct diags *diags)
{
	pthread_mutex_lock(&dump.lock);
	bool ok = open_dump(diags);
	pthread_mutex_unlock(&dump.lock);
	return ok;
}

/* Records of several threads do not mix. */
static bool append_records(const struct str *s, struct diags *diags)
{
	pthread_mutex_lock(&dump.lock);
	bool ok = write_bytes(dump.fd, s->text, s->n) || refuse_dump(dump.folder, strerror(errno), diags);
	pthread_mutex_unlock(&dump.lock);
	return ok;
}

bool image_dump_functions(struct arena *arena, const char *model, const char *listing,
			  const struct image_function *f, int n, struct diags *diags)
{
	struct str s = str_in(arena);
	if (!begin_dump(diags))
		return false;
	const char *path = listing && *listing ? write_listing(arena, model, listing) : NULL;
	for (int i = 0; i < n; i++) {
		if (path)
			put_lines(&s, path, &f[i]);
		put_unwinding(&s, &f[i]);
		put_load(&s, model, &f[i]);
	}
	return append_records(&s, diags);
}
