from django.core.exceptions import ImproperlyConfigured

from transparency.keys import KeyRefused, KeyType, VerifierKey, name_of_key
from transparency.offers import WitnessAddress

from ..variable import VariableGroup, text, words

LONGEST = 200


def read_origin(name: str, variable: str = "LEDGER_ORIGIN") -> str:
    if len(name) > LONGEST:
        raise ImproperlyConfigured(f"{variable} has at most {LONGEST} characters.")
    try:
        return name_of_key(name) if name else name
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"{variable}: {refused}") from None


def read_log(key: str) -> VerifierKey:
    try:
        return VerifierKey.read(key)
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"WITNESSED_LOGS: {refused}") from None


def read_witness(line: str) -> WitnessAddress:
    text, _, address = line.partition(" ")
    try:
        key = VerifierKey.read(text)
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"WITNESSES: {refused}") from None
    if key.type is not KeyType.COSIGNATURE or not address.startswith(("https://", "http://")):
        raise ImproperlyConfigured(
            "WITNESSES has for each witness its key, a space, and an address that begins with https://."
        )
    return WitnessAddress(key, address.rstrip("/"))


def read_witness_name(name: str) -> str:
    return read_origin(name, "WITNESS_NAME")


LEDGER = VariableGroup(
    "The ledger",
    (
        text(
            "LEDGER_ORIGIN",
            "",
            "The name under which the ledger's checkpoints are signed, such as example.com/ledger. The first "
            "key keeps it for good.",
            read=read_origin,
            otherwise="the first of `ALLOWED_HOSTS`, and `/ledger`",
        ),
        words(
            "WITNESSES",
            None,
            "The witnesses to which each checkpoint is offered: for each its key, a space, and its address.",
            otherwise="none",
            read=read_witness,
        ),
        text(
            "WITNESS_NAME",
            "",
            "The name of the witness that `tickwire-server witness` is; its key keeps it.",
            read=read_witness_name,
        ),
        words(
            "WITNESSED_LOGS",
            None,
            "The public keys of the logs that this witness follows, as their `/ledger/key` shows them.",
            otherwise="none",
            read=read_log,
        ),
    ),
)
