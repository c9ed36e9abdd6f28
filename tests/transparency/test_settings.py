"""LEDGER_ORIGIN, WITNESSES and WITNESSED_LOGS, as an operator writes them."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import Environment
from transparency.checkpoints import WitnessAddress
from transparency.keys import KeyType, SigningKey

WITNESS = SigningKey.make("witness.example", KeyType.COSIGNATURE).verifier
LOG = SigningKey.make("log.example/ledger", KeyType.ED25519).verifier


def test_keys_and_addresses_are_read_with_commas_between_them() -> None:
    lines = f"{WITNESS} https://witness.example/, {WITNESS} http://127.0.0.1:8010"
    env = Environment({"WITNESSES": lines, "WITNESSED_LOGS": f"{LOG},{LOG}"})
    urls = ("https://witness.example", "http://127.0.0.1:8010")
    assert env.parsed("WITNESSES") == [WitnessAddress(WITNESS, url) for url in urls]
    assert env.parsed("WITNESSED_LOGS") == [LOG, LOG]
    assert Environment({}).parsed("WITNESSES") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WITNESSES", str(WITNESS)),
        ("WITNESSES", f"{WITNESS} witness.example"),
        ("WITNESSES", f"{LOG} https://log.example"),
        ("WITNESSES", "https://witness.example"),
        ("WITNESSED_LOGS", "log.example/ledger"),
        ("LEDGER_ORIGIN", "our ledger"),
        ("LEDGER_ORIGIN", "x" * 201),
        ("WITNESS_NAME", "our+witness"),
    ],
    # The keys are made anew in each process.
    ids=range(8),
)
def test_what_cannot_be_read_is_named(name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        Environment({name: text}).parsed(name)
