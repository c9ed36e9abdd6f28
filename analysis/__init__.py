"""What the data say of one instrument: drivers, levels, and a direction with its confidence."""
