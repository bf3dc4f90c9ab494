/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random models, whose requests join and leave at random: each has the bits that sessions give it alone.
 *
 *     random_company_test [FIRST COUNT [EACH]]     seeds FIRST .. FIRST+COUNT-1; one in EACH is compiled,
 * else all */
#include "tests/models/generate.h"
#include "tests/sanitizers.h"
#include "tests/serve/company.h"

enum { FIRST = 1, SEEDS = SHADOWED ? 6 : 30, COMPILE_EACH = 20, COMPANY = 14 };

static const struct service services[] = {
    {{4096, 512, 0}, 4, false, NULL, "", false},
    {{4096, 512, 0}, 6, false, NULL, "", true},
    {{160, 7, 60}, 8, true, NULL, "", false}, /* levels, and nodes of one level, take several supersteps */
    {{160, 64, 900}, 8, true, NULL, "", true},
    {{160, 16, 60}, 0, false, NULL, "", false},
};

/* Models whose nodes read all nodes of their input, of all that were served. */
static int reading;

static bool is_served(struct company *c, const struct service *s)
{
	struct attendance a;
	struct serve_engine *e =
	    serve_create(&allocator_default, &c->joined.image, s->limits, &c->joined.diags);
	bool ok = e && serve_all(c, e, s, 0, &a) && serve_count(e).rows == 0;
	print_diags(&c->joined.diags);
	serve_free(e);
	return ok;
}

/* Structures of some 30 nodes, two of which have room for the rows of both. */
static bool is_model_served(const struct test_model *t, const char *backend)
{
	static struct company c;
	struct option_texts o = {.backend = backend,
				 .target = strcmp(backend, "interpreter") == 0 ? "avx2" : "native"};
	bool ok = begin_company(&c, t, o, COMPANY, 16);
	for (size_t i = 0; ok && i < sizeof services / sizeof *services; i++)
		ok = is_served(&c, &services[i]);
	if (c.joined.arena.allocator)
		reading += rt_has_buffer(&c.joined.image, IMAGE_INPUT_OF);
	end_company(&c);
	return ok;
}

/* Scans inside of rows: of many steps, of one, and of more than one length. */
static bool check_scans(const char *sizes)
{
	struct test_model t = {0};
	bool ok = load_model(&t, "tests/models/scan.ra", sizes) && is_model_served(&t, "interpreter") &&
		  (!backend_at(0) || is_model_served(&t, usual_backend()));
	free_model(&t);
	return ok;
}

static bool check_seed(uint64_t seed, bool compile)
{
	static struct generator g;
	char sizes[64];
	struct test_model t = {0};
	const char *text = generate_model(&g, seed, sizes);
	bool ok = load_text(&t, "random", text, strlen(text), sizes) && is_model_served(&t, "interpreter");
	if (ok && compile && backend_at(0))
		ok = is_model_served(&t, usual_backend());
	if (!ok)
		printf("# seed %llu, %s\n%s\n", (unsigned long long)seed, sizes, text);
	free_model(&t);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 2 ? strtoull(argv[1], NULL, 10) : FIRST,
		 count = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS,
		 each = argc > 3   ? strtoull(argv[3], NULL, 10)
			: argc > 2 ? 1
				   : COMPILE_EACH,
		 right = 0;
	skip_backends();
	for (uint64_t i = first; i < first + count; i++)
		right += check_seed(i, each && i % each == 0);
	tap_ok(check_scans("T=1 B=1 D=5 S=9") &&
		   (SHADOWED || (check_scans("T=6 B=3 D=16 S=2") && check_scans("T=9 B=2 D=33 S=1"))),
	       "rows with scans are served with the bits of sessions");
	tap_ok(right == count,
	       "%llu of %llu random models from seed %llu on are served with the bits of sessions",
	       (unsigned long long)right, (unsigned long long)count, (unsigned long long)first);
	if (argc < 2 && !SHADOWED)
		tap_ok(reading > 0, "of these the nodes of %d read all nodes of their input", reading);
	return tap_done();
}
