# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What a tree gives does not depend on the trees that it runs with: files are the same to the byte.
. "${srcdir:-.}/tests/cli/support.sh"

# same WHAT TREES BATCHES OPTION...: --at all, so all nodes are compared.
same()
{
	what=$1 trees=$2 batches=$3
	shift 3
	rm -f "$tmp/first"
	for batch in $batches; do
		esp run "$example/treelstm.ra" "$trees" --vocab "$example/sst-vocab.txt" --at all --batch "$batch" \
			--output "$tmp/result" "$@"
		if [ ! -e "$tmp/first" ]; then
			tap_is "$status,$err" "0," "$what: batches of $batch"
			mv "$tmp/result" "$tmp/first"
		else
			cmp "$tmp/result" "$tmp/first"
			tap_ok $? "$what: batches of $batch give the same"
		fi
	done
}

small="--weights $example/sst-treelstm-small.safetensors"
for i in 1 2 3 4 5; do cat "$example/sentences.ptb"; done >"$tmp/many"
same "interpreter" "$example/sentences.ptb" "1 5 12" $small --backend interpreter
need_backend "compiled" || tap_done
cp "$tmp/first" "$tmp/interpreted"
same "compiled" "$example/sentences.ptb" "1 5 12" $small
cmp "$tmp/interpreted" "$tmp/first"
tap_ok $? "compiled code gives what the interpreter gives"
same "compiled" "$tmp/many" "1 10 60" $small --format json
if [ -d "$ESPALIER_DATA/sst" ]; then
	same "real trees" "$ESPALIER_DATA/sst/test-a.txt" "1 10 1105" \
		--weights "$ESPALIER_DATA/models/sst-treelstm.safetensors"
else
	tap_skip "no data" "real trees"
fi
tap_done
