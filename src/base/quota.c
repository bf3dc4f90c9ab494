/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds the control groups of the process in /proc/self/cgroup, which has a line for each hierarchy,
 *
 *     4:cpu,cpuacct:/service/web       version 1
 *     0::/service/web                  version 2
 *
 * and their folders by /proc/self/mountinfo, which has the mounted group of each hierarchy:
 *
 *     35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw
 */
#include "base/quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer lines and paths are ignored. */
enum { LINE = 4096 };

enum version { V1, V2, VERSIONS };

static const struct {
	const char *type;	    /* of the file system */
	const char *quota, *period; /* files; NULL = the first has both */
} versions[VERSIONS] = {
    [V1] = {"cgroup", "cpu.cfs_quota_us", "cpu.cfs_period_us"},
    [V2] = {"cgroup2", "cpu.max", NULL},
};

struct search {
	const char *root;
	char group[VERSIONS][LINE]; /* of the process, "" = none */
	long long least;	    /* processors; 0 = no quota was found */
};

/* --- files --- */

static FILE *open_below(const struct search *s, const char *folder, const char *name)
{
	char path[LINE];
	int n = snprintf(path, sizeof path, "%s%s/%s", s->root, folder, name);
	return n > 0 && n < LINE ? fopen(path, "re") : NULL;
}

/* The next line without its end, "" for one that is too long. */
static bool read_line(FILE *file, char line[LINE])
{
	if (feof(file) || ferror(file) || !fgets(line, LINE, file))
		return false;
	size_t n = strcspn(line, "\n");
	bool complete = n < LINE - 1;
	line[complete ? n : 0] = 0;
	for (int c = 0; !complete && c != '\n' && c != EOF;)
		c = getc(file);
	return true;
}

static void read_lines(struct search *s, const char *name, void (*read)(struct search *, char *line))
{
	char line[LINE];
	FILE *file = open_below(s, "/proc/self", name);
	while (file && read_line(file, line))
		read(s, line);
	if (file)
		fclose(file);
}

/* --- quotas --- */

/* Reads at most `most` numbers of a file's first line; returns how many there are. */
static int read_numbers(const struct search *s, const char *folder, const char *name, long long *number,
			int most)
{
	char line[LINE] = "", *at = line, *end;
	FILE *file = open_below(s, folder, name);
	bool there = file && read_line(file, line);
	int n = 0;
	if (file)
		fclose(file);
	for (; there && n < most; n++, at = end) {
		number[n] = strtoll(at, &end, 10);
		if (end == at)
			break;
	}
	return n;
}

/* "max" and -1 mean that there is no limit; neither is a positive number. */
static void note_quota(struct search *s, enum version v, const char *folder)
{
	long long number[2];
	const char *period = versions[v].period;
	int n = read_numbers(s, folder, versions[v].quota, number, period ? 1 : 2);
	if (period)
		n += read_numbers(s, folder, period, number + 1, 1);
	if (n < 2 || number[0] <= 0 || number[1] <= 0)
		return;
	long long processors = number[0] / number[1] + (number[0] % number[1] != 0);
	if (!s->least || processors < s->least)
		s->least = processors;
}

/* Reads the quotas from a group up to the mounted one, whose folder has `top` characters. */
static void note_quotas(struct search *s, enum version v, char *folder, size_t top)
{
	for (;;) {
		note_quota(s, v, folder);
		char *last = strrchr(folder + top, '/');
		if (!last)
			return;
		*last = 0;
	}
}

/* --- control groups --- */

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = list; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		if (length == n && memcmp(at, word, n) == 0)
			return true;
		at += length;
	}
	return false;
}

static void read_group(struct search *s, char *line)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return;
	*path++ = 0;
	controllers++;
	if (!*controllers || has_word(controllers, "cpu"))
		strcpy(s->group[*controllers ? V1 : V2], path);
}

/* The path of a group below the mounted one; NULL = the group is elsewhere.  A control group namespace writes
 * the groups above its own as "/..": then the mounted group is above the process's, and the groups between
 * are unknown. */
static const char *path_below(const char *group, const char *mounted)
{
	size_t n = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
	if (strncmp(mounted, "/..", 3) == 0)
		return "";
	if (strncmp(group, mounted, n) != 0 || (group[n] && group[n] != '/') || strstr(group, "/.."))
		return NULL;
	return strcmp(group + n, "/") == 0 ? "" : group + n;
}

/* The fields of a mount that are used, before and after the dash. */
enum { MOUNTED = 3, FOLDER, FIELDS };
enum { TYPE, OPTIONS = 2, FIELDS_AFTER };

/* Cuts a text at its spaces; false when it has fewer fields. */
static bool cut_fields(char *text, char **field, int n)
{
	char *rest;
	for (int i = 0; i < n; i++, text = NULL)
		if (!(field[i] = strtok_r(text, " ", &rest)))
			return false;
	return true;
}

static void read_mount(struct search *s, char *line)
{
	char *field[FIELDS], *after[FIELDS_AFTER], folder[LINE], *dash = strstr(line, " - ");
	if (!dash || !cut_fields(dash + 3, after, FIELDS_AFTER))
		return;
	*dash = 0;
	if (!cut_fields(line, field, FIELDS))
		return;
	for (int v = 0; v < VERSIONS; v++) {
		if (!*s->group[v] || strcmp(after[TYPE], versions[v].type) != 0 ||
		    (v == V1 && !has_word(after[OPTIONS], "cpu")))
			continue;
		const char *below = path_below(s->group[v], field[MOUNTED]);
		int n = below ? snprintf(folder, sizeof folder, "%s%s", field[FOLDER], below) : -1;
		if (n > 0 && n < LINE)
			note_quotas(s, v, folder, strlen(field[FOLDER]));
	}
}

int quota_processors(const char *root)
{
	struct search s = {.root = root};
	read_lines(&s, "cgroup", read_group);
	read_lines(&s, "mountinfo", read_mount);
	return s.least > INT_MAX ? INT_MAX : (int)s.least;
}
