/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which process this is, seen by it and by its children. */
#include "base/fork.h"
#include "tests/tap.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a check holds in a child. */
static bool in_child(bool (*check)(uint64_t), uint64_t before)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		_exit(!check(before));
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool differs(uint64_t before)
{
	return fork_generation() != before && fork_generation() == fork_generation();
}

static bool grandchild_differs(uint64_t before)
{
	return differs(before) && in_child(differs, fork_generation());
}

static bool is_clean(uint64_t before)
{
	(void)before;
	return !fork_inherited_foreign();
}

static bool is_marred(uint64_t before)
{
	(void)before;
	return fork_inherited_foreign();
}

/* Its own children inherit what it inherited, even when it is idle itself. */
static bool marred_for_good(uint64_t before)
{
	return is_marred(before) && in_child(is_marred, before);
}

static void *ask(void *generation)
{
	*(uint64_t *)generation = fork_generation();
	return NULL;
}

static void *linger(void *pipe)
{
	char byte;
	fork_enter_foreign();
	if (write(((int *)pipe)[1], "x", 1) != 1 || read(((int *)pipe)[2], &byte, 1) != 1)
		printf("# a pipe failed\n");
	fork_leave_foreign();
	return NULL;
}

static void test_foreign(void)
{
	pthread_t thread;
	int to_us[2], to_it[2];
	char byte;
	if (!tap_ok(pipe(to_us) == 0 && pipe(to_it) == 0, "pipes"))
		return;
	pthread_create(&thread, NULL, linger, (int[]){to_us[0], to_us[1], to_it[0]});
	bool there = read(to_us[0], &byte, 1) == 1;
	tap_ok(there && in_child(marred_for_good, 0), "a child knows of the work that was under way");
	tap_ok(is_clean(0), "the parent does not mind");
	there = write(to_it[1], "x", 1) == 1;
	pthread_join(thread, NULL);
	tap_ok(there && in_child(is_clean, 0),
	       "a child that was made after the work's end has inherited nothing");
}

int main(void)
{
	uint64_t generation = fork_generation(), elsewhere = 0;
	pthread_t thread;
	pthread_create(&thread, NULL, ask, &elsewhere);
	pthread_join(thread, NULL);
	tap_ok(generation == fork_generation() && generation == elsewhere,
	       "as long as the process is the same so is the generation, in every thread");
	tap_ok(in_child(differs, generation), "a child has another");
	tap_ok(in_child(grandchild_differs, generation), "and its child yet another");
	tap_ok(generation == fork_generation(), "forking does not change the parent's");
	tap_ok(in_child(is_clean, 0), "a child of an idle process has inherited nothing");
	test_foreign();
	return tap_done();
}
