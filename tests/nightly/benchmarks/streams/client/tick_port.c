#include "tick_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "options.h"
#include "ticks.h"

enum { LONGEST = 512 };

static int fd;

static void write_all(const char *data, size_t size)
{
    while (size) {
        ssize_t taken = write(fd, data, size);
        if (taken < 0 && errno == EAGAIN)
            continue;
        if (taken < 0)
            fail("publish");
        data += taken;
        size -= (size_t)taken;
    }
}

void open_tick_port(void)
{
    static const char hello[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
    fd = dial(options.tick_port);
    set_nonblocking(fd);
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

void publish(int count)
{
    static char out[64 * LONGEST];
    int size = 0;
    while (count--) {
        int symbol;
        const char *tick = next_tick(&symbol);
        size += wrap(out + size, tick, symbol);
        if (!count || size > (int)sizeof out - LONGEST) {
            write_all(out, (size_t)size);
            size = 0;
        }
    }
}

int tick_port_fd(void) { return fd; }

void drain_tick_port(void)
{
    static char waste[1 << 16];
    while (read(fd, waste, sizeof waste) > 0)
        ;
}
