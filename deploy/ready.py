"""Exit code 0 while this container's /readyz answers 200; for HEALTHCHECK, in an image without curl."""

import http.client
import os
import sys

WITHIN_S = 4


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not is_ready(int(os.environ.get("PORT", "8000"))))
