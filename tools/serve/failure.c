/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Why a body was refused, in words. */
#include "request.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Ends the text before the first byte that is no character: names come from bodies, and long ones are cut. */
static void cut(char *text)
{
	size_t n, left = strlen(text);
	for (; (n = utf8_length(text, left)); text += n, left -= n)
		;
	*text = 0;
}

bool(refuse)(struct infer_failure *f, int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(f->message, sizeof f->message, format, args);
	va_end(args);
	f->status = status;
	cut(f->message);
	return false;
}

bool(refuse_memory)(struct infer_failure *f)
{
	return refuse(f, NO_MEMORY, "no memory for the request: send it again later, or a smaller one");
}

static int http_status(esp_status status)
{
	switch (status) {
	case ESP_OK:
		return 200;
	case ESP_ERROR_INPUT:
		return BAD_REQUEST;
	case ESP_ERROR_EXPIRED:
		return 504;
	case ESP_ERROR_MEMORY:
	case ESP_ERROR_BUSY:
	case ESP_ERROR_CLOSED:
	case ESP_ERROR_CANCELLED:
		return NO_MEMORY;
	default:
		return 500;
	}
}

struct infer_failure infer_failure_of(esp_status status, const esp_error *error)
{
	struct infer_failure f;
	const esp_diagnostic *d = esp_error_get(error, 0);
	if (!d)
		refuse(&f, http_status(status), "the request failed: %s", esp_status_name(status));
	else
		refuse(&f, http_status(status), "%s%s%s [%s]", d->message, d->hint ? "; " : "",
		       d->hint ? d->hint : "", d->id);
	return f;
}

bool(refuse_error)(struct infer_failure *f, const char *where, esp_status status, esp_error *error)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	struct infer_failure inner = infer_failure_of(status, error);
	char line[32] = "";
	if (d && d->line)
		snprintf(line, sizeof line, ", line %d", d->line);
	refuse(f, inner.status, "%s%s: %s", where, line, inner.message);
	esp_error_free(error);
	return false;
}

char *infer_write_error(const char *message, size_t *bytes)
{
	struct body b = {0};
	body_puts(&b, "{\"error\":");
	body_string(&b, message, strlen(message));
	body_puts(&b, "}\n");
	return body_take(&b, bytes);
}
