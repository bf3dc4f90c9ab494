# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Nothing between the model's text and the machine code knows a model: none of its folders names one of the examples, or
# of
# the models that are timed, but in comments.
. "${srcdir:-.}/tests/tap.sh"
srcdir=${srcdir:-.}

# An embedding and a matrix are names of examples, and words for what any model has.
names=$(cd "$srcdir" && ls examples/*/*.ra bench/models/*.ra | sed -e 's|/$||' -e 's|.*/||' -e 's|\.ra$||' | grep -vxE 'embedding|matrix' | sort -u)
pattern=$(echo $names lstm gru rnn | tr ' ' '|')

# code FILE...: without comments.
code()
{
	awk '{
		line = $0
		while (length(line)) {
			if (inside) {
				end = index(line, "*/")
				if (!end) break
				line = substr(line, end + 2)
				inside = 0
			} else {
				begin = index(line, "/*")
				print FILENAME ": " (begin ? substr(line, 1, begin - 1) : line)
				if (!begin) break
				line = substr(line, begin + 2)
				inside = 1
			}
		}
	}' "$@"
}

[ "$(echo "$names" | wc -l)" -gt 10 ]
tap_ok $? "there are models to look for"
tap_is "$(echo 'x = "treelstm"; /* GRU' | code /dev/stdin | grep -Eciw "$pattern")" 1 \
	"a name is found in code, not in a comment"
for folder in linearize subop rewrite move sched ilir jit jit/llvm jit/gccjit compile image runtime; do
	found=$(code "$srcdir"/src/$folder/*.[ch]* "$srcdir"/src/$folder/*.def 2>/dev/null | grep -Eiw "$pattern")
	tap_is "$found" "" "$folder names no model"
done
tap_done
