"""Times are written as everywhere else in the service. All are UTC."""

DATETIME_FORMAT = "Y-m-d H:i:s \\U\\T\\C"
DATE_FORMAT = "Y-m-d"
