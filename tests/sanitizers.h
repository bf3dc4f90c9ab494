/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What a test is compiled with, for those that count the process's threads or take its room. */
#ifndef ESPALIER_TESTS_SANITIZERS_H
#define ESPALIER_TESTS_SANITIZERS_H

#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

#if defined __SANITIZE_THREAD__ || HAS_FEATURE(thread_sanitizer)
enum { RACES_SOUGHT = 1 };
#else
enum { RACES_SOUGHT = 0 };
#endif

/* Memory has a shadow: the process needs far more room than it takes. */
#if defined __SANITIZE_ADDRESS__ || HAS_FEATURE(address_sanitizer)
enum { SHADOWED = 1 };
#else
enum { SHADOWED = RACES_SOUGHT };
#endif

/* A child of a process whose other threads allocate may wait for ever inside of GCC's AddressSanitizer, most likely for
 * the lock of its heap; without it, it never did. */
#if defined __SANITIZE_ADDRESS__ && !defined __clang__
enum { HEAP_NOT_FOR_FORKS = 1 };
#else
enum { HEAP_NOT_FOR_FORKS = 0 };
#endif

/* ThreadSanitizer holds a lock of its own while a library is opened: a child of a process that opens one in another thread
 * waits for it for ever, inside of the sanitizer. */
enum { LIBRARIES_NOT_FOR_FORKS = RACES_SOUGHT };

/* ThreadSanitizer does not see inside of GCC's OpenMP library, and takes the host's own regions for races. */
#ifdef __clang__
enum { REGIONS_MISTAKEN = 0 };
#else
enum { REGIONS_MISTAKEN = RACES_SOUGHT };
#endif

#endif
