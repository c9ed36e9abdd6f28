"""Whether the files of a day say what the database says."""

from .verify import DayVerdict, verify_day

__all__ = ["DayVerdict", "verify_day"]
