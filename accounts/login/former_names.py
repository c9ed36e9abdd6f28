"""Usernames under which somebody published, whoever had them: nobody else may sign up with one."""

from collections.abc import Callable


def nobodys(name: str) -> bool:
    return False


class FormerNames:
    holds: Callable[[str], bool] = staticmethod(nobodys)


former_names = FormerNames()
