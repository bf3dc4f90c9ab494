/* The registry of diagnostics and the statuses, as callers see them. */
#include "api/internal.h"

/* A notice is told, but no call fails with it. */
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

static const struct {
	const char *name;
	bool is_transient;
} statuses[] = {
    [ESP_OK] = {"ok", false},
    [ESP_ERROR_INPUT] = {"input", false},
    [ESP_ERROR_ARGUMENT] = {"argument", false},
    [ESP_ERROR_MEMORY] = {"memory", true},
    [ESP_ERROR_BACKEND] = {"backend", false},
    [ESP_ERROR_SYSTEM] = {"system", true},
    [ESP_ERROR_BUSY] = {"busy", true},
    [ESP_ERROR_CLOSED] = {"closed", false},
    [ESP_ERROR_FORKED] = {"forked", false},
};

static bool is_status(esp_status status)
{
	return (unsigned)status < sizeof statuses / sizeof *statuses;
}

const char *esp_status_name(esp_status status)
{
	return is_status(status) ? statuses[status].name : NULL;
}

int esp_status_is_transient(esp_status status)
{
	return is_status(status) && statuses[status].is_transient;
}
