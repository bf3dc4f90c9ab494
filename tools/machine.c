/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

static const char *unit_of(double *bytes)
{
	*bytes /= 1 << 10;
	if (*bytes < 1 << 10)
		return "KiB";
	*bytes /= 1 << 10;
	return "MiB";
}

void machine_print(const struct machine *m, FILE *to)
{
	fprintf(to, "%d thread%s, %s: %.1f GFLOP/s a core, barrier %.2f us; GB/s a core reads from",
		m->threads, m->threads > 1 ? "s" : "", m->vector, m->peak * 1e-9, m->barrier * 1e6);
	for (int set = 0; set < m->sets; set++) {
		double bytes = (double)MACHINE_LEAST * (1 << set);
		const char *unit = unit_of(&bytes);
		fprintf(to, "%s %.0f %s: %.0f", set ? "," : "", bytes, unit, m->bandwidth[set] * 1e-9);
	}
	fputc('\n', to);
}

void machine_print_json(const struct machine *m, FILE *to)
{
	fprintf(to,
		"{\"vector\": \"%s\", \"threads\": %d, \"gflops\": %.2f, \"barrier_us\": %.3f, \"read\": [",
		m->vector, m->threads, m->peak * 1e-9, m->barrier * 1e6);
	for (int set = 0; set < m->sets; set++)
		fprintf(to, "%s{\"bytes\": %ld, \"gbs\": %.2f}", set ? ", " : "", (long)MACHINE_LEAST << set,
			m->bandwidth[set] * 1e-9);
	fputs("]}", to);
}
