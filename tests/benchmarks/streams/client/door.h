// Where ticks go in: as lines over TCP, as NATS' PUB, or as POST requests.
#pragma once

void open_door(void);
void publish(int count);
int door_fd(void);
void drain_door(void);                        // what the server answers is of no interest
