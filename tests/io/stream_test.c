/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures as a file or a pipe gives them: the same as of the whole text, however it is cut, and no byte
 * more is waited for than the structure has. */
#include "io/structure_stream.h"

#include "io/file.h"
#include "io/reader.h"

#include "tests/io/show.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 5000 };
static const char *const formats[] = {"brackets", "conllu", "json", "plain"};

/* --- the same structures, wherever the text is cut --- */

static void show_next(struct str *all, enum io_next next, const struct io_structure *s)
{
	if (next == IO_TREE)
		str_printf(all, "%s \"%s\"\n", show_structure(s, "word"), s->sentence);
	for (size_t i = 0; i < diags.n; i++)
		str_printf(all, "%s %d:%d %s\n", diag_spelling(diags.at[i].id), diags.at[i].line,
			   diags.at[i].column, diags.at[i].message);
	diags_free(&diags);
}

/* All structures of a text, and all that is wrong with it. */
static const char *read_text(struct io_text *t, struct io_stream *stream, enum io_format format)
{
	struct io_view view = {.format = format, .sequence = true};
	struct str all = str_in(&arena);
	struct io_structure s;
	enum io_next next = IO_TREE;
	while (next != IO_END) {
		if (stream && !io_stream_fill(stream, t, format, &diags))
			break;
		next = io_next_structure(t, &view, &arena, &diags, &s);
		show_next(&all, next, &s);
	}
	return str_text(&all);
}

static bool reads_alike(const char *path, enum io_format format)
{
	static const size_t chunks[] = {1, 2, 5, 64, 100000};
	size_t length;
	const char *bytes = io_read_file(&arena, &diags, path, &length);
	struct io_text text = io_text_in(path, bytes, length);
	const char *whole = read_text(&text, NULL, format);
	bool same = true;
	for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
		struct io_stream stream;
		bool open = io_stream_open(&stream, &allocator_default, path, &text, &diags);
		stream.chunk = chunks[i];
		const char *cut = open ? read_text(&text, &stream, format) : "not open";
		if (strcmp(whole, cut) != 0) {
			printf("# %s, pieces of %zu bytes:\n# %s\n# whole:\n# %s\n", path, chunks[i], cut,
			       whole);
			same = false;
		}
		io_stream_close(&stream);
	}
	return same;
}

/* Also what no format has: every file is read as all of them. */
static void reads_folder(const char *name)
{
	const char *source = getenv("srcdir");
	struct str path = str_in(&arena);
	str_printf(&path, "%s/%s", source ? source : ".", name);
	DIR *d = opendir(str_text(&path));
	int files = 0;
	bool same = true;
	for (struct dirent *e; d && (e = readdir(d));) {
		struct str file = str_in(&arena);
		if (e->d_name[0] == '.')
			continue;
		str_printf(&file, "%s/%s", str_text(&path), e->d_name);
		for (int f = 0; f < IO_AUTO; f++)
			same &= reads_alike(str_text(&file), (enum io_format)f);
		files++;
	}
	if (d)
		closedir(d);
	tap_ok(files && same, "%d files of %s, however they are cut", files, name);
}

static void reads_texts(void)
{
	static const char *const texts[] = {
	    "",
	    " \n",
	    "(2 a) (2 b)\n(2 c",
	    "(2 a))",
	    "(2 a) x",
	    "a b c\n\n  \n d\te \r\nf",
	    "[{\"data\": {\"word\": [\"a]\\\"}\", \"b\"]}}, {\"children\": [[]]}]\n",
	    "[{\"children\": [[]]}] x",
	    "{\"children\": [[]]} {\"children\": 1}\n{\"children\": [[]]}",
	    "[]",
	    "[{\"children\": [[]]}",
	    "[[",
	    "{",
	    ("# only\n\n# a comment\n\n1\tgo\t_\tX\t_\t_\t0\troot\t_\t_\n "
	     "\n1\tgo\t_\tX\t_\t_\t7\troot\t_\t_\n\n# last"),
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (int f = 0; f < IO_AUTO; f++)
			tap_ok(reads_alike(write_file("text", texts[i], strlen(texts[i])), (enum io_format)f),
			       "text %zu as %s, however it is cut", i, formats[f]);
}

/* --- memory --- */

static void keeps_little(void)
{
	struct str text = str_in(&arena);
	struct io_stream stream;
	struct io_text t;
	struct io_view view = {.format = IO_JSON};
	struct io_structure s;
	int n = 0;
	for (int i = 0; i < MANY; i++)
		str_puts(&text, i ? ", {\"children\": [[]]}" : "[{\"children\": [[]]}");
	str_puts(&text, ", oh]");
	tap_ok(io_stream_open(&stream, &allocator_default, write_file("many", str_text(&text), text.n), &t,
			      &diags),
	       "a file is opened");
	stream.chunk = 512;
	while (io_stream_fill(&stream, &t, IO_JSON, &diags) &&
	       io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE)
		n++;
	tap_ok(n == MANY && stream.capacity < 32 * 1024, "%d objects on one line need %zu bytes", n,
	       stream.capacity);
	tap_ok(diags.n == 1 && diags.at[0].line == 1 && diags.at[0].column == (int)text.n - 2,
	       "and the place of a fault is still known");
	diags_free(&diags);
	io_stream_close(&stream);
}

static void refuses_long(void)
{
	struct io_stream stream;
	struct io_text t;
	char text[300] = "(2 a)\n(2 ";
	memset(text + 9, 'b', sizeof text - 9);
	io_stream_open(&stream, &allocator_default, write_file("long", text, sizeof text), &t, &diags);
	stream.chunk = 16;
	stream.limit = 100;
	struct io_view view = {0};
	struct io_structure s;
	tap_ok(io_stream_fill(&stream, &t, IO_BRACKETS, &diags) &&
		   io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE,
	       "a structure before a long one is read");
	tap_ok(!io_stream_fill(&stream, &t, IO_BRACKETS, &diags) && diags.n == 1 && diags.at[0].line == 2 &&
		   refused(DIAG_FILE_TOO_LARGE, "longer than the 100 bytes"),
	       "one beyond the limit is refused where it begins");
	tap_ok(io_stream_fill(&stream, &t, IO_BRACKETS, &diags) &&
		   io_next_structure(&t, &view, &arena, &diags, &s) == IO_END,
	       "and nothing is read behind it");
	io_stream_close(&stream);
}

/* --- pipes --- */

/* What a pipe has given is enough, although its other end is open: else this would wait for ever. */
static void waits_for_no_more(void)
{
	static const char *const whole[] = {"(2 a)", "1\tgo\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
					    "{\"children\": [[]]}", "a b\n"};
	for (int f = 0; f < IO_AUTO; f++) {
		int ends[2];
		struct io_stream stream;
		struct io_text t;
		struct io_view view = {.format = (enum io_format)f};
		struct io_structure s;
		struct str path = str_in(&arena);
		if (pipe(ends) != 0)
			return;
		str_printf(&path, "/proc/self/fd/%d", ends[0]);
		bool ok = io_stream_open(&stream, &allocator_default, str_text(&path), &t, &diags);
		alarm(60);
		for (int i = 0; i < 3; i++) {
			ok &= write(ends[1], whole[f], strlen(whole[f])) == (ssize_t)strlen(whole[f]);
			ok &= io_stream_fill(&stream, &t, IO_AUTO, &diags) &&
			      io_stream_fill(&stream, &t, view.format, &diags) &&
			      io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE;
		}
		tap_ok(accepted(ok) && io_stream_progress(&stream, &t) == 0,
		       "a structure in %s needs no byte behind it", formats[f]);
		close(ends[1]);
		tap_ok(io_stream_fill(&stream, &t, view.format, &diags) &&
			   io_next_structure(&t, &view, &arena, &diags, &s) == IO_END &&
			   io_stream_progress(&stream, &t) == 1,
		       "and the end is found");
		io_stream_close(&stream);
		close(ends[0]);
	}
}

/* A descriptor that does not block is waited for all the same. */
static void waits_without_blocking(void)
{
	int ends[2], saved = dup(STDIN_FILENO);
	struct io_stream stream;
	struct io_text t;
	struct io_view view = {.format = IO_BRACKETS};
	struct io_structure s;
	if (pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		return;
	dup2(ends[0], STDIN_FILENO);
	pid_t writer = fork();
	if (writer == 0) {
		usleep(50000);
		_exit(write(ends[1], "(2 a)", 5) != 5);
	}
	close(ends[1]);
	bool ok = io_stream_open(&stream, &allocator_default, "-", &t, &diags) &&
		  io_stream_fill(&stream, &t, IO_BRACKETS, &diags) &&
		  io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE;
	tap_ok(accepted(ok), "standard input that does not block is waited for");
	io_stream_close(&stream);
	waitpid(writer, NULL, 0);
	dup2(saved, STDIN_FILENO);
	close(saved);
	close(ends[0]);
}

/* The last structure of a file may end with it. */
static void knows_the_end(void)
{
	struct io_stream stream;
	struct io_text t;
	struct io_view view = {.format = IO_BRACKETS};
	struct io_structure s;
	io_stream_open(&stream, &allocator_default, write_file("whole", "(2 a)", 5), &t, &diags);
	bool ok = io_stream_fill(&stream, &t, IO_BRACKETS, &diags) &&
		  io_next_structure(&t, &view, &arena, &diags, &s) == IO_TREE;
	tap_ok(accepted(ok) && io_stream_progress(&stream, &t) == 1,
	       "all of a file is read that ends with its last structure");
	io_stream_close(&stream);
}

/* --- what is no such file --- */

static void refuses_marks(void)
{
	static const struct {
		const char *bytes, *said;
		size_t n;
	} marked[] = {{"\xef\xbb\xbf(2 a)", "UTF-8", 8},
		      {"\xff\xfe(\0002\0", "UTF-16", 6},
		      {"\xfe\xff\0(", "UTF-16", 4}};
	for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
		struct io_stream stream;
		struct io_text t;
		struct io_structure s;
		struct io_view view = {0};
		io_stream_open(&stream, &allocator_default,
			       write_file("marked", marked[i].bytes, marked[i].n), &t, &diags);
		stream.chunk = 1;
		tap_ok(!io_stream_fill(&stream, &t, IO_AUTO, &diags) &&
			   refused(DIAG_BYTE_ORDER_MARK, marked[i].said),
		       "a byte order mark of %s is refused", marked[i].said);
		tap_ok(io_stream_fill(&stream, &t, IO_AUTO, &diags) &&
			   io_next_structure(&t, &view, &arena, &diags, &s) == IO_END,
		       "and is the end");
		io_stream_close(&stream);
	}
}

static void refuses_files(void)
{
	struct io_stream stream;
	struct io_text t;
	tap_ok(!io_stream_open(&stream, &allocator_default, path_of("none"), &t, &diags) &&
		   refused(DIAG_CANNOT_READ, "none"),
	       "a file that is not there is refused");
	io_stream_close(&stream);
	tap_ok(!io_stream_open(&stream, &allocator_default, folder, &t, &diags) &&
		   refused(DIAG_CANNOT_READ, "directory"),
	       "a folder is refused");
	io_stream_close(&stream);
}

int main(void)
{
	begin_tests();
	reads_folder("tests/fuzz/corpus/tree");
	reads_folder("tests/fuzz/corpus/conllu");
	reads_folder("tests/fuzz/corpus/json");
	reads_folder("tests/fuzz/corpus/plain");
	reads_texts();
	keeps_little();
	refuses_long();
	waits_for_no_more();
	waits_without_blocking();
	knows_the_end();
	refuses_marks();
	refuses_files();
	return end_tests();
}
