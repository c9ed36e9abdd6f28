"""Plants plausible faults one at a time, and shows which of them the gate's tests notice."""
