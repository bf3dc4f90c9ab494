/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a chunk run over some of its rows before the next, and over how many. */
#include "runtime/section.h"
#include "tests/tap.h"

enum { KIB = 1024, L2 = 1024 * KIB, STEPS = 4 };

struct shape {
	int64_t read, weights; /* bytes of a row, of all rows */
	int tile;
	enum image_domain domain;
};

static const struct {
	const char *what;
	int steps;
	struct shape step[STEPS];
	int64_t rows;
	struct rt_section found;
} cases[] = {
    {"images that fill the cache are run one by one", 3,
     {{0, 4 * KIB, 1, IMAGE_DOMAIN_NODES}, {4096 * KIB, 8 * KIB, 1, IMAGE_DOMAIN_NODES}, {4096 * KIB, 8 * KIB, 1, IMAGE_DOMAIN_INPUTS}}, 8,
     {3, 1}},
    {"a step whose weights are more than its intermediates ends a section", 3,
     {{2048 * KIB, 0, 1, IMAGE_DOMAIN_NODES}, {1024 * KIB, 8 * KIB, 1, IMAGE_DOMAIN_NODES}, {16 * KIB, 4096 * KIB, 1, IMAGE_DOMAIN_NODES}}, 8,
     {2, 1}},
    {"a piece has whole tiles, and half the cache", 2,
     {{1, KIB, 1, IMAGE_DOMAIN_NODES}, {100 * KIB, KIB, 2, IMAGE_DOMAIN_NODES}}, 100, {2, 4}},
    {"rows that fit in half the cache run as a whole", 2,
     {{KIB, 0, 1, IMAGE_DOMAIN_NODES}, {KIB, 0, 1, IMAGE_DOMAIN_NODES}}, 512, {2, 512}},
    {"weights that are read by all rows at once", 2,
     {{KIB, 600 * KIB, 4, IMAGE_DOMAIN_NODES}, {KIB, 600 * KIB, 4, IMAGE_DOMAIN_NODES}}, 600, {2, 512}},
    {"a product with large weights is no section", 2,
     {{4 * KIB, 4096 * KIB, 4, IMAGE_DOMAIN_NODES}, {4 * KIB, 4096 * KIB, 4, IMAGE_DOMAIN_NODES}}, 2000, {1, 2000}},
    {"batches of the recursion are not cut", 2,
     {{4096 * KIB, 0, 1, IMAGE_DOMAIN_BATCH}, {4096 * KIB, 0, 1, IMAGE_DOMAIN_BATCH}}, 8, {1, 8}},
    {"there are at most so many pieces", 2, {{512 * KIB, 0, 1, IMAGE_DOMAIN_NODES}, {512 * KIB, 0, 1, IMAGE_DOMAIN_NODES}}, 64000, {2, 1000}},
    {"also of whole tiles", 2, {{512 * KIB, 0, 1, IMAGE_DOMAIN_NODES}, {512 * KIB, 0, 8, IMAGE_DOMAIN_NODES}}, 960, {2, 16}},
    {"one step is no section", 1, {{4096 * KIB, 0, 1, IMAGE_DOMAIN_NODES}}, 8, {1, 8}},
};

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct image_step step[STEPS] = {{0}};
		for (int k = 0; k < cases[i].steps; k++)
			step[k] = (struct image_step){.domain = cases[i].step[k].domain,
						      .rows = cases[i].step[k].tile,
						      .read_bytes = cases[i].step[k].read,
						      .weight_bytes = cases[i].step[k].weights};
		struct rt_section s = rt_find_section(step, cases[i].steps, cases[i].rows, L2);
		if (!tap_ok(s.steps == cases[i].found.steps && s.rows == cases[i].found.rows, "%s", cases[i].what))
			printf("# %d steps, %lld rows\n", s.steps, (long long)s.rows);
	}
	return tap_done();
}
