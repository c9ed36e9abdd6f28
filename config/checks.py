"""System checks: combinations of settings that would fail later, told at start."""
