"""Times are written as everywhere else in the service. All are UTC."""

DATETIME_FORMAT = "j M Y, H:i \\U\\T\\C"
DATE_FORMAT = "j M Y"
