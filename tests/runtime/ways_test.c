/* Ranges shared out in each way, over a fake image whose steps read whole rows of what the step before wrote:
 * the results, and the record of what was called. */
#include "runtime/internal.h"
#include "runtime/profile.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 200, BLOCKS = 5, LANES = 3, WIDTH = BLOCKS * LANES, THREADS = 4, RUNS = 4, MUCH = INT_MAX };
enum { LEFT, RIGHT, HIDDEN, TOTAL, BUFFERS };

/* --- kernels --- */

static float total_of(const float *row)
{
	float sum = 0;
	for (int c = 0; c < WIDTH; c++)
		sum += row[c];
	return sum;
}

typedef float element(void *const *buffers, int64_t node, int column);

static void sweep(void *const *b, int to, element *of, const struct image_range *r)
{
	for (int64_t i = 0, block = r->first; i < r->blocks; i++, block += r->direction)
		for (int64_t n = r->begin; n < r->end; n++)
			for (int c = block * LANES; c < (block + 1) * LANES; c++)
				((float *)b[to])[n * WIDTH + c] = of(b, n, c);
}

/* Small integers, so that sums are exact. */
static float hidden_of(void *const *b, int64_t n, int column)
{
	const int32_t *left = b[LEFT], *right = b[RIGHT];
	float sum = column + 1;
	if (left[n] >= 0)
		sum += total_of((float *)b[HIDDEN] + left[n] * WIDTH);
	if (right[n] >= 0)
		sum += total_of((float *)b[HIDDEN] + right[n] * WIDTH);
	return (int)sum % 97;
}

static float sum_of(void *const *b, int64_t n, int column)
{
	return column + total_of((float *)b[HIDDEN] + n * WIDTH);
}

static void make_hidden(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			int64_t direction)
{
	sweep(b, HIDDEN, hidden_of, &(struct image_range){begin, end, first, blocks, direction});
}

static void make_total(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		       int64_t direction)
{
	sweep(b, TOTAL, sum_of, &(struct image_range){begin, end, first, blocks, direction});
}

/* --- the image --- */

static image_kernel *const kernels[] = {make_hidden, make_total};
static const struct image_buffer buffers[BUFFERS] = {
    [LEFT] = {"left", IMAGE_CHILD, TENSOR_I32, IMAGE_NODES, 0, 1, 0, {0}, {1}, false},
    [RIGHT] = {"right", IMAGE_CHILD, TENSOR_I32, IMAGE_NODES, 1, 1, 0, {0}, {1}, false},
    [HIDDEN] = {"hidden", IMAGE_STATE, TENSOR_F32, IMAGE_NODES, 0, WIDTH, 1, {WIDTH}, {1}, false},
    [TOTAL] = {"total", IMAGE_OUTPUT, TENSOR_F32, IMAGE_NODES, 0, WIDTH, 1, {WIDTH}, {1}, false},
};
static const struct image_output outputs[] = {{.name = "total", .buffer = TOTAL}};
static const struct image_step steps[] = {{0, IMAGE_DOMAIN_LEAVES, 4, MUCH, BLOCKS, 1000},
					  {0, IMAGE_DOMAIN_INNER, 4, MUCH, BLOCKS, 1000},
					  {1, IMAGE_DOMAIN_INNER, 2, MUCH, BLOCKS, 1000}};
static const struct image image = {.children = 2,
				   .buffers = BUFFERS,
				   .buffer = buffers,
				   .steps = 3,
				   .step = steps,
				   .outputs = 1,
				   .output = outputs,
				   .code = {.kernels = kernels}};

/* --- a forest --- */

static int32_t child_begin[NODES + 1], children[NODES], root[NODES];
static struct lin_forest forest = {0, 0, child_begin, children, root, NULL};

static void make_forest(int nodes)
{
	int open[NODES], n = 0, edges = 0;
	for (int i = 0; i < nodes; i++) {
		child_begin[i] = edges;
		if (n >= 2 && rand() % 2) {
			children[edges++] = open[n - 2];
			children[edges++] = open[n - 1];
			n -= 2;
		}
		open[n++] = i;
	}
	child_begin[nodes] = edges;
	memcpy(root, open, n * sizeof *root);
	forest.nodes = nodes;
	forest.inputs = n;
}

/* --- the record --- */

/* Each part, all events: in jobs that go on, one after the other, within their job. */
static bool in_order(const struct rt_profile *p)
{
	for (int part = 0; part < p->parts; part++)
		for (int64_t i = 0; i < p->lane[part].events; i++) {
			const struct rt_event *e = &p->lane[part].event[i];
			const struct rt_job *j = &p->job[e->job];
			if (e->start > e->stop || e->start < j->start || e->stop > j->stop ||
			    e->step < j->step || e->step >= j->step + j->steps ||
			    (i && e->start < e[-1].stop))
				return false;
		}
	for (int64_t i = 0; i + 1 < p->jobs; i++)
		if (p->job[i].stop > p->job[i + 1].start)
			return false;
	return p->phase[0] <= p->phase[1] && p->phase[1] <= p->phase[2] && p->phase[2] <= p->job[0].start &&
	       p->job[p->jobs - 1].stop <= p->phase[RT_PHASES];
}

/* How often each block of each row was computed by a step. */
static bool covered(const struct rt_profile *p, const struct rt_session *s)
{
	static int times[3][NODES][BLOCKS];
	bool once = true;
	memset(times, 0, sizeof times);
	for (int part = 0; part < p->parts; part++)
		for (int64_t i = 0; i < p->lane[part].events; i++) {
			const struct rt_event *e = &p->lane[part].event[i];
			for (int64_t n = e->begin; n < e->end; n++)
				for (int b = e->first; b < e->first + e->blocks; b++)
					times[e->step][n][b]++;
		}
	for (int step = 0; step < 3; step++)
		for (int n = 0; n < s->order.nodes; n++)
			for (int b = 0; b < BLOCKS; b++)
				once &= times[step][n][b] == ((step == 0) == (n < s->order.leaves));
	return once;
}

/* All jobs go the way that was asked for, over the rows of their level, each sweep of a step against the one
 * before. */
static bool as_asked(const struct rt_profile *p, const struct rt_session *s, enum rt_way way)
{
	int direction[3] = {0};
	for (int64_t i = 0; i < p->lane[0].events; i++) {
		const struct rt_event *e = &p->lane[0].event[i];
		if (e->direction == direction[e->step])
			return false;
		direction[e->step] = e->direction;
	}
	for (int64_t i = 0; i < p->jobs; i++) {
		const struct rt_job *j = &p->job[i];
		int64_t begin = j->level < 0 ? 0 : s->order.batch_begin[j->level];
		int64_t end = j->level < 0 ? s->order.leaves : s->order.batch_begin[j->level + 1];
		if (j->way != way || j->begin != begin || j->end != end ||
		    (way == RT_COLUMNS && j->steps != 1))
			return false;
	}
	return true;
}

/* --- runs --- */

static bool run(struct rt_session *s, struct rt_team *team, struct diags *diags)
{
	struct rt_binding binding = {.image = &image};
	return rt_session_run(s, &binding, team, &(struct rt_minibatch){forest, NULL}, diags);
}

static void test_way(enum rt_way way, int threads, const char *name)
{
	struct rt_team team;
	struct rt_session s, alone;
	struct rt_profile p;
	struct diags diags;
	bool same = true, recorded = true;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &allocator_default);
	rt_team_init(&team, &allocator_default, threads);
	team.way = way;
	bool ok = rt_session_init(&s, &allocator_default, &image, &diags);
	ok &= rt_session_init(&alone, &allocator_default, &image, &diags);
	for (int i = 0; ok && i < RUNS; i++) {
		s.profile = i % 2 ? NULL : &p;
		make_forest(NODES - i);
		ok = run(&alone, NULL, &diags) && run(&s, &team, &diags);
		size_t bytes = sizeof(float) * WIDTH * (s.order.nodes - s.order.leaves);
		same &= ok && !memcmp((float *)s.buffers[TOTAL] + s.order.leaves * WIDTH,
				      (float *)alone.buffers[TOTAL] + s.order.leaves * WIDTH, bytes);
		if (s.profile)
			recorded &= !p.lost && p.parts == threads && in_order(&p) && covered(&p, &s) &&
				    as_asked(&p, &s, way);
	}
	tap_ok(ok && same, "%s, %d threads: the same results as alone", name, threads);
	tap_ok(recorded, "%s, %d threads: each block of each row once, as recorded", name, threads);
	rt_team_stop(&team);
	rt_session_free(&s);
	rt_session_free(&alone);
	rt_profile_free(&p);
	diags_free(&diags);
}

/* --- the choice --- */

static enum rt_way chosen(const struct rt_group *g, int64_t rows)
{
	return rt_choose(&(struct rt_question){g, rows, 2, 100});
}

static void test_choice(void)
{
	static const struct image_step lstm[] = {{0, IMAGE_DOMAIN_INNER, 4, 1346048, 32, 82 << 10}};
	static const struct image_step small[] = {{0, IMAGE_DOMAIN_INNER, 4, 2000, 4, 1000}};
	static const struct image_step whole[] = {{0, IMAGE_DOMAIN_INNER, 4, 1346048, 1, 2624 << 10}};
	struct rt_group a = rt_group_of(lstm, 1), b = rt_group_of(small, 1), c = rt_group_of(whole, 1);
	tap_ok(chosen(&a, 1) == RT_COLUMNS && chosen(&a, 3) == RT_COLUMNS,
	       "narrow levels of many weights are shared out by columns");
	tap_ok(chosen(&b, 1) == RT_ALONE && chosen(&b, 10) == RT_ALONE, "little work by nobody");
	tap_ok(chosen(&c, 1) == RT_ALONE && chosen(&c, 64) == RT_ROWS,
	       "what has no columns to share, by rows");
	tap_ok(rt_share(19, 1, 1, 2) == 10 && rt_share(19, 1, 2, 2) == 19, "19 blocks are 10 and 9");
}

/* A record that cannot be kept does not keep the run from ending. */
static void *refuse(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)p, (void)old_size, (void)new_size;
	return NULL;
}

static void test_lost(void)
{
	const struct allocator none = {refuse, NULL};
	struct rt_session s;
	struct rt_profile p;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &none);
	bool ok = rt_session_init(&s, &allocator_default, &image, &diags);
	s.profile = &p;
	tap_ok(ok && run(&s, NULL, &diags) && p.lost && !p.jobs, "without memory a run is not recorded");
	rt_session_free(&s);
	diags_free(&diags);
}

int main(void)
{
	static const char *const names[] = {"rows", "columns"};
	srand(3);
	for (int threads = 2; threads <= THREADS; threads++)
		for (int i = 0; i < 2; i++)
			test_way(RT_ROWS + i, threads, names[i]);
	test_choice();
	test_lost();
	return tap_done();
}
