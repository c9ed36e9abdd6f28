"""Which names look alike."""

import pytest

from accounts.models import look_of

FRED, ANNA, TOOL = "fred", "anna", "Tool_1"
ALIKE = [
    *((FRED, name) for name in ("Fred", "fred.", "fr-ed", "@fred", "f_r+e.d")),
    # Cyrillic, Greek, Latin of other languages.
    *((ANNA, name) for name in ("\u0430nna", "\u0410NNA", "\u03b1nna", "\u00e1nna")),
    *((TOOL, name) for name in ("t00l1", "TOO1I", "t\u00f8\u043el\u04cf")),
    # Full width, a combining mark, a zero-width space, and the joiner of no width.
    *((FRED, name) for name in ("\uff46\uff52\uff45\uff44", "fre\u0301d", "fr\u200bed", "f\u2060red")),
    ("modern", "modem"),
    ("warren", "vvarren"),
]


@pytest.mark.parametrize(("name", "other"), ALIKE)
def test_names_that_are_taken_for_each_other_have_one_look(name: str, other: str) -> None:
    assert look_of(name) == look_of(other)
    # A look is a name as well, and its own look.
    assert look_of(look_of(other)) == look_of(other)


@pytest.mark.parametrize("other", ["fred2", "freda", "fed", "ferd", "red"])
def test_another_name_has_another_look(other: str) -> None:
    assert look_of(FRED) != look_of(other)
