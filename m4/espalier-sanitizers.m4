# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# ESPALIER_SANITIZERS
# --enable-asan (addresses, leaks, undefined behaviour), --enable-tsan (data races) and --enable-fuzz (as asan, with
# the coverage that libFuzzer steers by; =plain: that alone, which is several times as fast). Sets SANITIZE_CFLAGS, for
# compiling and linking, FUZZ_LDFLAGS, for linking a fuzz target, in which back ends find what counts their coverage,
# SANITIZE_ENVIRONMENT, for running tests, the conditionals SANITIZE and FUZZ, and espalier_sanitizers for the summary.
# The first finding ends the program, so that a test cannot pass over it.
#
# What is not compiled here (LLVM, the C++ library, OpenMP's) synchronises by means that ThreadSanitizer does not see, so
# it is told to leave out what they do themselves. Where OpenMP is used it must be clang's, whose companion libarcher
# tells of the threads, regions and barriers that OpenMP makes; of gcc's nothing can be told.
AC_DEFUN([ESPALIER_SANITIZERS], [
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and UBSan])], [], [enable_asan=no])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])], [], [enable_tsan=no])
AC_ARG_ENABLE([fuzz], [AS_HELP_STRING([--enable-fuzz@<:@=plain@:>@],
	[build the fuzz targets with libFuzzer; plain: without other sanitizers; needs CC=clang-19])],
	[], [enable_fuzz=no])
AS_CASE([$enable_asan:$enable_tsan:$enable_fuzz],
	[no:no:no], [],
	[yes:no:no], [espalier_sanitizers=address,undefined],
	[no:yes:no], [espalier_sanitizers=thread],
	[no:no:yes], [espalier_sanitizers=address,undefined,fuzzer-no-link],
	[no:no:plain], [espalier_sanitizers=fuzzer-no-link],
	[AC_MSG_ERROR([--enable-asan, --enable-tsan and --enable-fuzz exclude each other])])
# LeakSanitizer guesses where the thread-local variables of a library that was loaded later lie, from what stands before
# them in memory, and has read at address 0x408.
AS_IF([test "$enable_asan" = yes],
	[SANITIZE_ENVIRONMENT='export ASAN_OPTIONS="intercept_tls_get_addr=0:$${ASAN_OPTIONS-}";'])
AS_IF([test "$enable_tsan" = yes], [ESPALIER_TSAN_ENVIRONMENT])
AS_IF([test "$enable_fuzz" != no], [FUZZ_LDFLAGS='-fsanitize=fuzzer -Wl,--export-dynamic'])
AS_IF([test -n "$espalier_sanitizers"],
	[SANITIZE_CFLAGS="-fsanitize=$espalier_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
	# Clang looks for a type before the entry of what is called, where compiled kernels have none.
	AS_CASE([$CC:$espalier_sanitizers], [*clang*:*undefined*], [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-sanitize=function"])
	AC_MSG_CHECKING([whether $CC links with -fsanitize=$espalier_sanitizers])
	espalier_saved_cflags=$CFLAGS
	CFLAGS="$CFLAGS $SANITIZE_CFLAGS"
	AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AS_IF([test "$enable_fuzz" != no],
			[AC_MSG_ERROR([--enable-fuzz needs clang and its run-time library: CC=clang-19, libclang-rt-19-dev])],
			[AC_MSG_ERROR([the sanitizer's run-time library is missing])])])
	CFLAGS=$espalier_saved_cflags])
AC_SUBST([SANITIZE_CFLAGS])
AC_SUBST([FUZZ_LDFLAGS])
AC_SUBST([SANITIZE_ENVIRONMENT])
AM_CONDITIONAL([SANITIZE], [test -n "$espalier_sanitizers"])
AM_CONDITIONAL([FUZZ], [test "$enable_fuzz" != no])
])

# Sets SANITIZE_ENVIRONMENT: commands for the shell of a makefile.
AC_DEFUN([ESPALIER_TSAN_ENVIRONMENT], [
SANITIZE_ENVIRONMENT='export TSAN_OPTIONS="ignore_noninstrumented_modules=1:$${TSAN_OPTIONS-}";'
AS_IF([test -n "$OPENMP_CFLAGS"],
	[AC_MSG_CHECKING([for libarcher])
	espalier_archer=`$CC -print-file-name=libarcher.so 2>/dev/null`
	AS_CASE([$espalier_archer],
		[/*], [AC_MSG_RESULT([$espalier_archer])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([with OpenMP --enable-tsan needs clang and its libraries: CC=clang-19, libomp-19-dev])])
	SANITIZE_ENVIRONMENT="$SANITIZE_ENVIRONMENT export OMP_TOOL_LIBRARIES='$espalier_archer';"])
])
