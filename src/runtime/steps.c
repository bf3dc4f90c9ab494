#include "runtime/internal.h"

enum granularity { WHOLE, BATCHES, NODES };

/* What a domain means: its rows and the ranges they are cut into. */
static const struct {
	enum image_size rows;
	bool past_leaves; /* begins at the first inner node */
	enum granularity cut;
} domains[] = {
    [IMAGE_DOMAIN_ONCE] = {IMAGE_NODES, false, WHOLE},
    [IMAGE_DOMAIN_LEAVES] = {IMAGE_LEAVES, false, WHOLE},
    [IMAGE_DOMAIN_INNER] = {IMAGE_NODES, true, BATCHES},
    [IMAGE_DOMAIN_INNER_NODE] = {IMAGE_NODES, true, NODES},
    [IMAGE_DOMAIN_BATCH] = {IMAGE_NODES, false, BATCHES},
    [IMAGE_DOMAIN_NODE] = {IMAGE_NODES, false, NODES},
    [IMAGE_DOMAIN_NODES] = {IMAGE_NODES, false, WHOLE},
    [IMAGE_DOMAIN_INPUTS] = {IMAGE_INPUTS, false, WHOLE},
};

/* Steps that take turns: neighbours in the table with one domain. */
struct group {
	const struct image *image;
	const struct image_step *step;
	int steps;
	struct image_frame frame;
	struct diags *diags;
};

static bool run_range(const struct group *g, int64_t begin, int64_t end)
{
	const struct image_code *code = &g->image->code;
	for (int i = 0; i < g->steps && begin < end; i++)
		if (code->kernels)
			code->kernels[g->step[i].kernel](g->frame.buffers, begin, end);
		else if (!code->call(code->self, g->step[i].kernel, &g->frame, begin, end, g->diags))
			return false;
	return true;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states they read. */
static bool run_group(const struct group *g, const int32_t *batch_begin)
{
	enum image_domain domain = g->step->domain;
	const int64_t *sizes = g->frame.sizes;
	bool past_leaves = domains[domain].past_leaves;
	int64_t begin = past_leaves ? sizes[IMAGE_LEAVES] : 0, end = sizes[domains[domain].rows];
	bool ok = true;
	switch (domains[domain].cut) {
	case WHOLE:
		return run_range(g, begin, end);
	case BATCHES:
		for (int64_t b = past_leaves; ok && b < sizes[IMAGE_BATCHES]; b++)
			ok = run_range(g, batch_begin[b], batch_begin[b + 1]);
		break;
	case NODES:
		for (int64_t n = begin; ok && n < end; n++)
			ok = run_range(g, n, n + 1);
		break;
	}
	return ok;
}

bool rt_run_steps(const struct image *image, void *const *buffers, const int64_t *sizes,
		  const int32_t *batch_begin, struct diags *diags)
{
	bool ok = true;
	for (int i = 0, next; ok && i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain;)
			next++;
		struct group g = {image, &image->step[i], next - i, {buffers, sizes}, diags};
		ok = run_group(&g, batch_begin);
	}
	return ok;
}
