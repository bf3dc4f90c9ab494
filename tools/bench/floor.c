#include "floor.h"
#include "bench/bench.h"
#include "recording.h"

/* Only one run is recorded: those that are timed must not wait for the clock. */
int subject_floor(struct subject *s, const struct machine *m, double *seconds, double *operations)
{
	struct recording recording = {0};
	struct timing t;
	esp_error *error;
	esp_status status = esp_session_record(s->session, 1, &error);
	if (status)
		return report(status, error);
	int failed = subject_run(s, &t);
	const esp_profile *profile = failed ? NULL : esp_session_profile(s->session);
	bool taken = profile && recording_take(&recording, profile);
	*operations = 0;
	*seconds = taken ? floor_of_run(m, s->threads, &recording, operations) : 0;
	recording_free(&recording);
	status = esp_session_record(s->session, 0, &error);
	if (status)
		return report(status, error);
	if (!failed && !taken)
		complain("no memory for the record of a run");
	return failed ? failed : taken ? 0 : EXIT_INPUT;
}
