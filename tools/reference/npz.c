/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* NumPy archives: zip files of .npy members, stored or deflated. */
#include "reference/reference.h"

#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unzip.h>

enum { NAME_LIMIT = 256, CHUNK = 1 << 24, ENCRYPTED = 1 };

static bool begins_archive(const unsigned char *bytes)
{
	return memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0;
}

static bool read_member(void *from, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		size_t wanted = bytes - done < CHUNK ? bytes - done : CHUNK;
		int got = unzReadCurrentFile(from, (char *)to + done, (unsigned)wanted);
		if (got <= 0)
			return false;
		done += got;
	}
	return true;
}

static bool check_size(const struct npy_stream *s, const struct reference_tensor *t, uint64_t bytes)
{
	if (bytes >= t->at && bytes - t->at == reference_bytes(t))
		return true;
	return complain("%s: has %llu bytes, where its header and shape need %llu", s->what,
			(unsigned long long)bytes, (unsigned long long)(t->at + reference_bytes(t)));
}

/* Adds a tensor, named after the member without .npy. */
static bool add_member(struct reference *r, const unz_file_info64 *info, const char *name)
{
	char what[4096 + NAME_LIMIT];
	unz64_file_pos place;
	struct reference_tensor *t = reference_add(r, name);
	if (!t)
		return false;
	snprintf(what, sizeof what, "%s: '%s'", r->path, t->name);
	t->name[strlen(name) - strlen(".npy")] = 0;
	if (info->flag & ENCRYPTED)
		return complain("%s: is encrypted", what);
	if (unzGetFilePos64(r->archive, &place) != UNZ_OK || unzOpenCurrentFile(r->archive) != UNZ_OK)
		return complain("%s: cannot be opened: damaged, or compressed in an unknown way", what);
	struct npy_stream s = {read_member, r->archive, what};
	bool ok = npy_read_header(&s, t) && check_size(&s, t, info->uncompressed_size);
	unzCloseCurrentFile(r->archive);
	t->member = place.pos_in_zip_directory;
	t->number = place.num_of_file;
	return ok;
}

static bool list_member(struct reference *r)
{
	unz_file_info64 info;
	char name[NAME_LIMIT];
	if (unzGetCurrentFileInfo64(r->archive, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
		return complain("%s: its list of members is damaged", r->path);
	if (info.size_filename >= sizeof name)
		return complain("%s: a member has a name of %lu bytes, more than %d", r->path,
				info.size_filename, NAME_LIMIT - 1);
	size_t n = strlen(name);
	bool is_array = n > 4 && strcmp(name + n - 4, ".npy") == 0;
	return !is_array || add_member(r, &info, name);
}

static bool open_npz(struct reference *r)
{
	r->archive = unzOpen64(r->path);
	int found = r->archive ? unzGoToFirstFile(r->archive) : UNZ_BADZIPFILE;
	while (found == UNZ_OK) {
		if (!list_member(r))
			return false;
		found = unzGoToNextFile(r->archive);
	}
	return found == UNZ_END_OF_LIST_OF_FILE ||
	       complain("%s: cannot be read as a zip file: it is damaged or ends early", r->path);
}

/* Closing a member that was read to its end checks its checksum. */
static bool load_member(struct reference *r, const struct reference_tensor *t, void *to, size_t bytes)
{
	unz64_file_pos place = {t->member, t->number};
	char header[4096];
	bool ok = unzGoToFilePos64(r->archive, &place) == UNZ_OK && unzOpenCurrentFile(r->archive) == UNZ_OK;
	if (ok) {
		for (uint64_t left = t->at; ok && left; left -= left < sizeof header ? left : sizeof header)
			ok = read_member(r->archive, header, left < sizeof header ? left : sizeof header);
		ok = ok && read_member(r->archive, to, bytes);
		ok = unzCloseCurrentFile(r->archive) == UNZ_OK && ok;
	}
	return ok || complain("%s: '%s.npy' is damaged", r->path, t->name);
}

const struct reference_form reference_npz = {"npz", false, begins_archive, open_npz, load_member};
