/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct map_entry {
	const char *key;
	uint32_t length;
	int value;
};

unsigned long hash_bytes(unsigned long seed, const void *bytes, size_t n)
{
	return XXH3_64bits_withSeed(bytes, n, seed);
}

static bool is_key(const struct map_entry *e, const char *key, size_t length)
{
	return e->length == length && memcmp(e->key, key, length) == 0;
}

/* The slot of the key, or the free one where it would stand. */
static uint32_t *find_slot(const struct map *m, const char *key, size_t length)
{
	for (size_t i = hash_bytes(HASH_START, key, length);; i++) {
		uint32_t *slot = &m->slots[i & (m->capacity - 1)];
		if (!*slot || is_key(&m->entries[*slot - 1], key, length))
			return slot;
	}
}

/* A third of the slots stays free. */
static size_t capacity_for(size_t n)
{
	size_t capacity = 16;
	while (2 * capacity < 3 * n)
		capacity *= 2;
	return capacity;
}

static void grow_map(struct map *m, size_t most)
{
	struct map_entry *old = m->entries;
	size_t capacity = capacity_for(most);
	m->capacity = capacity;
	m->most = most;
	m->slots = ARENA_ARRAY(m->arena, uint32_t, capacity);
	m->entries = ARENA_ARRAY(m->arena, struct map_entry, m->most);
	if (m->n)
		memcpy(m->entries, old, m->n * sizeof *old);
	for (size_t i = 0; i < m->n; i++)
		*find_slot(m, old[i].key, old[i].length) = i + 1;
}

int *map_at(const struct map *m, const char *key, size_t length)
{
	uint32_t *slot = m->n ? find_slot(m, key, length) : NULL;
	return slot && *slot ? &m->entries[*slot - 1].value : NULL;
}

int map_get(const struct map *m, const char *key, size_t length)
{
	const int *value = map_at(m, key, length);
	return value ? *value : -1;
}

static bool add_key(struct map *m, const char *key, size_t length, int value, bool lasting)
{
	if (m->n == m->most)
		grow_map(m, m->most ? 2 * m->most : 10);
	uint32_t *slot = find_slot(m, key, length);
	if (*slot)
		return false;
	key = lasting ? key : arena_text(m->arena, key, length);
	m->entries[m->n] = (struct map_entry){key, (uint32_t)length, value};
	*slot = ++m->n;
	return true;
}

bool map_add(struct map *m, const char *key, size_t length, int value)
{
	return add_key(m, key, length, value, false);
}

bool map_add_lasting(struct map *m, const char *key, size_t length, int value)
{
	return add_key(m, key, length, value, true);
}
