# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What find_package(espalier) of CMake reads. It finds the headers from where it lies itself.
cmakedir = $(libdir)/cmake/espalier
nodist_cmake_DATA = %D%/espalierConfig.cmake %D%/espalierConfigVersion.cmake
cmake_private_libs = $(PRIVATE_LIBS) -pthread
cmake_fill = $(AM_V_GEN)$(MKDIR_P) %D% && sed -e 's,@version@,$(PACKAGE_VERSION),' \
	-e "s,@include@,`realpath -ms --relative-to='$(libdir)' '$(includedir)'`," \
	-e "s,@libs@,`echo $(cmake_private_libs) | tr ' ' ';'`,"
%D%/espalierConfig.cmake: $(srcdir)/%D%/espalierConfig.cmake.in Makefile
	$(cmake_fill) $(srcdir)/%D%/espalierConfig.cmake.in >$@.new && mv $@.new $@
%D%/espalierConfigVersion.cmake: $(srcdir)/%D%/espalierConfigVersion.cmake.in Makefile
	$(cmake_fill) $(srcdir)/%D%/espalierConfigVersion.cmake.in >$@.new && mv $@.new $@
CLEANFILES += $(nodist_cmake_DATA)
EXTRA_DIST += %D%/espalierConfig.cmake.in %D%/espalierConfigVersion.cmake.in
