"""Times are written as everywhere else in the service. All are UTC."""

DATETIME_FORMAT = "j M Y, H:i \\U\\T\\C"
DATE_FORMAT = "j M Y"
# The day of 05/11/2026 depends on who reads it.
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
