#include "base/map.h"

#include <string.h>

struct map_entry {
	const char *key;
	size_t length;
	int value;
};

unsigned long hash_bytes(unsigned long seed, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		seed = (seed ^ p[i]) * 1099511628211ul;
	return seed;
}

/* The entry of the key, or the free one where it would stand. */
static struct map_entry *find(const struct map *m, const char *key, size_t length)
{
	for (size_t i = hash_bytes(HASH_START, key, length);; i++) {
		struct map_entry *e = &m->entries[i & (m->capacity - 1)];
		if (!e->key || (e->length == length && memcmp(e->key, key, length) == 0))
			return e;
	}
}

static void grow(struct map *m, size_t capacity)
{
	struct map old = *m;
	m->capacity = capacity;
	m->entries = ARENA_ARRAY(m->arena, struct map_entry, m->capacity);
	for (size_t i = 0; i < old.capacity; i++)
		if (old.entries[i].key)
			*find(m, old.entries[i].key, old.entries[i].length) = old.entries[i];
}

void map_reserve(struct map *m, size_t n)
{
	size_t capacity = 16;
	while (capacity < 2 * n)
		capacity *= 2;
	if (capacity > m->capacity)
		grow(m, capacity);
}

int *map_at(const struct map *m, const char *key, size_t length)
{
	struct map_entry *e = m->n ? find(m, key, length) : NULL;
	return e && e->key ? &e->value : NULL;
}

int map_get(const struct map *m, const char *key, size_t length)
{
	const int *value = map_at(m, key, length);
	return value ? *value : -1;
}

bool map_add(struct map *m, const char *key, size_t length, int value)
{
	if (2 * (m->n + 1) > m->capacity)
		grow(m, m->capacity ? 2 * m->capacity : 16);
	struct map_entry *e = find(m, key, length);
	if (e->key)
		return false;
	*e = (struct map_entry){arena_text(m->arena, key, length), length, value};
	m->n++;
	return true;
}
