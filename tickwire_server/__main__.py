import sys

from . import serve_by_default

if __name__ == "__main__":
    sys.exit(serve_by_default())
