#include "ticks.h"

#include <stdio.h>
#include <string.h>

#include "measure.h"

enum { SYMBOL_AT = 14, NUMBER_AT = 94, NUMBER_DIGITS = 8, REMEMBERED = 1 << 17 };
// So that every number has eight digits.
static const uint64_t FIRST = 10000000;

int symbols;
uint64_t hearers[MOST_SYMBOLS], published[MOST_SYMBOLS], ticks_published, messages_due;
static uint64_t sent_ns[REMEMBERED];

void set_symbols(int count) { symbols = count < MOST_SYMBOLS ? count : MOST_SYMBOLS; }

const char *next_tick(int *symbol)
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

static uint64_t digits(const unsigned char *text, int count)
{
    uint64_t value = 0;
    while (count--)
        value = value * 10 + (uint64_t)(*text++ - '0');
    return value;
}

bool read_tick(const unsigned char *text, size_t size, int *symbol, uint64_t *number)
{
    if (size != TICK_BYTES || memcmp(text, "{\"symbol\":\"SYM", SYMBOL_AT))
        return false;
    uint64_t read = digits(text + NUMBER_AT, NUMBER_DIGITS) - FIRST;
    *symbol = (int)digits(text + SYMBOL_AT, 3);
    *number = read;
    return *symbol < symbols && read < ticks_published && *symbol == (int)(read % (uint64_t)symbols);
}

uint64_t published_ns(uint64_t number) { return sent_ns[number % REMEMBERED]; }
