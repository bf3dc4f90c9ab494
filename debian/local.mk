# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What dpkg-buildpackage reads.
EXTRA_DIST += \
	%D%/changelog %D%/control %D%/copyright %D%/espalier-doc.install %D%/espalier-gccjit.install \
	%D%/espalier-llvm.install %D%/espalier.install %D%/espalier.service %D%/espalier.socket %D%/libespalier-dev.install %D%/libespalier2.install \
	%D%/not-installed %D%/rules %D%/source/format %D%/tests/control %D%/tests/smoke
