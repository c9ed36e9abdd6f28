// Clients that only listen, and say how late ticks came: the healthy ones beside an attack. Python would be late itself.
//
// meter PORT PATH CLIENTS MESSAGE: each sends the message. At each line on standard input it says, as JSON, what it
// heard since the last; it ends with its input. Ticks carry their time, and with "seq" their number.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "frames.h"
#include "measure.h"
#include "net.h"
#include "options.h"

enum { ROOM = 1 << 18, EVENTS = 256, AT_ONCE = 50, SYMBOLS = 64, NAME = 24 };

struct listener {
    struct link link;
    enum { GREETING, ASKING, LISTENING, OVER } state;
    unsigned char *rest;
    size_t rest_size;
    struct { char name[NAME]; unsigned long long seq; } heard[SYMBOLS];
};

struct options options = {.pids = ""};  // for measure.c
static unsigned char room[ROOM];
static struct listener *listeners;
static const char *message;
static unsigned long long frames, missed, ended, refused;
static int polled;

static void say(struct listener *one, int opcode, const void *text, size_t size)
{
    static unsigned char out[MOST_HEADER + (1 << 16)];
    write_link(&one->link, out, mask_frame(out, opcode, text, size));
}

static unsigned long long number_after(const unsigned char *text, size_t size, const char *label)
{
    const unsigned char *at = memmem(text, size, label, strlen(label));
    return at ? strtoull((const char *)at + strlen(label), NULL, 10) : 0;
}

// A number that does not follow the one before is one that is missed, once.
static void follow(struct listener *one, const unsigned char *name, unsigned long long seq)
{
    const unsigned char *end = memchr(name, '"', NAME - 1);
    size_t size = end ? (size_t)(end - name) : NAME - 1;
    for (int i = 0; i < SYMBOLS; i++) {
        if (!one->heard[i].name[0])
            memcpy(one->heard[i].name, name, size);
        if (strlen(one->heard[i].name) == size && !memcmp(one->heard[i].name, name, size)) {
            missed += one->heard[i].seq && seq != one->heard[i].seq + 1;
            one->heard[i].seq = seq;
            return;
        }
    }
}

static void take_text(struct listener *one, const struct frame *frame, uint64_t at_ms)
{
    static const char START[] = "{\"symbol\":\"";
    if (frame->size < sizeof START || memcmp(frame->payload, START, sizeof START - 1)) {
        if (one->state == ASKING)
            one->state = LISTENING;
        refused += memmem(frame->payload, frame->size, "\"type\":\"error\"", 14) != NULL;
        return;
    }
    uint64_t time_ms = number_after(frame->payload, frame->size, "\"time\":");
    unsigned long long seq = number_after(frame->payload, frame->size, "\"seq\":");
    frames++;
    add_latency(at_ms > time_ms ? (at_ms - time_ms) * 1000000 : 0);
    if (seq)
        follow(one, frame->payload + sizeof START - 1, seq);
}

static void give_up(struct listener *one)
{
    one->state = OVER;
    ended++;
    close_link(&one->link);
}

static void hear(struct listener *one)
{
    memcpy(room, one->rest, one->rest_size);
    ssize_t got = read_link(&one->link, room + one->rest_size, ROOM - 1 - one->rest_size);
    uint64_t at_ms = read_clock_ns(CLOCK_REALTIME) / 1000000;
    if (got < 0) {
        give_up(one);
        return;
    }
    size_t size = one->rest_size + (size_t)got, used = 0, step;
    room[size] = 0;
    if (one->state == GREETING) {
        const unsigned char *end = memmem(room, size, "\r\n\r\n", 4);
        if (end) {
            used = (size_t)(end + 4 - room);
            one->state = ASKING;
            say(one, TEXT, message, strlen(message));
        }
    }
    struct frame frame;
    while (one->state != GREETING && (step = read_frame(&frame, room + used, size - used))) {
        if (frame.opcode == TEXT)
            take_text(one, &frame, at_ms);
        else if (frame.opcode == PING)
            say(one, PONG, frame.payload, frame.size);
        used += step;
    }
    one->rest_size = size - used;
    one->rest = realloc(one->rest, one->rest_size + 1);
    memcpy(one->rest, room + used, one->rest_size);
}

static void serve(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(polled, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++)
        hear(events[i].data.ptr);
}

static void open_one(struct listener *one, int port, const char *path)
{
    char request[512];
    one->rest = malloc(1);
    open_link(&one->link, port);
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                        path, port);
    write_link(&one->link, request, (size_t)size);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    epoll_ctl(polled, EPOLL_CTL_ADD, one->link.fd, &event);
}

static void tell(void)
{
    printf("{\"frames\":%llu,\"missed\":%llu,\"ended\":%llu,\"refused\":%llu,\"p50_ms\":%.2f,\"p99_ms\":%.2f,"
           "\"most_ms\":%.2f}\n", frames, missed, ended, refused, latency_ms(0.5), latency_ms(0.99), latency_ms(1));
    fflush(stdout);
    forget_latencies();
    frames = missed = 0;
}

// Returns whether there is more to come.
static bool is_asked(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[64];
    if (poll(&input, 1, 0) <= 0)
        return true;
    if (read(STDIN_FILENO, line, sizeof line) <= 0)
        return false;
    tell();
    return true;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    int port = atoi(words[1]), clients = atoi(words[3]);
    message = words[4];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    polled = epoll_create1(0);
    listeners = calloc((size_t)clients, sizeof *listeners);
    for (int i = 0; i < clients; i++) {
        open_one(&listeners[i], port, words[2]);
        if (i % AT_ONCE == AT_ONCE - 1 || i == clients - 1)
            for (int at = i - i % AT_ONCE; at <= i; at++)
                while (listeners[at].state < LISTENING)
                    serve(100);
    }
    forget_latencies();
    frames = missed = 0;
    printf("ready\n");
    fflush(stdout);
    while (is_asked())
        serve(20);
    return 0;
}
