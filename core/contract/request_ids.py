"""Ids by which a person can name a request to us."""

import os

# 256 is a multiple of 32, so every letter is as likely as any other.
LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
LENGTH = 16
MADE_AT_ONCE = 256
_made: list[bytes] = []
# Else a fork would give out the same ones.
os.register_at_fork(after_in_child=_made.clear)


def new_request_id() -> str:
    return new_request_id_bytes().decode()


def new_request_id_bytes() -> bytes:
    # Also safe in threads: a list gives each of its items to one of them.
    while True:
        try:
            return _made.pop()
        except IndexError:
            letters = os.urandom(LENGTH * MADE_AT_ONCE).translate(LETTERS)
            _made.extend([b"req_" + letters[at : at + LENGTH] for at in range(0, len(letters), LENGTH)])
