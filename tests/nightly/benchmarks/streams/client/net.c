#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES = 200, PAUSE_US = 50000 };

void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int try_dial(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        fail("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int dial(int port)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int fd = try_dial(port);
        if (fd >= 0)
            return fd;
        usleep(PAUSE_US);
    }
    fail("connect");
    return -1;
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, O_NONBLOCK); }

void open_link(struct link *link, int port)
{
    link->fd = dial(port);
    set_nonblocking(link->fd);
}

void write_link(struct link *link, const void *data, size_t size)
{
    if (write(link->fd, data, size) != (ssize_t)size)
        fail("write");
}

ssize_t read_link(struct link *link, void *data, size_t size)
{
    ssize_t got = read(link->fd, data, size);
    if (got > 0)
        return got;
    return got < 0 && errno == EAGAIN ? 0 : -1;
}

void close_link(struct link *link) { close(link->fd); }
