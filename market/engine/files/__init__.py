"""Files of ticks: a module for each format, their detection, and the opening of a file."""
