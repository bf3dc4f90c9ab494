/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the n-th request while an ONNX file is read and imported, for every n, and for every file
 * of the fuzz corpus: a status, nothing lost, and the same verdict as before when it is read again. */
#include "tests/api/support.h"

#include <glob.h>

enum { MOST_REQUESTS = 120 /* that are refused, of one file: evenly, or all with ESPALIER_STRIDE=1 */ };

struct subject {
	const char *path;
	esp_context *context;
	struct account account;
	char id[40]; /* of the diagnostic that refuses it; "" = it is read */
};

/* Reads a model with its weights, and lets both go. */
static esp_status read_once(struct subject *s, esp_error **error)
{
	esp_model *model = NULL;
	esp_weights *weights = NULL;
	esp_status status = esp_model_read(s->context, s->path, &model, error);
	if (!status)
		status = esp_model_weights(model, &weights, error);
	esp_weights_free(weights);
	esp_model_free(model);
	return status;
}

static void set_id(char *id, size_t n, const esp_error *error)
{
	snprintf(id, n, "%s", esp_error_count(error) ? esp_error_get(error, 0)->id : "");
}

/* The requests of one reading; sets the verdict. */
static long count_requests(struct subject *s)
{
	enum { MANY = 1 << 28 };
	esp_error *error;
	s->account.left = MANY;
	read_once(s, &error);
	long n = MANY - s->account.left;
	s->account.left = -1;
	set_id(s->id, sizeof s->id, error);
	esp_error_free(error);
	return n;
}

/* Whether a reading whose n-th request is refused is told as such, or as before, where what failed was not needed. */
static bool refuse_request(struct subject *s, long n)
{
	char id[40];
	esp_error *error;
	long blocks = s->account.blocks, bytes = s->account.bytes;
	s->account.left = n;
	esp_status status = read_once(s, &error);
	s->account.left = -1;
	set_id(id, sizeof id, error);
	esp_error_free(error);
	bool told = status == ESP_ERROR_MEMORY || strcmp(id, s->id) == 0;
	bool kept = s->account.blocks == blocks && s->account.bytes == bytes;
	if (!told || !kept)
		printf("# request %ld: status %d, %s%s\n", n, status, id, kept ? "" : "; something is lost");
	return told && kept;
}

static void test_file(const char *path)
{
	struct subject s = {.path = path, .account = {.left = -1}};
	const esp_context_options o = memory_of(&s.account);
	const char *stride = getenv("ESPALIER_STRIDE");
	char before[40];
	esp_context_create(&o, &s.context, NULL);
	count_requests(&s); /* names that diagnostics keep once are made */
	long n = count_requests(&s), step = stride ? atol(stride) : n / MOST_REQUESTS + 1;
	bool good = true;
	strcpy(before, s.id);
	for (long i = 0; i < n; i += step)
		good &= refuse_request(&s, i);
	count_requests(&s);
	tap_ok(good && strcmp(before, s.id) == 0, "%s (%s): each of %ld requests may fail", strrchr(path, '/') + 1,
	       *s.id ? s.id : "read", n);
	esp_context_free(s.context);
	tap_ok(!s.account.blocks && !s.account.bytes && !s.account.wrong, "and all is given back");
}

int main(void)
{
	const char *srcdir = getenv("srcdir");
	char pattern[1000];
	glob_t found = {0};
	/* The reader knows a model by its first byte: the names have no ending. */
	snprintf(pattern, sizeof pattern, "%s/tests/fuzz/corpus/onnx/*", srcdir ? srcdir : ".");
	bool some = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 30;
	tap_ok(some, "there are %zu files", found.gl_pathc);
	for (size_t i = 0; i < found.gl_pathc; i++)
		test_file(found.gl_pathv[i]);
	globfree(&found);
	return tap_done();
}
