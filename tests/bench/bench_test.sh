#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The bench compares equals: every peer that is installed computes what we do. And its tables are made of its records.
. "${srcdir:-.}/tests/tap.sh"
peers=$srcdir/bench/peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ESPALIER_BACKEND_PATH

# keep CASE MODEL SIZES LENGTH OPTION...: writes weights and structures to $work/CASE, and what we compute of them to
# $work/wanted.
keep()
{
	printf '%s 1 2\n' $request | "$builddir/bench/serve" "$srcdir/$2" --sizes "$3" --keep "$work/$1" --threads 1 \
		--minibatches 1 \
		--batches 3 --length "$4" --backend interpreter --no-cache "${@:5}" >"$work/wanted"
}
request=root

# within TOLERANCE COMMAND...: whether a peer gives these outputs.
within()
{
	printf '%s 1 2\n' $request | "${@:2}" 2>"$work/err" >"$work/found"
	awk -v most="$1" 'NR == FNR { n = split($0, wanted); next }
	     { bad = NF != n; for (i = 1; i <= NF; i++) if (!(($i - wanted[i]) ^ 2 < most ^ 2)) bad = 1; exit bad }' "$work/wanted" "$work/found" &&
		[ -s "$work/found" ]
}
same() { within 1e-5 "$@"; }

if /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null; then
	for name in treelstm childsum treegru simpletreegru treernn treefc; do
		classes=$(grep -q 'C\]' "$srcdir/examples/$name/$name.ra" && echo ,C=5)
		inputs=$([ $name = treefc ] || echo ,E=6)
		keep $name examples/$name/$name.ra "D=8,V=20$inputs$classes" 6
		for variant in level script node; do
			same "$peers/torch_trees.py" $name "$work/$name" --variant $variant
			tap_ok $? "$name: PyTorch, $variant, computes the same"
		done
		dynet=$builddir/bench/peers/dynet_trees
		if [ -x "$dynet" ]; then
			/usr/bin/python3 "$peers/common.py" "$work/$name" "$work/raw" && same "$dynet" $name "$work/raw"
			tap_ok $? "$name: DyNet computes the same"
		else
			tap_skip "DyNet's driver is not built" "$name: DyNet"
		fi
	done
else
	tap_skip "no PyTorch" "tree models"
fi

if python3 -c 'import onnxruntime, onnx, numpy' 2>/dev/null; then
	keep treelstm examples/treelstm/treelstm.ra D=8,E=6,V=20 6
	same python3 "$peers/onnx_trees.py" treelstm "$work/treelstm"
	tap_ok $? "treelstm: ONNX Runtime computes the same"
else
	tap_skip "no ONNX Runtime" "treelstm: ONNX Runtime"
fi

for bits in 256 512; do
	hand=$builddir/bench/hand/treelstm
	if [ -x "$hand" ]; then
		"$hand" 32 2 1 "$srcdir/examples/treelstm/sentences.ptb" --model "$srcdir/bench/hand/treelstm.ra" --repeats 1 \
			--vectors $bits >"$work/found" 2>"$work/err"
		status=$?
	else
		status=77
	fi
	if [ $status = 77 ]; then
		tap_skip "no such processor, or bench/hand/treelstm is not built" "kernels written by hand, $bits bits"
	else
		tap_is "$status $(grep -c difference "$work/found")" "0 1" "kernels written by hand, $bits bits, compute the same"
	fi
done

for model in bench/models/lstm.ra examples/gru/gru.ra bench/models/{lstm,gru}-bounded.ra; do
	name=$(basename $model .ra)
	keep $name $model D=8,E=6 5
	if /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null; then
		same "$peers/torch_rnn.py" "$work/$name"
		tap_ok $? "$name: PyTorch computes the same"
		dnnl=$builddir/bench/peers/dnnl_rnn
		if [ -x "$dnnl" ]; then
			/usr/bin/python3 "$peers/common.py" "$work/$name" "$work/raw" && same "$dnnl" "$work/raw"
			tap_ok $? "$name: oneDNN computes the same"
			for type in bf16 $([[ $name == gru* ]] || echo int8); do
				within 0.02 "$dnnl" "$work/raw" $type && ! within 1e-4 "$dnnl" "$work/raw" $type
				status=$?
				if grep -q refuses "$work/err"; then
					tap_skip "oneDNN has no $type on this processor" "$name: oneDNN, $type"
				else
					tap_ok $status "$name: oneDNN computes nearly the same in $type"
				fi
			done
		else
			tap_skip "oneDNN's driver is not built" "$name: oneDNN"
		fi
	else
		tap_skip "no PyTorch" "$name: PyTorch and oneDNN"
	fi
	if python3 -c 'import onnxruntime, onnx, numpy' 2>/dev/null; then
		same python3 "$peers/onnx_rnn.py" "$work/$name"
		tap_ok $? "$name: ONNX Runtime computes the same"
		if [[ $name == gru* ]]; then
			! within 0.02 python3 "$peers/onnx_rnn.py" "$work/$name" --int8 && grep -q "quantises no such layer" "$work/err"
			tap_ok $? "$name: which ONNX Runtime does not quantise"
		else
			within 0.02 python3 "$peers/onnx_rnn.py" "$work/$name" --int8
			tap_ok $? "$name: ONNX Runtime computes nearly the same in int8"
		fi
	else
		tap_skip "no ONNX Runtime" "$name: ONNX Runtime"
	fi
done

# All outputs, wherever they are computed.
request=outputs
# same_model DRIVER NAME VARIANTS MODEL SIZES LENGTH OPTION...
same_model()
{
	keep "${2// /-}" "${@:4}"
	for variant in $3; do
		same "$peers/$1" "$2" "$work/${2// /-}" $([ $variant = layers ] || echo --variant $variant)
		tap_ok $? "$2: PyTorch, $variant, computes the same"
	done
}
if /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null; then
	graph() { same_model torch_graphs.py "$1" "level node" "${@:2}"; }
	layers() { same_model torch_layers.py "$1" layers "${@:2}"; }
	graph dagrnn examples/dagrnn/dagrnn.ra D=8,E=6,C=5 4 --structures grid
	graph mvrnn examples/mvrnn/mvrnn.ra D=8,V=20,C=5 6
	graph attention examples/attention/attention.ra D=8,E=6,V=20,C=5,A=7 6
	graph "label embedding" examples/labelled/embedding.ra D=8,E=6,V=20,C=5,R=4,L=5 6
	graph "label matrix" examples/labelled/matrix.ra D=8,E=6,V=20,C=5,R=4 6
	layers bilstm examples/bilstm/bilstm.ra D=8,E=6,V=20,C=5 6
	layers bilstm2 examples/bilstm/bilstm2.ra D=8,E=6 6
	layers stacked-lstm examples/stacked/stacked-lstm.ra D=8,E=6,V=20,C=5 6
	layers stacked-gru examples/stacked/stacked-gru.ra D=8,E=6 6
	read -r start now < <(echo memory | "$peers/torch_layers.py" stacked-gru "$work/stacked-gru" 2>/dev/null)
	[ "$now" -ge "$start" ] && [ "$start" -gt 1000 ]
	tap_ok $? "a peer tells its memory"
else
	tap_skip "no PyTorch" "more models"
fi
read -r start now < <(echo memory | "$builddir/bench/serve" "$srcdir/examples/stacked/stacked-gru.ra" --sizes D=256,E=256 --threads 1 \
	--backend interpreter --no-cache)
[ "$((now - start))" -ge 3072 ]
tap_ok $? "memory is at least the weights, 3 MiB"

if ! command -v python3 >/dev/null; then
	tap_skip "no python3" "the tables"
	tap_done
fi
mkdir "$work/results"
record='"hidden": 256, "batch": 10, "median_ms": 2, "operations": 1e6, "nodes": 100'
cat >"$work/results/results.jsonl" <<JSON
{"part": "machine", "vector": "avx2", "threads": 1, "gflops": 100, "barrier_us": 0, "read": [{"bytes": 16384, "gbs": 200}]}
{"part": "machine", "vector": "avx2", "threads": 2, "gflops": 100, "barrier_us": 0.1, "read": [{"bytes": 16384, "gbs": 200}]}
{"part": "floor", "case": "treernn look-up", "kind": "espalier", "threads": 1, "min_ms": 1.0, "floor_ms": 0.8, "linearize_ms": 0.02, $record}
{"part": "floor", "case": "treernn look-up", "kind": "espalier", "threads": 2, "min_ms": 0.5, "floor_ms": 0.4, "linearize_ms": 0.02, $record}
{"part": "floor", "case": "dagrnn", "kind": "espalier", "threads": 1, "min_ms": 1.0, "floor_ms": 0.7, "linearize_ms": 0.02, $record}
{"part": "floor", "case": "dagrnn", "kind": "espalier", "threads": 2, "min_ms": 1.0, "floor_ms": 0.4, "linearize_ms": 0.02, $record}
{"part": "floor", "case": "mvrnn", "kind": "espalier", "threads": 1, "min_ms": 1.0, "floor_ms": 0.6, "linearize_ms": 0.02, $record, "hidden": 64}
{"part": "models", "case": "dagrnn", "kind": "espalier inputs", "threads": 1, "min_ms": 1.0, $record}
{"part": "models", "case": "dagrnn", "kind": "torch 2.9 level", "threads": 2, "waits": "active", "min_ms": 3.0, $record}
{"part": "memory", "case": "treernn", "hidden": 256, "kind": "dynet", "threads": 1, "weights": 1048576, "start": 4194304, "bound": 5242880, "peak": 8388608}
{"part": "memory", "case": "treernn", "hidden": 256, "kind": "espalier", "threads": 2, "weights": 1048576, "start": 2097152, "bound": 3145728, "peak": 3670016}
{"part": "torch", "case": "treernn", "kind": "espalier inputs", "threads": 1, "min_ms": 1.0, $record}
{"part": "torch", "case": "treernn", "kind": "torch level", "threads": 1, "min_ms": 8.0, $record}
{"part": "torch", "case": "treernn", "kind": "torch script", "threads": 1, "min_ms": 6.0, $record}
{"part": "torch", "case": "treefc", "kind": "espalier inputs", "threads": 1, "min_ms": 1.0, $record}
{"part": "torch", "case": "treefc", "kind": "torch level", "threads": 1, "min_ms": 6.0, $record}
{"part": "batches", "case": "treernn look-up", "threads": 1, "min_ms": 0.5, $record}
{"part": "nodes", "case": "treernn look-up", "threads": 1, "min_ms": 0.5, $record}
{"part": "processor", "name": "CPU", "cores": 2}
{"part": "summary", "case": "treernn", "kind": "espalier", "threads": 2, "waits": null, "min_ms": 0.5, $record}
{"part": "summary", "case": "treernn", "kind": "espalier inputs", "threads": 1, "waits": null, "min_ms": 1.0, $record}
{"part": "summary", "case": "treernn", "kind": "torch 1.13 node", "threads": 1, "waits": null, "min_ms": 9.0, $record}
{"part": "summary", "case": "treernn", "kind": "torch 1.13 level", "threads": 2, "waits": "passive", "min_ms": 5.0, $record}
{"part": "summary", "case": "treernn", "kind": "torch 2.9 compile", "threads": 2, "waits": "active", "min_ms": 4.0, $record}
{"part": "linearizer", "case": "treernn", "threads": 1, "linearize_ms": 0.002, "fill_ms": 0.001, "min_ms": 0.1, $record}
{"part": "linearizer", "case": "treernn", "threads": 2, "linearize_ms": 0.002, "fill_ms": 0.001, "min_ms": 0.05, $record}
{"part": "precisions", "case": "treernn", "kind": "espalier f32", "threads": 1, "min_ms": 2.0, $record}
{"part": "precisions", "case": "treernn", "kind": "espalier i8x3", "threads": 1, "min_ms": 1.0, $record}
{"part": "precisions", "case": "treernn", "kind": "espalier i8x3", "threads": 2, "min_ms": 1.5, $record}
{"part": "precisions", "case": "treernn", "kind": "dynet", "threads": 1, "min_ms": 9.0, $record}
{"part": "precisions", "case": "gru", "kind": "espalier f32", "threads": 1, "min_ms": 1.0, $record, "batch": 1}
{"part": "precisions", "case": "gru", "kind": "espalier i8x3", "threads": 1, "min_ms": 2.0, $record, "batch": 1}
{"part": "precisions", "case": "gru", "kind": "onnx", "threads": 1, "min_ms": 6.0, $record, "batch": 1}
{"part": "precisions", "case": "gru", "kind": "dnnl", "threads": 1, "min_ms": 5.0, $record, "batch": 1}
{"part": "precisions", "case": "gru", "kind": "dnnl bf16", "threads": 1, "min_ms": 1.0, $record, "batch": 1}
{"part": "hand", "hidden": 256, "batch": 1, "threads": 2, "bits": 512, "hand_ms": 1.0, "min_ms": 1.04}
JSON
shown=$(python3 "$srcdir/bench/bench.py" --from "$work/results" 2>/dev/null)
# shows PATTERN TEXT
shows()
{
	grep -qE "$1" <<<"$shown"
	tap_ok $? "$2"
}
shows 'geometric mean of floor / time, each at most 1: 0\.800' "floor / time"
shows '^\| treernn look-up \| 256 \| 10 \| 1; 1 / 2 \| 0\.80 \| 0\.5; 0\.5 / 2 \| 0\.80 \| 2\.00 \|$' \
	"a row of its table, least and median"
shows '^\| dagrnn \| 256 \| 10 \| 1; 1 / 2 \| 0\.70 \| 1; 1 / 2 \| 0\.40 \| 1\.00 \|$' \
	"other models have a table of their own"
shows '1 of 2 have 0\.65 or more.*below: mvrnn 64 batch 10: 0\.60$' "whose cases are judged each by itself"
shows '^\| dagrnn \| 256 \| 10 \| 1 / 2, x1 \| 3 / 2, x2 active \| 3\.00 \| 1\.00 \|$' "and peers"
shows '^\| treernn \| 256 \| 1\.0 \| 1\.5 \(1\.0\) \| 4\.0 \(1\.0\) \|$' \
	"memory beyond the start, after runs and after binding"
shows '^\| the process with its libraries \| +\| +\| 2\.0 \| 4\.0 \|$' "and what libraries take"
tap_is "$(python3 "$srcdir/bench/bench.py" --from "$work/results,$work/results" 2>/dev/null | grep \
	-c '^== the machine: CPU, 2 processors')" 2 \
	"tables of several machines stand one after the other"
shows 'two threads against one.* geometric mean 2\.00' "two threads against one"
shows 'linearizer .* 4\.0 at most' "the linearizer's share"
shows '^\| treernn \| 256 \| 10 \| 2, 1, 100 \| 2\.0 % \| 2, 1, 50 \| 4\.0 % \|$' "linearizing and filling beside the run"
shows 'above 3 % in 1 of 2: treernn 256 batch 10 x2 4\.0$' "and where its share is too large"
shows 'best torch peer takes: geometric mean 6\.00' "the best of the peers counts"
shows '^TreeRNN +256 +10 +0\.142 / 0\.137 +1\.0000 / 0\.5000 +0\.14 / 0\.27' "Cortex beside it"
shows '^MV-RNN +64 +10 +1\.49 / - +1\.0000 +1\.49 ' "and where it ran one thread alone"
shows '^\| treernn \| 256 \| 10 \| 2 / 2, x1 \| 1 / 2, x1 \(2\.00\) \| 9 / 2, x1 \(0\.22\) \|' "precisions beside the first one"
shows '^\| i8x3 \| f32 \| 2 \| 0\.50 \| 2\.00 \| 1\.00 \| 0\.50 \|$' "what they gain by the size of the minibatch"
shows '^i8x3 than dynet, batch 1 and 10: 9\.00 times as fast \(wanted with AMX: 10\)$' "beside what is wanted"
shows '^\| f32 \| dynet \| 1 \|  \| 4\.50 \|' "against DyNet"
shows '^\| i8x3 \| onnx, dnnl \| 1 \| 2\.50 \|' "and against the better of two libraries, in f32"
shows 'at most 1\.040' "kernels written by hand"
shows '^\| model, hidden, batch \| PyTorch, node by node \| PyTorch, by levels \| Espalier \| Espalier, no tables \|$' \
	"the summary has columns of what was measured"
shows '^\| treernn, 256, 10 \| 9 = 9\.0 x \(1\.13, 1\) \| 4 = 4\.0 x \(2\.9 torch\.compile, 2, active\) \| 0\.5 \(2\) \| 1 \(1\) \|$' \
	"a cell of the summary names what was fastest"

# Plots as scripts, a line that begins with the name before each.
scripts=$(cd "$srcdir/bench" && PYTHONDONTWRITEBYTECODE=1 python3 -c 'import json, plots, sys
records = [json.loads(line) for line in open(sys.argv[1])]
for name, make in plots.PLOTS.items():
    print("plot", name, make(records).script.replace("\n", "; "))' "$work/results/results.jsonl")
tap_is "$(grep -c '^plot [a-z]* set title "[A-Z]' <<<"$scripts")" 5 "each plot has a title"
tap_is "$(grep -cE '^plot (machine|batches|nodes) .*set yrange \[0:|^plot floor .*set xrange \[0:1<' <<<"$scripts")" 4 \
	"axes begin at 0"
tap_is "$(grep -cE '^plot (floor .*from first 0.8,.*wanted: 0.80|peers .*from first 1,)' <<<"$scripts")" 2 \
	"a line stands where results are judged"
tap_is "$(grep -c '^plot peers .*treefc, 256, 10' <<<"$scripts")" 1 "a peer may lack a case"
if command -v gnuplot >/dev/null; then
	python3 "$srcdir/bench/bench.py" --from "$work/results" >"$work/out" 2>&1
	tap_is "$?,$(cd "$work/results" && grep -L '</svg>' ./*.svg | wc -l),$(ls "$work/results" | grep -c svg)" "0,0,5" \
		"gnuplot draws them"
	tap_is "$(grep -c 'line ' "$work/out")" 0 "and complains of nothing"
else
	tap_skip "no gnuplot" "gnuplot draws them"
fi

# A command that says what it would measure, so that nothing is timed.
mkdir "$work/build"
cat >"$work/build/espalier" <<'STUB'
#!/bin/sh
case "$*" in
*"--format json"*) echo '{"model": "stub", "batch": 4, "threads": 1, "nodes": 100, "min_ms": 0.5, "median_ms": 1}' ;;
*) echo "a table" ;;
esac
STUB
chmod +x "$work/build/espalier"

# measure ARGUMENT...: the bench of that command; leaves $status and $shown.
measure()
{
	shown=$(python3 "$srcdir/bench/bench.py" --build "$work/build" --output "$work/measured" --hidden 8 "$@" 2>&1)
	status=$?
}
measure --parts batches --cases childsum
tap_is "$status,$(grep -c '^childsum *8 x1: 4: 125.0' <<<"$shown")" "0,1" \
	"the size of minibatches is swept for the cases that are asked for"
measure --parts torch --cases "gru before,treefc sum"
tap_is "$status,$(grep -c 'torch: .*gru before, treefc sum.*peer' <<<"$shown")" "2,1" \
	"a part without cases says what they lack"
measure --parts batches --cases chldsum
tap_is "$status,$(grep -c 'chldsum' <<<"$shown")" "2,1" "and a case that there is none of is refused"
measure --parts cortex
tap_is "$status,$(grep -c 'cortex: .* part floor' <<<"$shown")" "2,1" \
	"as are figures beside those of a part that is not measured"
tap_done
