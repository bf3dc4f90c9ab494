/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The one place where options are read. */
#include "api/objects.h"

static const char function[] = "esp_program_create";

static bool read_at(int at, struct compile_options *o, struct diags *diags)
{
	o->at = at;
	return (at >= ESP_AT_MODEL && at <= ESP_AT_EVERY_NODE) ||
	       api_bad_argument(diags, function, "options->at", "must be one of ESP_AT_...");
}

/* "native" must be one that this machine has. */
static bool read_target(struct arena *arena, const char *name, struct compile_options *o, struct diags *diags)
{
	const char *text = name ? name : TARGET_NATIVE;
	struct target *target = arena_take(arena, 1, sizeof *target);
	o->native = target_is_native(text);
	o->target = target;
	return target_find_any(text, target) ||
	       api_bad_argument(diags, function, "options->target", "must be one of " TARGET_NAMES);
}

/* NULL is the host alone. */
static const char accelerators[] = "must be one of NULL"
#define STEP_TARGET(name, spelling, meaning) ", \"" spelling "\""
#include "image/step_targets.def"
    ", and behind it numbers of products that the host keeps, \"vta,-0,-3\"";

/* Whether a text is a list of numbers behind ",-". */
static bool is_list(const char *text)
{
	while (*text) {
		size_t digits = strncmp(text, ",-", 2) ? 0 : strspn(text + 2, "0123456789");
		if (!digits || digits > 6)
			return false;
		text += 2 + digits;
	}
	return true;
}

static bool read_accelerator(struct arena *arena, const char *text, struct compile_options *o, struct diags *diags)
{
	const char *list = text ? strchr(text, ',') : NULL;
	o->on_host = list ? arena_string(arena, list) : "";
	return !text || (image_find_target(arena_text(arena, text, strlen(text) - strlen(o->on_host)), &o->accelerator) &&
			 (!list || o->accelerator == IMAGE_TARGET_VTA) && is_list(o->on_host)) ||
	       api_bad_argument(diags, function, "options->accelerator", accelerators);
}

static bool read_rewriting(const esp_program_options *from, struct compile_options *o, struct diags *diags)
{
	enum { TABLE_BYTES = 64 << 20 };
	uint64_t bytes = from->table_bytes ? from->table_bytes : TABLE_BYTES;
	o->table_bytes = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
	o->math = REWRITE_REASSOCIATE;
	o->weights_as = DTYPE_F32;
	o->precision = PRECISION_F32;
	return (!from->math || rewrite_read_math(from->math, &o->math, diags)) &&
	       (!from->weights_as || rewrite_read_weight_type(from->weights_as, &o->weights_as, diags)) &&
	       (!from->precision || rewrite_read_precision(from->precision, &o->precision, diags)) &&
	       (!from->assume || rewrite_read_assumption(from->assume, &o->finite, diags)) &&
	       (!from->rules || rewrite_read_families(from->rules, &o->rules_off, diags));
}

bool api_read_options(struct arena *arena, struct diags *diags, const esp_program_options *from,
		      struct compile_options *o)
{
	*o = (struct compile_options){0};
	o->backend = from->backend ? arena_string(arena, from->backend) : jit_backend_usual(arena);
	o->schedule = from->schedule ? arena_string(arena, from->schedule) : "";
	o->continuous = from->continuous != 0;
	return read_at(from->at, o, diags) && read_target(arena, from->target, o, diags) &&
	       read_rewriting(from, o, diags) && read_accelerator(arena, from->accelerator, o, diags);
}
