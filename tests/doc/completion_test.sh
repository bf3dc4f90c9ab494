# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Completions: sourced into a shell and asked, as the shell would.
. "${srcdir:-.}/tests/cli/support.sh"
completion=${builddir:-.}/doc/completion
PATH=$(dirname "$ESPALIER"):$PATH
mkdir "$tmp/files" "$tmp/files/folder"
touch "$tmp/files/a.ra" "$tmp/files/b.ra" "$tmp/files/c.ptb" "$tmp/files/with space.ra"

# --- bash ---

# offered WORD...: what is offered for the last word, sorted, in one line. Words are split at =, as bash does.
offered()
{
	(
		cd "$tmp/files" || exit
		. "$completion/espalier"
		COMP_WORDS=(espalier "$@")
		COMP_CWORD=$#
		_espalier "$ESPALIER" "${@: -1}"
		printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' '
	)
}

completion=$(cd "$completion" && pwd)
esp help
tap_is "$(offered "")" \
	"$(echo "$out" | sed -n 's/^  \([a-z-]*\) .*/\1/p' | { cat; echo --version; echo --help; } | sort | paste -sd ' ')" \
	"bash: all commands are offered"
tap_is "$(offered ex)" "explain explain-error" "bash: commands are completed"
tap_is "$(offered run --form)" "--format" "bash: an option is completed"
tap_is "$(offered check --form)" "" "bash: an option of another command is not"
tap_is "$(offered run --format "")" "json text" "bash: the words of a choice are offered"
tap_is "$(offered run --format = j)" "json" "bash: also after ="
tap_is "$(offered run --format =)" "json text" "bash: and right after it"
tap_is "$(offered run "")" "a.ra b.ra folder with space.ra" "bash: the first operand of run is a model"
tap_is "$(offered run a.ra "")" "a.ra b.ra c.ptb folder with space.ra" \
	"bash: the second one, in whatever format, is any file"
tap_is "$(offered run --batch 3 --timing --format = json a.ra c)" "c.ptb" "bash: options before it do not count"
tap_is "$(offered run a.ra c.ptb "")" "" "bash: there is no third"
tap_is "$(offered run --weights "")" "a.ra b.ra c.ptb folder with space.ra" "bash: an argument is any file"
tap_is "$(offered run --cache-dir "")" "folder" "bash: or a folder"
tap_is "$(offered run --batch "")" "" "bash: or nothing that could be known"
tap_is "$(offered dump subo)" "subop" "bash: stages are offered"
tap_is "$(offered explain-error shape)" "shape-mismatch" "bash: diagnostics are offered"
tap_is "$(offered help ru)" "run" "bash: commands are offered to help"

# --- fish and zsh ---

if command -v fish >/dev/null; then
	asked=$(HOME=$tmp fish --no-config -c "source '$completion/espalier.fish'; complete -C 'espalier run --format '" | \
		cut -f 1 | sort | paste -sd ' ')
	tap_is "$asked" "json text" "fish: the words of a choice are offered"
	asked=$(HOME=$tmp fish --no-config \
		-c "source '$completion/espalier.fish'; complete -C 'espalier explain-error shape'" | cut -f 1)
	tap_is "$asked" "shape-mismatch" "fish: diagnostics are offered"
else
	tap_skip "no fish" "fish: words are offered"
fi
if command -v zsh >/dev/null; then
	tap_is "$(zsh -f -n "$completion/_espalier" 2>&1)" "" "zsh: the completion is a script"
else
	tap_skip "no zsh" "zsh: the completion is a script"
fi
tap_done
