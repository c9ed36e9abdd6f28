"""What people call a browser, by the header in which it names itself."""

# The first that fits: most of them also claim to be those that come later.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "Chrome/": "Chrome",
    "CriOS/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
UNKNOWN = "Unknown client"
LONGEST = 80


def browser_name(agent: str) -> str:
    """Such as "Chrome on Linux". Programs that do not claim to be a browser are called what they say."""
    if not agent.startswith("Mozilla/"):
        return agent[:LONGEST] or UNKNOWN
    browser = next((name for mark, name in BROWSERS.items() if mark in agent), UNKNOWN)
    system = next((name for mark, name in SYSTEMS.items() if mark in agent), "")
    return f"{browser} on {system}" if system else browser
