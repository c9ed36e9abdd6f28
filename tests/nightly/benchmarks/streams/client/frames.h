// WebSocket frames, RFC 6455: as a server sends them and as a client does.
#pragma once

#include <stddef.h>
#include <string.h>

enum { TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };
enum { MOST_HEADER = 14, MEDIUM = 126, LONG = 127 };

struct frame {
    int opcode;
    const unsigned char *payload;
    size_t size;
};

// How many bytes it takes; 0 while it is not whole.
static inline size_t read_frame(struct frame *frame, const unsigned char *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t header = 2, payload = data[1];
    if (payload >= MEDIUM) {
        size_t width = payload == MEDIUM ? 2 : 8;
        if (size < 2 + width)
            return 0;
        payload = 0;
        for (; header < 2 + width; header++)
            payload = payload << 8 | data[header];
    }
    if (size - header < payload)
        return 0;
    *frame = (struct frame){data[0] & 15, data + header, payload};
    return header + payload;
}

// Writes a masked frame of less than 64 KB; returns its size.
static inline size_t mask_frame(unsigned char *out, int opcode, const void *payload, size_t size)
{
    static const unsigned char mask[4] = {1, 2, 3, 4};
    size_t header = 0;
    out[header++] = (unsigned char)(0x80 | opcode);
    out[header++] = (unsigned char)(0x80 | (size < MEDIUM ? size : MEDIUM));
    if (size >= MEDIUM) {
        out[header++] = (unsigned char)(size >> 8);
        out[header++] = (unsigned char)size;
    }
    memcpy(out + header, mask, sizeof mask);
    header += sizeof mask;
    for (size_t at = 0; at < size; at++)
        out[header + at] = ((const unsigned char *)payload)[at] ^ mask[at & 3];
    return header + size;
}
