/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool refuse_map(const char *path, const char *why, struct diags *diags)
{
	return diag_add(diags, DIAG_PERF_MAP_UNUSABLE, (struct diag_at){.file = path},
			"remove the file, or do without names of kernels in profiles",
			"kernels cannot be named in '%s': %s", path, why);
}

/* Why an existing file must not be written to; NULL = it may be.  Everybody can write in the folder. */
static const char *check_map(int fd)
{
	struct stat s;
	if (fstat(fd, &s) != 0)
		return strerror(errno);
	if (!S_ISREG(s.st_mode) || s.st_nlink != 1)
		return "it is not a regular file with one name";
	if (s.st_uid != geteuid() || s.st_mode & (S_IWGRP | S_IWOTH))
		return "others than the user can write it";
	return NULL;
}

/* When this process began, in seconds since the epoch; 0 = unknown. */
static double begin_of_process(void)
{
	char text[1000];
	unsigned long long ticks;
	struct timespec now, running;
	FILE *file = fopen("/proc/self/stat", "re");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file)
		fclose(file);
	text[n] = 0;
	const char *name_end = strrchr(text, ')');
	if (!name_end ||
	    sscanf(name_end + 1,
		   " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &running);
	return now.tv_sec + now.tv_nsec * 1e-9 - (running.tv_sec + running.tv_nsec * 1e-9) +
	       ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Process numbers are reused: a file last written before this process began belongs to another one. */
static bool is_left_over(int fd)
{
	enum { SLACK = 1 }; /* seconds: clocks are set */
	struct stat s;
	return fstat(fd, &s) == 0 && s.st_mtim.tv_sec + s.st_mtim.tv_nsec * 1e-9 + SLACK < begin_of_process();
}

/* Follows no link and does not block. */
static int open_map(const char *path, struct diags *diags)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };
	int fd = open(path, FLAGS | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
	if (fd < 0 && errno == EEXIST)
		fd = open(path, FLAGS);
	if (fd < 0) {
		refuse_map(path, strerror(errno), diags);
		return -1;
	}
	const char *why = check_map(fd);
	if (!why && is_left_over(fd) && ftruncate(fd, 0) != 0)
		why = strerror(errno);
	if (!why)
		return fd;
	close(fd);
	refuse_map(path, why, diags);
	return -1;
}

/* The code of a kernel ends at the next one at the latest. */
static int64_t end_of(const struct image_blob *b, int kernel)
{
	int64_t end = b->frame_bytes ? b->frames : b->size;
	for (int i = 0; i < b->kernels; i++)
		if (b->kernel[i] > b->kernel[kernel] && b->kernel[i] < end)
			end = b->kernel[i];
	return end;
}

/* A line is written at once, so that those of several threads do not mix. */
static bool put_function(int fd, const char *model, const struct image_function *f)
{
	char line[400];
	int n = snprintf(line, sizeof line, "%llx %llx %.150s:%.150s\n", (unsigned long long)(uintptr_t)f->at,
			 (unsigned long long)f->bytes, model, f->name);
	return write(fd, line, n) == n;
}

bool image_name_functions(const char *model, const struct image_function *f, int n, struct diags *diags)
{
	char path[40];
	bool ok = true;
	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
	int fd = open_map(path, diags);
	if (fd < 0)
		return false;
	for (int i = 0; ok && i < n; i++)
		ok = put_function(fd, model, &f[i]);
	close(fd);
	return ok || refuse_map(path, "it cannot be written", diags);
}

int image_list_functions(struct arena *arena, const struct image *image, struct image_function **functions)
{
	const struct image_blob *b = &image->blob;
	struct image_function *f = *functions =
	    ARENA_ARRAY(arena, struct image_function, image->kernels + b->functions);
	if (!image->code.kernels || !image->kernels)
		return 0;
	const char *base = (const char *)(uintptr_t)image->code.kernels[0] - b->kernel[0];
	for (int i = 0; i < b->functions; i++)
		f[i] = (struct image_function){b->function[i].name, base + b->function[i].place,
					       b->function[i].bytes, b->function[i].place, b};
	if (b->functions)
		return b->functions;
	for (int k = 0; k < image->kernels; k++)
		f[k] = (struct image_function){image->kernel_name[k], (const void *)image->code.kernels[k],
					       end_of(&image->blob, k) - image->blob.kernel[k],
					       image->blob.kernel[k], &image->blob};
	return image->kernels;
}

int image_lines_of(const struct image_function *f, const struct image_line **line)
{
	const struct image_blob *b = f->blob;
	int first = 0, end;
	*line = NULL;
	if (!b->lines)
		return 0;
	while (first + 1 < b->lines && b->line[first + 1].place <= f->place)
		first++;
	for (end = first; end < b->lines && b->line[end].place < f->place + f->bytes; end++)
		;
	*line = b->line + first;
	return end - first;
}

struct image_frames image_frames_of(const struct image_function *f)
{
	const struct image_blob *b = f->blob;
	return (struct image_frames){b->frame_bytes ? b->bytes + b->frames : NULL, b->frame_bytes, b->frames};
}
