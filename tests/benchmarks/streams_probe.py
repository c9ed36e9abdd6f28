"""`python -m tests.benchmarks.streams_probe [CLIENTS]`: the wire and the hub alone, without keys or prices.

The server has the first core and the clients have the last. `window` ticks are on their way at once: with
one, nothing can be joined. On a shared machine, messages per second of the server's processor time count.
"""

from __future__ import annotations

import json
import os
import random
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.market.streams.wires import TEXT, handshake, masked
from tests.running import free_port

SYMBOLS = [f"SYM{number:03d}" for number in range(50)]
OWN, RUN_S, BUFFER = 10, 3.0, bytearray(1 << 20)
TICK_BYTES = 105
FRAME_BYTES = TICK_BYTES + 2
FIRST, LAST = 0, (os.cpu_count() or 1) - 1


class Measured(msgspec.Struct):
    window: int
    own_sets: bool
    messages_per_s: int
    messages_per_cpu_s: int
    server_busy: float
    client_busy: float


class Load:
    def __init__(self, clients: int, window: int, own_sets: bool) -> None:
        self._window, self._own_sets = window, own_sets
        self._clients, self._symbols = clients, random.Random(1)
        self._hearers = dict.fromkeys(SYMBOLS, 0)
        self._selector = selectors.DefaultSelector()
        self._heard = self._due = 0
        """Bytes: all frames are of one size."""
        self._ports = free_port(), free_port()

    def run(self) -> Measured:
        command = [sys.executable, "-m", "tests.benchmarks.streams_server", *map(str, self._ports)]
        server = subprocess.Popen(command)
        try:
            os.sched_setaffinity(server.pid, {FIRST})
            os.sched_setaffinity(0, {LAST})
            sockets = [self._open() for _ in range(self._clients)]
            with dialled(self._ports[1]) as ticks:
                self._push(ticks, 0.5)
                measured = self._measure(ticks, server.pid)
            for opened in sockets:
                opened.close()
            return measured
        finally:
            server.terminate()
            server.wait(15)

    def _open(self) -> socket.socket:
        opened = dialled(self._ports[0])
        opened.sendall(handshake())
        while b"\r\n\r\n" not in opened.recv(4096):
            pass
        chosen = self._symbols.sample(SYMBOLS, OWN) if self._own_sets else SYMBOLS
        opened.sendall(masked(TEXT, json.dumps({"symbols": chosen}).encode()))
        for symbol in chosen:
            self._hearers[symbol] += 1
        opened.setblocking(False)
        self._selector.register(opened, selectors.EVENT_READ, opened.recv_into)
        return opened

    def _measure(self, ticks: socket.socket, pid: int) -> Measured:
        heard, began_at = self._heard, time.monotonic()
        used, own = cpu_s(pid), time.process_time()
        self._push(ticks, RUN_S)
        took_s, heard = time.monotonic() - began_at, self._heard - heard
        used, own = cpu_s(pid) - used, time.process_time() - own
        messages = heard // FRAME_BYTES
        per_s, per_cpu_s = int(messages / took_s), int(messages / used)
        return Measured(
            self._window, self._own_sets, per_s, per_cpu_s, round(used / took_s, 2), round(own / took_s, 2)
        )

    def _push(self, ticks: socket.socket, seconds: float) -> None:
        """Keep the window full until then, and wait for the last of it: none may be missing."""
        number = 0
        most = FRAME_BYTES * self._window * sum(self._hearers.values()) / len(SYMBOLS)
        ends_at = time.monotonic() + seconds
        while (is_running := time.monotonic() < ends_at) or self._heard < self._due:
            while is_running and self._due - self._heard < most:
                symbol = SYMBOLS[number % len(SYMBOLS)]
                ticks.sendall(tick(symbol))
                self._due += FRAME_BYTES * self._hearers[symbol]
                number += 1
            for key, _ in self._selector.select(5):
                self._heard += key.data(BUFFER)
            if time.monotonic() > ends_at + 10:
                raise RuntimeError(f"{(self._due - self._heard) // FRAME_BYTES} messages are missing.")


def tick(symbol: str) -> bytes:
    body = (
        f'{{"symbol":"{symbol}","bid":1.08412,"ask":1.08427,"spread":0.00015,"time":{time.time_ns() // 10**6}'
    )
    return (body + ',"volume":1').ljust(TICK_BYTES - 1).encode() + b"}\n"


def dialled(port: int) -> socket.socket:
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port), 10)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise RuntimeError("The server under load did not start.")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    clients = int(sys.argv[1]) if sys.argv[1:] else 500
    for own_sets, windows in ((False, (1, 8)), (True, (1, 8, 32))):
        for window in windows:
            measured = Load(clients, window, own_sets).run()
            sys.stdout.write(msgspec.json.encode(measured).decode() + "\n")
