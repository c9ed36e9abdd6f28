"""Text of strangers, made plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news.ingest.cleaning import LONGEST_TITLE, clean, shorten


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Gold steadies", "Gold steadies"),
        ("  Gold\n\tsteadies ", "Gold steadies"),
        ("<b>Gold</b> <i>steadies</i>", "Gold steadies"),
        ("Gold<script>alert(1)</script> steadies", "Gold steadies"),
        ("Gold<style>*{}</style> steadies", "Gold steadies"),
        ('<img src=x onerror="alert(1)">Gold', "Gold"),
        ("Gold <!-- a comment --> steadies", "Gold steadies"),
        ("AT&amp;T rises", "AT&T rises"),
        ("AT&T rises", "AT&T rises"),
        ("Tom &amp;amp; Jerry", "Tom &amp; Jerry"),
        ("&lt;b&gt; is no tag here", "<b> is no tag here"),
        ("Rates < 5 % and > 3 %", "Rates < 5 % and > 3 %"),
        ("Euro at &euro;1.08 &#8211; caf&eacute;", "Euro at €1.08 – café"),
        ("Gold\x00 steadies\x07", "Gold steadies"),
        ("Gold \u202esedaets\u202c", "Gold sedaets"),
        ("Gold\u200b\ufeff\u2066 steadies\u00ad", "Gold steadies"),
        ("Gold\u2028steadies", "Gold steadies"),
        ("Cafe\u0301", "Café"),
        ("Go\ud800ld", "Gold"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("G" + "\u0301" * 50 + "old", "Ǵ" + "\u0301" * 4 + "old"),
        ("", ""),
        ("<p></p>", ""),
    ],
)
def test_only_text_is_left(text: str, plain: str) -> None:
    assert clean(text, LONGEST_TITLE) == plain


def test_what_does_not_fit_is_cut_between_words() -> None:
    assert shorten("Gold steadies as yields ease", 16) == "Gold steadies…"
    assert shorten("Gold steadies", 13) == "Gold steadies"
    assert shorten("x" * 50, 10) == "x" * 9 + "…"


@given(st.text(max_size=500))
def test_whatever_comes_becomes_one_short_line_without_hidden_letters(text: str) -> None:
    plain = clean(text, LONGEST_TITLE)
    assert len(plain) <= LONGEST_TITLE
    assert plain == " ".join(plain.split())
    assert not any(letter in plain for letter in "\x00\u202e\u2066\u200b\ufeff\n\r\t")


@pytest.mark.parametrize("text", ["<", "&", "<a ", "&lt;", "a\u0301", "<b>"])
def test_what_is_far_too_long_is_not_even_read(text: str) -> None:
    assert len(clean(text * 1_000_000, LONGEST_TITLE)) <= LONGEST_TITLE
