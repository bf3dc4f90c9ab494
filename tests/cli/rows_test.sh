# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# espalier run --input: rows of a model without a structure, from arrays of NumPy; what is refused.
. "${srcdir:-.}/tests/cli/support.sh"

cat >"$tmp/rows.ra" <<'END'
model rows
structure none
input x[2], n : i32, flag : bool
param W[2, 2]
node:
    both = where(flag, W @ x, x)
output twice = both + both
output next = n + 1
END

# bytes HEX...: bytes to standard output.
bytes()
{
	[ $# = 0 ] || printf "$(printf '\\x%s' "$@")"
}

# array NAME DESCR SHAPE HEX...: an .npy file of version 1.
array()
{
	local header="{'descr': '$2', 'fortran_order': ${order:-False}, 'shape': $3, }" name=$1
	header=$(printf '%-117s' "$header")
	shift 3
	{ bytes 93; printf NUMPY; bytes 01 00 76 00; printf '%s\n' "$header"; bytes "$@"; } >"$tmp/$name.npy"
}

# Weights that swap two elements, as a safetensors file.
header='{"W":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
{ bytes "$(printf %02x ${#header})" 00 00 00 00 00 00 00; printf %s "$header"
	bytes 00 00 00 00 00 00 80 3f 00 00 80 3f 00 00 00 00; } >"$tmp/w.safetensors"

one="00 00 80 3f" two="00 00 00 40" three="00 00 40 40" four="00 00 80 40"
array x '<f4' '(3, 2)' $one $two $three $four $two $two
array n '<i4' '(3,)' 05 00 00 00 ff ff ff ff 07 00 00 00
array flag '|b1' '(3,)' 01 00 01

# rows ARGUMENT...: runs the model over x, n and flag, or what comes in their place.
rows()
{
	esp run "$tmp/rows.ra" --weights "$tmp/w.safetensors" --backend interpreter "$@"
}
all=(--input "x=$tmp/x.npy" --input "n=$tmp/n.npy" --input "flag=$tmp/flag.npy")
expected='twice: 4 2
next: 6
twice: 6 8
next: 0
twice: 4 4
next: 8'
rows "${all[@]}"
tap_is "$status,$out" "0,$expected" "rows of three arrays"
rows "${all[@]}" --batch 2
tap_is "$status,$out" "0,$expected" "two rows at a time are the same"
rows "${all[@]}" --format json
tap_is "$status,$(head -n 1 <<<"$out")" '0,{"tree":0,"nodes":1,"sentence":"","outputs":{"twice":[4,2],"next":[6]}}' \
	"as JSON"
rows "${all[@]}" --export "$tmp/out.npy" --tensor twice
tap_is "$status,$(tail -c 24 "$tmp/out.npy" | od -An -tf4 -v | tr -s ' \n' ' ')" "0, 4 2 6 8 4 4 " \
	"results are exported"
esp compile "$tmp/rows.ra" --weights "$tmp/w.safetensors" --pack -o "$tmp/rows.espalier"
if [ $status = 0 ]; then
	esp run "$tmp/rows.espalier" "${all[@]}"
	tap_is "$status,$out" "0,$expected" "a saved program takes them, too"
else
	tap_skip "no back end can be asked for code" "a saved program takes them, too"
fi

order=True array fortran '<f4' '(3, 2)' $one $three $two $two $four $two
rows --input "x=$tmp/fortran.npy" "${all[@]:2}"
tap_is "$status,$out" "0,$expected" "an array in the order of Fortran is read as what it is"
array single '<f4' '(2,)' $one $two
array number '<i4' '()' 05 00 00 00
array truth '|b1' '(1,)' 01
rows --input "x=$tmp/single.npy" --input "n=$tmp/number.npy" --input "flag=$tmp/truth.npy"
tap_is "$status,$out" "0,$(head -n 2 <<<"$expected")" "arrays without an axis of the batch are one row"
array none '<f4' '(0, 2)'
array none_n '<i4' '(0,)'
array none_flag '|b1' '(0,)'
rows --input "x=$tmp/none.npy" --input "n=$tmp/none_n.npy" --input "flag=$tmp/none_flag.npy"
tap_is "$status,$out" "0," "no rows give no results"

# refused_x FILE MESSAGE WHAT: FILE in the place of x.
refused_x()
{
	rows --input "x=$tmp/$1.npy" "${all[@]:2}"
	refused 1 "$2" "$3"
}
array wide '<f4' '(2, 3)' $one $one $one $one $one $one
refused_x wide "its shape is [2, 3], but rows of the input 'x' are [2]" "rows of another shape are refused"
array deep '<f4' '(1, 1, 2)' $one $one
refused_x deep "its shape is [1, 1, 2]" "so are axes too many"
array double '<f8' '(1, 2)' 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
refused_x double "its values are '<f8': save them as one of the types f32" "and a type that no input has"
array ints '<i4' '(1, 2)' 01 00 00 00 01 00 00 00
refused_x ints "its values are i32, but the input 'x' is f32: write x.astype('<f4')" "and another type"
array big '>f4' '(1, 2)' 3f 80 00 00 3f 80 00 00
refused_x big "values of type '>f4' are big-endian; write x.astype('<f4')" "and big-endian values"
array object '|O' '(1, 2)' 00
refused_x object "values of type '|O' are not read" "and objects of Python"
array short '<f4' '(3, 2)' $one
refused_x short "4 bytes of values follow its header, where its shape needs 24" "and a file that was cut off"
array few '<f4' '(2, 2)' $one $one $one $one
refused_x few "has 3 rows, but $tmp/few.npy has 2" "and another number of rows"
cp "$tmp/w.safetensors" "$tmp/weights.npy"
refused_x weights "is neither a .npy file" "and a file of another kind"
rows "${all[@]:2}"
refused 1 "no --input NAME=FILE gives the input 'x'" "an input that is missing is named"
rows "${all[@]}" --input "x=$tmp/x.npy"
refused 1 "--input gives 'x' twice" "so is one that is given twice"
rows "${all[@]}" --input "flags=$tmp/x.npy"
refused 1 "there is no input 'flags'; did you mean 'flag'?" "and one that the model lacks"
rows --input x
refused 1 "--input is NAME=FILE.npy or NAME=FILE.pb, not 'x'" "a word without a file is refused"
rows
refused 2 "--input NAME=FILE" "a run needs a file or --input"
rows "$tmp/x.npy" "${all[@]}"
refused 2 "leave one of both out" "and not both"
esp run "$here/tiny.ra" --weights "$(ls "$tmp"/w.safetensors)" "${all[@]}"
tap_ok $((status == 0)) "a model of a structure takes no rows"
tap_done
