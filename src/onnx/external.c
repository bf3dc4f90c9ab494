/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Elements that lie in a file beside the model.  The path of that file is as untrusted as all of the model:
 * it must lead to a regular file below the model's folder, through no link. */
#include "io/file.h"
#include "onnx/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
	const char *location;
	int64_t offset, length; /* a length of -1 = not said */
};

__attribute__((format(printf, 4, 5))) static bool refuse(struct onnx_reading *r, const char *what,
							 const char *hint, const char *format, ...)
{
	char text[700];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return onnx_report(r, DIAG_ONNX_EXTERNAL, hint, "%.200s: %s", what, text);
}

/* A number without a sign, which may have a fraction of zero digits nowhere: digits alone. */
static bool read_number(const char *text, int64_t *number)
{
	*number = 0;
	for (const char *c = text; *c; c++)
		if (*c < '0' || *c > '9' || __builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *c - '0', number))
			return false;
	return *text;
}

/* Keys that say nothing of the place, as the checksum, are passed over. */
static bool read_place(struct onnx_reading *r, const char *what, const Onnx__TensorProto *t, struct place *p)
{
	*p = (struct place){.length = -1};
	for (size_t i = 0; i < t->n_external_data; i++) {
		const char *key = onnx_text_of(t->external_data[i]->key),
			   *value = onnx_text_of(t->external_data[i]->value);
		int64_t *number = strcmp(key, "offset") == 0   ? &p->offset
				  : strcmp(key, "length") == 0 ? &p->length
							       : NULL;
		if (strcmp(key, "location") == 0)
			p->location = value;
		else if (number && !read_number(value, number))
			return refuse(r, what, NULL, "the %s of its elements is '%.80s', which is no number",
				      key, value);
	}
	return p->location || refuse(r, what, NULL, "it says of no file that its elements are in it");
}

/* Opens the folder of the model. */
static int open_folder(const char *file)
{
	char path[PATH_MAX];
	const char *slash = strrchr(file, '/');
	size_t n = slash ? (size_t)(slash - file) + 1 : 0;
	if (n >= sizeof path)
		return errno = ENAMETOOLONG, -1;
	memcpy(path, file, n);
	memcpy(path + n, ".", n < sizeof path - 1 ? 2 : 1);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the next name of a path in a folder, which is closed. */
static int open_next(int folder, const char *name, size_t length, bool last)
{
	char copy[NAME_MAX + 1];
	int fd = -1;
	if (length > NAME_MAX)
		errno = ENAMETOOLONG;
	else {
		memcpy(copy, name, length);
		copy[length] = 0;
		fd = openat(folder, copy,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY));
	}
	int reason = errno;
	close(folder);
	errno = reason;
	return fd;
}

static bool leaves_folder(const char *location)
{
	for (const char *at = location; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/");
		if (n == 0 || (n == 2 && memcmp(at, "..", 2) == 0))
			return true;
	}
	return false;
}

/* A path that begins with '/' or has an empty name in it leaves the folder, too. */
static int open_location(struct onnx_reading *r, const char *what, const char *location)
{
	static const char hint[] =
	    "keep the files of a model in one folder, as regular files; onnx.save_model with "
	    "save_as_external_data writes them so";
	if (leaves_folder(location))
		return refuse(r, what, hint,
			      "its elements are in '%.200s', which is no path inside the folder of the model",
			      location),
		       -1;
	int fd = open_folder(r->file);
	for (const char *at = location; fd >= 0 && at;) {
		size_t n = strcspn(at, "/");
		fd = open_next(fd, at, n, !at[n]);
		at = at[n] ? at + n + 1 : NULL;
	}
	if (fd < 0)
		refuse(r, what, hint,
		       errno == ELOOP ? "its elements are in '%.200s', which is a link (%s)"
				      : "the file '%.200s' of its elements cannot be opened: %s",
		       location, strerror(errno));
	return fd;
}

/* Of a file that is open. */
static bool check_place(struct onnx_reading *r, const char *what, const struct place *p,
			const struct onnx_tensor *t, int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return refuse(r, what, NULL, "'%.200s', in which its elements are, is no regular file",
			      p->location);
	if (p->length >= 0 && p->length != (int64_t)t->bytes)
		return refuse(r, what, NULL,
			      "it has %lld bytes in '%.200s', its extents and its type take %zu",
			      (long long)p->length, p->location, t->bytes);
	return (p->offset <= st.st_size && (int64_t)t->bytes <= st.st_size - p->offset) ||
	       refuse(r, what, "copy the file again: it may be cut off",
		      "its elements are %zu bytes from byte %lld on of '%.200s', which has %lld", t->bytes,
		      (long long)p->offset, p->location, (long long)st.st_size);
}

bool onnx_read_external(struct onnx_reading *r, const char *what, const Onnx__TensorProto *from,
			struct onnx_tensor *t)
{
	struct place p;
	if (!read_place(r, what, from, &p))
		return false;
	int fd = open_location(r, what, p.location);
	if (fd < 0)
		return false;
	bool fits = check_place(r, what, &p, t, fd);
	void *to = fits ? arena_try(r->arena, t->bytes + 1, 1) : NULL;
	bool read = to && io_read_at(r->diags, p.location, fd, to, t->bytes, p.offset);
	close(fd);
	if (fits && !to)
		arena_escape(r->arena);
	t->data = to;
	r->external += read ? (int64_t)t->bytes : 0;
	return read;
}
