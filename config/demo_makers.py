"""The processes that make the rest of the demo, while the service is there already."""

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

from django.core.management.base import OutputWrapper

from core.program import IS_CHECKOUT, ROOT
from demo.past import LATER

# The service goes first, wherever both want a core.
NICENESS = 5
ENDS_WITHIN_S = 5.0
LOOK_S = 0.2
MOST_AGAIN = 3
PACKAGE = "tickwire_server"


class DemoMakers:
    def __init__(self, out: OutputWrapper, number: int) -> None:
        self._out = out
        self._number = min(number, os.cpu_count() or 1)
        self._processes: list[subprocess.Popen[str]] = []
        self._starting = threading.Lock()
        self._is_stopping = False

    def start(self) -> None:
        if not self._number:
            return
        try:
            self._start_all()
        except OSError as error:
            self._out.write(f"The demo's past is not complete: {error.strerror or error}. {LATER}")
        threading.Thread(target=self._watch, name="makers of the demo", daemon=True).start()

    def stop(self) -> None:
        """At any moment: what is half made is not there, and is made at the next start."""
        with self._starting:
            self._is_stopping = True
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_all(self) -> None:
        self._processes = []
        try:
            for _ in range(self._number):
                self._processes.append(_start_one())
        except OSError:
            # One alone makes all of it too.
            if not self._processes:
                raise

    def _watch(self) -> None:
        faults = self._wait_for_all()
        for _ in range(MOST_AGAIN):
            # Killed, as by a machine without memory. What they say of themselves would only be said again.
            if any(process.returncode < 0 for process in self._processes) and self._start_again():
                faults = self._wait_for_all()
        if self._is_stopping:
            return
        if self._out.isatty():
            self._out.write("")
        if any(process.returncode for process in self._processes):
            # Each of them says the same.
            self._out.write(next(filter(None, faults), f"The demo's past is not complete. {LATER}"))
        self._out.flush()

    def _start_again(self) -> bool:
        with self._starting:
            if self._is_stopping:
                return False
            with suppress(OSError):
                self._start_all()
            return bool(self._processes)

    def _wait_for_all(self) -> list[str]:
        """What they say that went wrong."""
        # All are asked again and again: one that has ended looks alive to the other until then.
        while None in [process.poll() for process in self._processes]:
            time.sleep(LOOK_S)
        return [process.communicate()[1].strip() for process in self._processes]


def _start_one() -> subprocess.Popen[str]:
    program = (str(ROOT / "manage.py"),) if IS_CHECKOUT else ("-m", PACKAGE)
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, *program, "seed_demo", "--beside", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the service, which ends them.
        start_new_session=True,
    )
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    return process
