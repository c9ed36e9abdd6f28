"""Files of ticks: a pure module for each format, their detection, and the opening of a file."""
