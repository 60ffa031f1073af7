/* The two loops of bursts.py in C: frames of one chunk, one behind the other.
 *
 * Written for whoever reads bursts.py beside it: the same order of the same steps. What is gained is
 * not the arithmetic but memory: Python's objects leave the cache at each frame, and no Python can
 * ask for the next frame's bytes while the present one is summed up (see docs/performance.md).
 *
 * Nothing here allocates, blocks or keeps anything between calls, and where a call does not wait no
 * signal interrupts it. What native.py says is believed; what frames say is not. It needs SSE 4.2
 * and PCLMUL, and says so by accel_usable(); elsewhere the loops in Python do.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Told apart by native.py from a library that an older source made. */
#define LAYOUT 1

/* wire/frame.py */
enum { HEADER_BYTES = 56, WORD_AT = 12, FLAGS_AT = 19, LENGTH_AT = 20, EPOCH_AT = 24 };
enum { SEQUENCE_AT = 28, ACK_AT = 32, STREAM_AT = 36, OFFSET_AT = 40, PAYLOAD_CRC_AT = 48 };
enum { HEADER_CRC_AT = 52, COVERED_FROM = 14, FLAGS_MASK = 15, FLAGS_BITS = 4 };

/* bursts.py; the first is what `crcs` has room for */
enum { BURST_FRAMES_MAX = 256, SPILL_BYTES = 1 << 16 };

/* bursts.Leaving */
struct leaving {
    int64_t base, offset, stop;
    uint32_t share, sequence, ack, stream, crc, last_flags;
    int32_t error;
};

/* bursts.Arriving */
struct arriving {
    int64_t base, offset, end;
    uint64_t data;
    double light_left, light_fixed, light_per_byte;
    uint32_t share, sequence, ack, stream, epoch, crc, limit, stage;
    uint32_t frames, flags, length, frame_flags, frame_ack, frame_bytes;
    int32_t error;
};

enum stage { FRESH, HEARD, LIT };
enum outcome { FULL, EMPTY, OTHER, ACKED, STRUCK, DAMAGED, FAILED };

uint32_t accel_layout(void)
{
    return LAYOUT << 16 | sizeof(struct leaving) << 8 | sizeof(struct arriving);
}

#if defined(__x86_64__)

#include <immintrin.h>

#define WITH __attribute__((target("sse4.2,pclmul")))
#define ANEW static inline __attribute__((always_inline))

/* ---- CRC-32C ------------------------------------------------------------------------------------
 *
 * The instruction takes eight bytes in one step and has its result three steps later, so three
 * stretches are summed up side by side and joined: the CRC of what stands n bytes before the end is
 * multiplied by x to the power of 8 n, modulo the polynomial. (Gopal et al., Fast CRC Computation
 * for iSCSI Polynomial Using CRC32 Instruction, Intel 2011.)
 */

enum { LONG_STRETCH = 2688, SHORT_STRETCH = 256 }; /* whole lines of a cache */
static const uint32_t POLYNOMIAL = 0x82f63b78;       /* Castagnoli, bit-reflected */

struct joint {
    uint64_t by_one, by_two; /* stretches */
};
static struct joint long_joint, short_joint;

/* x to the power of `bits`, less the 33 that the multiplication below brings along. */
static uint64_t power(long bits)
{
    uint32_t value = 0x80000000u;
    for (bits -= 33; bits > 0; bits--)
        value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
    return value;
}

__attribute__((constructor)) static void prepare(void)
{
    long_joint = (struct joint){power(8L * LONG_STRETCH), power(16L * LONG_STRETCH)};
    short_joint = (struct joint){power(8L * SHORT_STRETCH), power(16L * SHORT_STRETCH)};
}

WITH ANEW uint64_t times(uint64_t crc, uint64_t by)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)by), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

ANEW uint64_t eight(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Three stretches. `ahead`, if any, is what is summed up or written next: it is fetched meanwhile,
 * as many bytes of it as are read here. */
WITH ANEW uint64_t three(
    uint64_t crc, const uint8_t *at, long stretch, const struct joint *joint, const uint8_t *ahead,
    int to_write)
{
    uint64_t second = 0, third = 0;
    for (long i = 0; i < stretch; i += 16) {
        const uint8_t *here = at + i;
        crc = _mm_crc32_u64(crc, eight(here));
        second = _mm_crc32_u64(second, eight(here + stretch));
        third = _mm_crc32_u64(third, eight(here + 2 * stretch));
        crc = _mm_crc32_u64(crc, eight(here + 8));
        second = _mm_crc32_u64(second, eight(here + stretch + 8));
        third = _mm_crc32_u64(third, eight(here + 2 * stretch + 8));
        if (ahead != NULL && (i & 48) != 48) { /* 48 bytes a turn: three lines in four turns */
            const uint8_t *line = ahead + 3 * (i & ~63L) + 4 * (i & 48);
            if (to_write)
                __builtin_prefetch(line, 1, 2);
            else
                __builtin_prefetch(line, 0, 2);
        }
    }
    return times(crc, joint->by_two) ^ times(second, joint->by_one) ^ third;
}

WITH ANEW uint32_t sum(
    uint32_t before, const uint8_t *at, size_t bytes, const uint8_t *ahead, int to_write)
{
    uint64_t crc = (uint32_t)~before;
    for (; bytes >= 3 * LONG_STRETCH; bytes -= 3 * LONG_STRETCH, at += 3 * LONG_STRETCH) {
        crc = three(crc, at, LONG_STRETCH, &long_joint, ahead, to_write);
        ahead = ahead != NULL ? ahead + 3 * LONG_STRETCH : NULL;
    }
    for (; bytes >= 3 * SHORT_STRETCH; bytes -= 3 * SHORT_STRETCH, at += 3 * SHORT_STRETCH) {
        crc = three(crc, at, SHORT_STRETCH, &short_joint, ahead, to_write);
        ahead = ahead != NULL ? ahead + 3 * SHORT_STRETCH : NULL;
    }
    for (; bytes >= 8; bytes -= 8, at += 8)
        crc = _mm_crc32_u64(crc, eight(at));
    for (; bytes; bytes--, at++)
        crc = _mm_crc32_u8((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}

/* ---- headers: big-endian ------------------------------------------------------------------------ */

ANEW uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}

ANEW uint32_t payload_bytes(const uint8_t *head)
{
    return (uint32_t)head[LENGTH_AT] << 8 | head[LENGTH_AT + 1];
}

ANEW void put32(uint8_t *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof value);
}

ANEW uint64_t get64(const uint8_t *at) { return __builtin_bswap64(eight(at)); }

ANEW void put64(uint8_t *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof value);
}

WITH ANEW uint32_t header_crc(const uint8_t *head)
{
    return sum(0, head + COVERED_FROM, HEADER_CRC_AT - COVERED_FROM, NULL, 0);
}

/* ---- what native.py calls ----------------------------------------------------------------------- */

int accel_usable(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

WITH uint32_t accel_crc32c(const uint8_t *at, size_t bytes, uint32_t before)
{
    return sum(before, at, bytes, NULL, 0);
}

/* How many frames left; the CRC of the chunk behind each of them in `crcs`. */
WITH uint32_t accel_send(
    int fd, const uint8_t *memory, uint8_t *head, struct leaving *leaving, uint32_t *crcs)
{
    int64_t offset = leaving->offset;
    uint32_t frames = 0, crc = leaving->crc, length = leaving->share;
    leaving->error = 0;
    for (; offset < leaving->stop && frames < BURST_FRAMES_MAX; offset += length) {
        if (offset + length >= leaving->stop) {
            length = (uint32_t)(leaving->stop - offset);
            head[FLAGS_AT] = (uint8_t)leaving->last_flags;
            head[LENGTH_AT] = (uint8_t)(length >> 8);
            head[LENGTH_AT + 1] = (uint8_t)length;
        }
        const uint8_t *bytes = memory + leaving->base + offset;
        crc = sum(crc, bytes, length, bytes + length, 0);
        put32(head + SEQUENCE_AT, leaving->sequence + frames);
        put32(head + ACK_AT, leaving->ack);
        put32(head + STREAM_AT, leaving->stream);
        put64(head + OFFSET_AT, (uint64_t)offset);
        put32(head + PAYLOAD_CRC_AT, crc);
        put32(head + HEADER_CRC_AT, header_crc(head));
        struct iovec parts[] = {{head, HEADER_BYTES}, {(void *)bytes, length}};
        if (writev(fd, parts, 2) < 0) {
            leaving->error = errno;
            break;
        }
        crcs[frames++] = crc;
    }
    return frames;
}

WITH enum outcome accel_take(
    int fd, uint8_t *memory, uint8_t *head, uint8_t *spill, struct arriving *a)
{
    while (a->frames < a->limit && a->offset < a->end) {
        uint8_t *place = memory + a->base + a->offset;
        if (a->stage == FRESH) {
            if (a->offset + a->share > a->end)
                a->share = (uint32_t)(a->end - a->offset);
            struct iovec parts[] = {{head, HEADER_BYTES}, {place, a->share}, {spill, SPILL_BYTES}};
            ssize_t taken = readv(fd, parts, 3);
            if (taken < 0) {
                if (errno == EAGAIN)
                    return EMPTY;
                a->error = errno;
                a->length = payload_bytes(head);
                return FAILED;
            }
            uint64_t word = get64(head + WORD_AT);
            a->frame_bytes = (uint32_t)taken;
            a->frame_flags = word & FLAGS_MASK;
            a->length = payload_bytes(head);
            a->frame_ack = get32(head + ACK_AT);
            if (get32(head + SEQUENCE_AT) != a->sequence ||
                get64(head + OFFSET_AT) != (uint64_t)a->offset ||
                get32(head + STREAM_AT) != a->stream || get32(head + EPOCH_AT) != a->epoch ||
                word >> FLAGS_BITS != a->data || a->length != a->share || !a->length ||
                a->frame_bytes != HEADER_BYTES + a->length ||
                get32(head + HEADER_CRC_AT) != header_crc(head))
                return OTHER;
            if (a->frame_ack != a->ack)
                return ACKED;
        }
        if (a->stage != LIT) {
            double left = a->light_left - a->light_fixed - a->length * a->light_per_byte;
            if (left <= 0.0)
                return STRUCK;
            a->light_left = left;
        }
        a->stage = FRESH;
        uint32_t crc = sum(a->crc, place, a->length, place + a->length, 1);
        if (crc != get32(head + PAYLOAD_CRC_AT))
            return DAMAGED;
        a->crc = crc;
        a->offset += a->length;
        a->sequence++;
        a->frames++;
        a->flags |= a->frame_flags;
    }
    return FULL;
}

#else

int accel_usable(void) { return 0; }

#endif
