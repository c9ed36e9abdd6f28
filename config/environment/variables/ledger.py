from django.core.exceptions import ImproperlyConfigured

from transparency.keys import KeyRefused, name_of_key

from ..variable import VariableGroup, text

LONGEST = 200


def read_origin(name: str) -> str:
    if len(name) > LONGEST:
        raise ImproperlyConfigured(f"LEDGER_ORIGIN has at most {LONGEST} characters.")
    try:
        return name_of_key(name) if name else name
    except KeyRefused as refused:
        raise ImproperlyConfigured(f"LEDGER_ORIGIN: {refused}") from None


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
    ),
)
