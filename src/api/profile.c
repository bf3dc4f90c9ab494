/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Profiles: converts the record of a run from chunks to threads.
 *
 * Each chunk has a track of its own in the record; the caller may have run chunks of other threads. */
#include "api/profile.h"

#include "api/objects.h"

#include <string.h>

/* --- a profile and its arrays --- */

/* The rows that a step of each domain computes; domains of single nodes count those of all nodes. */
static const int over[] = {
    [IMAGE_DOMAIN_ONCE] = ESP_OVER_NODES,	 [IMAGE_DOMAIN_LEAVES] = ESP_OVER_LEAVES,
    [IMAGE_DOMAIN_INNER] = ESP_OVER_INNER,	 [IMAGE_DOMAIN_INNER_NODE] = ESP_OVER_INNER,
    [IMAGE_DOMAIN_BATCH] = ESP_OVER_NODES,	 [IMAGE_DOMAIN_NODE] = ESP_OVER_NODES,
    [IMAGE_DOMAIN_NODES] = ESP_OVER_NODES,	 [IMAGE_DOMAIN_PAST_LEAVES] = ESP_OVER_INNER,
    [IMAGE_DOMAIN_INPUTS] = ESP_OVER_STRUCTURES, [IMAGE_DOMAIN_BATCH_DOWN] = ESP_OVER_NODES,
    [IMAGE_DOMAIN_NODE_DOWN] = ESP_OVER_NODES,	 [IMAGE_DOMAIN_SCAN] = ESP_OVER_NODES,
};

/* Of a row, where an accelerator runs the step. */
static int64_t cycles_of(const struct image *image, const struct image_step *s)
{
	return s->target == IMAGE_TARGET_HOST ? 0 : (int64_t)image->call[s->call].cost.cycles;
}

static void write_steps(struct esp_profile *p, const struct image *image)
{
	for (size_t i = 0; i < p->facts.steps; i++) {
		const struct image_step *s = &image->step[image->folds + i];
		p->step[i] = (esp_step){
		    .name = image_step_name(image, image->folds + (int)i),
		    .over = s->sort && image->sort[s->sort - 1].edges ? ESP_OVER_EDGES : over[s->domain],
		    .operations = s->operations,
		    .blocks = s->blocks,
		    .block_bytes = s->block_bytes,
		    .tile = s->rows,
		    .weight_bytes = s->weight_bytes,
		    .edge_bytes = s->edge_bytes,
		    .edge_input = s->edge_input,
		    .cycles = cycles_of(image, s),
		};
	}
}

struct esp_profile *profile_create(const struct allocator *a, const struct image *image)
{
	struct esp_profile *p = a->resize(a->context, NULL, 0, sizeof *p);
	if (!p)
		return NULL;
	*p = (struct esp_profile){.allocator = a};
	rt_profile_init(&p->record, a);
	p->facts.steps = image->steps - image->folds;
	p->step = a->resize(a->context, NULL, 0, (p->facts.steps + 1) * sizeof *p->step);
	if (!p->step) {
		profile_free(p);
		return NULL;
	}
	write_steps(p, image);
	return p;
}

static void free_bytes(const struct allocator *a, void *at, size_t bytes)
{
	if (at)
		a->resize(a->context, at, bytes, 0);
}

void profile_trim(struct esp_profile *p)
{
	if (!p)
		return;
	rt_profile_free(&p->record);
	free_bytes(p->allocator, p->range, p->range_capacity);
	free_bytes(p->allocator, p->event, p->event_capacity);
	p->range = NULL;
	p->event = NULL;
	p->range_capacity = p->event_capacity = 0;
}

void profile_free(struct esp_profile *p)
{
	if (!p)
		return;
	profile_trim(p);
	free_bytes(p->allocator, p->step, (p->facts.steps + 1) * sizeof *p->step);
	free_bytes(p->allocator, p, sizeof *p);
}

/* Memory of so many bytes, in place of the old block; NULL when memory is out.  Capacities at least double.
 */
static void *grow_bytes(const struct allocator *a, void *at, size_t *has, size_t bytes)
{
	if (bytes <= *has)
		return at;
	free_bytes(a, at, *has);
	size_t capacity = bytes > 2 * *has ? bytes : 2 * *has;
	void *p = a->resize(a->context, NULL, 0, capacity);
	*has = p ? capacity : 0;
	return p;
}

/* Reserves one range and one event more than there are, so that neither array is NULL. */
static bool reserve_profile(struct esp_profile *p)
{
	p->range =
	    grow_bytes(p->allocator, p->range, &p->range_capacity, (p->record.jobs + 1) * sizeof *p->range);
	p->event = grow_bytes(p->allocator, p->event, &p->event_capacity,
			      (profile_most_events(&p->record) + 1) * sizeof *p->event);
	return p->range && p->event;
}

/* --- ranges --- */

_Static_assert((int)RT_ALONE == ESP_SPLIT_NONE && (int)RT_ROWS == ESP_SPLIT_ROWS &&
		   (int)RT_COLUMNS == ESP_SPLIT_COLUMNS && (int)RT_SUBTREES == ESP_SPLIT_SUBTREES,
	       "strategies have the numbers of the public header");

/* Steps over leaves have level 0, whatever the record contains. */
static void write_ranges(struct esp_profile *p, int folds)
{
	const struct rt_profile *r = &p->record;
	p->facts.ranges = r->jobs;
	for (int64_t i = 0; i < r->jobs; i++) {
		const struct rt_job *j = &r->job[i];
		size_t step = j->step - folds;
		p->range[i] = (esp_range){
		    .step = step,
		    .steps = j->steps,
		    .level = p->step[step].over == ESP_OVER_LEAVES ? 0 : j->level,
		    .row = j->begin,
		    .rows = j->end - j->begin,
		    .split = (int)j->strategy,
		    .start = j->start - r->phase[0],
		    .stop = j->stop - r->phase[0],
		};
	}
}

/* --- events --- */

size_t profile_most_events(const struct rt_profile *r)
{
	size_t most = 0, split = 0;
	for (int chunk = 0; chunk < r->threads; chunk++)
		most += r->track[chunk].events;
	for (int64_t j = 0; j < r->jobs; j++)
		split += r->job[j].strategy != RT_ALONE;
	return most + split * r->threads;
}

/* A thread whose events are being written. */
struct thread {
	const struct rt_profile *record;
	int number, folds;
	int64_t next[ESP_THREADS_MAX]; /* by chunk: the first call that has not been read */
	esp_event *to;
	int64_t stop; /* of the last call */
};

static void write_call(struct thread *t, int chunk, const struct rt_event *e)
{
	int64_t begin = t->record->phase[0];
	*t->to++ = (esp_event){
	    .kind = ESP_EVENT_KERNEL,
	    .thread = t->number,
	    .share = chunk,
	    .range = e->job,
	    .step = e->step - t->folds,
	    .row = e->begin,
	    .rows = e->end - e->begin,
	    .block = e->first,
	    .blocks = e->blocks,
	    .direction = e->direction,
	    .start = e->start - begin,
	    .stop = e->stop - begin,
	};
	t->stop = e->stop;
}

/* Writes the calls of a chunk, in the jobs before `behind`, that this thread made. */
static void write_calls(struct thread *t, int chunk, int64_t behind)
{
	const struct rt_track *track = &t->record->track[chunk];
	for (; t->next[chunk] < track->events; t->next[chunk]++) {
		const struct rt_event *e = &track->event[t->next[chunk]];
		if (e->job >= behind)
			break;
		if ((e->taken ? 0 : chunk) == t->number)
			write_call(t, chunk, e);
	}
}

static void write_wait(struct thread *t, int64_t job)
{
	const struct rt_job *j = &t->record->job[job];
	int64_t begin = t->record->phase[0];
	if (j->strategy != RT_ALONE && t->stop < j->stop)
		*t->to++ = (esp_event){
		    .kind = ESP_EVENT_WAIT,
		    .thread = t->number,
		    .share = t->number,
		    .range = job,
		    .step = j->step - t->folds,
		    .start = t->stop - begin,
		    .stop = j->stop - begin,
		};
}

/* The first job after this one that begins after a barrier. */
static int64_t next_barrier(const struct rt_profile *r, int64_t job)
{
	do
		job++;
	while (job < r->jobs && r->job[job].follows);
	return job;
}

/* Between two barriers the caller runs chunks in order, so its calls are written in order of time. */
static esp_event *write_thread(const struct rt_profile *r, int number, int folds, esp_event *to)
{
	struct thread t = {.record = r, .number = number, .folds = folds, .to = to};
	for (int64_t job = 0, next; job < r->jobs; job = next) {
		next = next_barrier(r, job);
		t.stop = r->job[job].start;
		for (int chunk = number; chunk < (number ? number + 1 : r->threads); chunk++)
			write_calls(&t, chunk, next);
		write_wait(&t, next - 1);
	}
	return t.to;
}

size_t profile_events(const struct rt_profile *r, int folds, esp_event *to)
{
	esp_event *end = to;
	for (int thread = 0; thread < r->threads; thread++)
		end = write_thread(r, thread, folds, end);
	return end - to;
}

/* --- a run --- */

/* The sum that buffers of a kind are counted in; NULL = none. */
static uint64_t *bytes_of(esp_profile_facts *f, enum image_buffer_kind kind)
{
	switch (kind) {
	case IMAGE_STATE:
		return &f->state_bytes;
	case IMAGE_SCRATCH:
		return &f->scratch_bytes;
	case IMAGE_OUTPUT:
		return &f->output_bytes;
	case IMAGE_TOKEN:
	case IMAGE_VECTOR:
	case IMAGE_READ_ROW:
		return &f->data_bytes;
	default:
		return NULL;
	}
}

static void write_memory(esp_profile_facts *f, const struct rt_session *s, const struct rt_binding *b)
{
	f->state_bytes = f->scratch_bytes = f->output_bytes = f->data_bytes = 0;
	for (int i = 0; i < s->image->buffers; i++) {
		uint64_t *bytes = bytes_of(f, s->image->buffer[i].kind);
		if (bytes)
			*bytes += s->capacities[i] + s->dense_capacities[i];
	}
	f->scratch_bytes += s->scratch_capacity + s->own.capacity;
	f->weight_bytes = b->packed_bytes;
	f->index_bytes = s->order.block.bytes + s->order.case_block.bytes;
	f->code_bytes = __atomic_load_n(&s->image->code.bytes, __ATOMIC_RELAXED);
}

/* What a run counts by rows, each of which may be one of several of a node, is told by nodes as the caller has them. */
static void write_sizes(esp_profile_facts *f, const struct rt_session *s)
{
	int64_t stack = image_stack(s->image);
	f->structures = s->sizes[IMAGE_INPUTS] / stack;
	f->nodes = s->sizes[IMAGE_NODES] / stack;
	f->edges = s->sizes[IMAGE_EDGES];
	f->leaves = s->sizes[IMAGE_LEAVES] / stack;
	f->levels = s->sizes[IMAGE_BATCHES];
}

bool profile_fill(struct esp_profile *p, const struct rt_session *s, const struct rt_binding *binding)
{
	const struct rt_profile *r = &p->record;
	if (r->lost || !reserve_profile(p))
		return false;
	p->level = s->order.batch_begin;
	p->stack = image_stack(s->image);
	p->facts.begin = r->phase[RT_PHASE_LINEARIZE];
	p->facts.linearize = r->phase[RT_PHASE_FILL] - r->phase[RT_PHASE_LINEARIZE];
	p->facts.fill = r->phase[RT_PHASE_STEPS] - r->phase[RT_PHASE_FILL];
	p->facts.run = r->phase[RT_PHASES] - r->phase[RT_PHASE_STEPS];
	p->facts.threads = r->threads;
	write_sizes(&p->facts, s);
	write_memory(&p->facts, s, binding);
	write_ranges(p, s->image->folds);
	p->facts.events = profile_events(r, s->image->folds, p->event);
	return true;
}

/* --- queries --- */

const esp_profile_facts *esp_profile_describe(const esp_profile *p)
{
	return p ? &p->facts : NULL;
}

size_t esp_profile_nodes(const esp_profile *p, size_t level)
{
	return p && level < p->facts.levels ? (size_t)((p->level[level + 1] - p->level[level]) / p->stack) : 0;
}

const esp_step *esp_profile_step(const esp_profile *p, size_t i)
{
	return p && i < p->facts.steps ? &p->step[i] : NULL;
}

const esp_range *esp_profile_range(const esp_profile *p, size_t i)
{
	return p && i < p->facts.ranges ? &p->range[i] : NULL;
}

const esp_event *esp_profile_event(const esp_profile *p, size_t i)
{
	return p && i < p->facts.events ? &p->event[i] : NULL;
}
