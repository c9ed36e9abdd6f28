"""The staff's site and the kinds of page it is built from; each app registers its own pages."""

from accounts.login.mails import mail_staff_act

from .key_pages import KeyAdmin
from .request_pages import RequestAdmin
from .staff_pages import NO_OWNER, TIMES, ReadOnlyAdmin, StaffAdmin, VisibleText, button, label, staff_page

__all__ = [
    "KeyAdmin",
    "NO_OWNER",
    "ReadOnlyAdmin",
    "RequestAdmin",
    "StaffAdmin",
    "TIMES",
    "VisibleText",
    "button",
    "label",
    "staff_page",
    "mail_staff_act",
]
