/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Histograms whose buckets are parts of octaves. */
#include "serve/counters.h"

static int bucket_of(int64_t value)
{
	const int64_t past = INT64_C(1) << (SERVE_FINE + SERVE_OCTAVES);
	value = value < 0 ? 0 : value < past ? value : past - 1;
	if (value < 1 << SERVE_FINE)
		return (int)value;
	int octave = 63 - __builtin_clzll((uint64_t)value) - SERVE_FINE;
	return ((octave + 1) << SERVE_FINE) + (int)((value >> octave) - (1 << SERVE_FINE));
}

/* The greatest value of a bucket. */
static int64_t end_of(int bucket)
{
	int octave = (bucket >> SERVE_FINE) - 1;
	if (octave < 0)
		return bucket;
	return (((int64_t)(bucket & ((1 << SERVE_FINE) - 1)) + (1 << SERVE_FINE) + 1) << octave) - 1;
}

void serve_note_value(struct serve_histogram *h, int64_t value)
{
	serve_add(&h->in[bucket_of(value)], 1);
	serve_add(&h->sum, value > 0 ? (uint64_t)value : 0);
	if (value > atomic_load_explicit(&h->most, memory_order_relaxed))
		atomic_store_explicit(&h->most, value, memory_order_relaxed);
}

/* The least bucket end that `share` of the values are not above. */
static int64_t find_quantile(const struct serve_histogram *h, uint64_t values, int64_t most, double share)
{
	double wanted = share * (double)values;
	uint64_t below = 0;
	for (int i = 0; i < SERVE_BUCKETS; i++) {
		below += serve_read(&h->in[i]);
		if (below && (double)below >= wanted)
			return end_of(i) < most ? end_of(i) : most;
	}
	return most;
}

struct serve_distribution serve_summarize(const struct serve_histogram *h)
{
	struct serve_distribution d = {.most = atomic_load_explicit(&h->most, memory_order_relaxed)};
	for (int i = 0; i < SERVE_BUCKETS; i++)
		d.values += serve_read(&h->in[i]);
	if (!d.values)
		return d;
	d.mean = (double)serve_read(&h->sum) / (double)d.values;
	d.p50 = find_quantile(h, d.values, d.most, .5);
	d.p90 = find_quantile(h, d.values, d.most, .9);
	d.p99 = find_quantile(h, d.values, d.most, .99);
	d.p999 = find_quantile(h, d.values, d.most, .999);
	return d;
}

uint64_t serve_count_below(const struct serve_histogram *h, int power)
{
	uint64_t below = 0;
	int end = bucket_of(INT64_C(1) << power);
	for (int i = 0; i < end; i++)
		below += serve_read(&h->in[i]);
	return below;
}
