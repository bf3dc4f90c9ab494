# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The command line itself: help, and status 2 when it is wrong.
. "${srcdir:-.}/tests/cli/support.sh"

# usage WHAT ARGUMENT...
usage()
{
	what=$1
	shift
	esp "$@"
	refused 2 "espalier" "$what"
}

usage "no command"
usage "a command that does not exist" walk
usage "help about a command that does not exist" help walk
usage "no operands" run
usage "one operand of two" run model.ra
usage "an operand too many" run model.ra trees.ptb more
usage "no weights" run "$here/tiny.ra" trees.ptb
usage "an option that does not exist" run model.ra trees.ptb --speed
usage "a letter for an option" run model.ra trees.ptb -x
usage "an option of another command" check model.ra --batch 3
usage "an option without its argument" run model.ra trees.ptb --weights
usage "an argument for an option that takes none" run model.ra trees.ptb --timing=yes
usage "a format that does not exist" run model.ra trees.ptb --format xml
usage "a place that does not exist" run model.ra trees.ptb --at leaves
usage "tables of no bytes" run model.ra trees.ptb --table-bytes 0
usage "arithmetic for a command that does not compile" init --math exact
usage "weights of a type that there is not" run model.ra trees.ptb --weights-as f64
usage "a precision that there is not" run model.ra trees.ptb --precision f64
usage "an assumption that there is not" run model.ra trees.ptb --assume infinite
usage "minibatches of nothing" run model.ra trees.ptb --batch 0
usage "minibatches of a word" run model.ra trees.ptb --batch many
usage "threads of nothing" run model.ra trees.ptb --threads 0
usage "more threads than a context takes" run model.ra trees.ptb --threads 257
for number in 99999999999999999999 9223372036854775808 -1 1e3 "" " "; do
	for option in --memory-cap --operators --table-bytes --batch --threads; do
		run "$here/tiny.ra" "$tmp/trees" $option "$number"
		refused 2 "$option is a number from 1 to " "$option '$number'"
	done
done
run "$here/tiny.ra" "$tmp/trees" --memory-cap 9223372036854775807
tap_is "$status" 0 "a number as large as it may be"
esp bench "$here/tiny.ra" --seed 99999999999999999999
refused 2 "--seed is a number from 1 to " "a seed that no number holds"
for number in 1e999 -1e999; do
	esp compare "$here/tiny.ra" "$tmp/trees" --atol $number
	refused 2 "--atol is a number, 0 or larger" "--atol $number"
done
usage "threads for a command that runs nothing" check model.ra --threads 2
usage "an argument for --no-cache" run model.ra trees.ptb --no-cache=yes
usage "a tensor that goes nowhere" run model.ra trees.ptb --weights w --tensor h
usage "an export of one tensor without its name" run model.ra trees.ptb --weights w --export x.npy
usage "an export of all tensors with a name" run model.ra trees.ptb --weights w --export x.safetensors --tensor h
usage "an export of no known form" run model.ra trees.ptb --weights w --export x.csv
usage "an export for a command that runs nothing" check model.ra --export x.npy
usage "a stage that does not exist" dump gimple model.ra
usage "a stage without a model" dump ra
usage "a stage without weights" dump ilir "$here/tiny.ra"
usage "an input to check without weights" check "$here/tiny.ra" "$tmp/trees"
esp run "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors" --backend interpreter
refused 2 "give --vocab FILE" "words to read without a vocabulary"
esp check "$here/tiny.ra" "$tmp/trees" --weights "$tmp/tiny.safetensors"
refused 2 "give --vocab FILE" "words to check without a vocabulary"
run "$here/tiny.ra" "$tmp/trees" --target-cpu pdp11
refused 2 "--target-cpu is native|generic|avx2|avx512|amx|aarch64" "a target that does not exist"

run "$here/tiny.ra" "$tmp/trees" --math sloppy
refused 2 "exact, reassociate, fast" "arithmetic that does not exist"
run "$here/tiny.ra" "$tmp/trees" --rules golden
refused 2 "there is no family of rules 'golden'" "a family that does not exist is named"
case $err in *"all, none, neutral, commutative, "*"tables"*) tap_ok 0 "those that do are told" ;; *) tap_ok 1 "those that do are told" ;; esac
for rules in all none -tables,-geometric neutral,tables; do
	run "$here/tiny.ra" "$tmp/trees" --rules $rules --math exact --table-bytes 1000
	tap_is "$status,$(echo "$out" | wc -l)" "0,6" "rules may be $rules"
done

# meant WORD HINT
meant()
{
	run "$here/tiny.ra" "$tmp/trees" "$1"
	refused 2 "did you mean '$2'?" "$1 may be $2"
}
meant --formt --format
meant --bacth=3 --batch
run "$here/tiny.ra" "$tmp/trees" --speed
case $err in *"did you mean"*) tap_ok 1 "nothing is like --speed" ;; *) tap_ok 0 "nothing is like --speed" ;; esac

esp --version
version=$(sed -n 's/^#define ESP_VERSION "\(.*\)"$/\1/p' "${srcdir:-.}/src/api/espalier.h")
tap_is "$status,$out" "0,espalier $version" "the version is told"
esp help
case $status,$out in 0,*init*check*run*dump*explain-error*help*"Exit status"*) tap_ok 0 "help lists the commands" ;; *) tap_ok 1 "help lists the commands" ;; esac
for command in init check run dump explain explain-error help; do
	esp help $command
	told=$out
	case $status,$out in 0,"usage: espalier $command"*--help*Example:*) tap_ok 0 "help explains $command" ;; *) tap_ok 1 "help explains $command" ;; esac
	esp $command --help
	tap_is "$status,$out" "0,$told" "$command --help is the same"
done
tap_done
