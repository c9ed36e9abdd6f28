// What the command line says: name=value, any order. Numbers that are not given are 0.
#pragma once

struct options {
    int port, tick_port;
    int clients;
    int own;      // each client has so many symbols of its own; 0: all have the same
    int symbols;  // how many there are; 0: fifty where clients have their own, else ten
    int window;   // ticks on their way at once
    int replies;  // whether each subscribe is answered
    int beats;    // whether clients ask for heartbeats
    double rate;  // ticks a second, where no window is given
    double warm, seconds, hold;
    double patience;  // after so many seconds in which nothing came, what is due counts as lost
    const char *path, *key, *dialect, *stream, *pids;
};

extern struct options options;
