/* The two loops of bursts.py in C: frames of one chunk, one behind the other.
 *
 * Written for whoever reads bursts.py beside it: the same order of the same steps. What is gained is
 * not the arithmetic but memory: Python's objects leave the cache at each frame, and no Python can
 * ask for the next frame's bytes while the present one is summed up (see docs/performance.md).
 *
 * And turns: where both ends share a CPU, a burst goes on behind the far end's turn. So what is under
 * way can be little, and stays in that CPU's cache. Only plain acknowledgements are understood here;
 * anything else ends the burst.
 *
 * Nothing here allocates or keeps anything between calls, and nothing blocks but for the patience that
 * is given. What native.py says is believed; what frames say is not. It needs SSE 4.2 and PCLMUL, and
 * says so by accel_usable(); elsewhere the loops in Python do.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Told apart by native.py from a library that an older source made. */
#define LAYOUT 2

/* wire/frame.py */
enum { HEADER_BYTES = 56, WORD_AT = 12, FLAGS_AT = 19, LENGTH_AT = 20, CREDIT_AT = 22 };
enum { EPOCH_AT = 24, ACK_NOW = 2 };
enum { SEQUENCE_AT = 28, ACK_AT = 32, STREAM_AT = 36, OFFSET_AT = 40, PAYLOAD_CRC_AT = 48 };
enum { HEADER_CRC_AT = 52, COVERED_FROM = 14, FLAGS_MASK = 15, FLAGS_BITS = 4 };

/* bursts.py; the first is what `crcs` has room for */
enum { BURST_FRAMES_MAX = 1024, SPILL_BYTES = 1 << 16 };

/* bursts.Turns */
struct turns {
    int64_t now_ns;
    int32_t loop, patience_ms;
    uint32_t answers;
};

/* bursts.Leaving */
struct leaving {
    struct turns turns;
    int64_t base, offset, stop, round_trip_ns;
    uint64_t plain;
    uint32_t share, sequence, ack, stream, crc, last_flags;
    uint32_t acked, window, epoch, credit;
    int32_t error;
};

/* bursts.Arriving */
struct arriving {
    struct turns turns;
    int64_t base, offset, end;
    uint64_t data;
    double light_left, light_fixed, light_per_byte;
    uint32_t share, sequence, ack, stream, epoch, crc, limit, stage;
    uint32_t frames, flags, length, frame_flags, frame_ack, frame_bytes;
    uint32_t owed, every;
    int32_t error;
};

enum stage { FRESH, HEARD, LIT };
enum outcome { FULL, EMPTY, OTHER, ACKED, STRUCK, DAMAGED, FAILED };

uint32_t accel_layout(void)
{
    return LAYOUT << 24 | sizeof(struct leaving) << 12 | sizeof(struct arriving);
}

#if defined(__x86_64__)

#include <immintrin.h>

#define WITH __attribute__((target("sse4.2,pclmul")))
#define ANEW static inline __attribute__((always_inline))

/* ---- CRC-32C ------------------------------------------------------------------------------------
 *
 * The instruction takes eight bytes in one step and has its result three steps later, so the three
 * thirds of a frame are summed up side by side and joined: the CRC of what stands n bytes before the
 * end is multiplied by x to the power of 8 n, modulo the polynomial. (Gopal et al., Fast CRC
 * Computation for iSCSI Polynomial Using CRC32 Instruction, Intel 2011.)
 */

enum { LINE = 64, PAGE = 4096 };
/* How far ahead a third is fetched where nobody read it before: some lines more than memory is away.
 * Thirds much longer than that gain by it; of shorter ones the whole next frame is fetched. */
enum { NEAR = 1024, LONG_FRAME = 4 * PAGE };

/* Of a frame of that many bytes: how long its thirds are, and what joins them. */
struct thirds {
    size_t bytes, stretch;
    uint64_t by_one, by_two; /* stretches */
};

ANEW uint64_t eight(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Multiplied, and by x to the power of 33 with it, which every power below is short of. */
WITH ANEW uint64_t times(uint64_t crc, uint64_t by)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi64_si128((long long)by), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* x to the power of 64 * eights, less 33; of x to the power of 31 that is, bit-reflected, 1. */
WITH ANEW uint64_t power(size_t eights)
{
    uint64_t value = 1;
    for (int bit = 62 - __builtin_clzll(eights); bit >= 0; bit--) {
        value = times(value, value);
        if (eights >> bit & 1)
            value = times(value, 1);
    }
    return value;
}

WITH ANEW void divide(struct thirds *thirds, size_t bytes)
{
    if (bytes == thirds->bytes)
        return;
    size_t stretch = bytes / 3 / LINE * LINE;
    if (stretch > PAGE && stretch % PAGE < 4 * LINE)
        stretch -= 4 * LINE; /* else the same line of all three falls into one place of the cache */
    thirds->bytes = bytes;
    thirds->stretch = stretch;
    if (stretch) {
        thirds->by_one = power(stretch / 8);
        thirds->by_two = times(thirds->by_one, thirds->by_one);
    }
}

/* `cold`: nobody read these bytes before, so they are fetched some lines ahead. `next`, if any, is
 * read or written next: it is fetched meanwhile, as many bytes of it as are read here. */
WITH ANEW uint32_t sum(
    uint32_t before, const uint8_t *at, const struct thirds *thirds, int cold, const uint8_t *next,
    int to_write)
{
    uint64_t crc = (uint32_t)~before, second = 0, third = 0;
    size_t stretch = thirds->stretch, bytes = thirds->bytes;
    for (size_t i = 0; i < stretch; i += LINE) {
        const uint8_t *one = at + i, *two = one + stretch, *three = two + stretch;
        if (cold) {
            _mm_prefetch(one + NEAR, _MM_HINT_T0);
            _mm_prefetch(two + NEAR, _MM_HINT_T0);
            _mm_prefetch(three + NEAR, _MM_HINT_T0);
        }
#pragma GCC unroll 8
        for (int j = 0; j < LINE; j += 8) {
            crc = _mm_crc32_u64(crc, eight(one + j));
            second = _mm_crc32_u64(second, eight(two + j));
            third = _mm_crc32_u64(third, eight(three + j));
        }
        for (int j = 0; next != NULL && j < 3 * LINE; j += LINE) {
            if (to_write)
                __builtin_prefetch(next + 3 * i + (size_t)j, 1, 2);
            else
                __builtin_prefetch(next + 3 * i + (size_t)j, 0, 2);
        }
    }
    if (stretch) {
        crc = times(crc, thirds->by_two) ^ times(second, thirds->by_one) ^ third;
        at += 3 * stretch;
        bytes -= 3 * stretch;
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

ANEW uint32_t get16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

ANEW uint32_t payload_bytes(const uint8_t *head) { return get16(head + LENGTH_AT); }

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
    static const struct thirds none = {.bytes = HEADER_CRC_AT - COVERED_FROM};
    return sum(0, head + COVERED_FROM, &none, 0, NULL, 0);
}

/* ---- the far end's turn ------------------------------------------------------------------------- */

ANEW int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

ANEW void count(struct turns *turns)
{
    turns->answers++;
    if (turns->patience_ms > 0)
        turns->now_ns = now_ns();
}

/* Whether a frame comes, and nothing else that the loop looks after. Milliseconds: a timer that
 * is due before the kernel's next tick must be programmed, which costs a virtual machine an exit. */
ANEW int comes_next(int fd, const struct turns *turns)
{
    struct epoll_event ready[2];
    return turns->patience_ms > 0 && epoll_wait(turns->loop, ready, 2, turns->patience_ms) == 1 &&
           ready[0].data.fd == fd && ready[0].events & EPOLLIN;
}

/* The window is full: take the plain acknowledgements that wait, or the next one to come. `asked`
 * asked for one. Whether there is room again. */
WITH ANEW int hear(int fd, struct leaving *l, uint32_t next, uint32_t asked, int64_t *asked_ns)
{
    uint8_t head[HEADER_BYTES];
    for (;;) {
        ssize_t bytes = recv(fd, head, sizeof head, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (bytes < 0) {
            if (errno != EAGAIN) {
                l->error = errno;
                return 0;
            }
            if (next - l->acked < l->window)
                return 1;
            if (!comes_next(fd, &l->turns))
                return 0;
            continue;
        }
        uint32_t ack = get32(head + ACK_AT);
        if (bytes != HEADER_BYTES || get64(head + WORD_AT) != l->plain || payload_bytes(head) ||
            get32(head + EPOCH_AT) != l->epoch || get16(head + CREDIT_AT) != l->credit ||
            ack - l->acked > next - l->acked || get32(head + HEADER_CRC_AT) != header_crc(head))
            return next - l->acked < l->window;
        if (recv(fd, head, 1, MSG_DONTWAIT) < 0) {
            l->error = errno;
            return 0;
        }
        count(&l->turns);
        if (*asked_ns && asked - l->acked < ack - l->acked) {
            l->round_trip_ns = now_ns() - *asked_ns;
            *asked_ns = 0;
        }
        l->acked = ack;
    }
}

/* Acknowledge all that was taken. Whether that left; if not, `error` says why, unless it is only
 * that there is no room now. */
WITH ANEW int answer(int fd, uint8_t *plain, struct arriving *a)
{
    put32(plain + ACK_AT, a->sequence);
    put32(plain + HEADER_CRC_AT, header_crc(plain));
    if (write(fd, plain, HEADER_BYTES) < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ENOMEM)
            a->error = errno;
        return 0;
    }
    count(&a->turns);
    a->owed = 0;
    a->flags &= ~(uint32_t)ACK_NOW;
    return 1;
}

/* ---- what native.py calls ----------------------------------------------------------------------- */

int accel_usable(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

WITH uint32_t accel_crc32c(const uint8_t *at, size_t bytes, uint32_t before)
{
    struct thirds thirds = {0};
    divide(&thirds, bytes);
    return sum(before, at, &thirds, 0, NULL, 0);
}

/* How many frames left; the CRC of the chunk behind each of them in `crcs`. */
WITH uint32_t accel_send(
    int fd, const uint8_t *memory, uint8_t *head, struct leaving *l, uint32_t *crcs)
{
    int64_t offset = l->offset, asked_ns = 0;
    uint32_t frames = 0, crc = l->crc, length = l->share, asked = 0;
    uint8_t flags = head[FLAGS_AT];
    struct thirds thirds = {0};
    l->error = 0;
    for (; offset < l->stop && frames < BURST_FRAMES_MAX; offset += length) {
        uint32_t next = l->sequence + frames;
        if (next - l->acked >= l->window && !hear(fd, l, next, asked, &asked_ns))
            break;
        head[FLAGS_AT] = flags;
        if (next + 1 - l->acked == l->window) {
            head[FLAGS_AT] |= ACK_NOW;
            asked = next;
            asked_ns = now_ns();
        }
        if (offset + length >= l->stop) {
            length = (uint32_t)(l->stop - offset);
            head[FLAGS_AT] |= (uint8_t)l->last_flags;
            head[LENGTH_AT] = (uint8_t)(length >> 8);
            head[LENGTH_AT + 1] = (uint8_t)length;
        }
        const uint8_t *bytes = memory + l->base + offset;
        divide(&thirds, length);
        int is_long = length >= LONG_FRAME;
        crc = sum(crc, bytes, &thirds, is_long, is_long ? NULL : bytes + length, 0);
        put32(head + SEQUENCE_AT, next);
        put32(head + ACK_AT, l->ack);
        put32(head + STREAM_AT, l->stream);
        put64(head + OFFSET_AT, (uint64_t)offset);
        put32(head + PAYLOAD_CRC_AT, crc);
        put32(head + HEADER_CRC_AT, header_crc(head));
        struct iovec parts[] = {{head, HEADER_BYTES}, {(void *)bytes, length}};
        if (writev(fd, parts, 2) < 0) {
            l->error = errno;
            break;
        }
        crcs[frames++] = crc;
    }
    return frames;
}

WITH enum outcome accel_take(
    int fd, uint8_t *memory, uint8_t *head, uint8_t *spill, uint8_t *plain, struct arriving *a)
{
    struct thirds thirds = {0};
    a->error = 0;
    while (a->frames < a->limit && a->offset < a->end) {
        uint8_t *place = memory + a->base + a->offset;
        if (a->stage == FRESH) {
            if (a->offset + a->share > a->end)
                a->share = (uint32_t)(a->end - a->offset);
            struct iovec parts[] = {{head, HEADER_BYTES}, {place, a->share}, {spill, SPILL_BYTES}};
            ssize_t taken = readv(fd, parts, 3);
            if (taken < 0) {
                if (errno == EAGAIN) {
                    if (a->every && a->flags & ACK_NOW && a->owed && !answer(fd, plain, a))
                        return a->error ? FAILED : EMPTY;
                    if (!comes_next(fd, &a->turns))
                        return EMPTY;
                    continue;
                }
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
        divide(&thirds, a->length);
        uint32_t crc = sum(a->crc, place, &thirds, 0, place + a->length, 1);
        if (crc != get32(head + PAYLOAD_CRC_AT))
            return DAMAGED;
        a->crc = crc;
        a->offset += a->length;
        a->sequence++;
        a->frames++;
        a->owed++;
        a->flags |= a->frame_flags;
        /* That a chunk is whole is told before its last acknowledgement leaves. */
        if (a->every && a->owed >= a->every && a->offset < a->end && !answer(fd, plain, a))
            return a->error ? FAILED : FULL;
    }
    return FULL;
}

#else

int accel_usable(void) { return 0; }

#endif
