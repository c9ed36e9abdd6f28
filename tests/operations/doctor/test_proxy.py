"""The doctor asks a real service through a proxy that has one fault at a time."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django.fixtures import Settings

from operations.doctor.diagnosis import Diagnosis
from operations.doctor.proxy import check_proxy
from serving.http.connections import MOST_DESCRIPTORS
from tests.certificates import make_certificate
from tests.patience import PATIENCE_S
from tests.programs.running import Serve
from tests.programs.services import free_port

from .diagnoses import faults, only_fault
from .fake_proxy import PROXY, fake_proxy

pytestmark = pytest.mark.served

Files = tuple[Path, Path]


@pytest.fixture(scope="module")
def var_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proxied") / "var"


@pytest.fixture(scope="module")
def service(var_dir: Path) -> Iterator[Serve]:
    with Serve(var_dir, DEMO="0", TRUSTED_PROXIES=PROXY) as running:
        yield running


def another(var_dir: Path, **settings: str) -> Serve:
    """With the same secret, by which the doctor knows the installation, and data of its own: without Redis no
    second service may run on the same."""
    secret = (var_dir / "secret").read_text().strip()
    folder = Path(mkdtemp(dir=var_dir.parent))
    return Serve(folder, DEMO="0", SECRET_KEY=secret, KEY_PEPPER=f"pepper:{secret}", **settings)


@pytest.fixture(scope="module")
def distrustful(service: Serve, var_dir: Path) -> Iterator[Serve]:
    """Without trust in anybody."""
    with another(var_dir) as running:
        yield running


@pytest.fixture(scope="module")
def credulous(service: Serve, var_dir: Path) -> Iterator[Serve]:
    with another(var_dir, TRUSTED_PROXIES="0.0.0.0/0") as running:
        yield running


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return trusted_certificate(tmp_path, monkeypatch)


def trusted_certificate(folder: Path, monkeypatch: pytest.MonkeyPatch, **life: float) -> Files:
    made = make_certificate(folder, **life)
    monkeypatch.setenv("SSL_CERT_FILE", str(made[1]))
    return made


@pytest.fixture(autouse=True)
def _same_installation(settings: Settings, service: Serve, var_dir: Path) -> None:
    settings.SECRET_KEY = (var_dir / "secret").read_text().strip()
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]


def look(url: str, *, is_named: bool = True, silence_s: float = 0) -> list[Diagnosis]:
    return list(check_proxy(urlsplit(url), is_named=is_named, silence_s=silence_s))


def test_a_proxy_in_order_has_no_fault(service: Serve, certificate: Files) -> None:
    with fake_proxy(service.port, certificate) as url:
        found = look(url, silence_s=0.5)
    assert faults(found) == []
    assert [each.says for each in found] == [
        f"{url} is answered by this installation.",
        "Its certificate is valid for 100 more days.",
        f"The service may open {allowed_files():,} files.",
        "The service sees clients by their own addresses: this machine is 127.0.0.1.",
        "The service knows that its clients use TLS.",
        "A client cannot choose the address that the service sees.",
        "WebSockets are opened, and a frame passes at once.",
        "The service sees clients by their own addresses: this machine is 127.0.0.1.",
        "A silent stream stays open, for 0.5 s at least.",
    ]


def allowed_files() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, MOST_DESCRIPTORS)


def test_open_files_are_those_of_the_service_and_not_of_this_shell(service: Serve, var_dir: Path) -> None:
    """`service` has made the secret."""
    few = another(var_dir)
    words = ["prlimit", "--nofile=200:200", sys.executable, "manage.py", "serve"]
    with few.as_typed(words, Path.cwd()) as running:
        level, says = only_fault(look(running.url))
    assert (level, "may open 200 files" in says) == ("fail", True)


def test_a_service_without_a_proxy_has_no_fault_but_for_tls_and_another_installation(
    service: Serve, settings: Settings
) -> None:
    assert faults(look(service.url)) == []
    settings.PRODUCTION = True
    level, says = only_fault(look(service.url))
    assert (level, "has no TLS" in says) == ("fail", True)
    settings.SECRET_KEY = "of another installation"
    level, says = only_fault(look(service.url))
    assert (level, "leads to another installation" in says) == ("fail", True)


def test_nothing_at_the_address_is_a_fault_if_somebody_named_it() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert only_fault(look(url)) == ("fail", f"{url} cannot be reached: Connection refused.")
    assert only_fault(look(url, is_named=False))[0] == "warn"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("502 Bad Gateway", "does not reach the service (502)."),
        ("404 Not Found", "Something other than Tickwire answers"),
        ("200 OK", "Something other than Tickwire answers"),
        ("301 Moved\r\nLocation: https://b.example/", "sends clients elsewhere, to https://b.example/."),
    ],
)
def test_an_answer_that_is_not_of_the_service_is_a_fault(service: Serve, answer: str, says: str) -> None:
    whole = f"HTTP/1.1 {answer}\r\nContent-Length: 5\r\n\r\nhello".encode()
    with fake_proxy(service.port, answer=whole) as url:
        level, said = only_fault(look(url))
    assert (level, says in said) == ("fail", True)


def test_a_certificate_of_nobody_is_a_fault(service: Serve, tmp_path: Path) -> None:
    with fake_proxy(service.port, make_certificate(tmp_path)) as url:
        level, says = only_fault(look(url))
    assert (level, "is not valid: self-signed certificate" in says) == ("fail", True)


@pytest.mark.parametrize(
    ("life", "found"),
    [
        ({"days_old": 80, "days_left": 10}, [("warn", "Its certificate ends in")]),
        ({"days_old": 88, "days_left": 2}, [("fail", "Its certificate ends in")]),
        # It lives for six days, and half of them are left.
        ({"days_old": 3, "days_left": 3}, []),
        ({"days_old": 90, "days_left": -1}, [("fail", "certificate has expired")]),
    ],
)
def test_a_certificate_that_ends_soon_is_told(
    service: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    life: dict[str, float],
    found: list[tuple[str, str]],
) -> None:
    with fake_proxy(service.port, trusted_certificate(tmp_path, monkeypatch, **life)) as url:
        seen = faults(look(url))
    assert [level for level, _ in seen] == [level for level, _ in found]
    assert all(words in says for (_, says), (_, words) in zip(seen, found, strict=True))


@pytest.mark.parametrize(
    ("manner", "level", "says"),
    [
        ({"proto": ""}, "fail", "X-Forwarded-Proto is missing, so pages redirect clients in circles."),
        ({"proto": "http"}, "fail", "X-Forwarded-Proto says http, so pages redirect clients in circles."),
        ({"passes_claims": True}, "fail", "who can so choose an address"),
        ({"host": "backend:8000"}, "fail", "The proxy turns the Host 127.0.0.1 into backend:8000"),
        ({"host": "localhost"}, "warn", "The proxy turns the Host 127.0.0.1 into localhost"),
        ({"upgrades": False}, "fail", "The proxy opens no stream: it answers 426 to a WebSocket."),
        ({"holds_back": True}, "fail", "holds it back"),
        ({"cuts_off": True}, "fail", "cuts a stream off that is silent"),
    ],
)
def test_a_proxy_with_one_fault_is_told(
    service: Serve,
    certificate: Files,
    monkeypatch: pytest.MonkeyPatch,
    manner: dict[str, Any],
    level: str,
    says: str,
) -> None:
    if "holds_back" in manner:
        monkeypatch.setattr("operations.doctor.proxy.PROMPT_S", 0.2)
    with fake_proxy(service.port, certificate, **manner) as url:
        found, said = only_fault(look(url, silence_s=PATIENCE_S if "cuts_off" in manner else 0))
    assert (found, says in said) == (level, True)


def test_a_proxy_that_does_not_name_its_clients_is_a_fault(service: Serve, certificate: Files) -> None:
    with fake_proxy(service.port, certificate, names_client=False) as url:
        found = faults(look(url))
    says = f"All clients seem to come from {PROXY}, the proxy, and share the limits of one address."
    # Over HTTP, and over a WebSocket. A claim is not even extended.
    assert found == [("fail", says), ("fail", says)]


def test_a_proxy_that_is_not_trusted_is_a_fault(distrustful: Serve, certificate: Files) -> None:
    with fake_proxy(distrustful.port, certificate) as url:
        found = look(url)
    wrong = [each for each in found if each.level == "fail"]
    assert f"takes the proxy at {PROXY} for the client" in wrong[0].says
    assert f"TRUSTED_PROXIES={PROXY}" in wrong[0].fix
    assert "does not trust the proxy's X-Forwarded-Proto" in wrong[1].says


def test_trust_in_everybody_is_a_fault_though_the_proxy_adds_the_true_address(
    credulous: Serve, certificate: Files
) -> None:
    with fake_proxy(credulous.port, certificate) as url:
        (fault,) = [each for each in look(url) if each.level == "fail"]
    assert "A client can choose the address" in fault.says
    assert "only the address of the proxy" in fault.fix
