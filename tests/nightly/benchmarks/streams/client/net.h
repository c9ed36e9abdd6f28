// Connections on loopback.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct link {
    int fd;
};

void fail(const char *what);                  // say it and end
int dial(int port);                           // patient while the server starts
void set_nonblocking(int fd);

void open_link(struct link *link, int port);
void write_link(struct link *link, const void *data, size_t size);
ssize_t read_link(struct link *link, void *data, size_t size);  // 0: nothing now; -1: it is over
void close_link(struct link *link);
