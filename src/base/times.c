/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/times.h"

#include <time.h>

double times_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

void times_note(struct times *t, const char *folder, const char *what, double seconds)
{
	if (t)
		vec_push(t->arena, &t->entries, (struct times_entry){folder, what, seconds});
}

double times_since(struct times *t, const char *folder, const char *what, double begin)
{
	double now = times_clock();
	times_note(t, folder, what, now - begin);
	return now;
}

void times_print(const struct times *t, struct str *s)
{
	for (size_t i = 0; i < t->entries.n; i++)
		str_printf(s, "%10.3f ms  %-8s %s\n", t->entries.at[i].seconds * 1e3, t->entries.at[i].folder,
			   t->entries.at[i].what);
}
