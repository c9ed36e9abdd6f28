#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

// Ten microseconds each, up to twenty seconds; what takes longer is counted in the last.
enum { STEP_NS = 10000, STEPS = 2000000 };

static uint32_t counts[STEPS];
static uint64_t total;

double own_cpu_s(void) { return (double)read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9; }

static double cpu_s(int pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double memory_kb(int pid)
{
    char path[64], line[256];
    double resident = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmRSS:", 6))
            resident = atof(line + 6);
    if (file)
        fclose(file);
    return resident;
}

static double over_servers(double (*figure)(int))
{
    double sum = 0;
    for (const char *at = options.pids; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        sum += figure(atoi(at));
    return sum;
}

static double process_waited_s(int pid)
{
    char path[64];
    unsigned long long ran = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%llu %llu", &ran, &waited) < 2)
        waited = 0;
    if (file)
        fclose(file);
    return (double)waited / 1e9;
}

double waited_s(void) { return process_waited_s(getpid()) + over_servers(process_waited_s); }
double servers_cpu_s(void) { return over_servers(cpu_s); }
double servers_memory_kb(void) { return over_servers(memory_kb); }

void forget_latencies(void)
{
    memset(counts, 0, sizeof counts);
    total = 0;
}

void add_latency(uint64_t took_ns)
{
    uint64_t step = took_ns / STEP_NS;
    counts[step < STEPS ? step : STEPS - 1]++;
    total++;
}

double latency_ms(double share)
{
    uint64_t wanted = (uint64_t)(share * (double)total), seen = 0;
    if (wanted >= total)
        wanted = total - 1;
    for (int step = 0; total && step < STEPS; step++)
        if ((seen += counts[step]) > wanted)
            return (step + 1) * (STEP_NS / 1e6);
    return 0;
}
