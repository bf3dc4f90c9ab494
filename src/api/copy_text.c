/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Texts that callers free. */
#include "api/objects.h"

#include <string.h>

/* A text knows where its memory came from: it may outlive its context. */
struct owned_text {
	struct allocator allocator;
	size_t size;
	char text[];
};

char *api_text(const struct esp_context *context, const char *text, struct diags *diags)
{
	struct allocator a = context->hooks;
	size_t size = sizeof(struct owned_text) + strlen(text) + 1;
	struct owned_text *t = a.resize(a.context, NULL, 0, size);
	if (!t) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a text");
		return NULL;
	}
	*t = (struct owned_text){a, size};
	return strcpy(t->text, text);
}

void esp_text_free(char *text)
{
	if (!text)
		return;
	struct owned_text *t = (struct owned_text *)(text - offsetof(struct owned_text, text));
	struct allocator a = t->allocator;
	a.resize(a.context, t, t->size, 0);
}
