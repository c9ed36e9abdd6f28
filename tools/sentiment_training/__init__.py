"""Trains and judges the built-in sentiment model, with scikit-learn, which the service never needs."""
