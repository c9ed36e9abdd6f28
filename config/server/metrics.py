from prometheus_client import Counter

refused = Counter(
    "tickwire_http_refused",
    "Requests and connections that the server itself ended, before the application heard of them.",
    ["reason"],
)
