/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tables, and records of tab-separated values. */
#include "load/load.h"

static FILE *tsv;

bool report_open(const char *path)
{
	tsv = path ? fopen(path, "w") : NULL;
	if (tsv)
		fputs("server\twhat\tshare\trate\tgood\tp50_us\tp99_us\tp999_us\trequests\tdone\trefused\t"
		      "expired\tjitter_p99_us\tjitter_most_us\tgenerator\tgood_nodes\tuseful\tlate_us\tidle_us\n",
		      tsv);
	return !path || tsv || complain("cannot write '%s'", path);
}

bool report_close(void)
{
	return !tsv || !fclose(tsv);
}

void report_record(const struct server *s, const char *what, double share, const struct figures *f)
{
	if (!tsv)
		return;
	fprintf(tsv, "%s\t%s\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", s ? s->kind->name : "machine", what, share,
		f->rate, f->good, f->p50, f->p99, f->p999);
	fprintf(tsv, "\t%zu\t%zu\t%zu\t%zu\t%.1f\t%.1f\t%.4f\t%.0f\t%.4f\t%.1f\t%.1f\n", f->n,
		f->outcome[OUTCOME_DONE], f->outcome[OUTCOME_REFUSED], f->outcome[OUTCOME_EXPIRED], f->jitter,
		f->jitter_most, f->generator, f->good_nodes, f->useful, f->late, f->idle);
}

void report_alone(const struct alone *a)
{
	report_record(NULL, "session", 0, &(struct figures){.p50 = a->session, .p99 = a->session});
	report_record(NULL, "rested", 0, &(struct figures){.p50 = a->rested, .p99 = a->rested});
	report_record(NULL, "wake", 0, &(struct figures){.p50 = a->wake, .p99 = a->wake_p99});
	printf("a session alone, medians: %.0f us, %.0f us after a pause of 1 ms; a thread wakes after %.0f us "
	       "(99 %%: %.0f)\n",
	       a->session, a->rested, a->wake, a->wake_p99);
}

void report_head(const char *title)
{
	printf("\n%s\n%-10s %9s %9s %9s %9s %9s %9s %9s %9s | %9s %9s %6s %6s\n", title, "", "rate/s", "good/s",
	       "requests", "refused", "idle us", "p50 us", "p99 us", "p99.9 us", "jitter99", "most us", "gen. %",
	       "late");
}

void report_row(const char *name, const struct figures *f)
{
	printf("%-10s %9.0f %9.0f %9zu %9zu %9.0f %9.0f %9.0f %9.0f | %9.0f %9.0f %6.1f %6.0f\n", name, f->rate,
	       f->good, f->n, f->outcome[OUTCOME_REFUSED] + f->outcome[OUTCOME_EXPIRED], f->idle, f->p50, f->p99, f->p999,
	       f->jitter, f->jitter_most, 100 * f->generator, f->late);
	fflush(stdout);
}
