// Clocks, processor time, memory, and how long it took.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void) { return read_clock_ns(CLOCK_MONOTONIC); }

double own_cpu_s(void);
double servers_cpu_s(void);      // all processes of options.pids together
double servers_memory_kb(void);
double waited_s(void);           // how long this process and the servers were ready to run and did not

void forget_latencies(void);
void add_latency(uint64_t took_ns);
double latency_ms(double share); // the value that so large a share of all does not exceed
