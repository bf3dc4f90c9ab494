# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Which back ends are here; source it. The counterpart of backends.h.
backends=()
for backend in llvm gccjit; do
	there=${ESPALIER_BACKEND_PATH:-${builddir:-.}/.libs}
	[ ! -e "${there%%:*}/espalier-$backend.so" ] || backends+=("$backend")
done
# The one that is preferred, as the command has it; empty when there is none.
backend=${backends[0]-}

# has_backend NAME
has_backend()
{
	[[ " ${backends[*]} " == *" $1 "* ]]
}

# need_backend TEXT: whether there is one; if not, TEXT counts as skipped.
need_backend()
{
	[ -n "$backend" ] && return
	tap_skip "no back end" "$1"
	return 1
}

# skip_backends: what is missing counts as skipped.
skip_backends()
{
	for name in llvm gccjit; do
		has_backend $name || tap_skip "it is not here" "all with back end $name"
	done
}
