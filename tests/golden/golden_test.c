/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The text after every stage of the compiler, for small models, against files.  With UPDATE_GOLDEN set the files are
 * written anew (make update-golden): read the difference before you keep it. */
#include "tests/models/helper.h"

static const struct {
	const char *model, *sizes;
	const char *schedule, *folder; /* NULL = chosen; where the files are */
	const char *last;	       /* the last stage, NULL = all before the back end */
	bool narrow;		       /* it has products of narrow integers */
	const char *precision;	       /* of products, NULL = f32 */
	const char *calibrated;	       /* a product that has a calibrated bound; NULL = none has */
	bool observing;
	const char *accelerator; /* NULL = none */
	const char *target;	 /* NULL = avx2 */
} models[] = {
    {"cell", "D=10 V=7", NULL, "cell", NULL, false, NULL, NULL, false, NULL, NULL},
    {"gated", "D=3 X=2", NULL, "gated", NULL, false, NULL, NULL, false, NULL, NULL},
    {"cell", "D=10 V=7", "layout h parent\n", "cell-parent", "infer_bounds", false, NULL, NULL, false, NULL, NULL},
    {"gated", "D=3 X=2", "layout h parent\n", "gated-parent", "infer_bounds", false, NULL, NULL, false, NULL, NULL},
    {"steps", "D=4", NULL, "steps", "outline", false, NULL, NULL, false, NULL, NULL},
    {"edges", "D=16 V=9", NULL, "edges", "refactor", false, NULL, NULL, false, NULL, NULL},
    {"labels", "D=10 V=7 R=3", NULL, "labels", "pack", false, NULL, NULL, false, NULL, NULL},
    {"labels", "D=10 V=7 R=3", "sort all\n", "sorted", "pack", false, NULL, NULL, false, NULL, NULL},
    {"down", "D=32 V=7", NULL, "down", "outline", false, NULL, NULL, false, NULL, NULL},
    {"seam", "", NULL, "seam", "boxes", false, NULL, NULL, false, NULL, NULL},
    {"nest", "C=2 D=8 H=5", NULL, "nest", "lower", false, NULL, NULL, false, NULL, NULL},
    {"scores", "T=32 D=32", NULL, "scores", "lower", false, NULL, NULL, false, NULL, NULL},
    {"mlp", "E=6 H=10", NULL, "mlp", "outline", false, NULL, NULL, false, NULL, NULL},
    {"conv", "C=2 H=6 K=4 F=3", NULL, "conv", "lower", false, NULL, NULL, false, NULL, NULL},
    {"pixels", "C=40 H=4 K=3", NULL, "pixels", "lower", false, NULL, NULL, false, NULL, NULL},
    {"conv", "C=2 H=6 K=4 F=3", "mutate output.v7 part 2 2 batch\n", "mutated", "mutate", false, NULL, NULL, false, NULL, NULL},
    {"dilated", "", "mutate output.v7 phase 1 2 batch\nmutate output.v12 phase 1 2 batch\n", "dilated", "cancel", false, NULL, NULL, false, NULL, NULL},
    {"windows", "C=2 X=80",
     "vectorize 16\ntile leaf.0 nodes 1 columns 1 unroll 3\ntile leaf.1 nodes 1 columns 1 unroll 3\n",
     "windows", "align_loads", false, NULL, NULL, false, NULL, NULL},
    {"heads", "T=32", NULL, "heads", "pack", false, NULL, NULL, false, NULL, NULL},
    {"dot", "K=10 N=20", NULL, "dot", "pack", true, NULL, NULL, false, NULL, NULL},
    {"quantised", "D=16", NULL, "quantised", "group", true, "i16", NULL, false, NULL, NULL},
    {"quantised", "D=16", NULL, "limbs", "lower", true, "i16", NULL, false, NULL, "amx"},
    {"counted", "D=16", NULL, "counted", "lower", true, "i8", NULL, false, NULL, NULL},
    {"quantised", "D=16", NULL, "calibrated", "group", true, "i8", "W*x", false, NULL, NULL},
    {"quantised", "D=16", NULL, "observed", "observe", false, NULL, NULL, true, NULL, NULL},
    {"bytes", "C=8 H=16 K=32", NULL, "bytes", "lower", true, NULL, NULL, false, NULL, NULL},
    {"network", "", NULL, "network", "cut", false, NULL, NULL, false, "vta", NULL},
    {"quantised", "D=16", NULL, "quantised-bf16", "group", false, "bf16", NULL, false, NULL, NULL},
    {"quantised", "D=40", NULL, "quantised-bf16x3", "group", false, "bf16x3", NULL, false, NULL, NULL},
    {"quantised", "D=40", "tile leaf.1 nodes 2 1 columns 1 unroll 1\ntile inner.1 nodes 2 1 columns 1 unroll 1\n", "blocks", "use_matrices", true, "bf16x1", NULL, false, NULL, "amx"},
    {"quantised", "D=16", NULL, "quantised-i8x3", "group", true, "i8x3", NULL, false, NULL, NULL},
    {"twobytes", "D=16", NULL, "twobytes", "quantise", true, "i8x3", NULL, false, NULL, NULL},
    {"quantised", "D=16", NULL, "quantised-f16", "lower", true, "f16", NULL, false, NULL, NULL},
    {"dot", "K=160 N=20", "tile output.1 nodes 2 1 columns 1 unroll 1\n", "tiles", "pipeline", true, NULL, NULL, false, NULL, "amx"},
};

static bool write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;
	return (f ? fclose(f) == 0 : false) && ok;
}

/* Shows the first line that differs. */
static bool same_text(const char *text, const char *expected)
{
	int line = 1;
	for (; *text && *text == *expected; text++, expected++)
		line += *text == '\n';
	if (*text == *expected)
		return true;
	printf("# line %d: '%.40s', expected '%.40s'\n", line, text, expected);
	return false;
}

static void test_stage(struct test_model *t, size_t i, const char *stage)
{
	char path[200];
	size_t length;
	struct option_texts o = {.backend = "interpreter", .target = models[i].target ? models[i].target : "avx2", .schedule = models[i].schedule, .precision = models[i].precision, .observing = models[i].observing, .accelerator = models[i].accelerator};
	struct rewrite_calibrated product = {.name = models[i].calibrated};
	struct rewrite_calibration calibration = {.n = 1, .product = &product};
	o.calibration = product.name ? &calibration : NULL;
	const char *model = models[i].folder;
	struct str s = str_in(&t->arena);
	snprintf(path, sizeof path, "tests/golden/%s/%s.txt", model, stage);
	bool ok = compile_dump_as(&t->arena, &t->diags, t->model, t->sizes, &o, stage, &s);
	print_diags(&t->diags);
	if (getenv("UPDATE_GOLDEN"))
		write_text(source_path(path), str_text(&s));
	char *expected = read_text(source_path(path), &length);
	tap_ok(ok && expected && same_text(str_text(&s), expected), "%s after %s", model, stage);
	free(expected);
}

/* Whether a stage shows what an accelerator computes. */
static bool is_of_split(const char *stage)
{
	return strcmp(stage, "q") == 0 || strcmp(stage, "split") == 0 || strcmp(stage, "packing") == 0 || strcmp(stage, "cut") == 0;
}

/* Whether a stage shows mutants, of models whose schedule chooses one. */
static bool is_of_mutants(const char *stage)
{
	return strcmp(stage, "mutants") == 0 || strcmp(stage, "checked-mutants") == 0 || strcmp(stage, "mutate") == 0 || strcmp(stage, "cancel") == 0;
}

static bool has_mutants(size_t i)
{
	return models[i].schedule && strncmp(models[i].schedule, "mutate", 6) == 0;
}

static void test_stages(struct test_model *t, size_t i)
{
	const char *stage;
	for (size_t k = 0; (stage = compile_stage(k)) && strcmp(stage, "ilir") != 0; k++) {
		bool once = strcmp(stage, "choices") == 0; /* they are many lines */
		bool same = strcmp(stage, "fold") == 0 || strcmp(stage, "narrow") == 0 || /* as subop */
			    (strcmp(stage, "group") == 0 && !models[i].narrow) ||
			    (is_of_mutants(stage) && !has_mutants(i)) ||
			    (is_of_split(stage) && !models[i].accelerator) ||
			    (strcmp(stage, "observe") == 0 && !models[i].observing) ||
			    (strcmp(stage, "quantise") == 0 && !models[i].precision);
		if (!same && (i == 0 || !once))
			test_stage(t, i, stage);
		if (models[i].last && strcmp(stage, models[i].last) == 0)
			break;
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct test_model t = {0};
		char path[200];
		snprintf(path, sizeof path, "tests/golden/%s.ra", models[i].model);
		if (tap_ok(load_model(&t, path, models[i].sizes), "%s parsed", path))
			test_stages(&t, i);
		free_model(&t);
	}
	return tap_done();
}
