// A WebSocket client that checks what it gets: its symbols alone, each tick once, in order.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net.h"
#include "ticks.h"

struct client {
    struct link link;
    enum { GREETING, LISTENING, OVER } state;
    uint64_t wanted[MOST_SYMBOLS / 64];  // its symbols, a bit each
    uint64_t got, next;      // how many ticks, and the least number that may come
    unsigned others;         // frames that are no ticks: replies, heartbeats
    unsigned char *rest;     // the beginning of a frame whose end has not come
    size_t rest_size;
};

struct totals {
    uint64_t received, wrong, over;
    uint64_t reads;          // those that brought a tick
    bool are_timed;
};

extern struct totals totals;

void choose_symbols(struct client *client, int place);
void open_client(struct client *client);
void hear(struct client *client);
uint64_t missing(const struct client *client);
