#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Sourced by .ci/run: builds Debian's packages from the released archive, looks into them, and installs them on a root that has
# nothing but Debian's essential packages.
debian_folder=build-debian

# What comes of the archive, in build-debian/. The suite has passed in the tree that the archive was made of.
debian_build()
{
	rm -rf "$debian_folder"
	mkdir "$debian_folder"
	rm -f build/espalier-*.tar.gz &&
		setup_make -C build dist &&
		tar -C "$debian_folder" -xf build/espalier-*.tar.gz &&
		(cd "$debian_folder"/espalier-* && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -b -us -uc)
}

debian_package()
{
	echo "$debian_folder/$1"_*.deb
}

# debian_holds PACKAGE PATH...: each path, a pattern, is in the package.
debian_holds()
{
	local package=$1 path contents
	shift
	contents=$(dpkg-deb -c "$(debian_package "$package")" | awk '{ print $6 }')
	for path; do
		grep -qE "^\./usr/$path\$" <<<"$contents" || { echo "$package lacks $path"; return 1; }
	done
}

# debian_wants PACKAGE PATTERN: a relation of the package; with ! before the pattern, that there is none.
debian_wants()
{
	local relations found=no wanted=yes pattern=${2#!}
	[ "$pattern" = "$2" ] || wanted=no
	relations=$(dpkg-deb -f "$(debian_package "$1")" Depends Recommends)
	! grep -qE "$pattern" <<<"$relations" || found=yes
	[ $found = $wanted ] || { echo "$1: $pattern: $found instead of $wanted in $relations"; return 1; }
}

# No package of compilers comes with any but the two of the back ends; nothing is lost between the packages.
debian_check()
{
	local package version
	version=$(dpkg-deb -f "$(debian_package libespalier2)" Version) || return 1
	for package in libespalier2 libespalier-dev espalier espalier-doc; do
		debian_wants $package '!(lib)?(llvm|gcc|clang|gccjit)[0-9]' || return 1
	done
	debian_wants libespalier2 'libjansson4' && debian_wants libespalier-dev "libespalier2 \(= $version\)" &&
		debian_wants espalier 'Recommends: espalier-llvm \| espalier-gccjit' && debian_wants espalier "libespalier2 \(= $version\)" &&
		debian_wants espalier-llvm 'libllvm19' && debian_wants espalier-llvm "libespalier2 \(= $version\)" &&
		debian_wants espalier-gccjit 'libgccjit0' && debian_wants espalier-gccjit "libespalier2 \(= $version\)" &&
		debian_holds libespalier2 'lib/.*/libespalier\.so\.2' &&
		debian_holds libespalier-dev include/espalier.h 'lib/.*/libespalier\.(a|so)' 'lib/.*/pkgconfig/espalier\.pc' \
			'lib/.*/cmake/espalier/espalierConfig\.cmake' &&
		debian_holds espalier bin/espalier libexec/espalier/espalier-compile libexec/espalier/espalier-serve 'share/man/man1/espalier\.1\.gz' 'share/man/man7/espalier-model\.7\.gz' \
			share/bash-completion/completions/espalier share/fish/vendor_completions.d/espalier.fish \
			share/zsh/site-functions/_espalier &&
		debian_holds espalier-llvm 'lib/.*/espalier/espalier-llvm\.so' &&
		debian_holds espalier-gccjit 'lib/.*/espalier/espalier-gccjit\.so' &&
		debian_holds espalier-doc share/doc/espalier/README.md share/doc/espalier/doc/performance.md share/doc/espalier/examples/treelstm/treelstm.ra \
			share/doc/espalier/LICENSES/CC-BY-SA-4.0.txt &&
		lintian --fail-on error "$debian_folder"/*.changes
}

# As root: apt of this machine finds and fetches what the packages need, by what the root has; dpkg of the root installs.
debian_fill_root()
{
	local root=$1 mirror codename apt
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename" 'Component: main' | head -n 1)
	debootstrap --variant=minbase "$codename" "$root" "$mirror" || return 1
	apt=(-o "Dir::State::status=$root/var/lib/dpkg/status" -o "Dir::State::extended_states=$root/var/lib/apt/extended_states"
		-o "Dir::Cache::archives=$root/var/cache/apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
	mkdir "$root/packages"
	find "$debian_folder" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp -t "$root/packages" '{}' +
	rm -f "$root"/var/cache/apt/archives/*.deb
	apt-get -q -y --no-install-recommends --download-only "${apt[@]}" install "$root"/packages/*.deb || return 1
	cp "$root"/var/cache/apt/archives/*.deb "$root/packages"
	chroot "$root" sh -c 'DEBIAN_FRONTEND=noninteractive dpkg -i /packages/*.deb'
}

debian_install()
{
	local root status=0
	root=$(mktemp -d) || return 1
	debian_fill_root "$root" && cp debian/tests/smoke "$root/packages" &&
		chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /packages/smoke || status=1
	rm -rf --one-file-system "$root"
	return $status
}

stage_debian()
{
	local step
	passed=0 failed=0 skipped=0
	setup_packages ci && setup_build build && setup_step "build the packages" debian_build || { failed=1; return; }
	((passed++))
	for step in check install; do
		if [ $step = install ] && [ "$(id -u)" != 0 ]; then
			setup_say "not root: the packages are not installed"
			((skipped++))
		elif setup_step "$step the packages" debian_$step; then
			((passed++))
		else
			((failed++))
		fi
	done
}
