"""`python -m tools.lint`: whether the structure of the product is what docs/architecture.md says."""

import sys

from .modules import ROOMS, Product, texts
from .rules import OF_PROGRAMS, OF_ROOMS, OF_TESTS


def main() -> int:
    judged = ((ROOMS, OF_ROOMS), (("deploy", "tickwire_server"), OF_PROGRAMS), (("tests",), OF_TESTS))
    wrong = [
        f"{line}: {rule.__doc__}"
        for places, rules in judged
        for product in [Product(texts(*places))]
        for rule in rules
        for line in rule(product)
    ]
    print("\n".join([*wrong, f"structure: {len(wrong)} findings"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
