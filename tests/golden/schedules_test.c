/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The page of schedules says what is true: each of its blocks is what the compiler says now.
 *
 *     <!-- MODEL SIZES | STAGE | SCHEDULE | SCHEDULE -->    the second schedule against the first, after a
 * stage
 *     <!-- MODEL SIZES | refused | SCHEDULE -->             why
 *
 * before a fenced block; lines of a schedule are divided by `;`, and an empty one is that which is chosen.
 * With UPDATE_GOLDEN set the page is written anew (make update-golden). */
#include "tests/models/helper.h"

#include <unistd.h>

static const char page_path[] = "doc/schedules.md";

struct page {
	const char *at; /* what is left to read */
	struct str out;
};

struct block {
	char path[180], sizes[180], stage[40], schedule[2][400];
	int schedules;
};

/* --- the page --- */

/* A word up to a bar, without the blanks around it; goes past the bar. */
static const char *word(const char *at, const char *end, char *to, size_t capacity)
{
	while (at < end && *at == ' ')
		at++;
	size_t n = 0;
	for (; at < end && *at != '|'; at++)
		if (n + 1 < capacity)
			to[n++] = *at == ';' ? '\n' : *at;
	while (n && to[n - 1] == ' ')
		n--;
	to[n] = 0;
	return at + (at < end);
}

static bool read_head(const char *line, const char *end, struct block *b)
{
	char what[180];
	*b = (struct block){.schedules = 0};
	if (end - line < 9 || memcmp(line, "<!-- ", 5) != 0)
		return false;
	end -= 4;
	const char *at = word(line + 5, end, what, sizeof what);
	at = word(at, end, b->stage, sizeof b->stage);
	for (; b->schedules < 2 && at < end; b->schedules++)
		at = word(at, end, b->schedule[b->schedules], sizeof b->schedule[0]);
	char *space = strchr(what, ' ');
	if (space)
		*space = 0;
	snprintf(b->path, sizeof b->path, "%s", what);
	snprintf(b->sizes, sizeof b->sizes, "%s", space ? space + 1 : "");
	return true;
}

/* --- what the compiler says --- */

static bool dump(struct test_model *t, const struct block *b, int schedule, struct str *s)
{
	const char *stage = strcmp(b->stage, "refused") == 0 ? "sched" : b->stage,
		   *text = b->schedule[schedule];
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .schedule = *text ? text : NULL};
	return compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, s);
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;
	return (f ? fclose(f) == 0 : false) && ok;
}

/* Lines that differ, with one around them; dots between them. */
static bool put_difference(const char *before, const char *after, struct str *out)
{
	char path[2][40] = {"/tmp/espalier.XXXXXX", "/tmp/espalier.XXXXXX"}, command[160], line[2000];
	bool ok = true, first = true;
	for (int i = 0; i < 2; i++) {
		int fd = mkstemp(path[i]);
		ok &= fd >= 0 && close(fd) == 0 && write_file(path[i], i ? after : before);
	}
	snprintf(command, sizeof command, "diff -d -U1 %s %s", path[0], path[1]);
	FILE *f = ok ? popen(command, "r") : NULL;
	for (int n = 0; f && fgets(line, sizeof line, f); n++) {
		if (n >= 2 && line[0] == '@')
			str_puts(out, first ? "" : "  ...\n");
		else if (n >= 2)
			str_puts(out, line);
		first &= n < 2;
	}
	if (f)
		pclose(f);
	unlink(path[0]);
	unlink(path[1]);
	return f;
}

static bool put_refusal(struct test_model *t, struct str *out)
{
	const struct diag *d = &t->diags.at[0];
	if (!t->diags.n)
		return false;
	str_printf(out, "%s:%d:%d: %s [%s]\n", d->file, d->line, d->column, d->message, diag_spelling(d->id));
	diags_free(&t->diags);
	diags_init(&t->diags, &allocator_default);
	return true;
}

static bool put_block(const struct block *b, struct str *out)
{
	struct test_model t = {0};
	bool ok = load_model(&t, b->path, b->sizes);
	struct str text[2] = {str_in(&t.arena), str_in(&t.arena)};
	if (ok && strcmp(b->stage, "refused") == 0) {
		ok = !dump(&t, b, 0, &text[0]) && put_refusal(&t, out);
	} else if (ok) {
		ok = dump(&t, b, 0, &text[0]) && dump(&t, b, 1, &text[1]);
		print_diags(&t.diags);
		ok = ok && put_difference(str_text(&text[0]), str_text(&text[1]), out);
	}
	free_model(&t);
	return ok;
}

/* --- the whole page --- */

static const char *end_of_line(const char *at)
{
	const char *end = strchr(at, '\n');
	return end ? end : at + strlen(at);
}

static void put_line(struct page *p)
{
	const char *end = end_of_line(p->at);
	str_printf(&p->out, "%.*s\n", (int)(end - p->at), p->at);
	p->at = *end ? end + 1 : end;
}

/* The block behind a head: its fence, what stands in it now, what should, its other fence. */
static void check_block(struct page *p, const struct block *b, struct arena *a)
{
	struct str fresh = str_in(a);
	put_line(p);
	put_line(p);
	const char *begin = p->at;
	while (*p->at && strncmp(p->at, "```", 3) != 0)
		p->at = end_of_line(p->at) + 1;
	bool ok = put_block(b, &fresh);
	size_t length = strlen(str_text(&fresh));
	tap_ok(ok && length && length == (size_t)(p->at - begin) &&
		   memcmp(begin, str_text(&fresh), length) == 0,
	       "%s, %s: %s", b->path, b->stage, b->schedule[b->schedules - 1]);
	str_puts(&p->out, str_text(&fresh));
	put_line(p);
}

int main(void)
{
	size_t length;
	struct arena a;
	struct page p;
	struct block b;
	arena_init(&a, &allocator_default);
	char *text = read_text(source_path(page_path), &length);
	p = (struct page){text ? text : "", str_in(&a)};
	tap_ok(text, "%s is there", page_path);
	while (*p.at)
		if (read_head(p.at, end_of_line(p.at), &b))
			check_block(&p, &b, &a);
		else
			put_line(&p);
	if (getenv("UPDATE_GOLDEN"))
		write_file(source_path(page_path), str_text(&p.out));
	arena_free(&a);
	free(text);
	return tap_done();
}
