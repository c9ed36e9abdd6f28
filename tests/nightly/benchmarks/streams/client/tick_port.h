// Where ticks go in: as lines over TCP, as NATS' PUB, or as POST requests.
#pragma once

void open_tick_port(void);
void publish(int count);
int tick_port_fd(void);
void drain_tick_port(void);                   // what the server answers is of no interest
