/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The registry of diagnostics as callers see it. */
#include "api/objects.h"

/* A notice is logged, but no call fails with it. */
enum { ESP_ERROR_NOTICE = ESP_OK };

static const esp_message messages[] = {
#define DIAG(name, status, spelling, message, explanation, fix)                                              \
	{spelling, message, explanation, fix, (esp_status)ESP_ERROR_##status},
#include "base/diag.def"
#undef DIAG
};

const esp_message *esp_message_at(size_t i)
{
	return i < DIAG_COUNT ? &messages[i] : NULL;
}

const esp_message *esp_message_find(const char *id)
{
	enum diag_id found;
	return id && diag_find(id, &found) ? &messages[found] : NULL;
}
