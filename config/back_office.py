"""How the back office looks, and what fills its first page."""

from typing import Any

from django.templatetags.static import static

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tickwire back office",
    "SITE_HEADER": "Tickwire",
    "SITE_SUBHEADER": "Back office",
    "SITE_SYMBOL": "candlestick_chart",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("tickwire.svg")}
    ],
    "SHOW_BACK_BUTTON": True,
    "STYLES": [lambda request: static("accounts/back_office.css")],
    "SCRIPTS": [lambda request: static("accounts/back_office.js")],
    "SIDEBAR": {"navigation": "config.navigation.sidebar"},
    "DASHBOARD_CALLBACK": "config.overview.dashboard",
}
