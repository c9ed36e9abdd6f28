"""The only place that has the version; the wheel takes it from here."""

VERSION = "0.2.0.dev0"
