# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What the tests of the command share; source it. Files are made in $tmp, which goes with the script.
srcdir=${srcdir:-.}
ESPALIER=${ESPALIER:-./espalier}
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/backends.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
here=$srcdir/tests/cli
example=$srcdir/examples/treelstm
# Whether a sanitizer makes everything several times slower, and needs far more room than it uses: less is enough then.
shadowed=
grep -qs -e '-fsanitize' "${builddir:-.}/config.status" && shadowed=yes

# esp ARGUMENT...: runs the command; leaves $status, $out and $err. LeakSanitizer cannot always stop a process to look
# at
# it, which says nothing of the process: then once more.
esp()
{
	local turn
	for turn in 1 2 3; do
		out=$("$ESPALIER" "$@" 2>"$tmp/err" </dev/null)
		status=$?
		err=$(cat "$tmp/err")
		[[ $err == *"LeakSanitizer has encountered a fatal error"* ]] || break
	done
}

# show: what the last command said, for who reads why a test failed.
show()
{
	printf 'status %s\n%s\n' "$status" "$err" | head -n 40 | sed 's/^/# found: /'
}

# run ARGUMENT...: espalier run with the tiny weights and the interpreter, which needs no plug-in.
run()
{
	esp run "$@" --weights "$tmp/tiny.safetensors" --vocab "$tmp/words" --backend interpreter
}

# refused STATUS ID TEXT: the last command failed so, with nothing on stdout.
refused()
{
	case $status,$out,$err in
	"$1",,*"$2"*) tap_ok 0 "$3" ;;
	*)
		tap_ok 1 "$3"
		printf '# status %s\n# %s\n# %s\n' "$status" "$out" "$err"
		;;
	esac
}

# weights HEADER-TEXT: a safetensors file on stdout, its values read from stdin. Headers are shorter than 64 KiB here.
weights()
{
	printf "\\$(printf %o $((${#1} % 256)))\\$(printf %o $((${#1} / 256)))"
	printf '\0\0\0\0\0\0%s' "$1"
	cat
}

# floats NUMBER...: integers from 0 to 8, a half, a tenth and three tenths, as f32.
floats()
{
	for n in "$@"; do
		case $n in
		0) printf '\0\0\0\0' ;;
		.1) printf '\315\314\314\75' ;;
		.3) printf '\232\231\231\76' ;;
		.5) printf '\0\0\0\77' ;;
		1) printf '\0\0\200\77' ;;
		2) printf '\0\0\0\100' ;;
		3) printf '\0\0\100\100' ;;
		4) printf '\0\0\200\100' ;;
		5) printf '\0\0\240\100' ;;
		6) printf '\0\0\300\100' ;;
		7) printf '\0\0\340\100' ;;
		8) printf '\0\0\0\101' ;;
		esac
	done
}

E='"E":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}'
W='"W":{"dtype":"F32","shape":[2,2],"data_offsets":[32,48]}'
floats 1 2 3 4 5 6 7 8 0 1 1 0 | weights "{$E,$W}" >"$tmp/tiny.safetensors"
printf 'a\nb\nc\n<unk>\n' >"$tmp/words"
printf '(2 (2 a) (2 b))\n(2 (2 (2 a) (2 b)) (2 C))\n(2 zz)\n' >"$tmp/trees"
