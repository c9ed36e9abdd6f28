"""The words of pages for the codes that events are stored with."""

from accounts.login.factors import FACTOR_NAMES


class FactWords:
    """What pages call the codes in the facts of an event. A room above knows how a signal ends."""

    def __init__(self) -> None:
        self.endings: dict[str, str] = {}

    def word_for(self, name: str, value: str) -> str:
        match name:
            case "reason":
                return self.endings.get(value, value)
            case "factor":
                return FACTOR_NAMES.get(value, value)
            case "tier":
                return value.title()
            case _:
                return value


fact_words = FactWords()
