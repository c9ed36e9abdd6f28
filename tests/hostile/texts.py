"""What somebody types to have it executed: by a database, a browser, a template or a spreadsheet."""

from __future__ import annotations

from html.parser import HTMLParser

SQL = (
    "'; DROP TABLE news_newsitem; --",
    "' OR '1'='1",
    "1; DELETE FROM accounts_apikey",
    "Robert'); DROP TABLE instruments_instrument;--",
    '" OR ""="',
    "' UNION SELECT password FROM accounts_user --",
    "admin'--",
    "' AND 1=(SELECT pg_sleep(5)) --",
    "%' OR name LIKE '%",
    "\\'; COPY accounts_user TO PROGRAM 'id' --",
    "$$; DROP OWNED BY CURRENT_USER; $$",
    "1' ORDER BY 99 /*",
)
SHEETS = (
    "=cmd|' /C calc'!A1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\ttab",
    "\rreturn",
    '=HYPERLINK("http://evil.example","x")',
    '=1",=2',
    "'=1",
    "＝1+2",
    "-2+3+cmd|' /C calc'!A0",
    "+1;=1\n=2",
)
TEMPLATES = (
    "{{ 7*191 }}",
    "{% debug %}",
    "{{ settings.SECRET_KEY }}",
    "{% load log %}{% get_admin_log 10 as log %}",
    "{# gone #}",
    "{{ request.user.password }}",
    "${7*191}",
    "#{7*191}",
    "<%= 7*191 %>",
    "{{constructor.constructor('executed(1)')()}}",
    "%(password)s %s %n",
    "{0.__class__}{}",
)
# Each brings an element or an attribute that its name gives away.
HTML = (
    "<b data-hostile>bold",
    "<img src=x data-hostile onerror=executed(2)>",
    "</title><hostile-x>",
    "</td></tr></table><b data-hostile>",
    "<a href='javascript:executed(3)' data-hostile>x</a>",
    "<iframe data-hostile srcdoc='<b>x'></iframe>",
    "<svg data-hostile onload=executed(4)>",
    "--><style data-hostile>*{display:none}</style>",
    "<base data-hostile href=//evil.example>",
    "</textarea><form data-hostile action=//evil.example>",
    '"><input data-hostile autofocus onfocus=executed(5)>',
    "'><details data-hostile open ontoggle=executed(6)>",
)
SCRIPTS = (
    "<script data-hostile>executed(7)</script>",
    "</script><script data-hostile>executed(8)</script>",
    "</title><ScRiPt data-hostile>executed(9)</sCrIpT>",
    "]]><script data-hostile>executed(10)</script>",
    "';executed(11);//",
    '";executed(12);//',
    "\\';executed(13);//",
    "javascript:executed(14)",
    "`;executed(15);`${executed(16)}",
    "x\u2028executed(17)",
    '"-executed(18)-"',
    'x" onmouseover="executed(19)" data-hostile="',
)
# Lists that show the newest begin with what a browser may execute.
PAYLOADS = (*SQL, *SHEETS, *TEMPLATES, *HTML, *SCRIPTS)
HOSTILE_ELEMENTS = "[data-hostile], hostile-x"


class Hostile(HTMLParser):
    """Counts what became an element, or an attribute of one."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "hostile-x" or "data-hostile" in dict(attrs):
            self.found.append(self.get_starttag_text() or tag)


def hostile_in(page: str) -> list[str]:
    parser = Hostile()
    parser.feed(page)
    parser.close()
    return parser.found
