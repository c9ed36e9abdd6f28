// Opens many WebSocket clients, publishes ticks to the server under load, and says how they arrived: one JSON line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client.h"
#include "measure.h"
#include "options.h"
#include "tick_port.h"
#include "ticks.h"

enum { AT_ONCE = 32, EVENTS = 256 };
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
        publish(1);
}

// Returns for how many milliseconds nothing is due.
static int keep_rate(uint64_t at_ns)
{
    static uint64_t next_ns;
    if (!next_ns)
        next_ns = at_ns;
    for (; next_ns <= at_ns; next_ns += (uint64_t)(1e9 / options.rate))
        publish(1);
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
    set_symbols(options.symbols ? options.symbols : options.own ? OWN_SYMBOLS : SHARED_SYMBOLS);
    open_clients();
    serve_for(options.hold);
    if (options.window || options.rate > 0) {
        open_tick_port();
        watch(tick_port_fd(), NULL);
        run();
    }
    tell();
    return 0;
}
