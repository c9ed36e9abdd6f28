"""Bodies on their way: how many there may be at the same time, of an account and in a process."""

from weakref import WeakSet

from .errors import Overloaded


class OpenBody:
    def __init__(self, counted_under: str) -> None:
        self.counted_under = counted_under


class OpenBodies:
    """Those of this process. One that nobody sends any more is gone, whatever became of its answer."""

    def __init__(self, most_of_account: int, most: int, too_many: str, retry_after: int) -> None:
        """`too_many` is said to an account that has as many as it may."""
        self._most_of_account, self._most = most_of_account, most
        self._too_many, self._retry_after = too_many, retry_after
        self._open: WeakSet[OpenBody] = WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, counted_under: str) -> OpenBody:
        """Before anything is awaited, or a crowd that comes at once would come in as a whole."""
        own = sum(body.counted_under == counted_under for body in self._open)
        if own >= self._most_of_account:
            raise Overloaded(self._too_many, retry_after=self._retry_after)
        if len(self._open) >= self._most:
            raise Overloaded(retry_after=self._retry_after)
        body = OpenBody(counted_under)
        self._open.add(body)
        return body

    def leave(self, body: OpenBody) -> None:
        self._open.discard(body)
