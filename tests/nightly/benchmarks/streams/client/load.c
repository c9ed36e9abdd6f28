// Opens many WebSocket clients, publishes ticks to the server under load, and says how they arrived: one JSON line.
// Each client checks what it gets: its symbols alone, each tick once, in order.
#include <errno.h>
#include <stdbool.h>
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

enum { ROOM = 1 << 18, AT_ONCE = 32, EVENTS = 256, LONGEST = 512 };

struct options options = {.path = "/", .key = "", .dialect = "lines", .stream = "", .pids = "", .clients = 500, .patience = 2};

static const struct {
    const char *name;
    enum { WHOLE, REAL, WORD } kind;
    void *place;
} known[] = {
    {"port", WHOLE, &options.port},       {"tick_port", WHOLE, &options.tick_port},
    {"clients", WHOLE, &options.clients}, {"own", WHOLE, &options.own},
    {"symbols", WHOLE, &options.symbols}, {"window", WHOLE, &options.window},
    {"replies", WHOLE, &options.replies}, {"beats", WHOLE, &options.beats},
    {"rate", REAL, &options.rate},        {"warm", REAL, &options.warm},
    {"seconds", REAL, &options.seconds},  {"hold", REAL, &options.hold},
    {"patience", REAL, &options.patience}, {"path", WORD, &options.path},
    {"key", WORD, &options.key},          {"dialect", WORD, &options.dialect},
    {"pids", WORD, &options.pids},        {"stream", WORD, &options.stream},
};

static void read_option(char *word)
{
    char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    for (size_t i = 0; value && i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || strncmp(known[i].name, word, length))
            continue;
        if (known[i].kind == WHOLE)
            *(int *)known[i].place = atoi(value + 1);
        else if (known[i].kind == REAL)
            *(double *)known[i].place = atof(value + 1);
        else
            *(const char **)known[i].place = value + 1;
        return;
    }
    fprintf(stderr, "%s is no option\n", word);
    exit(2);
}

static void read_options(int count, char **words)
{
    for (int i = 1; i < count; i++)
        read_option(words[i]);
}

// What is published: numbered ticks of 105 bytes, whose number stands in the volume, which every server passes on.
enum { TICK_BYTES = 105, MOST_SYMBOLS = 512, SHARED_SYMBOLS = 10, OWN_SYMBOLS = 50 };
enum { SYMBOL_AT = 14, NUMBER_AT = 94, NUMBER_DIGITS = 8, REMEMBERED = 1 << 17 };
// So that every number has eight digits.
static const uint64_t FIRST = 10000000;

static int symbols;                                   // how many there are
static uint64_t hearers[MOST_SYMBOLS];                // clients that subscribed to each
static uint64_t published[MOST_SYMBOLS], ticks_published;
static uint64_t messages_due;                         // to all clients together
static uint64_t sent_ns[REMEMBERED];

// Its text; it counts as published now.
static const char *next_tick(int *symbol)
{
    static char text[TICK_BYTES + 1];
    uint64_t number = ticks_published++;
    *symbol = (int)(number % (uint64_t)symbols);
    published[*symbol]++;
    messages_due += hearers[*symbol];
    // The last digits are never 0, so that all prices have five decimals.
    int step = (int)(number % 997) * 10;
    snprintf(text, sizeof text,
             "{\"symbol\":\"SYM%03d\",\"bid\":1.%05d,\"ask\":1.%05d,\"spread\":0.00015,\"time\":%llu,\"volume\":%llu.0}",
             *symbol, 8411 + step, 8426 + step, (unsigned long long)(read_clock_ns(CLOCK_REALTIME) / 1000000),
             (unsigned long long)(FIRST + number));
    sent_ns[number % REMEMBERED] = now_ns();
    return text;
}

// What a message and a frame begin with on a path that carries several streams.
static const char *stream_name(void)
{
    static char text[64];
    if (*options.stream && !*text)
        snprintf(text, sizeof text, "\"stream\":\"%s\",", options.stream);
    return text;
}

static uint64_t digits(const unsigned char *text, int count)
{
    uint64_t value = 0;
    while (count--)
        value = value * 10 + (uint64_t)(*text++ - '0');
    return value;
}

// The symbol and number of a tick, or false for anything else.
static bool read_tick(const unsigned char *text, size_t size, int *symbol, uint64_t *number)
{
    size_t named = strlen(stream_name());
    if (size != TICK_BYTES + named || memcmp(text + 1, stream_name(), named))
        return false;
    text += named;
    if (memcmp(text + 1, "\"symbol\":\"SYM", SYMBOL_AT - 1))
        return false;
    uint64_t read = digits(text + NUMBER_AT, NUMBER_DIGITS) - FIRST;
    *symbol = (int)digits(text + SYMBOL_AT, 3);
    *number = read;
    return *symbol < symbols && read < ticks_published && *symbol == (int)(read % (uint64_t)symbols);
}

static uint64_t published_ns(uint64_t number) { return sent_ns[number % REMEMBERED]; }

// Where ticks go in: as lines over TCP, as NATS' PUB, or as POST requests.
static int tick_port;

static void write_all(const char *data, size_t size)
{
    while (size) {
        ssize_t taken = write(tick_port, data, size);
        if (taken < 0 && errno == EAGAIN)
            continue;
        if (taken < 0)
            fail("publish");
        data += taken;
        size -= (size_t)taken;
    }
}

static void open_tick_port(void)
{
    static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
    tick_port = dial(options.tick_port);
    set_nonblocking(tick_port);
    if (!strcmp(options.dialect, "nats"))
        write_all(hello, sizeof hello - 1);
}

static int wrap(char *out, const char *tick, int symbol)
{
    if (!strcmp(options.dialect, "nats"))
        return sprintf(out, "PUB SYM%03d %d\r\n%s\r\n", symbol, TICK_BYTES, tick);
    if (!strcmp(options.dialect, "post"))
        return sprintf(out, "POST /publish HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", TICK_BYTES, tick);
    return sprintf(out, "%s\n", tick);
}

static void publish(void)
{
    char out[LONGEST];
    int symbol;
    const char *tick = next_tick(&symbol);
    write_all(out, (size_t)wrap(out, tick, symbol));
}

// What the server answers is of no interest.
static void drain_tick_port(void)
{
    static char waste[1 << 16];
    while (read(tick_port, waste, sizeof waste) > 0)
        ;
}

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

static struct totals totals;
static unsigned char room[ROOM];

static uint64_t random_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool wants(const struct client *client, int symbol) { return client->wanted[symbol / 64] >> symbol % 64 & 1; }

static void choose_symbols(struct client *client, int place)
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

static void open_client(struct client *client)
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
    int size = sprintf(text, "{%s\"action\":\"subscribe\",\"api_key\":\"%s\",%s\"symbols\":[", stream_name(),
                       options.key, options.beats ? "\"features\":[\"heartbeat\"]," : "");
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

static void hear(struct client *client)
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

static uint64_t missing(const struct client *client)
{
    uint64_t due = 0;
    for (int symbol = 0; symbol < symbols; symbol++)
        if (wants(client, symbol))
            due += published[symbol];
    return due > client->got ? due - client->got : 0;
}


static const uint64_t SECOND = 1000000000u, PATIENCE_NS = 30 * SECOND, STALLED_NS = 2 * SECOND;

static struct {
    uint64_t received, began_ns, ticks, reads;
    double own_cpu_s, servers_cpu_s, waited_s;
} start, end;

static struct client *clients;
static int polled;
static uint64_t written_off;      // messages that no longer count as on their way
static double connection_kb;

static void serve(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(polled, events, EVENTS, timeout_ms);
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr)
            hear(events[i].data.ptr);
        else
            drain_tick_port();
}

static void watch(int fd, void *whose)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = whose};
    epoll_ctl(polled, EPOLL_CTL_ADD, fd, &event);
}

static int is_ready(const struct client *client)
{
    return client->state == LISTENING && (!options.replies || client->others);
}

static void await(int first, int last)
{
    uint64_t until_ns = now_ns() + PATIENCE_NS;
    for (int i = first; i < last; i++)
        while (!is_ready(&clients[i])) {
            serve(100);
            if (now_ns() > until_ns || clients[i].state == OVER)
                fail("A client was not let in");
        }
}

static void serve_for(double seconds)
{
    uint64_t until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    while (now_ns() < until_ns)
        serve(50);
}

static void open_clients(void)
{
    close(dial(options.port));  // by now it has started
    double before_kb = servers_memory_kb();
    for (int i = 0; i < options.clients; i++) {
        choose_symbols(&clients[i], i);
        open_client(&clients[i]);
        watch(clients[i].link.fd, &clients[i]);
        if (i % AT_ONCE == AT_ONCE - 1 || i == options.clients - 1)
            await(i - i % AT_ONCE, i + 1);
    }
    serve_for(0.3 + (options.replies ? 0 : options.clients / 5000.0));
    connection_kb = (servers_memory_kb() - before_kb) / options.clients;
}

static unsigned least_others(void)
{
    unsigned least = ~0u;
    for (int i = 0; i < options.clients; i++)
        least = clients[i].others < least ? clients[i].others : least;
    return least;
}

static void note(typeof(&start) moment)
{
    moment->received = totals.received;
    moment->reads = totals.reads;
    moment->ticks = ticks_published;
    moment->servers_cpu_s = servers_cpu_s();
    moment->own_cpu_s = own_cpu_s();
    moment->waited_s = waited_s();
    moment->began_ns = now_ns();
}

// As long as there is room in the window, which counts messages and not ticks.
static void fill_window(uint64_t at_ns)
{
    static uint64_t received, moved_ns;
    double hearers_each = (double)options.clients * (options.own ? (double)options.own / symbols : 1);
    double room = hearers_each * (options.window - 1) + 0.001;
    if (received != totals.received || !moved_ns) {
        received = totals.received;
        moved_ns = at_ns;
    } else if (at_ns - moved_ns > STALLED_NS) {
        written_off = messages_due - totals.received;
        moved_ns = at_ns;
    }
    while ((double)(messages_due - written_off) <= (double)totals.received + room)
        publish();
}

// Returns for how many milliseconds nothing is due.
static int keep_rate(uint64_t at_ns)
{
    static uint64_t next_ns;
    if (!next_ns)
        next_ns = at_ns;
    for (; next_ns <= at_ns; next_ns += (uint64_t)(1e9 / options.rate))
        publish();
    return (int)((next_ns - at_ns) / 1000000);
}

static uint64_t lost(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < options.clients; i++)
        sum += missing(&clients[i]);
    return sum;
}

static void run(void)
{
    uint64_t began_ns = now_ns(), at_ns;
    uint64_t timed_ns = began_ns + (uint64_t)(options.warm * 1e9);
    uint64_t until_ns = timed_ns + (uint64_t)(options.seconds * 1e9);
    while ((at_ns = now_ns()) < until_ns) {
        int timeout_ms = 1;
        if (!totals.are_timed && at_ns >= timed_ns) {
            forget_latencies();
            note(&start);
            totals.are_timed = true;
        }
        if (options.window)
            fill_window(at_ns);
        else
            timeout_ms = keep_rate(at_ns);
        serve(timeout_ms);
    }
    note(&end);
    uint64_t received = 0, moved_ns = now_ns();
    // What came twice or to others does not make up for what is missing.
    while (lost() && (double)(now_ns() - moved_ns) < options.patience * 1e9) {
        if (received != totals.received) {
            received = totals.received;
            moved_ns = now_ns();
        }
        serve(50);
    }
}

static void tell(void)
{
    uint64_t received = end.received - start.received;
    double took_s = end.began_ns ? (double)(end.began_ns - start.began_ns) / 1e9 : 1;
    double servers_s = end.servers_cpu_s - start.servers_cpu_s;
    uint64_t reads = end.reads - start.reads;
    printf("{\"messages_per_s\":%.0f,\"messages_per_cpu_s\":%.0f,\"waited\":%.4f,", received / took_s,
           servers_s > 0 ? received / servers_s : 0, (end.waited_s - start.waited_s) / took_s);
    printf("\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"server_busy\":%.3f,\"client_busy\":%.3f,", latency_ms(0.5),
           latency_ms(0.99), servers_s / took_s, (end.own_cpu_s - start.own_cpu_s) / took_s);
    printf("\"missing\":%llu,\"wrong\":%llu,\"ended\":%llu,", (unsigned long long)lost(),
           (unsigned long long)totals.wrong, (unsigned long long)totals.over);
    printf("\"connection_kb\":%.2f,\"beats\":%u,", connection_kb, least_others() - (options.replies ? 1 : 0));
    printf("\"ticks_a_read\":%.2f}\n", reads ? (double)received / (double)reads : 0);
}

int main(int count, char **words)
{
    read_options(count, words);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    polled = epoll_create1(0);
    clients = calloc((size_t)options.clients, sizeof *clients);
    symbols = options.symbols ? options.symbols : options.own ? OWN_SYMBOLS : SHARED_SYMBOLS;
    if (symbols > MOST_SYMBOLS)
        fail("too many symbols");
    open_clients();
    serve_for(options.hold);
    if (options.window || options.rate > 0) {
        open_tick_port();
        watch(tick_port, NULL);
        run();
    }
    tell();
    return 0;
}
