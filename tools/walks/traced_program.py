"""Runs a program of ours as `python -m` does; which calls it made is left in the file that is named first."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from .tracing import Tracer, encode


def main() -> None:
    report, program, *_ = sys.argv[1:]
    sys.argv[:] = sys.argv[2:]
    tracer = Tracer()
    tracer.install()
    tracer.start()
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    finally:
        Path(report).write_bytes(encode(tracer.stop()))


if __name__ == "__main__":
    main()
