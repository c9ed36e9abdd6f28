// The limit: a server in C that does nothing but send what comes to whom it is due.
// limit CLIENT_PORT TICK_PORT send|join. One send for each message, or all of one read joined in one send.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../client/frames.h"

enum { SYMBOLS = 512, MOST_FILES = 1 << 16, EVENTS = 256, SYMBOL_AT = 14, ROOM = 1 << 17 };

static struct {
    int fds[MOST_FILES], count;
} hearers[SYMBOLS];

static struct {
    char *bytes;
    int size;
    bool is_open;
} due[MOST_FILES];

static int touched[MOST_FILES], touched_count, polled, source = -1;
static bool joins;

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) {
        perror("listen");
        exit(1);
    }
    return fd;
}

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(polled, EPOLL_CTL_ADD, fd, &event);
}

static int welcome(int listener)
{
    int fd = accept(listener, NULL, NULL), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    due[fd].is_open = false;
    watch(fd);
    return fd;
}

static int symbol_of(const char *text) { return atoi((char[]){text[0], text[1], text[2], 0}); }

static void give(int fd, const char *frame, int size)
{
    if (!joins) {
        send(fd, frame, (size_t)size, MSG_NOSIGNAL);
        return;
    }
    if (!due[fd].size)
        touched[touched_count++] = fd;
    if (due[fd].size + size <= ROOM) {
        memcpy(due[fd].bytes + due[fd].size, frame, (size_t)size);
        due[fd].size += size;
    }
}

static void flush(void)
{
    while (touched_count) {
        int fd = touched[--touched_count];
        send(fd, due[fd].bytes, (size_t)due[fd].size, MSG_NOSIGNAL);
        due[fd].size = 0;
    }
}

static void publish(const char *tick, int size)
{
    char frame[2 + MEDIUM] = {(char)0x81, (char)size};
    memcpy(frame + 2, tick, (size_t)size);
    int symbol = symbol_of(tick + SYMBOL_AT);
    for (int i = 0; i < hearers[symbol].count; i++)
        give(hearers[symbol].fds[i], frame, size + 2);
}

static void take_ticks(int fd)
{
    static char room[ROOM];
    static size_t rest;
    ssize_t got = read(fd, room + rest, sizeof room - rest);
    if (got <= 0) {
        close(fd);
        source = -1;
        return;
    }
    size_t size = rest + (size_t)got;
    char *tick = room, *end;
    while ((end = memchr(tick, '\n', size - (size_t)(tick - room)))) {
        publish(tick, (int)(end - tick));
        tick = end + 1;
    }
    flush();
    rest = size - (size_t)(tick - room);
    memmove(room, tick, rest);
}

static void forget(int fd)
{
    for (int symbol = 0; symbol < SYMBOLS; symbol++)
        for (int i = 0; i < hearers[symbol].count; i++)
            if (hearers[symbol].fds[i] == fd)
                hearers[symbol].fds[i--] = hearers[symbol].fds[--hearers[symbol].count];
    close(fd);
}

static void subscribe(int fd, char *text, size_t size)
{
    const char *mask = text - 4, *found = text;
    for (size_t at = 0; at < size; at++)
        text[at] ^= mask[at & 3];
    text[size] = 0;
    due[fd].bytes = joins && !due[fd].bytes ? malloc(ROOM) : due[fd].bytes;
    while ((found = strstr(found, "\"SYM"))) {
        int symbol = symbol_of(found + 4);
        hearers[symbol].fds[hearers[symbol].count++] = fd;
        found += 4;
    }
}

// The first that comes is the handshake, always with the same key; the second is the subscription.
static void take_from_client(int fd)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    static char room[1 << 16];
    ssize_t got = read(fd, room, sizeof room - 1);
    if (got <= 0) {
        forget(fd);
    } else if (!due[fd].is_open) {
        due[fd].is_open = true;
        send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
    } else {
        size_t header = (room[1] & 127) == MEDIUM ? 8 : 6;
        subscribe(fd, room + header, (size_t)got - header);
    }
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    joins = !strcmp(words[3], "join");
    polled = epoll_create1(0);
    int clients = listen_on(atoi(words[1])), ticks = listen_on(atoi(words[2]));
    watch(clients);
    watch(ticks);
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(polled, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == ticks)
                source = welcome(ticks);
            else if (fd == clients)
                welcome(clients);
            else if (fd == source)
                take_ticks(fd);
            else
                take_from_client(fd);
        }
    }
}
