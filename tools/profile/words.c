/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

const char *over_word(int over)
{
	static const char *const words[] = {[ESP_OVER_NODES] = "nodes",
					    [ESP_OVER_LEAVES] = "leaves",
					    [ESP_OVER_INNER] = "inner nodes",
					    [ESP_OVER_STRUCTURES] = "structures",
					    [ESP_OVER_EDGES] = "edges"};
	return over >= 0 && over < (int)(sizeof words / sizeof *words) ? words[over] : "rows";
}

const char *split_word(int split)
{
	static const char *const words[] = {
	    [ESP_SPLIT_NONE] = "alone",
	    [ESP_SPLIT_ROWS] = "rows",
	    [ESP_SPLIT_COLUMNS] = "columns",
	    [ESP_SPLIT_SUBTREES] = "subtrees"};
	return split >= 0 && split < (int)(sizeof words / sizeof *words) ? words[split] : "?";
}

void range_name(int over, int64_t level, char *name, size_t size)
{
	if (level < 0 || over == ESP_OVER_LEAVES)
		snprintf(name, size, "%s", over_word(over));
	else
		snprintf(name, size, "level %lld", (long long)level);
}

double giga_per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds * 1e-9 : 0;
}

double fraction_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}
