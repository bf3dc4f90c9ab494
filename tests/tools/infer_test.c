/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests and responses, as texts: what is refused is explained, limits hold, memory that runs out
 * is told and comes back. */
#include "tests/tools/served.h"

/* --- memory that runs out: the linker sends calls here --- */

static long blocks, left = -1; /* blocks that are out; requests until one fails, below 0 = never */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
char *__real_strdup(const char *);
void __real_free(void *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
char *__wrap_strdup(const char *);
void __wrap_free(void *);

/* Whether this request is refused; otherwise a block is taken. */
static bool refuses(bool fresh)
{
	if (left >= 0 && left-- == 0) {
		left = 0;
		return true;
	}
	blocks += fresh;
	return false;
}

void *__wrap_malloc(size_t n)
{
	return refuses(true) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuses(true) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return refuses(!p) ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return refuses(true) ? NULL : __real_strdup(s);
}

void __wrap_free(void *p)
{
	blocks -= p != NULL;
	__real_free(p);
}

/* --- responses --- */

static char *infer(struct served *s, const char *body)
{
	struct infer_failure f = {0};
	return respond(s, infer_parse(&s->model, NULL, NULL, body, strlen(body), &f), &f);
}

static char *run_text(struct served *s, const char *type, const char *body)
{
	struct infer_failure f = {0};
	return respond(s, infer_parse_text(&s->model, NULL, type, body, strlen(body), &f), &f);
}

static void is_text(char *got, const char *wanted, const char *what)
{
	bool ok = got && strcmp(got, wanted) == 0;
	if (!ok)
		printf("# got    %s\n# wanted %s\n", got ? got : "nothing", wanted);
	tap_ok(ok, "%s", what);
	free(got);
}

/* --- golden texts, of tests/api/support.h's model --- */

#define DESCRIBED                                                                                            \
	"{\"name\":\"m\",\"versions\":[\"7\"],\"platform\":\"espalier\",\"inputs\":["                        \
	"{\"name\":\"word\",\"datatype\":\"INT32\",\"shape\":[-1]},"                                         \
	"{\"name\":\"child_begin\",\"datatype\":\"INT32\",\"shape\":[-1]},"                                  \
	"{\"name\":\"children\",\"datatype\":\"INT32\",\"shape\":[-1]},"                                     \
	"{\"name\":\"structure_begin\",\"datatype\":\"INT32\",\"shape\":[-1]},"                              \
	"{\"name\":\"root\",\"datatype\":\"INT32\",\"shape\":[-1]},"                                         \
	"{\"name\":\"structure\",\"datatype\":\"BYTES\",\"shape\":[-1]}],\"outputs\":["                      \
	"{\"name\":\"twice\",\"datatype\":\"FP32\",\"shape\":[-1,2]},"                                       \
	"{\"name\":\"total\",\"datatype\":\"FP32\",\"shape\":[-1]},"                                         \
	"{\"name\":\"structure_begin\",\"datatype\":\"INT64\",\"shape\":[-1]}]}\n"

#define WORD(n, data) "{\"name\":\"word\",\"shape\":[" n "],\"datatype\":\"INT32\",\"data\":[" data "]}"
#define INDEX(name, n, data)                                                                                 \
	",{\"name\":\"" name "\",\"shape\":[" n "],\"datatype\":\"INT32\",\"data\":[" data "]}"
#define PAIR WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,2") INDEX("children", "2", "0,1")
#define PAIRS                                                                                                \
	WORD("4", "2,0,1,-1")                                                                                \
	INDEX("child_begin", "5", "0,0,0,0,2")                                                               \
	INDEX("children", "2", "1,2") INDEX("structure_begin", "3", "0,1,4")
#define INPUTS(list) "{\"inputs\":[" list "]}"
#define ANSWER(id, outputs) "{\"model_name\":\"m\",\"model_version\":\"1\"" id ",\"outputs\":[" outputs "]}\n"
#define TWICE(n, data) "{\"name\":\"twice\",\"datatype\":\"FP32\",\"shape\":[" n ",2],\"data\":[" data "]}"
#define TOTAL(n, data) "{\"name\":\"total\",\"datatype\":\"FP32\",\"shape\":[" n "],\"data\":[" data "]}"
#define BEGINS(n, data)                                                                                      \
	"{\"name\":\"structure_begin\",\"datatype\":\"INT64\",\"shape\":[" n "],\"data\":[" data "]}"

static void test_protocol(struct served *s)
{
	size_t n;
	is_text(infer_describe_server(&n),
		"{\"name\":\"espalier\",\"version\":\"" ESP_VERSION "\",\"extensions\":[]}\n",
		"the server is described");
	is_text(infer_describe_model(&s->model, 7, &n), DESCRIBED, "a model is described");
	is_text(infer_write_error("a \"b\" \xff\n", &n), "{\"error\":\"a \\\"b\\\" \\ufffd\\u000a\"}\n",
		"an error is written, whatever its message");
	is_text(infer(s, INPUTS(PAIR)), ANSWER("", TWICE("3", "2,4,6,8,10,10") "," TOTAL("1", "10")),
		"a structure is answered, all outputs in order");
	is_text(
	    infer(
		s,
		"{\"id\":\"q\\u00e9\\\"\",\"outputs\":[{\"name\":\"structure_begin\"},{\"name\":\"total\"}],"
		"\"more\":{\"deep\":[null]},\"inputs\":[" PAIRS "]}"),
	    ANSWER(",\"id\":\"q\xc3\xa9\\\"\"", BEGINS("3", "0,1,4") "," TOTAL("2", "11,10")),
	    "so are two, with the outputs that were asked for");
}

static void test_structure_texts(struct served *s)
{
	is_text(
	    infer(s,
		  INPUTS("{\"name\":\"structure\",\"shape\":[3],\"datatype\":\"BYTES\",\"data\":[\"(2 (2 a) "
			 "(2 b))\","
			 "\"{\\\"children\\\":[[]],\\\"data\\\":{\\\"word\\\":[2]}}\",\" (1 \\u0061) \"]}")),
	    ANSWER("", TWICE("5", "2,4,6,8,10,10,10,12,2,4") "," TOTAL("3", "10,11,3")),
	    "structures are given as texts");
	is_text(
	    run_text(s, NULL, "(2 (2 a) (2 b))\n(2 c)\n"),
	    "{\"tree\":0,\"nodes\":3,\"sentence\":\"a "
	    "b\",\"outputs\":{\"twice\":[[2,4],[6,8],[10,10]],\"total\":[10]}}\n"
	    "{\"tree\":1,\"nodes\":1,\"sentence\":\"c\",\"outputs\":{\"twice\":[[10,12]],\"total\":[11]}}\n",
	    "brackets are answered by lines");
	is_text(
	    run_text(s, "Application/JSON; charset=utf-8",
		     "[{\"children\":[[]],\"data\":{\"word\":[0]},\"text\":\"\\\"\"}]"),
	    "{\"tree\":0,\"nodes\":1,\"sentence\":\"\\\"\",\"outputs\":{\"twice\":[[2,4]],\"total\":[3]}}\n",
	    "so is JSON");
	struct infer_failure f = {0};
	struct infer_request *r = infer_parse_text(&s->model, NULL, "text/plain", "(1 a)", 5, &f);
	tap_ok(r && strcmp(infer_type(r), "application/x-ndjson") == 0 && infer_nodes(r) == 1,
	       "with the type of lines");
	infer_free(r);
}

/* --- refusals --- */

static const struct refusal {
	const char *body, *message; /* a part of it */
	int status;
} refusals[] = {
    {"", "a '{' is missing here", 400},
    {"[]", "byte 0: a '{' is missing here", 400},
    {"{\"inputs\":[" PAIR "]} x", "text behind the request", 400},
    {"{\"inputs\":[" PAIR "]", "a ',' is missing here", 400},
    {"{}", "no \"inputs\"", 400},
    {"{\"inputs\":[],\"inputs\":[]}", "second \"inputs\"", 400},
    {"{\"id\":7}", "a string is missing here", 400},
    {"{\"id\":\"\\u0000\"}", "an escape that JSON does not have", 400},
    {"{\"id\":\"\xff\"}", "no UTF-8", 400},
    {"{\"id\":\"\\ud800\"}", "an escape", 400},
    {"{\"parameters\":{\"deadline_ms\":0}}", "'deadline_ms' must be a number of milliseconds above 0", 400},
    {"{\"parameters\":{\"deadline_ms\":1e400}}", "'deadline_ms'", 400},
    {"{\"parameters\":{\"priority\":1001}}", "'priority' must be a whole number from -1000 to 1000", 400},
    {"{\"parameters\":{\"priority\":1.5}}", "'priority'", 400},
    {"{\"parameters\":{},\"parameters\":{}}", "second \"parameters\"", 400},
    {"{\"outputs\":[{\"name\":\"none\"}]}", "no output 'none'", 400},
    {"{\"outputs\":[{\"name\":\"total\"},{\"name\":\"total\"}]}", "asked for twice", 400},
    {"{\"outputs\":[{}]}", "an output has no \"name\"", 400},
    {INPUTS("{\"name\":\"wrod\",\"shape\":[1],\"datatype\":\"INT32\",\"data\":[1]}"),
     "no input 'wrod': tensors are word, child_begin", 400},
    {INPUTS(PAIR "," WORD("1", "0")), "'word' is there twice", 400},
    {INPUTS("{\"name\":\"word\",\"name\":\"word\"}"), "a second time", 400},
    {INPUTS(
	 "{\"name\":\"word\",\"shape\":[1],\"datatype\":\"INT32\",\"parameters\":{\"binary_data_size\":4}}"),
     "'word' has no \"data\"", 400},
    {INPUTS("{\"shape\":[1],\"datatype\":\"INT32\",\"data\":[0]}"), "has no \"name\"", 400},
    {INPUTS(WORD("-1", "0")), "shape[0] is no whole number", 400},
    {INPUTS(WORD("2147483648", "0")), "shape[0] is no whole number", 400},
    {INPUTS(WORD("1,1,1,1,1,1,1,1,1", "0")), "more than 8 axes", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,2")), "tensor 'children' is missing", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("children", "2", "0,1")), "'children' without 'child_begin'", 400},
    {INPUTS("{\"name\":\"child_begin\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[0,0]}"),
     "tensor 'word' is missing: the model reads INT32, whose shape must be [1]", 400},
    {INPUTS("{\"name\":\"root\",\"shape\":[1],\"datatype\":\"INT64\",\"data\":[0]}"),
     "no tensor says how many nodes", 400},
    {INPUTS(WORD("0", "")), "a node at least", 400},
    {INPUTS(WORD("3,1", "0,1,-1")), "'word' has the shape [3, 1]: it must be [3]", 400},
    {INPUTS(WORD("", "")), "no tensor says", 400},
    {INPUTS("{\"name\":\"word\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[0]}"),
     "'word' has the datatype 'FP32': it must be INT32 or INT64", 400},
    {INPUTS(WORD("1", "0.5")), "'word', element 0: a whole number from -2147483648", 400},
    {INPUTS(WORD("1", "2147483648")), "'word', element 0: a whole number", 400},
    {INPUTS(WORD("1", "99999999999999999999999")), "'word', element 0: a whole number", 400},
    {INPUTS(WORD("2", "0,null")), "'word', element 1: a number is missing here", 400},
    {INPUTS(WORD("1", "0,1")), "'word': its data has more elements than the 1 elements", 400},
    {INPUTS(WORD("3", "0,1")), "'word': its data has fewer elements", 400},
    {INPUTS(WORD("30", "0,1")), "'word': its data has fewer elements", 400},
    {INPUTS(WORD("2", "0 1")), "'word', element 1: a ',' is missing", 400},
    {INPUTS(WORD("1", "[0]")), "'word', element 0: a list stands here", 400},
    {INPUTS(WORD("1", "0")) "}", "text behind", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "1,1,1,2") INDEX("children", "2", "0,1")),
     "'child_begin', element 0 is 1: numbers begin with 0", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,3,0,2") INDEX("children", "2", "0,1")),
     "'child_begin', element 1 is 3", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,-2") INDEX("children", "2", "0,1")),
     "'child_begin', element 1", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,2") INDEX("children", "3", "0,1,1")),
     "'children' has the shape [3]: it must be [2]", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,2") INDEX("children", "2", "0,3")),
     "'children', element 1 is 3: structure 0 has the nodes 0 to 2", 400},
    {INPUTS(WORD("3", "0,1,-1") INDEX("child_begin", "4", "0,0,0,2") INDEX("children", "2", "0,1")
		INDEX("structure_begin", "3", "0,1,3")),
     "'children', element 0 is 0: structure 1 has the nodes 1 to 2", 400},
    {INPUTS(PAIR INDEX("structure_begin", "3", "0,0,3")),
     "'structure_begin', element 1 is 0: numbers begin with 0, go up", 400},
    {INPUTS(PAIR INDEX("structure_begin", "2", "0,2")), "'structure_begin' ends with 2: it must end with 3",
     400},
    {INPUTS(PAIR INDEX("structure_begin", "1", "0")), "an element more than there are structures", 400},
    {INPUTS(PAIR INDEX("root", "1", "3")), "'root', element 0 is 3: structure 0 has the nodes 0 to 2", 400},
    {INPUTS(PAIR INDEX("root", "2", "2,2")), "'root' has the shape [2]: it must be [1]", 400},
    {INPUTS(PAIR INDEX("structure", "1", "0")), "'structure' and 'word' exclude each other", 400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[1],\"datatype\":\"INT32\",\"data\":[0]}"), "it must be BYTES",
     400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[0],\"datatype\":\"BYTES\",\"data\":[]}"), "one at least",
     400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[7]}"),
     "'structure', element 0: a string is missing", 400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"\"]}"),
     "'structure', element 0", 400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"(1 a) (1 b)\"]}"),
     "'structure', element 0 has 2 structures: it must have one", 400},
    {INPUTS("{\"name\":\"structure\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"(1 a)\",\"(1 z)\"]}"),
     "'structure', element 1, line 1: ", 400},
};

static bool is_refusal(const struct infer_failure *f, int status, const char *message)
{
	bool ok = f->status == status && strstr(f->message, message);
	if (!ok)
		printf("# wanted %d %s\n# got    %d %s\n", status, message, f->status, f->message);
	return ok;
}

static void test_refusals(struct served *s)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];
		struct infer_failure f = {0};
		long before = blocks;
		size_t n = strlen(r->body);
		char *exact =
		    memcpy(__real_malloc(n + 1), r->body, n); /* a sanitizer sees what is read behind it */
		struct infer_request *got = infer_parse(&s->model, NULL, NULL, exact, n, &f);
		tap_ok(!got && is_refusal(&f, r->status, r->message) && blocks == before, "refused: %s",
		       r->message);
		infer_free(got);
		__real_free(exact);
	}
}

/* A list in lists, to a depth. */
static char *nested(const char *before, char open, int depth, const char *after)
{
	char *text = malloc(strlen(before) + depth + strlen(after) + 1), *p = stpcpy(text, before);
	memset(p, open, depth);
	strcpy(p + depth, after);
	return text;
}

static bool limit_holds(struct served *s, const struct infer_limits *l, bool protocol, char *body,
			const char *message)
{
	struct infer_failure f = {0};
	struct infer_request *r =
	    (protocol ? infer_parse : infer_parse_text)(&s->model, l, NULL, body, strlen(body), &f);
	bool ok = !r && is_refusal(&f, strstr(message, "limit") ? 413 : 400, message);
	infer_free(r);
	free(body);
	return ok;
}

static void test_limits(struct served *s)
{
	struct infer_limits l = {.bytes = 1000, .nodes = 4, .depth = 3}, few = {.nodes = 2};
	struct infer_failure f = {0};
	tap_ok(limit_holds(s, &l, true, nested("", ' ', 1001, "{}"), "the limit is 1000") &&
		   limit_holds(s, &l, false, nested("", '(', 1001, ""), "the limit is 1000"),
	       "bodies have a longest");
	tap_ok(limit_holds(s, &few, true, strdup(INPUTS(PAIR)), "has 3 nodes, and the limit is 2") &&
		   limit_holds(s, &few, false, strdup("(2 (2 a) (2 b))"), "3 brackets, and the limit is 2") &&
		   limit_holds(s, &few, false, strdup("(1 a)(1 b)(1 c)"), "3 brackets, and the limit is 2") &&
		   limit_holds(s, &few, false,
			       strdup("{\"children\":[[],[],[0,1]],\"data\":{\"word\":[0,1,null]}}"),
			       "more than 2 nodes, which is the limit"),
	       "requests have a number of nodes");
	tap_ok(limit_holds(s, &l, false, nested("", '(', 4, "a))))"),
			   "4 brackets are open in each other, and the limit is 3"),
	       "brackets have a depth");
	tap_ok(
	    limit_holds(s, NULL, true, nested("{\"x\":", '[', 100000, ""), "nested too deeply") &&
		limit_holds(s, NULL, true, nested("{\"inputs\":[{\"data\":", '[', 100000, ""),
			    "without an end") &&
		limit_holds(
		    s, NULL, true,
		    nested("{\"inputs\":[{\"name\":\"word\",\"shape\":[1],\"datatype\":\"INT32\",\"data\":",
			   '[', 9, "]]]]]]]]]}]}"),
		    "a list stands here"),
	    "and so has JSON");
	tap_ok(!infer_parse_text(&s->model, NULL, "image/png", "(1 a)", 5, &f) && f.status == 415,
	       "other types are refused");
	tap_ok(!infer_parse_text(&s->model, NULL, NULL, "(1 a", 4, &f) &&
		   is_refusal(&f, 400, "the body, line 1: the tree that begins here has 1 ')' too few"),
	       "a text is refused with its line, its hint and its id");
}

static void test_options(struct served *s)
{
	static const char body[] =
	    "{\"parameters\":{\"priority\":-7,\"deadline_ms\":2.5e3,\"x\":[]},\"inputs\":[" PAIR "]}";
	struct infer_failure f = {0};
	struct infer_request *r = infer_parse(&s->model, NULL, NULL, body, sizeof body - 1, &f);
	esp_submit_options o = infer_options(r);
	int64_t rest = o.deadline - esp_clock();
	tap_ok(o.size == sizeof o && o.priority == -7 && rest > 0 && rest <= INT64_C(2500000000) && !o.done &&
		   !o.event,
	       "priority and deadline are those of the parameters");
	infer_free(r);
}

/* --- memory --- */

static void test_memory(struct served *s, const char *body, bool protocol)
{
	bool told = true, kept = true;
	struct infer_request *r = NULL;
	struct infer_failure f;
	long n = 0, before = blocks;
	for (; !r && n < 10000; n++) {
		f = (struct infer_failure){0};
		left = n;
		r = (protocol ? infer_parse : infer_parse_text)(&s->model, NULL, NULL, body, strlen(body), &f);
		left = -1;
		told &= r || f.status == 503;
		kept &= r || blocks == before;
		if (!r && f.status != 503)
			printf("# request %ld: %d %s\n", n, f.status, f.message);
	}
	tap_ok(r && n > 3, "with enough memory a body is read, after %ld requests", n - 1);
	tap_ok(told, "without, the status is 503");
	tap_ok(kept, "and nothing is lost");
	esp_ticket *t;
	char *text = NULL;
	size_t bytes;
	if (r && esp_service_submit(s->service, infer_forest(r), NULL, &t, NULL) == ESP_OK) {
		esp_ticket_wait(t, INT64_MAX, NULL);
		for (left = 0; !text && left < 100; left++) {
			long at = left, out = blocks;
			text = infer_write(r, t, "m", 1, &bytes);
			kept &= text || blocks == out;
			left = at;
		}
		left = -1;
		esp_ticket_free(t);
	}
	tap_ok(text && kept, "so it is with the response");
	free(text);
	infer_free(r);
	tap_ok(blocks == before, "and all comes back");
}

int main(void)
{
	struct served s;
	if (!make_folder()) {
		puts("Bail out! no temporary folder");
		return 99;
	}
	if (serve(&s, tiny_model, tiny_weights, 2, "a\nb\nc\nd\n")) {
		test_protocol(&s);
		test_structure_texts(&s);
		test_refusals(&s);
		test_limits(&s);
		test_options(&s);
		test_memory(&s, "{\"id\":\"a\",\"outputs\":[{\"name\":\"total\"}],\"inputs\":[" PAIRS "]}",
			    true);
		test_memory(&s,
			    INPUTS("{\"name\":\"structure\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":["
				   "\"(2 (2 a) (2 b))\",\"(1 \\u0061)\"]}"),
			    true);
		test_memory(&s, "(2 (2 a) (2 b))\n(2 c)\n(2 d)\n", false);
	}
	stop(&s);
	remove_folder((const char *const[]){"w.safetensors", "words.txt"}, 2);
	return tap_done();
}
