from __future__ import annotations

import socket

import pytest

from serving.server import UNREAD_MS, take_port


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has it")
def test_connection_whose_client_never_reads_is_ended_by_the_kernel() -> None:
    with take_port("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNREAD_MS
