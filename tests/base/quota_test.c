/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Processor time that control groups allow, read from folders that look like the system's. */
#include "base/quota.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[] = "/tmp/espalier-test-XXXXXX";

static void shell(const char *format, const char *argument)
{
	char command[500];
	snprintf(command, sizeof command, format, root, argument);
	if (system(command) != 0)
		printf("# %s failed\n", command);
}

/* Takes away what another case has left. */
static void begin(const char *group, const char *mounts)
{
	char path[200];
	shell("rm -rf %s/*", "");
	shell("mkdir -p %s/proc/self", "");
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/proc/self/%s", root, i ? "mountinfo" : "cgroup");
		FILE *f = fopen(path, "w");
		fputs(i ? mounts : group, f);
		fclose(f);
	}
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[300];
	shell("mkdir -p %s/%s", folder);
	snprintf(path, sizeof path, "%s/%s/%s", root, folder, file);
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

#define MOUNT_2 "35 24 0:30 / /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_1 "36 24 0:31 / /cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"

static int with_max(const char *text)
{
	begin("0::/a/b\n", MOUNT_2);
	put("cg/a/b", "cpu.max", text);
	return quota_processors(root);
}

static void version_2(void)
{
	tap_is(with_max("150000 100000\n"), 2, "one and a half processors are two");
	tap_is(with_max("200000 100000\n"), 2, "two are two");
	tap_is(with_max("1000 100000\n"), 1, "a hundredth is one");
	tap_is(with_max("max 100000\n"), 0, "no limit is none");

	begin("0::/a/b\n", MOUNT_2);
	put("cg/a/b", "cpu.max", "max 100000\n");
	put("cg/a", "cpu.max", "300000 100000\n");
	tap_is(quota_processors(root), 3, "the quota of a group above counts");
	put("cg/a/b", "cpu.max", "500000 100000\n");
	tap_is(quota_processors(root), 3, "also when it is less than the group's own");
	put("cg", "cpu.max", "100000 50000\n");
	tap_is(quota_processors(root), 2, "up to what is mounted");

	begin("0::/\n", MOUNT_2);
	put("cg", "cpu.max", "400000 100000\n");
	tap_is(quota_processors(root), 4, "a container sees its own group as the root");
	begin("0::/pod/web\n", "35 24 0:30 /pod /cg rw - cgroup2 cgroup2 rw\n");
	put("cg/web", "cpu.max", "700000 100000\n");
	tap_is(quota_processors(root), 7, "or has a part of the groups mounted");
	begin("0::/pod/web\n", "35 24 0:30 /pods /cg rw - cgroup2 cgroup2 rw\n");
	put("cg", "cpu.max", "700000 100000\n");
	tap_is(quota_processors(root), 0, "groups that are not the process's do not count");
	begin("0::/\n", "35 24 0:30 /../.. /cg rw - cgroup2 cgroup2 rw\n");
	put("cg", "cpu.max", "700000 100000\n");
	tap_is(quota_processors(root), 7, "those above its namespace do");
	begin("0::/../other\n", MOUNT_2);
	put("cg", "cpu.max", "700000 100000\n");
	tap_is(quota_processors(root), 0, "those beside it do not");
}

static void version_1(void)
{
	begin("5:memory:/m\n4:cpu,cpuacct:/a/b\n", MOUNT_1);
	put("cpu/a/b", "cpu.cfs_quota_us", "-1\n");
	put("cpu/a/b", "cpu.cfs_period_us", "100000\n");
	tap_is(quota_processors(root), 0, "version 1: no limit is none");
	put("cpu/a", "cpu.cfs_quota_us", "250000\n");
	put("cpu/a", "cpu.cfs_period_us", "100000\n");
	tap_is(quota_processors(root), 3, "version 1: a quota over its period");
	put("cpu/a/b", "cpu.cfs_quota_us", "90000\n");
	tap_is(quota_processors(root), 1, "version 1: the least of all groups");

	begin("4:cpu,cpuacct:/a\n0::/b\n", MOUNT_1 MOUNT_2);
	put("cpu/a", "cpu.cfs_quota_us", "600000\n");
	put("cpu/a", "cpu.cfs_period_us", "100000\n");
	put("cg/b", "cpu.max", "500000 100000\n");
	tap_is(quota_processors(root), 5, "both versions at once");
	begin("3:cpuacct:/a\n", "36 24 0:31 / /cpu rw - cgroup cgroup rw,cpuacct\n");
	put("cpu/a", "cpu.cfs_quota_us", "600000\n");
	put("cpu/a", "cpu.cfs_period_us", "100000\n");
	tap_is(quota_processors(root), 0, "another controller's hierarchy has no quota");
}

static void what_is_wrong(void)
{
	static const char *const texts[] = {"",	      "\n",	 "max", "100000",	"0 100000",
					    "1 0",    "-5 100",	 "x y", "1 -1",		"100000 max",
					    "9 99 \n"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int wanted = strcmp(texts[i], "9 99 \n") == 0;
		tap_ok(with_max(texts[i]) == wanted, "a cpu.max of text %zu", i);
	}
	tap_is(with_max("99999999999999999999999 1"), INT_MAX, "more than there are numbers for");

	static const char *const lines[] = {"", "\n", "::", "0::", "0:", "0", ":::::\n"};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		begin(lines[i], MOUNT_2);
		put("cg", "cpu.max", "x");
		tap_ok(quota_processors(root) == 0, "groups of text %zu", i);
	}
	static const char *const mounts[] = {"", "\n", " - ", " - cgroup2", " - cgroup2 x rw", "1 2 3 / - cgroup2 x rw"};
	for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
		begin("0::/\n", mounts[i]);
		tap_ok(quota_processors(root) == 0, "mounts of text %zu", i);
	}
	tap_is(quota_processors("/nowhere"), 0, "there are none where no files are");
}

/* Before and after a line that no buffer holds. */
static void long_lines(void)
{
	static char group[20000], mounts[20000];
	memset(group, 'x', sizeof group - 1);
	strcpy(group + 10000, "\n0::/a\n");
	memset(mounts, 'y', sizeof mounts - 1);
	strcpy(mounts + 9000, "\n" MOUNT_2);
	begin(group, mounts);
	put("cg/a", "cpu.max", "300000 100000");
	tap_is(quota_processors(root), 3, "lines that are too long are passed over");
	memcpy(group, "0::/", 4);
	for (int i = 4; i < 10000; i++)
		group[i] = i % 2 ? 'a' : '/';
	group[10000] = 0;
	begin(group, MOUNT_2);
	put("cg", "cpu.max", "300000 100000");
	tap_is(quota_processors(root), 0, "so is a path");
}

int main(void)
{
	if (!mkdtemp(root)) {
		puts("Bail out! no temporary folder");
		return 99;
	}
	version_2();
	version_1();
	what_is_wrong();
	long_lines();
	shell("rm -rf %s", "");
	return tap_done();
}
