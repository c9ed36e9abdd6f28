"""Exit code 0 while /readyz answers 200 here; for health checks, in an image without curl.

`ready.py` asks at METRICS_PORT, which speaks for all workers, or at PORT if nobody listens there.
`ready.py 9101` asks at another port."""

import http.client
import os
import sys

WITHIN_S = 4


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        # `docker inspect` keeps it, and it names the reasons.
        sys.stdout.write(answer.read().decode())
        return answer.status == 200
    finally:
        connection.close()


def is_any_ready(ports: list[int]) -> bool:
    """As the first that listens says."""
    for port in ports:
        try:
            return is_ready(port)
        except ConnectionRefusedError:
            continue
        except (OSError, http.client.HTTPException):
            return False
    return False


if __name__ == "__main__":
    given = sys.argv[1:] or [os.environ.get("METRICS_PORT", ""), os.environ.get("PORT", "8000")]
    sys.exit(not is_any_ready([int(port) for port in given if port not in ("", "0")]))
