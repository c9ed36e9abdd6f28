from ..mail import read_contact_email, read_email_url
from ..variable import VariableGroup, secret, text, whole

MAIL = VariableGroup(
    "Mail",
    (
        secret(
            "EMAIL_URL",
            "smtp+tls://user:password@host:587, smtps://user:password@host:465, or dummymail:// for no mail.",
            default="consolemail://",
            is_needed=True,
            read=read_email_url,
        ),
        whole(
            "EMAIL_TIMEOUT",
            10,
            "For how many seconds a mail waits for a mail server that does not answer.",
            lowest=1,
        ),
        text("DEFAULT_FROM_EMAIL", "Tickwire <no-reply@localhost>", "The sender of all mails."),
        text(
            "CONTACT_EMAIL",
            "",
            "An address at which users reach you; every page, the OpenAPI document and the mails name it.",
            read=read_contact_email,
        ),
    ),
)

ACCOUNTS = VariableGroup(
    "Accounts",
    (
        whole("SIGNUPS_A_DAY", 100, "Sign-up forms accepted a day from one address; 0 closes sign-up."),
        whole(
            "UNCONFIRMED_KEPT_DAYS",
            7,
            "Days after which users who never confirmed their address are deleted; 0 means never.",
        ),
        whole(
            "PUBLICATIONS_PER_MINUTE", 10, "Signals that a publisher may publish a minute; 0 means no limit."
        ),
        whole(
            "ACTIVE_SIGNALS_PER_PUBLISHER",
            100,
            "Active signals that a publisher may have at once; 0 means no limit.",
        ),
    ),
)
