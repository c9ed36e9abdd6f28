"""The windows in which requests are counted, and the refusals they lead to."""

from django.conf import settings

from accounts.keys.caller import Caller
from core.addresses import network_of
from core.contract.errors import RateLimitExceeded

from .redis_window import RedisWindow
from .window import MemoryWindow, Standing, Then

FAILURES_PER_MINUTE = 60


def window_of(caller: Caller) -> str:
    return f"account:{caller.counted_under}"


class Throttle:
    """The windows of this process, or its share in those of all processes."""

    def __init__(self) -> None:
        self.window = MemoryWindow()

    async def open(self) -> None:
        if settings.REDIS_URL:
            self.window = RedisWindow(settings.REDIS_URL)

    async def close(self) -> None:
        await self.window.close()
        self.window = MemoryWindow()

    async def admit(self, caller: Caller) -> Standing:
        return await self.window.ask(window_of(caller), caller.allowances.requests, cost=1)

    def admit_now(self, caller: Caller) -> Standing | None:
        """None where the answer comes from Redis."""
        return self.window.admit_now(window_of(caller), caller.allowances.requests)

    def admit_later(self, caller: Caller, then: Then) -> None:
        """Calls it from the loop, once the standing is known, and not before this has returned."""
        self.window.admit_later(window_of(caller), caller.allowances.requests, then)

    async def look(self, caller: Caller) -> Standing:
        return await self.window.ask(window_of(caller), caller.allowances.requests, cost=0)

    async def note_failure(self, address: str) -> Standing:
        """A request or a socket without a valid key; valid ones from the same address never pass here."""
        return await self.window.ask(f"failures:{network_of(address)}", FAILURES_PER_MINUTE, cost=1)

    async def count_failure(self, address: str, key: str = "API key") -> None:
        standing = await self.note_failure(address)
        if not standing.admitted:
            raise RateLimitExceeded(
                f"Too many requests without a valid {key} from this address. "
                f"Try again in {standing.wait_s} s.",
                retry_after=standing.wait_s,
            )


throttle = Throttle()


def rate_limit_refusal(standing: Standing, caller: Caller) -> RateLimitExceeded:
    who = (
        "This site allows its pages"
        if caller.is_page
        else f"The {caller.allowances.tier.title()} tier allows"
    )
    wait_s = standing.wait_s
    return RateLimitExceeded(
        f"{who} {standing.limit} requests a minute. Try again in {wait_s} s.", retry_after=wait_s
    )
