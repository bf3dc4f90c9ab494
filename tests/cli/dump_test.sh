# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier dump of the example: every stage, and how few values go through memory.
. "${srcdir:-.}/tests/cli/support.sh"

# dump STAGE OPTION...
dump()
{
	stage=$1
	shift
	esp dump "$stage" "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" "$@"
}

esp dump
stages=$out
for stage in $stages; do
	case $stage in
	llvm | gccjit) wanted=$stage ;;
	asm) wanted=${backend:-none} ;;
	*) wanted= ;;
	esac
	if [ -n "$wanted" ] && ! has_backend "$wanted"; then
		tap_skip "the back end is not here" "stage $stage"
		continue
	fi
	dump "$stage"
	one=$out
	case $stage in
	q | split | packing | *mutants) least=0 ;; # the model has no products of integers and no windows
	*) least=10 ;;
	esac
	[ "$status" -eq 0 ] && [ "$(echo "$out" | wc -l)" -gt $least ] && [ -z "$err" ]
	tap_ok $? "stage $stage is written" || show
	dump "$stage" --output "$tmp/stage"
	[ "$status" -eq 0 ] && [ "$(cat "$tmp/stage")" = "$one" ]
	tap_ok $? "stage $stage is the same in a file" || show
done

# --- the stages that pages and help name ---

named=$(grep -oh "espalier dump [a-z_][a-z_]*\|['\`]dump [a-z_][a-z_]*" "$srcdir"/README.md "$srcdir"/doc/*.md "$srcdir"/examples/*/README.md \
	"$srcdir"/tools/*.def | sed 's/.* //' | sort -u)
tap_is "$(echo "$named" | grep -vxF "$stages")" "" \
	"the $(echo "$named" | wc -l) stages that pages and help name are there"
tap_is "$(sed -n 's/^\(REWRITE\|MOVE\|SCHED\|ILIR\)_PASS(\([a-z_]*\),.*/\2/p' "$srcdir/src/compile/program_passes.def" "$srcdir/src/ilir/passes.def" |
	awk '!seen[$0]++' | grep -vxF "$stages")" "" "each pass over programs or loops is a stage"

# --- what the kernels store ---

# stored TARGET KERNEL: the number of intermediates at the end of all passes.
stored()
{
	dump ilir --at model --target-cpu "$1"
	echo "$out" | sed -n "1s/^# intermediates.*[ :] *$2 \([0-9]*\).*/\1/p"
}

for target in generic avx2 avx512 aarch64; do
	tap_is "$(stored $target leaf),$(stored $target inner),$(stored $target output)" 0,0,0 \
		"for $target neither leaves nor inner nodes nor outputs store an intermediate"
done
dump ilir
softmax=$(echo "$out" | sed -n 1p | grep -o 'output\.root[.0-9]* [0-9]*' | awk '{ n += $2 } END { print n }')
tap_is "$(echo "$out" | grep -c '^buffer .* : scratch ')" "$softmax" \
	"the $softmax that the softmax at the root stores are buffers in the text"
dump lower
tap_is "$(echo "$out" | sed -n 1p)" \
	"# intermediates, neither states nor outputs, that kernels store to memory: fold0 0, fold1 0, treelstm $softmax" \
	"before the steps are kernels there is one count, behind those of what is computed at binding"

# --- a schedule goes round ---

dump sched --output "$tmp/schedule"
dump ilir
one=$out
dump ilir --schedule "$tmp/schedule"
[ "$status" -eq 0 ] && [ "$out" = "$one" ]
tap_ok $? "the schedule that is dumped gives the same loops"
dump sched --target-cpu generic
tap_is "$(echo "$out" | grep '^vectorize')" "vectorize 4" "a schedule is for a target"

# --- what rules changed ---

dump subop --changed
echo "$out" | grep -q '^leaf: assign_matmul saves [0-9.]*$'
tap_ok $? "the derivation names body, rule and what it saves"
echo "$out" | grep -q '^ -> assign(sigmoid(.*)\[word(n),j\])$'
tap_ok $? "and the expression after it"
dump subop --changed --rules none
tap_is "$out" "no rule was applied" "without rules nothing is changed"
dump sched --changed
refused 2 "no other stage is made by rules" "no other stage has a derivation"

# --- the text is all there or is refused ---

if [ -c /dev/full ]; then
	for stage in ra ilir; do
		"$ESPALIER" dump $stage "$example/treelstm.ra" --weights "$example/sst-treelstm-small.safetensors" \
			2>"$tmp/err" >/dev/full
		tap_is "$?,$(cat "$tmp/err")" "1,espalier: cannot write standard output: No space left on device" \
			"a full disk is told of stage $stage"
	done
else
	tap_skip "no /dev/full" "a full disk is told"
fi
dump ilir --output "$tmp/none/stage"
refused 1 "No such file" "a file that cannot be made is refused"
tap_done
