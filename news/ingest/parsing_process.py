"""Reads one feed in a separate process, which ends in time and within its memory whatever the bytes are.

The service starts it (`read_apart`); the program reads the feed from standard input and answers on standard
output."""

import asyncio
import contextlib
import resource
import sys
from pathlib import Path

import msgspec

from core.deadlines import patient

from .parsing import FetchedFeed, NoFeed, ParsedFeed, read_feed, unpack

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = __name__

# The largest honest feed takes three seconds, and many more on a busy machine.
PATIENCE_S = 20.0
MOST_CPU_S = 6
MOST_MEMORY = 1_000_000_000
MOST_ANSWER = 8_000_000


class ParseReply(msgspec.Struct):
    feed: ParsedFeed | None = None
    problem: str = ""


async def read_apart(fetched: FetchedFeed) -> ParsedFeed:
    # The parser gets none of our environment, which holds secrets.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", PROGRAM),
        cwd=ROOT,
        env={"PYTHONWARNINGS": "ignore"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    within_s = patient(PATIENCE_S)
    try:
        async with asyncio.timeout(within_s):
            answer, _ = await process.communicate(msgspec.msgpack.encode(fetched))
    except TimeoutError:
        raise NoFeed(f"it could not be read within {within_s:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return understand(answer)


def understand(answer: bytes) -> ParsedFeed:
    try:
        reply = msgspec.msgpack.decode(answer[:MOST_ANSWER], type=ParseReply)
    except msgspec.DecodeError:
        raise NoFeed("reading it took too much time or memory") from None
    if reply.feed is None:
        raise NoFeed(reply.problem)
    return reply.feed


def main() -> None:
    limit(resource.RLIMIT_CPU, MOST_CPU_S)
    limit(resource.RLIMIT_AS, MOST_MEMORY)
    fetched = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=FetchedFeed)
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer_to(fetched)))


def limit(kind: int, most: int) -> None:
    _, allowed = resource.getrlimit(kind)
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(kind, (most, most))


def answer_to(fetched: FetchedFeed) -> ParseReply:
    try:
        body = unpack(fetched.body) if fetched.is_packed else fetched.body
        return ParseReply(read_feed(body, fetched.content_type, fetched.address))
    except NoFeed as error:
        return ParseReply(problem=str(error))
    except (RecursionError, MemoryError, ValueError, LookupError, TypeError, AttributeError) as error:
        # feedparser may raise anything on malformed input.
        return ParseReply(problem=f"it cannot be read ({type(error).__name__})")


if __name__ == "__main__":
    main()
