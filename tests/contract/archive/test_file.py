"""GET /api/archive/{path}: a file or a part of it, never another one, and never a damaged one as whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archive.index import ArchiveFile
from archive.views import OtherFile, Part, Sending, damaged_files
from tests.client import Api
from tests.contract.answers import refusal

from .stored import content_of, store_day, write

DAY = "2026-11-17"
TICKS = f"ticks/EURUSD/{DAY}.parquet"
URL = f"/api/archive/{TICKS}"
SIZE = 300_000
PARQUET = "application/vnd.apache.parquet"
CANDLES = f"candles/1m/EURUSD/{DAY}.parquet"


@pytest.fixture(scope="module")
def body() -> bytes:
    return content_of(TICKS, SIZE)


@pytest.fixture(autouse=True)
def stored(root: Path, body: bytes) -> None:
    """Anew for each test, whatever the one before did to it."""
    store_day(root, DAY, contents={TICKS: body})


@pytest.fixture
def tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()}"'


def asked(api: Api, path: str = URL, method: str = "GET", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return api.ask(path, method=method, headers=named)


def test_file_comes_as_it_is_stored(entitled: Api, body: bytes, tag: str) -> None:
    response = asked(entitled)
    assert response.status_code == 200
    assert response.content == body
    said = response.headers
    assert said["ETag"] == tag
    assert said["Accept-Ranges"] == "bytes"
    assert said["Content-Type"] == PARQUET
    assert said["Content-Length"] == str(SIZE)
    assert said["Content-Disposition"] == f'attachment; filename="ticks-EURUSD-{DAY}.parquet"'
    assert said.get_list("Cache-Control") == ["private, max-age=3600"]
    exposed = said["Access-Control-Expose-Headers"].split(", ")
    assert {"ETag", "Content-Range", "Accept-Ranges", "Content-Disposition"} <= set(exposed)
    for other in (
        asked(entitled, f"{URL}/"),
        asked(entitled, f"/api/archive/ticks/eurusd/{DAY}.parquet"),
        asked(entitled, f"/api/archive/ticks%2FEURUSD%2f{DAY}.parquet"),
        asked(entitled, Accept="text/html", Accept_Encoding="gzip"),
    ):
        assert (other.content, "Content-Encoding" in other.headers) == (body, False)
    # HEAD knows no ranges.
    head = asked(entitled, method="HEAD", Range="bytes=0-9")
    apart = {"date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit"}
    assert (head.status_code, head.content) == (200, b"")
    assert [each for each in head.headers.items() if each[0] not in apart] == [
        each for each in said.items() if each[0] not in apart
    ]


def test_manifest_is_json(entitled: Api, root: Path) -> None:
    response = asked(entitled, f"/api/archive/manifests/{DAY}.json")
    assert response.headers["Content-Type"] == "application/json"
    assert response.content == (root / f"manifests/{DAY}.json").read_bytes()
    assert response.headers["ETag"] == f'"{hashlib.sha256(response.content).hexdigest()}"'
    assert json.loads(response.content)["files"][0]["path"] == TICKS


@pytest.mark.parametrize("form", ["{}", "W/{}", '"a", {}', "*", '"a" ,W/{}'])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_the_client_has_is_not_sent_again(entitled: Api, tag: str, form: str, method: str) -> None:
    response = asked(entitled, method=method, If_None_Match=form.format(tag), Range="bytes=0-9")
    assert response.status_code == 304
    assert response.content == b""
    assert response.headers["ETag"] == tag
    assert "Content-Length" not in response.headers
    assert response.headers["X-RateLimit-Limit"] == "100000"


@pytest.mark.parametrize("other", ['"a"', "", '""', "W/"])
def test_what_the_client_does_not_have_is_sent(entitled: Api, other: str) -> None:
    assert asked(entitled, If_None_Match=other).status_code == 200


@example(SIZE + 5, SIZE + 5, "-a")
@given(st.integers(0, SIZE + 10), st.integers(0, SIZE + 10), st.sampled_from(["a-b", "a-", "-a"]))
def test_part_is_that_slice_of_the_whole(entitled: Api, body: bytes, a: int, b: int, form: str) -> None:
    first, last = min(a, b), max(a, b)
    text = {"a-b": f"{first}-{last}", "a-": f"{first}-", "-a": f"-{first}"}[form]
    part = {"a-b": body[first : last + 1], "a-": body[first:], "-a": body[SIZE - min(first, SIZE) :]}[form]
    response = asked(entitled, Range=f"bytes={text}")
    if not part:
        assert response.status_code == 416
        return
    begin = {"-a": max(0, SIZE - first)}.get(form, first)
    assert response.status_code == 206
    assert response.content == part
    assert response.headers["Content-Range"] == f"bytes {begin}-{begin + len(part) - 1}/{SIZE}"
    assert response.headers["Content-Length"] == str(len(part))
    assert response.headers["Content-Type"] == PARQUET


@pytest.mark.parametrize(
    "text", [f"bytes={SIZE}-", "bytes=-0", f"bytes={SIZE}-{SIZE + 5}", f"bytes={'9' * 5000}-"]
)
def test_range_behind_the_end(entitled: Api, tag: str, text: str) -> None:
    response = asked(entitled, Range=text)
    said = refusal(response, 416, "range_not_satisfiable")
    assert str(SIZE) in said
    assert response.headers["Content-Range"] == f"bytes */{SIZE}"


@pytest.mark.parametrize(
    "text",
    [
        *("bytes=0-9,20-29", "bytes=0-9, -5", "items=0-9", "bytes=9-0", "bytes=-", "bytes=", "bytes 0-9"),
        *("bytes=a-b", "bytes=0-9x", "bytes=+0-9", "bytes=٣-٤".encode().decode("latin-1"), "0-9"),
    ],
)
def test_several_ranges_and_what_is_none_are_answered_with_the_whole(
    entitled: Api, body: bytes, text: str
) -> None:
    response = entitled.ask(URL, headers={"Range": text.encode("latin-1")})
    assert response.status_code == 200
    assert response.content == body
    assert "Content-Range" not in response.headers


def test_part_of_the_same_version_alone(entitled: Api, body: bytes, tag: str) -> None:
    same = asked(entitled, Range="bytes=5-9", If_Range=tag)
    assert (same.status_code, same.content) == (206, body[5:10])
    for other in ('"a"', f"W/{tag}", "Wed, 18 Nov 2026 12:00:00 GMT", ""):
        whole = asked(entitled, Range="bytes=5-9", If_Range=other)
        assert (whole.status_code, whole.content) == (200, body)


@pytest.mark.parametrize(
    "path",
    [
        "ticks/EURUSD/2026-11-18.parquet",
        "ticks/XAUUSD/2026-11-17.parquet",
        "ticks/EURUSD",
        "../secret",
        "ticks/../../secret",
        "..%2fsecret",
        "ticks/EURUSD/..%2f..%2f..%2fsecret",
        f"ticks%252FEURUSD%252F{DAY}.parquet",
        f"ticks%5CEURUSD%5C{DAY}.parquet",
        "ticks/%45URUSD/../../secret",
        "//etc/passwd",
        "%00",
        "ticks/EURUSD/2026-11-17.parquet.unfinished",
        "unnamed",
        "ticks/EURUSD/2026-11-16.parquet",
        "x" * 500,
        CANDLES,
        "ticks/E%E2%84%AARUSD/2026-11-17.parquet",
    ],
)
def test_only_what_a_manifest_names_and_the_disk_holds_is_there(entitled: Api, root: Path, path: str) -> None:
    write(root.parent / "secret", b"secret")
    write(root / "unnamed", b"not named by a manifest")
    write(root / "ticks/EURUSD/2026-11-16.parquet", b"not named by a manifest")
    (root / CANDLES).unlink(missing_ok=True)
    # httpx would fold the dots.
    url = httpx.URL(entitled.base_url).copy_with(raw_path=f"/api/archive/{path}".encode())
    response = entitled.get(url, headers={"X-API-Key": entitled.key})
    refusal(response, 404, "not_found")


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock by which damage is told from a file that is just being replaced."""
    now_s = 1000.0

    def pass_s(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(damaged_files, "_clock", lambda: now_s)
    return pass_s


def told_of_damage(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name == "archive.views"]


def assert_damaged(response: httpx.Response) -> None:
    assert "is damaged in the archive" in refusal(response, 503, "overloaded")
    assert response.headers["Retry-After"] == "3600"


def test_file_of_another_size_is_being_replaced_until_it_lasts(
    entitled: Api,
    root: Path,
    body: bytes,
    passing: Callable[[float], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(root / TICKS, body + b"more")
    for _ in range(2):
        response = asked(entitled)
        assert "just being replaced" in refusal(response, 503, "overloaded")
        assert response.headers["Retry-After"] == "5"
        passing(30)
    assert told_of_damage(caplog) == []
    for method in ("GET", "HEAD", "GET"):
        response = asked(entitled, method=method)
        assert response.status_code == 503
        if method == "GET":
            assert_damaged(response)
    (told,) = told_of_damage(caplog)
    assert told.startswith(f"{TICKS} in the archive has {SIZE + 4} bytes, and its manifest says {SIZE}, so ")
    write(root / TICKS, body)
    assert asked(entitled).content == body


def test_damaged_file_breaks_off_before_its_end_and_is_not_begun_again(
    entitled: Api, root: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    write(root / TICKS, b"\0" + body[1:])
    with pytest.raises(httpx.RemoteProtocolError):
        asked(entitled)
    for headers in ({}, {"Range": "bytes=5-9"}, {"Range": "bytes=0-"}):
        assert_damaged(asked(entitled, **headers))
    (told,) = told_of_damage(caplog)
    assert TICKS in told
    assert "verify_archive" in told
    assert "Traceback" not in caplog.text
    write(root / TICKS, body)
    assert asked(entitled).content == body
    # Once more is another damage, and a part that is all of it is looked at as well.
    write(root / TICKS, b"\0" + body[1:])
    with pytest.raises(httpx.RemoteProtocolError):
        asked(entitled, Range="bytes=0-")
    assert len(told_of_damage(caplog)) == 2


@pytest.mark.parametrize("part", [Part(0, SIZE), Part(5, SIZE)])
def test_file_that_ends_too_early_is_not_taken_for_whole(body: bytes, part: Part) -> None:
    digest = hashlib.sha256(body).hexdigest()
    file = ArchiveFile(TICKS, "ticks", "EURUSD", DAY, SIZE, 7, digest)
    sending = Sending(file, part, (block for block in [body[part.start : -1]]))
    assert sending.next() == body[part.start : -1]
    with pytest.raises(OtherFile):
        sending.next()


def test_damaged_file_of_one_block_is_refused_at_once(
    entitled: Api, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(root / CANDLES, bytes(len((root / CANDLES).read_bytes())))
    assert_damaged(asked(entitled, f"/api/archive/{CANDLES}"))
    assert len(told_of_damage(caplog)) == 1


def test_new_version_is_served_with_its_own_tag(entitled: Api, root: Path, tag: str) -> None:
    assert asked(entitled).headers["ETag"] == tag
    other = content_of("another", SIZE + 1)
    store_day(root, DAY, contents={TICKS: other})
    # What is known of it is what was looked up last; the size says that it is another by now.
    refusal(asked(entitled), 503, "overloaded")
    again = asked(entitled, If_None_Match=tag)
    assert (again.status_code, again.content) == (200, other)
