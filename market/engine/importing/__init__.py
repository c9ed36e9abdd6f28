"""Ticks from files into stored candles."""
