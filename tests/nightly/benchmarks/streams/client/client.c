#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "measure.h"
#include "options.h"
#include "ticks.h"

enum { ROOM = 1 << 18 };

struct totals totals;
static unsigned char room[ROOM];

static uint64_t random_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool wants(const struct client *client, int symbol) { return client->wanted[symbol / 64] >> symbol % 64 & 1; }

void choose_symbols(struct client *client, int place)
{
    uint64_t state = 0x9E3779B97F4A7C15u * (uint64_t)(place + 1);
    for (int left = options.own ? options.own : symbols; left;) {
        int symbol = options.own ? (int)(random_number(&state) % (uint64_t)symbols) : left - 1;
        left -= !wants(client, symbol);
        client->wanted[symbol / 64] |= 1ull << symbol % 64;
    }
    for (int symbol = 0; symbol < symbols; symbol++)
        hearers[symbol] += wants(client, symbol);
}

void open_client(struct client *client)
{
    char request[512];
    open_link(&client->link, options.port);
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                        options.path, options.port);
    write_link(&client->link, request, (size_t)size);
}

static void send_frame(struct client *client, int opcode, const void *text, size_t size)
{
    unsigned char frame[MOST_HEADER + 2048];
    write_link(&client->link, frame, mask_frame(frame, opcode, text, size));
}

static void subscribe_over_nats(struct client *client)
{
    char text[2048];
    int size = sprintf(text, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
    for (int symbol = 0; symbol < symbols; symbol++)
        if (wants(client, symbol))
            size += sprintf(text + size, "SUB SYM%03d %d\r\n", symbol, symbol + 1);
    send_frame(client, BINARY, text, (size_t)size);
}

static void subscribe(struct client *client)
{
    char text[2048];
    int size = sprintf(text, "{\"action\":\"subscribe\",\"api_key\":\"%s\",%s\"symbols\":[", options.key,
                       options.beats ? "\"features\":[\"heartbeat\"]," : "");
    for (int symbol = 0; symbol < symbols; symbol++)
        if (wants(client, symbol))
            size += sprintf(text + size, "\"SYM%03d\",", symbol);
    size += sprintf(text + size - 1, "]}") - 1;
    send_frame(client, TEXT, text, (size_t)size);
}

// The size of the server's answer to the handshake; 0 while it is not whole.
static size_t read_greeting(struct client *client, size_t size)
{
    const char *end = memmem(room, size, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (!memmem(room, size, " 101 ", 5)) {
        fprintf(stderr, "The server refuses: %.*s\n", (int)size, room);
        exit(1);
    }
    client->state = LISTENING;
    if (!strcmp(options.dialect, "nats"))
        subscribe_over_nats(client);
    else if (strcmp(options.dialect, "post"))
        subscribe(client);
    return (size_t)(end + 4 - (const char *)room);
}

static void take_tick(struct client *client, const unsigned char *text, size_t size, uint64_t at_ns)
{
    int symbol;
    uint64_t number;
    if (!read_tick(text, size, &symbol, &number)) {
        client->others++;
        return;
    }
    if (number < client->next || !wants(client, symbol))
        totals.wrong++;
    client->next = number + 1;
    client->got++;
    totals.received++;
    if (totals.are_timed)
        add_latency(at_ns - published_ns(number));
}

// MSG symbol sid size, then the tick; anything else is the server's own talk.
static void take_nats(struct client *client, const unsigned char *text, size_t size, uint64_t at_ns)
{
    while (size) {
        const unsigned char *line = memchr(text, '\n', size);
        size_t taken = line ? (size_t)(line + 1 - text) : size;
        if (!memcmp(text, "MSG ", 4) && size >= taken + TICK_BYTES + 2) {
            take_tick(client, text + taken, TICK_BYTES, at_ns);
            taken += TICK_BYTES + 2;
        }
        text += taken;
        size -= taken;
    }
}

static void take_frame(struct client *client, const struct frame *frame, uint64_t at_ns)
{
    if (frame->opcode == TEXT)
        take_tick(client, frame->payload, frame->size, at_ns);
    else if (frame->opcode == BINARY)
        take_nats(client, frame->payload, frame->size, at_ns);
    else if (frame->opcode == PING)
        send_frame(client, PONG, frame->payload, frame->size);
    else if (frame->opcode == CLOSE && frame->size >= 2)
        fprintf(stderr, "closed: %.*s\n", (int)frame->size - 2, frame->payload + 2);
}

static void keep_rest(struct client *client, const unsigned char *rest, size_t size)
{
    if (size == ROOM)
        fail("a frame is too long");
    client->rest = size ? realloc(client->rest, size) : client->rest;
    memcpy(client->rest, rest, size);
    client->rest_size = size;
}

void hear(struct client *client)
{
    if (client->rest_size)
        memcpy(room, client->rest, client->rest_size);
    ssize_t got = read_link(&client->link, room + client->rest_size, ROOM - client->rest_size);
    uint64_t at_ns = now_ns();
    if (got < 0) {
        client->state = OVER;
        totals.over++;
        close_link(&client->link);
        return;
    }
    size_t size = client->rest_size + (size_t)got, used = 0, step;
    uint64_t received = totals.received;
    struct frame frame;
    if (client->state == GREETING)
        used = read_greeting(client, size);
    while (client->state == LISTENING && (step = read_frame(&frame, room + used, size - used))) {
        take_frame(client, &frame, at_ns);
        used += step;
    }
    totals.reads += totals.received != received;
    if (size - used || client->rest_size)
        keep_rest(client, room + used, size - used);
}

uint64_t missing(const struct client *client)
{
    uint64_t due = 0;
    for (int symbol = 0; symbol < symbols; symbol++)
        if (wants(client, symbol))
            due += published[symbol];
    return due > client->got ? due - client->got : 0;
}
