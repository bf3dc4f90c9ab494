#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Outputs of two programs that ran the same graph are found by the graph's own names and compared.
. "${srcdir:-.}/tests/tap.sh"
if ! python3 -c 'import numpy' 2>/dev/null; then
	tap_skip "no python3 with numpy" "graphs"
	tap_done
fi

# told PYTHON: what it prints with the functions of graphs.py at hand.
told()
{
	PYTHONDONTWRITEBYTECODE=1 python3 - "$srcdir/bench" "$1" <<'PY'
import sys
folder, script = sys.argv[1:]
sys.path.insert(0, folder)
from graphs import *

exec(script)
PY
}

tap_is "$(told 'print(worst_error({"gpu_0/softmax_1": np.array([[1.0, 3.0]])}, {"gpu_0/softmax_1": np.array([1.0, 4.0])}))')" 0.25 \
	"outputs are found by the names of the graph, whatever characters these have"
tap_is "$(told 'one, two = np.array([1.0, -2.0]), np.array([10.0, 5.0])
print(worst_error({"a.1": one, "b:0": two + [1, 0]}, {"a.1": one, "b:0": two}))')" 0.1 "the worst of all outputs counts"
tap_is "$(told 'print(worst_error({"y": np.array([np.nan])}, {"y": np.array([1.0])}))')" inf "an output that is no number is infinitely wrong"
tap_is "$(told 'try: worst_error({"y": np.zeros(2)}, {"y": np.zeros(2)})
except RuntimeError as error: print(error)')" "output y: 0.0 is its largest value: nothing to compare" "an output of zeros is refused"
tap_done
