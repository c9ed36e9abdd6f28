#!/usr/bin/env python
"""Tickwire's commands in a checkout: `manage.py serve`, `manage.py issue_key NAME`, `manage.py help`."""

import sys

from tickwire_server import main

if __name__ == "__main__":
    sys.exit(main())
