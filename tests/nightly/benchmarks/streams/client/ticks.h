// What is published: numbered ticks of 105 bytes, whose number stands in the volume, which every server passes on.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TICK_BYTES = 105, MOST_SYMBOLS = 512, SHARED_SYMBOLS = 10, OWN_SYMBOLS = 50 };

extern int symbols;                           // how many there are
extern uint64_t hearers[MOST_SYMBOLS];        // clients that subscribed to each
extern uint64_t published[MOST_SYMBOLS];
extern uint64_t ticks_published;
extern uint64_t messages_due;                 // to all clients together

void set_symbols(int count);
const char *next_tick(int *symbol);           // its text; it counts as published now

// The symbol and number of a tick, or false for anything else.
bool read_tick(const unsigned char *text, size_t size, int *symbol, uint64_t *number);
uint64_t published_ns(uint64_t number);
