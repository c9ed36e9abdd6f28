"""Exit code 0 while /readyz answers 200 here; for health checks, in an image without curl.

`ready.py` asks at PORT, `ready.py 9101` at another port."""

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
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    port = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("PORT", "8000")
    sys.exit(not is_ready(int(port)))
