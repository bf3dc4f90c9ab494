/* Pass: each step becomes a kernel of its own, called over the rows of its domain.  What stands around the
 * steps, the loop over batches and the barriers, is from here on the runtime's: it is the order and the
 * domain of the kernels. Kernels at binding are that already; the program is the last. */
#include "ilir/passes.h"

/* The domain that a step's range says, inside the loop `around` or, NULL, at the top. */
static enum image_domain domain_of(struct ilir_module *m, const struct ilir_stmt *step, const struct ilir_stmt *around)
{
	if (around) {
		bool batch = ilir_at(m, step->step.begin)->op == ILIR_LOAD;
		bool all = ilir_is_const(m, around->loop.begin, 0);
		return batch ? (all ? IMAGE_DOMAIN_BATCH : IMAGE_DOMAIN_INNER)
			     : (all ? IMAGE_DOMAIN_NODE : IMAGE_DOMAIN_INNER_NODE);
	}
	const struct ilir_node *end = ilir_at(m, step->step.end);
	if (end->op != ILIR_SIZE)
		return IMAGE_DOMAIN_ONCE;
	if (!ilir_is_const(m, step->step.begin, 0))
		return IMAGE_DOMAIN_PAST_LEAVES;
	return end->size == IMAGE_LEAVES   ? IMAGE_DOMAIN_LEAVES
	       : end->size == IMAGE_INPUTS ? IMAGE_DOMAIN_INPUTS
					   : IMAGE_DOMAIN_NODES;
}

static void outline_block(struct ilir_module *m, const struct ilir_stmt *s, const struct ilir_stmt *around)
{
	for (; s; s = s->next)
		if (s->kind == ILIR_FOR)
			outline_block(m, s->loop.body, s);
		else if (s->kind == ILIR_STEP)
			vec_push(m->arena, &m->kernels,
				 (struct ilir_kernel){s->step.name, domain_of(m, s, around), s->step.body});
}

void ilir_outline(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	const struct ilir_stmt *whole = m->kernels.at[m->kernels.n - 1].body;
	m->kernels.n--;
	outline_block(m, whole, NULL);
}
