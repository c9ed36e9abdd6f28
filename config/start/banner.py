from __future__ import annotations

from django.conf import settings

from accounts.loopback import host_is_loopback
from config.demo.people import demo_people


def banner(host: str, port: int) -> str:
    """What a newcomer needs, once."""
    shown = "127.0.0.1" if host in settings.EVERYWHERE else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    lines = [
        "",
        f"  Tickwire serves on {address}",
        "",
        f"  Documentation  {address}/docs/api and {address}/docs/streams",
        f"  Your keys      {address}/settings/keys",
        f"  Back office    {address}/admin/",
        "",
        *(_demo(address, host_is_loopback(host)) if settings.DEMO else _first_steps()),
        *(_separate_engine() if settings.REDIS_URL else ()),
        "",
        "  Ctrl-C stops it.",
        "",
    ]
    return "\n".join(lines)


def _demo(address: str, stays_here: bool) -> list[str]:
    people = demo_people()
    lines = ["  Demo keys"]
    lines += [f"    {tier:<8} {key}" for tier, key in people.keys.items()]
    lines += [
        f"  Demo staff login  {people.staff} / {people.password}",
        "",
        "  Try it:",
        f'    curl -H "X-API-Key: {people.keys["pro"]}" {address}/api/market/BTCUSD/quote',
    ]
    if not stays_here:
        lines += ["", "  The demo keys and login work from this machine only, at http://127.0.0.1."]
    return lines


def _first_steps() -> list[str]:
    return [
        "  It starts empty. To begin:",
        "    .venv/bin/python manage.py load_instruments     the shipped instruments, or your CSV",
        "    .venv/bin/python manage.py createsuperuser      a login for the back office",
        "    .venv/bin/python manage.py issue_key YOUR_NAME  an API key",
    ]


def _separate_engine() -> list[str]:
    return ["", "  Prices come over Redis from an engine beside this: .venv/bin/python manage.py run_engine"]
