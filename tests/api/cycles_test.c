/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cycles that are printed are those of the definition (doc/vta.md), which is computed here anew from the bytes of streams: a step of
 * gemm takes a cycle, one of alu two, memory gives 8 bytes a cycle to each module and to the fetch of instructions, and modules
 * overlap as tokens permit. */
#include "api/espalier_profile.h"
#include "api/objects.h"
#include "tests/api/support.h"

#include <inttypes.h>

static const char model[] = "model steps\nstructure none\ninput x[1, 24, 9, 9] : i8\n"
			    "param w0[40, 24, 3, 3] : i8\nparam w1[24, 40, 1, 1] : i8\nparam m1[24, 1, 1]\nparam w2[24, 3, 3] : i8\nnode:\n"
			    "    s0[i0, i1, i2 in 9, i3 in 9] = sum(w0[i1, r1, r2, r3] * x[i0, r1, i2 + r2 - 1, i3 + r3 - 1] for r1, r2, r3)\n"
			    "    q0 = cast(minimum(maximum(round(cast(s0, f32) * 0.0078125), -128), 127), i32)\n"
			    "    s1[i0, i1, i2 in 5, i3 in 5] = sum(w1[i1, r1, r2, r3] * q0[i0, r1, 2*i2 + r2, 2*i3 + r3] for r1, r2, r3)\n"
			    "    q1 = cast(minimum(maximum(round(cast(s1, f32) * m1), -128), 127), i32)\n"
			    "    s2[i0, i1, i2 in 3, i3 in 3] = sum(w2[i1, r2, r3] * q1[i0, i1, i2 + r2, i3 + r3] for r2, r3)\n"
			    "    q2 = cast(minimum(maximum(round(cast(s2, f32) * 0.0078125), -128), 127), i32)\n"
			    "output y = q2\n";

/* --- the definition --- */

enum { LOAD, STORE, GEMM, FINISH, ALU };
enum { LOADS, COMPUTES, STORES, MODULES };
enum { TO_COMPUTE_OF_LOAD, TO_LOAD, TO_STORE, TO_COMPUTE_OF_STORE, QUEUES };

static uint64_t field(const uint8_t *insn, int offset, int width)
{
	uint64_t value = 0;
	for (int i = 0; i < width; i++)
		value |= (uint64_t)(insn[(offset + i) / 8] >> (offset + i) % 8 & 1) << i;
	return value;
}

static int module_of(const uint8_t *insn)
{
	uint64_t opcode = field(insn, 0, 3), memory = field(insn, 7, 3);
	return opcode == STORE ? STORES : opcode == LOAD && (memory == 1 || memory == 2) ? LOADS : COMPUTES;
}

static uint64_t own_cycles(const uint8_t *insn)
{
	static const int entry[] = {4, 256, 16, 64, 16};
	uint64_t opcode = field(insn, 0, 3);
	if (opcode == FINISH)
		return 1;
	if (opcode == LOAD || opcode == STORE)
		return (field(insn, 64, 16) * field(insn, 80, 16) * (uint64_t)entry[field(insn, 7, 3)] + 7) / 8;
	uint64_t steps = field(insn, 35, 14) * field(insn, 49, 14) * (field(insn, 21, 14) - field(insn, 8, 13));
	return opcode == ALU ? 2 * steps : steps;
}

/* Tokens in the order in which they were pushed, each with its time. */
struct queue {
	uint64_t *time;
	size_t pushed, popped;
};

/* The queue of a flag, by module: which it pops from and pushes to. */
static struct queue *queue_of(struct queue *all, int module, bool previous, bool pops)
{
	static const int pop[MODULES][2] = {{-1, TO_LOAD}, {TO_COMPUTE_OF_LOAD, TO_COMPUTE_OF_STORE}, {TO_STORE, -1}};
	static const int push[MODULES][2] = {{-1, TO_COMPUTE_OF_LOAD}, {TO_LOAD, TO_STORE}, {TO_COMPUTE_OF_STORE, -1}};
	return &all[pops ? pop[module][!previous] : push[module][!previous]];
}

static bool is_ready(struct queue *all, const uint8_t *insn, int module)
{
	bool ready = true;
	for (int next = 0; next < 2; next++)
		if (field(insn, 3 + next, 1)) {
			const struct queue *q = queue_of(all, module, !next, true);
			ready &= q->popped < q->pushed;
		}
	return ready;
}

static uint64_t run_one(struct queue *all, const uint8_t *insn, int module, uint64_t begin)
{
	for (int next = 0; next < 2; next++)
		if (field(insn, 3 + next, 1)) {
			struct queue *q = queue_of(all, module, !next, true);
			uint64_t time = q->time[q->popped++];
			begin = time > begin ? time : begin;
		}
	uint64_t end = begin + own_cycles(insn);
	for (int next = 0; next < 2; next++)
		if (field(insn, 5 + next, 1)) {
			struct queue *q = queue_of(all, module, !next, false);
			q->time[q->pushed++] = end;
		}
	return end;
}

/* The cycles of a stream in its binary form: instruction i has come after 2 * (i + 1). */
static uint64_t count_cycles(const uint8_t *stream)
{
	size_t n = (size_t)stream[8] | (size_t)stream[9] << 8 | (size_t)stream[10] << 16, at[MODULES] = {0}, left = n;
	const uint8_t *insn = stream + 64;
	struct queue all[QUEUES];
	uint64_t time[MODULES] = {0}, last = 0;
	for (int q = 0; q < QUEUES; q++)
		all[q] = (struct queue){calloc(n + 1, sizeof(uint64_t)), 0, 0};
	while (left > 0)
		for (int m = 0; m < MODULES; m++) {
			while (at[m] < n && module_of(insn + 16 * at[m]) != m)
				at[m]++;
			if (at[m] == n || !is_ready(all, insn + 16 * at[m], m))
				continue;
			uint64_t fetched = 2 * (at[m] + 1), begin = time[m] > fetched ? time[m] : fetched;
			time[m] = run_one(all, insn + 16 * at[m], m, begin);
			last = time[m] > last ? time[m] : last;
			at[m]++, left--;
		}
	for (int q = 0; q < QUEUES; q++)
		free(all[q].time);
	return last;
}

/* --- what is printed --- */

static const char *write_bytes(void)
{
	static const struct {
		const char *name, *type, *shape;
		int bytes;
	} t[] = {{"w0", "I8", "40,24,3,3", 8640}, {"w1", "I8", "24,40,1,1", 960}, {"m1", "F32", "24,1,1", 96}, {"w2", "I8", "24,3,3", 216}};
	static uint8_t file[16384];
	char header[1024] = "{";
	int data = 0;
	for (int i = 0; i < 4; i++, data += t[i - 1].bytes)
		snprintf(header + strlen(header), sizeof header - strlen(header), "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", i ? "," : "",
			 t[i].name, t[i].type, t[i].shape, data, data + t[i].bytes);
	strcat(header, "}");
	size_t n = strlen(header);
	file[0] = (uint8_t)n, file[1] = (uint8_t)(n >> 8);
	memcpy(file + 8, header, n);
	for (int i = 0; i < data; i++)
		file[8 + n + i] = (uint8_t)(i % 7);
	return write_file("w.safetensors", file, 8 + n + data);
}

/* The number behind a name that begins a line of a text; 0 = there is none. */
static uint64_t find_number(const char *text, const char *name)
{
	char line[64];
	snprintf(line, sizeof line, "\n%s ", name);
	const char *at = strstr(text, line);
	return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

static uint64_t *count_calls(const struct esp_program *p)
{
	static uint64_t cycles[8];
	for (int i = 0; i < p->image.calls && i < 8; i++)
		cycles[i] = count_cycles((const uint8_t *)p->image.call[i].stream);
	return cycles;
}

static void check_explanation(struct kit *k, const uint64_t *cycles, uint64_t all)
{
	char *text = NULL, *json = NULL, member[64];
	int right = 0, calls = k->program->image.calls;
	if (esp_program_explain(k->program, ESP_FORM_TEXT, &text, NULL) || esp_program_explain(k->program, ESP_FORM_JSON, &json, NULL))
		abort();
	for (int i = 0; i < calls; i++)
		right += find_number(text, k->program->image.call[i].name) == cycles[i];
	tap_is(right, calls, "explanations have the cycles of each function");
	tap_is((int)find_number(text, "all"), (int)all, "and of all of them");
	snprintf(member, sizeof member, "],\"cycles\":%" PRIu64 ",", all);
	tap_ok(strstr(json, member) != NULL, "so has JSON: %s", member);
	esp_text_free(text);
	esp_text_free(json);
}

static void check_runs(struct kit *k, uint64_t all)
{
	enum { ROWS = 3 };
	static int8_t x[24 * 81];
	const void *data[] = {x};
	const esp_structure one = {.size = sizeof one, .nodes = 1, .data = data};
	uint64_t profiled = 0;
	for (int i = 0; i < ROWS; i++)
		if (esp_forest_add(k->forest, &one, NULL))
			abort();
	if (esp_session_record(k->session, 1, NULL) || esp_session_run(k->session, k->forest, NULL))
		abort();
	const esp_profile *p = esp_session_profile(k->session);
	for (size_t i = 0; esp_profile_step(p, i); i++)
		profiled += (uint64_t)esp_profile_step(p, i)->cycles;
	tap_is((int)profiled, (int)all, "profiles have those of a row");
	tap_is((int)esp_session_costs(k->session)->cycles, (int)(ROWS * all), "and sessions those of all rows");
}

int main(void)
{
	static const esp_program_options o = {.size = sizeof o, .backend = "interpreter", .accelerator = "vta"};
	struct kit k = {0};
	esp_error *error = NULL;
	uint64_t all = 0;
	if (!make_folder())
		return 1;
	const char *path = write_bytes();
	if (esp_context_create(NULL, &k.context, &error) || esp_model_parse(k.context, "steps.ra", model, strlen(model), &k.model, &error) ||
	    esp_weights_open(k.context, path, &k.weights, &error) || esp_program_create(k.model, k.weights, &o, &k.program, &error) ||
	    esp_binding_create(k.program, k.weights, &k.binding, &error) || esp_forest_create(k.program, &k.forest, &error) ||
	    esp_session_create(k.binding, &k.session, &error)) {
		printf("# %s\n", esp_error_text(error));
		return 1;
	}
	const uint64_t *cycles = count_calls(k.program);
	int right = 0, calls = k.program->image.calls;
	for (int i = 0; i < calls; i++) {
		right += k.program->image.call[i].cost.cycles == cycles[i];
		all += cycles[i];
	}
	tap_ok(calls >= 2 && right == calls, "the cycles of %d streams are those of the definition, %" PRIu64 " of all", calls, all);
	check_explanation(&k, cycles, all);
	check_runs(&k, all);
	free_kit(&k);
	unlink(path);
	rmdir(folder);
	return tap_done();
}
