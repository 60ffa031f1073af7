/* The ceiling of the kernel's path: how fast do bytes cross a veth pair on packet sockets in C, with
 * batches of sendmmsg and recvmmsg, and nothing else: no header to speak of, no checksum, no retry?
 *
 *   ceiling IF_A IF_B FRAME_BYTES TOTAL_MIB
 *
 * Prints GB/s (1e9 bytes) of payload that arrived. The receiver is this process, the sender its
 * child; a credit of a few batches over a pipe keeps the sender from drowning the receiver, as the
 * kernel would drop what does not fit into the socket's buffer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { ETHERTYPE = 0x88B5, HEADER = 14, MOST = 512, WINDOW = 4 };
static int batch;  /* frames of one system call */
static int window; /* batches on their way, so that they fit into the receiver's buffer */

static void die(const char *what) { perror(what); exit(1); }

static int open_packet(const char *name)
{
    int size = 64 << 20;
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0); /* hears nothing before bind() */
    if (fd < 0) die("socket");
    at.sll_ifindex = (int)if_nametoindex(name);
    if (bind(fd, (struct sockaddr *)&at, sizeof at)) die(name);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    return fd;
}

/* Frames whose header lies in `heads` and whose payload in `memory`, one slice after the other. */
static void lay(struct mmsghdr *messages, struct iovec (*parts)[2], char (*heads)[HEADER],
                char *memory, size_t payload)
{
    memset(messages, 0, sizeof(struct mmsghdr) * MOST);
    for (int i = 0; i < batch; i++) {
        parts[i][0] = (struct iovec){heads[i], HEADER};
        parts[i][1] = (struct iovec){memory + i * payload, payload};
        messages[i].msg_hdr.msg_iov = parts[i];
        messages[i].msg_hdr.msg_iovlen = 2;
    }
}

static void pin(int cpu)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2) return;
    int seen = 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && seen++ == cpu) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

int main(int count, char **words)
{
    if (count != 5) return fprintf(stderr, "ceiling IF_A IF_B FRAME_BYTES TOTAL_MIB\n"), 2;
    size_t payload = strtoul(words[3], 0, 0) - HEADER;
    size_t total = (strtoul(words[4], 0, 0) << 20);
    batch = (int)((1 << 21) / (payload + HEADER));
    batch = batch < 1 ? 1 : batch > MOST ? MOST : batch;
    int near = open_packet(words[1]), far = open_packet(words[2]);
    /* Without rights over the whole machine the kernel grants a small buffer: a smaller window. */
    int granted;
    socklen_t length = sizeof granted;
    if (getsockopt(far, SOL_SOCKET, SO_RCVBUF, &granted, &length)) die("buffer");
    int fit = granted / 2 / (int)(payload + HEADER + 1024);
    fit = fit < 1 ? 1 : fit;
    window = fit < WINDOW ? fit : WINDOW;
    if (batch > fit / window) batch = fit / window;
    size_t step = payload * (size_t)batch, rounds = total / step;
    char *source = mmap(0, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *target = mmap(0, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (source == MAP_FAILED || target == MAP_FAILED) die("mmap");
    memset(source, 0x5a, total); /* maps the pages of both, as a first transfer does */
    memset(target, 0, total);
    int credit[2];
    if (pipe(credit)) die("pipe");
    static struct mmsghdr messages[MOST];
    static struct iovec parts[MOST][2];
    static char heads[MOST][HEADER];
    for (int i = 0; i < MOST; i++) memset(heads[i], 0xff, 12), memcpy(heads[i] + 12, "\x88\xb5", 2);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        char coin;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(0);
        for (size_t round = 0; round < rounds; round++) {
            if (round >= (size_t)window && read(credit[0], &coin, 1) != 1) _exit(1);
            lay(messages, parts, heads, source + round * step, payload);
            for (int sent = 0; sent < batch;) {
                int n = sendmmsg(near, messages + sent, (unsigned)(batch - sent), 0);
                if (n < 0) die("sendmmsg");
                sent += n;
            }
        }
        _exit(0);
    }
    pin(1);
    alarm(20); /* a frame that got lost would leave us waiting */
    for (size_t round = 0; round < rounds; round++) {
        lay(messages, parts, heads, target + round * step, payload);
        for (int had = 0; had < batch;) {
            int n = recvmmsg(far, messages + had, (unsigned)(batch - had), MSG_WAITFORONE, 0);
            if (n < 0) die("recvmmsg");
            had += n;
        }
        if (write(credit[1], "", 1) != 1) die("credit");
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    waitpid(child, 0, 0);
    if (memcmp(source, target, rounds * step)) return fprintf(stderr, "bytes differ\n"), 1;
    double seconds = (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
    printf("%.4f\n", (double)(rounds * step) / seconds / 1e9);
    return 0;
}
