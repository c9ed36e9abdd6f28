from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts import key_text
from accounts.key_text import (
    API_KEY_LEAD,
    derive_key,
    digest_of,
    generate_key,
    is_well_formed,
    prefix_of,
    with_checksum,
)

# As an environment variable can hold it: HMAC pads its key with NUL, so "a" and "a\0" would be one pepper.
peppers = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
bodies = st.text(st.sampled_from(key_text.BASE62), min_size=36, max_size=36)


def test_key_has_the_form_of_the_contract_and_is_never_the_same_twice() -> None:
    made = {generate_key() for _ in range(2_000)}
    assert len(made) == 2_000
    assert all(re.fullmatch(r"tw_live_[0-9A-Za-z]{42}", key) and is_well_formed(key) for key in made)
    assert prefix_of("tw_live_0123456789") == "tw_live_01234567"


def test_checksum_is_the_crc32_that_anybody_can_compute() -> None:
    # CRC32's check value for these digits is 0xCBF43926; to the base of 62: 3 45 35 27 22 14.
    assert with_checksum("123456789") == "123456789" + "3jZRME"


@given(bodies, st.integers(0, 49), st.sampled_from([*key_text.BASE62, "-", "é", "\udc80", " "]))
def test_one_wrong_character_is_found(body: str, place: int, character: str) -> None:
    key = with_checksum(API_KEY_LEAD + body)
    changed = key[:place] + character + key[place + 1 :]
    assert is_well_formed(changed) == (changed == key)


@given(bodies, st.integers(8, 48))
def test_swapped_neighbours_are_found(body: str, place: int) -> None:
    key = with_checksum(API_KEY_LEAD + body)
    changed = key[:place] + key[place + 1] + key[place] + key[place + 2 :]
    assert is_well_formed(changed) == (changed == key)


@given(st.text())
def test_other_text_is_refused_without_an_error(text: str) -> None:
    assert not is_well_formed(text)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_derived_key_is_well_formed_and_differs_by_secret_and_purpose(secret: str, purpose: str) -> None:
    key = derive_key(secret, purpose)
    assert is_well_formed(key)
    assert len({key, derive_key(f"{secret}x", purpose), derive_key(secret, f"{purpose}x")}) == 3


def test_derived_key_outlives_a_release() -> None:
    assert derive_key("secret", "demo") == "tw_live_yetuoFe3mcJdYQwy1sjfMciNXEg0UaDwFLIT2RF0E5"


@given(bodies, peppers, peppers)
def test_digest_is_the_same_for_the_same_pepper_only(body: str, pepper: str, other: str) -> None:
    key = API_KEY_LEAD + body
    assert (digest_of(key, pepper) == digest_of(key, other)) == (pepper == other)
    assert len(digest_of(key, pepper)) == 64


def test_no_digest_is_made_without_a_pepper() -> None:
    with pytest.raises(ValueError, match="KEY_PEPPER"):
        digest_of(generate_key(), "")
