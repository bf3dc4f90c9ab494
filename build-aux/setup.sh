# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart, run-tests and .ci/run, at the top of the source tree: from a fresh machine to a build.
# Steps print one line each; what their commands say goes to a log, whose end is shown when one fails.

setup_log=${setup_log:-build/setup.log}
setup_installed=

setup_say()
{
	printf '%s\n' "$*" >&2
}

# setup_run COMMAND...: its output goes to the log.
setup_run()
{
	mkdir -p "$(dirname "$setup_log")"
	printf '\n== %s\n' "$*" >>"$setup_log"
	"$@" >>"$setup_log" 2>&1 </dev/null
}

# setup_step TEXT COMMAND...: one line about a command; false when it fails, after showing the end of the log.
setup_step()
{
	local text=$1 start=$SECONDS
	shift
	if setup_run "$@"; then
		setup_say "$text: $((SECONDS - start)) s"
	else
		setup_say "$text: failed. The end of $setup_log:"
		tail -n 40 "$setup_log" | sed 's/^/    /' >&2
		return 1
	fi
}

# The packages of the given uses that are not installed.
setup_missing()
{
	local use package
	while read -r use package; do
		case " $* " in *" $use "*) ;; *) continue ;; esac
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
	done < <(sed 's/#.*//' build-aux/packages)
}

setup_apt()
{
	local sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

# setup_packages USE...: installs what is missing; runs nothing when all is there or the system is not Debian's.
setup_packages()
{
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
	local missing
	mapfile -t missing < <(setup_missing "$@")
	[ "${#missing[@]}" != 0 ] || return 0
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		setup_say "These packages are missing and this is neither root nor is there sudo. As root:"
		setup_say "    apt-get install --no-install-recommends ${missing[*]}"
		return 1
	fi
	setup_say "Installing: ${missing[*]}"
	setup_step "package lists" setup_apt update || return 1
	setup_step "packages" setup_apt install --no-install-recommends "${missing[@]}" || return 1
	setup_installed=yes
}

# setup_compiler NAME: how the compiler is called, through a cache of what it compiled before where ccache is installed.
setup_compiler()
{
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}

# setup_configure FOLDER OPTION...: a configured build in FOLDER. Configures again when the options or the place have
# changed or packages came; whatever else has changed, the makefile notices itself.
setup_configure()
{
	local folder=$1 asked CC=${CC:-$(setup_compiler gcc)}
	export CC
	shift
	asked="$PWD $*"
	if [ ! -e configure ]; then
		setup_step "autoreconf" autoreconf -i || return 1
	fi
	if [ -n "$setup_installed" ] || [ ! -e "$folder/Makefile" ] ||
		[ "$(cat "$folder/setup.options" 2>/dev/null)" != "$asked" ]; then
		mkdir -p "$folder"
		setup_step "configure $folder" env -C "$folder" "$PWD/configure" -q "$@" || return 1
		printf '%s\n' "$asked" >"$folder/setup.options"
	fi
}

# ERROR_CFLAGS of the environment, -Werror, reaches every make.
setup_make()
{
	make -j"$(nproc)" ERROR_CFLAGS="${ERROR_CFLAGS-}" "$@"
}

# setup_build FOLDER OPTION...: installs, configures, builds. Static libraries would double the time for nothing.
setup_build()
{
	setup_packages build &&
		setup_configure "$1" --disable-static "${@:2}" &&
		setup_step "make $1" setup_make -C "$1"
}

# setup_counts LOG: "passed failed skipped" of automake's test-suite.log; nothing when there is none.
setup_counts()
{
	[ -e "$1" ] || return 0
	awk '$1 == "#" && !seen[$2]++ { n[$2] = $3 }
	END { print n["PASS:"] + n["XFAIL:"], n["FAIL:"] + n["XPASS:"] + n["ERROR:"], n["SKIP:"] + 0 }' "$1"
}

# setup_failures LOG: of automake's test-suite.log each failure with what the test printed about it, under the name of
# its program; not the comments of tests that were skipped.
setup_failures()
{
	awk '/^(FAIL|ERROR|XPASS):? / { print; about = 0; next }
		/^not ok/ { print; about = 1; next }
		/^# (found|wanted|[a-z])/ { if (about) print; next }
		/Sanitizer|runtime error|^ +#[0-9]+ / { print; next }
		{ about = 0 }' "$1" | head -n 100
}

# setup_check FOLDER [VARIABLE=VALUE...]: compiles and runs the tests of a build and sets `passed`, `failed` and `skipped`; a suite that
# does not come to its end, or runs nothing, counts as one failure.
setup_check()
{
	local log=$1/test-suite.log start=$SECONDS status=0
	passed=0 failed=1 skipped=0
	rm -f "$log"
	setup_packages test || setup_say "Tests that need these packages are skipped."
	setup_step "compile the tests in $1" setup_make -C "$1" test-programs "${@:2}" || return 1
	setup_run setup_make -C "$1" check "${@:2}" || status=1
	read -r passed failed skipped < <(setup_counts "$log") || passed=0 failed=0 skipped=0
	if [ "$failed" = 0 ] && { [ "$status" != 0 ] || [ "$passed" = 0 ]; }; then
		failed=1
	fi
	setup_say "make check in $1: $((SECONDS - start)) s"
	[ "$failed" = 0 ] && return
	setup_say "Failed; all of it is in $log:"
	[ ! -e "$log" ] || setup_failures "$log" | sed 's/^/    /' >&2
	return 1
}
