/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ways chosen by a clock of the test's own: the cheaper one is found, also when another becomes cheaper, at a machine that is
 * disturbed, and when forests cannot be run. */
#include "serve/choose_way.h"
#include "tests/tap.h"

#include <string.h>

/* What a cell takes in each way at a load, and how many cells a measurement has. */
struct costs {
	int64_t nodes;
	double cell[SERVE_WAYS];
	bool runs[SERVE_WAYS]; /* whether that way can be taken */
};

static struct serve_ways ways;
static unsigned random_number;

static unsigned draw(unsigned n)
{
	random_number = random_number * 1664525u + 1013904223u;
	return (random_number >> 16) % n;
}

static void forget_all(void)
{
	memset(&ways, 0, sizeof ways);
	random_number = 1;
}

/* Every fiftieth measurement is disturbed: it takes ten times as long.  Returns the share of cells by forests. */
static double run_costs(const struct costs *c, int measurements)
{
	static const int64_t cells[SERVE_WAYS] = {[SERVE_BY_CELLS] = 70, [SERVE_BY_FOREST] = 500};
	int64_t computed[SERVE_WAYS] = {0};
	for (int i = 0; i < measurements; i++) {
		enum serve_way way = serve_choose_way(&ways, c->nodes + draw(9));
		int64_t n = c->runs[way] ? cells[way] : 0;
		double time = (double)n * c->cell[way] * (draw(50) ? 1 : 10);
		serve_note_way(&ways, way, n, (int64_t)time);
		computed[way] += n;
	}
	return (double)computed[SERVE_BY_FOREST] / (double)(computed[SERVE_BY_CELLS] + computed[SERVE_BY_FOREST]);
}

static void test_cheaper(void)
{
	static const struct costs forests = {400, {100, 80}, {true, true}}, cells = {400, {80, 100}, {true, true}};
	forget_all();
	double first = run_costs(&forests, 3000), later = run_costs(&forests, 20000);
	tap_ok(first > .9 && later > .97, "forests that take a fifth less: %.3f of the cells, later %.3f", first, later);
	double changed = run_costs(&cells, 60000), settled = run_costs(&cells, 20000);
	tap_ok(settled < .1, "when cells become cheaper, forests have %.3f of them, later %.3f", changed, settled);
	forget_all();
	first = run_costs(&cells, 3000), later = run_costs(&cells, 20000);
	tap_ok(first < .6 && later < .1, "cells that take a fifth less: forests have %.3f of them, later %.3f", first, later);
}

static void test_loads(void)
{
	static const struct costs few = {20, {50, 90}, {true, true}}, many = {900, {100, 60}, {true, true}};
	forget_all();
	run_costs(&few, 3000);
	run_costs(&many, 3000);
	double at_few = run_costs(&few, 200), at_many = run_costs(&many, 200);
	tap_ok(at_few < .7 && at_many > .8, "each load has its own way: %.3f of the cells by forests, and %.3f", at_few, at_many);
	const int now = ways.now;
	serve_choose_way(&ways, 1);
	serve_choose_way(&ways, INT64_MAX);
	tap_ok(ways.now >= now && ways.now < SERVE_LOADS, "any number of nodes is a load");
}

/* A forest that never fits: its trials end, and become rare. */
static void test_failing(void)
{
	static const struct costs never = {400, {100, 1}, {true, false}};
	int asked = 0;
	forget_all();
	run_costs(&never, 20000);
	for (int i = 0; i < 5000; i++) {
		enum serve_way way = serve_choose_way(&ways, 400);
		asked += way == SERVE_BY_FOREST;
		serve_note_way(&ways, way, way == SERVE_BY_FOREST ? 0 : 70, 7000);
	}
	tap_ok(asked < 50, "forests that cannot be run are asked for %d times in 5000", asked);
}

int main(void)
{
	test_cheaper();
	test_loads();
	test_failing();
	return tap_done();
}
