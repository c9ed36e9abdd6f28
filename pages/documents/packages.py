"""The official clients as packages that this service offers: a wheel for pip and a tarball for npm. Both are
made of the files in clients/, and are the same bytes each time."""

import gzip
import io
import tarfile
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

FOLDER = settings.BASE_DIR / "clients"
PYTHON, TYPESCRIPT = FOLDER / "python", FOLDER / "typescript"
FORM = "Wheel-Version: 1.0\nGenerator: tickwire-server\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# Zip files know no earlier time.
LONG_AGO = (1980, 1, 1, 0, 0, 0)
READABLE = 0o644


@cache
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    return found


def wheel_name() -> str:
    return f"{project()['name']}-{project()['version']}-py3-none-any.whl"


def tarball_name() -> str:
    found = msgspec.json.decode((TYPESCRIPT / "package.json").read_bytes())
    return f"{found['name']}-typescript-{found['version']}.tgz"


@cache
def wheel() -> bytes:
    about = f"{project()['name']}-{project()['version']}.dist-info"
    files = {path.relative_to(PYTHON).as_posix(): path.read_bytes() for path in sources(PYTHON / "tickwire")}
    files[f"{about}/METADATA"] = metadata().encode()
    files[f"{about}/WHEEL"] = FORM.encode()
    files[f"{about}/entry_points.txt"] = entry_points().encode()
    record = [f"{name},{digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = READABLE << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def sources(folder: Path) -> list[Path]:
    """In a checkout, tests compile and install things beside them."""
    made = {"__pycache__", "node_modules"}
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if not made & {*path.relative_to(folder).parts})


def digest(content: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()


def metadata() -> str:
    return "\n".join([*metadata_lines(project()), "", (PYTHON / "README.md").read_text()])


def metadata_lines(facts: dict[str, Any]) -> Iterator[str]:
    yield "Metadata-Version: 2.4"
    yield f"Name: {facts['name']}"
    yield f"Version: {facts['version']}"
    yield f"Summary: {facts['description']}"
    yield f"License-Expression: {facts['license']}"
    yield from (f"Classifier: {each}" for each in facts["classifiers"])
    yield f"Requires-Python: {facts['requires-python']}"
    yield from (f"Requires-Dist: {each}" for each in facts["dependencies"])
    for extra, needed in facts["optional-dependencies"].items():
        yield f"Provides-Extra: {extra}"
        yield from (f"Requires-Dist: {each}; extra == '{extra}'" for each in needed)
    yield "Description-Content-Type: text/markdown"


def entry_points() -> str:
    commands = (f"{name} = {target}" for name, target in project()["scripts"].items())
    return "\n".join(["[console_scripts]", *commands, ""])


@cache
def tarball() -> bytes:
    """Compiled before, because this service may run where there is no Node."""
    packed = io.BytesIO()
    beside = [TYPESCRIPT / name for name in ("package.json", "README.md", "schema.d.ts")]
    files = [*beside, *sources(TYPESCRIPT / "dist")]
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in files:
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"package/{path.relative_to(TYPESCRIPT).as_posix()}")
            entry.size, entry.mode = len(content), READABLE
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


# Addresses that stay the same; pip wants the version in its own.
CURRENT = {"python": wheel_name, "typescript": tarball_name}


@require_safe
def client_package(request: HttpRequest, name: str) -> HttpResponse:
    if name == wheel_name():
        return HttpResponse(wheel(), content_type="application/zip")
    if name == tarball_name():
        return HttpResponse(tarball(), content_type="application/gzip")
    if name in CURRENT:
        return redirect("client_package", CURRENT[name]())
    raise Http404
