/* fuzz_record.c -- RWP's records and lines
 *
 * Input: bit 0: record or line, bit 1: its tag is made right | 64 bytes, shorter: zeros
 */

#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "fuzz/fuzz.h"
#include "wire/barrier.h"
#include "wire/rwp.h"

#define SIZE RWP_RECORD_SIZE
#define FLAG offsetof(struct rwp_record, seq)

static_assert(sizeof(struct rwp_line) == SIZE && offsetof(struct rwp_line, beat) == FLAG,
    "both have the same size and their flag at the same place");

enum { LINE = 1, REPAIR = 2 };

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return crc32c_init();
}

/* An engine would look for a matching CRC for ever. */
static void
repair(uint8_t *slot, size_t tag, size_t tag_size)
{
	uint32_t crc = crc32c(crc32c(0, slot, tag), slot + tag + tag_size, SIZE - tag - tag_size);

	memset(slot + tag, 0, tag_size);
	crc = htole32(crc);
	memcpy(slot + tag, &crc, sizeof(crc));
}

static void
record(uint8_t *slot, unsigned how)
{
	uint64_t seq = flag_load(slot + FLAG);
	struct rwp_record record;
	uint8_t again[SIZE];
	int r;

	if (how & REPAIR)
		repair(slot, offsetof(struct rwp_record, tag), sizeof(record.tag));
	CHECK(rwp_record_decode(slot, seq + 1, &record) == -EAGAIN);
	r = rwp_record_decode(slot, seq, &record);
	CHECK(r == 0 || r == -EBADMSG);
	CHECK(r == 0 || !(how & REPAIR));
	if (r < 0)
		return;
	rwp_record_encode(&record, again);
	CHECK(memcmp(again, slot, SIZE) == 0);
	(void)rwp_type_name(record.type);
	(void)rwp_code_text(record.length);
}

static void
line(uint8_t *slot, unsigned how)
{
	uint64_t beat = flag_load(slot + FLAG);
	struct rwp_line line;
	uint8_t again[SIZE];
	int r;

	if (how & REPAIR)
		repair(slot, offsetof(struct rwp_line, tag), sizeof(line.tag));
	CHECK(rwp_line_decode(slot, beat, &line) == -EAGAIN);
	r = rwp_line_decode(slot, beat - 1, &line);
	CHECK(r == 0 || r == -EBADMSG);
	CHECK(r == 0 || !(how & REPAIR));
	if (r < 0)
		return;
	rwp_line_encode(&line, again);
	CHECK(memcmp(again, slot, SIZE) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_Alignas(uint64_t) uint8_t slot[SIZE] = {0};
	unsigned how = fuzz_take_byte(&data, &size);

	memcpy(slot, data, size < SIZE ? size : SIZE);
	if (how & LINE)
		line(slot, how);
	else
		record(slot, how);
	return 0;
}
