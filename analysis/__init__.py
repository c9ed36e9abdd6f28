"""What the data say of one instrument: drivers, levels, a direction and how sure that is."""
