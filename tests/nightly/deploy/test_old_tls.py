"""The proxies as they are shipped speak no TLS before 1.2: row 79 of docs/reliability.md."""

from __future__ import annotations

import socket
import ssl
import threading
import warnings
from pathlib import Path

import pytest

from tests.certificates import make_certificate
from tests.patience import PATIENCE_S
from tests.programs.services import free_port

from .installation import HOST
from .proxies import PROGRAMS, started

# What else would keep old versions out: OpenSSL's own judgement of their hashes.
EVERYTHING = "ALL:@SECLEVEL=0"


def only(version: ssl.TLSVersion, context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers(EVERYTHING)
    with warnings.catch_warnings():
        # That it is old is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    return context


def agreed(port: int, version: ssl.TLSVersion, certificate: Path) -> str | None:
    context = only(version, ssl.create_default_context(cafile=str(certificate)))
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as made,
    ):
        return made.version()


@pytest.mark.parametrize("name", PROGRAMS)
def test_tls_before_1_2_is_refused(name: str, tmp_path: Path) -> None:
    with started(name, tmp_path / name, (free_port(), free_port())) as proxy:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            agreed(proxy.https, ssl.TLSVersion.TLSv1_1, proxy.certificate)
        assert agreed(proxy.https, ssl.TLSVersion.TLSv1_2, proxy.certificate) == "TLSv1.2"


def test_control_the_same_client_agrees_with_a_server_that_speaks_tls_1_1(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path, HOST)
    context = only(ssl.TLSVersion.TLSv1_1, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=lambda: context.wrap_socket(listener.accept()[0], True).close())
        answering.start()
        version = agreed(listener.getsockname()[1], ssl.TLSVersion.TLSv1_1, certificate)
        answering.join(PATIENCE_S)
    assert version == "TLSv1.1"
