/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A map from names to small numbers, in an arena. */
#ifndef ESPALIER_BASE_MAP_H
#define ESPALIER_BASE_MAP_H

#include "base/memory.h"

#include <stdint.h>

struct map {
	struct arena *arena;
	struct map_entry *entries; /* in the order in which they were added */
	uint32_t *slots;	   /* by hash: the number of an entry, counted from 1; 0 = free */
	size_t n, most, capacity;  /* entries, of which there may be `most`; slots, a power of two */
};

static inline struct map map_in(struct arena *a)
{
	return (struct map){.arena = a};
}

/* The value of a key, or -1. */
int map_get(const struct map *, const char *key, size_t length);
/* Where the value of a key is kept, NULL when it is not there; valid until the next key is added. */
int *map_at(const struct map *, const char *key, size_t length);
/* Adds a key of less than 4 GiB that is not there yet; the key is copied.  False, and nothing changes, when it is there. */
bool map_add(struct map *, const char *key, size_t length, int value);
/* The same for a key that lives as long as the map, which is not copied. */
bool map_add_lasting(struct map *, const char *key, size_t length, int value);

/* XXH3 of 64 bits.  To continue after other bytes, pass their hash as the seed. */
unsigned long hash_bytes(unsigned long seed, const void *bytes, size_t n);
#define HASH_START 0ul

#endif
