"""The command line: reading what was typed, and executing it."""
