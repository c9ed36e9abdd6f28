#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {.path = "/", .key = "", .dialect = "lines", .pids = "", .clients = 500, .patience = 2};

static const struct {
    const char *name;
    enum { WHOLE, REAL, TEXT } kind;
    void *place;
} known[] = {
    {"port", WHOLE, &options.port},       {"tick_port", WHOLE, &options.tick_port},
    {"clients", WHOLE, &options.clients}, {"own", WHOLE, &options.own},
    {"symbols", WHOLE, &options.symbols},
    {"window", WHOLE, &options.window},   {"replies", WHOLE, &options.replies},
    {"beats", WHOLE, &options.beats},     {"rate", REAL, &options.rate},
    {"warm", REAL, &options.warm},        {"seconds", REAL, &options.seconds},
    {"hold", REAL, &options.hold},        {"path", TEXT, &options.path},
    {"key", TEXT, &options.key},          {"dialect", TEXT, &options.dialect},
    {"pids", TEXT, &options.pids},         {"patience", REAL, &options.patience},
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

void read_options(int count, char **words)
{
    for (int i = 1; i < count; i++)
        read_option(words[i]);
}
