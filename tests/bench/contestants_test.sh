#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Contestants of the bench, with stand-ins for peers: what they are told, that they are stopped while others are asked,
# and
# which peers are found.
. "${srcdir:-.}/tests/tap.sh"
if ! command -v python3 >/dev/null; then
	tap_skip "no python3" "contestants"
	tap_done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OMP_WAIT_POLICY OMP_NUM_THREADS

# A peer that answers with its arguments and how it is to wait.
cat >"$work/peer" <<'SH'
#!/bin/sh
while read -r line; do echo "$line $* $OMP_NUM_THREADS $OMP_WAIT_POLICY"; done
SH
# Interpreters: one has a PyTorch, another has the same one, the third has none.
for name in first again; do
	printf '#!/bin/sh\necho 2.9.1+cpu\n' >"$work/$name"
done
printf '#!/bin/sh\nexit 1\n' >"$work/without"
chmod +x "$work"/*

# told PYTHON: what it prints with a bench at hand.
told()
{
	PYTHONDONTWRITEBYTECODE=1 python3 - "$srcdir/bench" "$work" "$1" <<'PY'
import sys, time, types
folder, work, script = sys.argv[1:]
sys.path.insert(0, folder)
import bench
from bench import *

options = types.SimpleNamespace(threads="1,2", pythons=f"{work}/without,/nowhere,{work}/first,{work}/again", realtime=False, build=work,
                                output=work)
b = Bench(options, work)

def state(contestant):
    """Waits until it is stopped."""
    for _ in range(500):
        with open(f"/proc/{contestant.process.pid}/stat") as file:
            letter = file.read().rsplit(")", 1)[1].split()[0]
        if letter == "T":
            break
        time.sleep(0.01)
    return letter

exec(script)
PY
}

tap_is "$(told 'print(*(c.ask("do") for c in peer(b, "p", [f"{work}/peer"])), sep="", end="")')" "do --threads 1 1 
do --threads 2 2 ACTIVE
do --threads 2 2 PASSIVE" "a peer runs with one thread, and with two that wait actively or passively"
tap_is "$(told 'print(*(c.name for c in peer(b, "p", [f"{work}/peer"])), sep=", ")')" \
	"p x1, p x2 active, p x2 passive" \
	"contestants are named by threads and waiting"
tap_is "$(told 'c = Contestant(b, "p", 1, [f"{work}/peer"]); print(c.ask("a").split()[0], state(c), c.ask("b").split()[0], state(c))')" \
	"a T b T" "a contestant is stopped while it is not asked"
tap_is "$(told 'c = Contestant(b, "p", 1, [f"{work}/peer"]); c.ask("a"); c.close(); print(c.process.returncode)')" 0 \
	"a stopped contestant can be closed"
tap_is "$(told 'c = Contestant(b, "p", 1, [f"{work}/peer"]); c.ask("a"); print(c.process.pid); sys.exit("broken")' 2>/dev/null |
	xargs -I{} sh -c 'for _ in $(seq 200); do grep -q "^State:[[:space:]]*[^Z]" /proc/{}/status 2>/dev/null || exit; sleep 0.05; done
		cat /proc/{}/comm')" "" "no stopped contestant is left behind by a failure"
tap_is "$(told 'print(pythons_with(b, "torch", "numpy"))')" "{'2.9': '$work/first'}" \
	"the first interpreter of each version counts"
tap_is "$(told 'torch_of(b)' 2>&1)" "# no PyTorch 1: packages python3-torch, python3-numpy" "what is missing is said"
tap_is "$(python3 "$srcdir/bench/bench.py" --parts floors 2>&1 >/dev/null | grep -c 'parts are floor, linearizer')" 1 \
	"a part that there is not is refused"

# --- the window batcher ---

looked='from window import *
at = [0.0, 0.25, 0.5, 4.0]
print(*(next_minibatch(at, served, now, 1.0, 3) for served, now in ((0, 0.25), (0, 0.5), (0, 1.0), (3, 1.0), (3, 5.0), (4, 5.0))))'
tap_is "$(told "$looked")" "(0, 1.0) (3, 0.5) (3, 1.0) (0, 4.0) (1, 5.0) (0, inf)" \
	"requests run when the first has waited or when there are enough"
tap_is "$(told 'from window import *
print(next_minibatch([0.0, 0.25, 0.5], 0, 0.3, 0.0, 9), next_minibatch([0.25], 0, 0.1, 0.0, 9))')" "(2, 0.3) (0, 0.25)" \
	"without a window what has come runs at once"
tap_is "$(told 'from window import *
print(*(percentile(range(1, 101), share) for share in (0.001, 0.5, 0.99, 1)), percentile([3], 0.99))')" "1 50 99 100 3" "percentiles are values"
tap_is "$(told 'from window import *
ran = []
def run(first, count): ran.append((first, count)); time.sleep(0.02)
late = latencies_of(run, [0.0, 0.001, 0.002], 0.0, 2)
print(sum(count for _, count in ran), ran == sorted(ran), min(late) >= 0.02, late[2] >= 0.038)')" "3 True True True" \
	"each request runs once, and its wait counts from when it came"
tap_is "$(told 'from window import *
times = arrivals_of(1000, 2, 5)
print(times == sorted(times), 1700 < len(times) < 2300, times == arrivals_of(1000, 2, 5), times[-1] < 2)')" "True True True True" \
	"arrivals are as many as wanted, and the same each time"
tap_is "$(told 'c = Contestant(b, "p", 1, ["sh", "-c", "while read -r line; do echo; done"]); c.signal(signal.SIGCONT); c.serve(3, 2); print("served")')" served \
	"a contestant under load is asked for no times"
tap_done
