"""What is typed in a shell, and what it answers."""
