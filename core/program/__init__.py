"""What this program is: its version, and how it was started."""
