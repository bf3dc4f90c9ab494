/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams: sequences whose elements come one after the other. */
#include "api/submit.h"
#include "base/checksum.h"

#include <string.h>

struct esp_stream {
	struct object object;
	esp_service *service;
	struct packed *weights; /* of its generation */
	struct serve_carry carry;
	size_t bytes; /* of the states */
};

/* --- streams --- */

static void destroy_stream(void *object)
{
	esp_stream *s = object;
	rt_free(&s->object.context->allocator, s->carry.states);
	object_release(s->weights);
	object_release(s->service);
}

static const struct image *image_of(const esp_service *s)
{
	return &s->binding->program->image;
}

/* At the beginning.  Takes over a use of `weights`, also when it fails. */
static esp_stream *new_stream(esp_service *service, struct packed *weights, struct diags *diags)
{
	esp_stream *s = serve_can_stream(service->queue, diags)
			    ? object_new(service->object.context, sizeof *s, destroy_stream, diags)
			    : NULL;
	if (!s) {
		object_release(weights);
		return NULL;
	}
	s->service = object_hold(service);
	s->weights = weights;
	s->bytes = serve_carry_bytes(image_of(service));
	s->carry.states = rt_allocate_zeroed(&s->object.context->allocator, s->bytes);
	if (s->carry.states)
		return s;
	diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a stream");
	object_release(s);
	return NULL;
}

/* Takes the states for the caller, who gives them back by release_states, or for a ticket, which does when it
 * has ended. False after a diagnostic. */
static bool take_states(esp_stream *s, struct diags *diags)
{
	return !atomic_exchange(&s->carry.busy, true) ||
	       diag_add(diags, DIAG_STREAM_BUSY, (struct diag_at){0}, "wait for the ticket of these elements",
			"elements of the stream are being computed");
}

static void release_states(esp_stream *s)
{
	atomic_store(&s->carry.busy, false);
}

static esp_stream *copy_stream(esp_stream *from, struct diags *diags)
{
	if (!take_states(from, diags))
		return NULL;
	esp_stream *s = new_stream(from->service, object_hold(from->weights), diags);
	if (s) {
		memcpy(s->carry.states, from->carry.states, s->bytes);
		s->carry.begun = from->carry.begun;
		s->carry.elements = from->carry.elements;
	}
	release_states(from);
	return s;
}

esp_status esp_stream_open(esp_service *service, esp_stream **out, esp_error **error)
{
	struct api_call call = api_begin(service);
	esp_stream *s = NULL;
	if (api_need(&call, service) && api_need(&call, out))
		s = new_stream(service, binding_hold(service->binding), &call.diags);
	if (out)
		*out = s;
	return api_end(&call, s, error);
}

esp_status esp_stream_copy(esp_stream *stream, esp_stream **out, esp_error **error)
{
	struct api_call call = api_begin(stream);
	esp_stream *s = NULL;
	if (api_need(&call, stream) && api_need(&call, out))
		s = copy_stream(stream, &call.diags);
	if (out)
		*out = s;
	return api_end(&call, s, error);
}

void esp_stream_free(esp_stream *s)
{
	object_release(s);
}

/* --- elements --- */

/* Copies what elements carry.  The first node of a stream that has begun stands for the element before:
 * nothing is read of it, and its parent's edge is that of the first element. */
static bool fill_data(esp_forest *f, bool begun, size_t elements, const void *const *data,
		      struct diags *diags)
{
	for (int i = 0; i < f->program->interface.inputs; i++) {
		const struct image_input *in = &f->program->interface.input[i];
		size_t bytes = forest_row_bytes(in);
		size_t lead = begun && !in->on_edge, skip = !begun && in->on_edge;
		if (!forest_reserve(f, i, elements + begun, diags))
			return false;
		char *to = forest_rows_end(f, i);
		memset(to, 0, lead * bytes);
		memcpy(to + lead * bytes, (const char *)data[i] + skip * bytes, (elements - skip) * bytes);
	}
	return true;
}

/* A sequence of so many nodes. */
static bool fill_structure(esp_forest *f, size_t nodes, struct diags *diags)
{
	const struct allocator *a = &f->object.context->allocator;
	int32_t *begin = rt_allocate(a, (2 * nodes + 1) * sizeof *begin);
	if (!begin)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for elements");
	int32_t *children = begin + nodes + 1;
	begin[0] = 0;
	for (size_t n = 0; n < nodes; n++) {
		begin[n + 1] = (int32_t)n;
		children[n] = (int32_t)n;
	}
	bool ok =
	    lin_collect_add_rooted(&f->collect, (int64_t)nodes, begin, children, (int32_t)nodes - 1, diags);
	rt_free(a, begin);
	return ok;
}

static esp_forest *forest_of(const esp_stream *s, size_t elements, const void *const *data,
			     struct diags *diags)
{
	esp_forest *f = forest_new(s->service->binding->program, diags);
	if (f && fill_data(f, s->carry.begun, elements, data, diags) &&
	    fill_structure(f, elements + s->carry.begun, diags))
		return f;
	object_release(f);
	return NULL;
}

static esp_ticket *push_elements(esp_stream *s, size_t elements, const void *const *data,
				 const esp_submit_options *o, struct diags *diags)
{
	if (!take_states(s, diags))
		return NULL;
	esp_forest *f = forest_of(s, elements, data, diags);
	struct submission of = {s->service, f, s->weights, s, &s->carry, s->carry.begun};
	esp_ticket *t = f ? ticket_submit(&of, o, diags) : NULL;
	if (!t)
		release_states(s);
	object_release(f);
	return t;
}

static bool check_elements(const esp_stream *s, size_t elements, const void *const *data, struct diags *diags)
{
	const char *function = "esp_stream_push";
	const struct image *interface = &s->service->binding->program->interface;
	if (!elements || elements > INT32_MAX / 2)
		return api_bad_argument(diags, function, "elements", "must be from 1 to 2^30");
	if (!data && interface->inputs)
		return api_bad_argument(diags, function, "data", "must not be NULL: the program has inputs");
	for (int i = 0; i < interface->inputs; i++)
		if (!data[i])
			return api_bad_argument(diags, function, "data",
						"must hold an array for each input of the program");
	return true;
}

esp_status esp_stream_push(esp_stream *stream, size_t elements, const void *const *data,
			   const esp_submit_options *options, esp_ticket **out, esp_error **error)
{
	struct api_call call = api_begin(stream);
	esp_submit_options o;
	esp_ticket *t = NULL;
	if (api_need(&call, stream) && api_need(&call, out) &&
	    submit_read_options(options, &o, __func__, &call.diags) &&
	    check_elements(stream, elements, data, &call.diags))
		t = push_elements(stream, elements, data, &o, &call.diags);
	if (out)
		*out = t;
	return api_end(&call, t, error);
}

/* --- saved states --- */

/* What saved states begin with. */
struct saved {
	char magic[8];
	struct checksum program, states; /* of what the states are of, and of their bytes */
	uint64_t elements;
};

static const char magic[8] = "espstrm";

/* Tells states apart by the model's name, and by the names, types and sizes of its states. */
static struct checksum checksum_states(const struct image *image)
{
	struct checksum sum = checksum_of(image->name, strlen(image->name));
	for (int i = 0; i < image->buffers; i++) {
		const struct image_buffer *b = &image->buffer[i];
		if (b->kind != IMAGE_STATE)
			continue;
		struct {
			struct checksum before, name;
			int64_t elements, dtype;
		} next = {sum, checksum_of(b->name, strlen(b->name)), b->row_elements, b->dtype};
		sum = checksum_of(&next, sizeof next);
	}
	return sum;
}

static bool save_states(esp_stream *s, void *bytes, size_t capacity, size_t *needed, struct diags *diags)
{
	struct saved head = {.program = checksum_states(image_of(s->service))};
	*needed = sizeof head + s->bytes;
	if (capacity < *needed)
		return true;
	if (!take_states(s, diags))
		return false;
	memcpy(head.magic, magic, sizeof magic);
	head.states = checksum_of(s->carry.states, s->bytes);
	head.elements = s->carry.elements;
	memcpy(bytes, &head, sizeof head);
	memcpy((char *)bytes + sizeof head, s->carry.states, s->bytes);
	release_states(s);
	return true;
}

esp_status esp_stream_save(esp_stream *stream, void *bytes, size_t capacity, size_t *needed,
			   esp_error **error)
{
	struct api_call call = api_begin(stream);
	bool ok = api_need(&call, stream) && api_need(&call, needed) &&
		  (!capacity || api_need(&call, bytes)) &&
		  save_states(stream, bytes, capacity, needed, &call.diags);
	return api_end(&call, ok, error);
}

static bool are_right(const esp_stream *s, const void *bytes, size_t n, struct saved *head)
{
	if (n != sizeof *head + s->bytes)
		return false;
	memcpy(head, bytes, sizeof *head);
	struct checksum program = checksum_states(image_of(s->service)),
			states = checksum_of((const char *)bytes + sizeof *head, s->bytes);
	return memcmp(head->magic, magic, sizeof magic) == 0 &&
	       memcmp(&head->program, &program, sizeof program) == 0 &&
	       memcmp(&head->states, &states, sizeof states) == 0;
}

static bool restore_states(esp_stream *s, const void *bytes, size_t n, struct diags *diags)
{
	struct saved head;
	if (!are_right(s, bytes, n, &head))
		return diag_add(diags, DIAG_BAD_STREAM, (struct diag_at){0}, "begin a new stream",
				"the bytes are not saved states of a stream of '%s'",
				image_of(s->service)->name);
	memcpy(s->carry.states, (const char *)bytes + sizeof head, s->bytes);
	s->carry.elements = head.elements;
	s->carry.begun = head.elements > 0;
	return true;
}

esp_status esp_stream_restore(esp_service *service, const void *bytes, size_t n, esp_stream **out,
			      esp_error **error)
{
	struct api_call call = api_begin(service);
	esp_stream *s = NULL;
	if (api_need(&call, service) && api_need(&call, bytes) && api_need(&call, out))
		s = new_stream(service, binding_hold(service->binding), &call.diags);
	if (s && !restore_states(s, bytes, n, &call.diags)) {
		object_release(s);
		s = NULL;
	}
	if (out)
		*out = s;
	return api_end(&call, s, error);
}
