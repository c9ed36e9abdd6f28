"""Long settings of libraries: the look of the back office, the forms of login, and /openapi.json."""

from typing import Any

from django.templatetags.static import static

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tickwire back office",
    "SITE_HEADER": "Tickwire",
    "SITE_SUBHEADER": "Back office",
    "SITE_ICON": lambda request: static("tickwire.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("tickwire.svg")}
    ],
    "SHOW_BACK_BUTTON": True,
    "STYLES": [
        lambda request: static("site/tokens.css"),
        lambda request: static("accounts/back_office.css"),
    ],
    "SCRIPTS": [lambda request: static("accounts/back_office.js")],
    "SIDEBAR": {"navigation": "config.back_office.overview.sidebar"},
    "DASHBOARD_CALLBACK": "config.back_office.overview.dashboard",
}

# allauth's forms in the words of this site.
ACCOUNT_FORMS = {
    "login": "accounts.login.forms.LoginForm",
    "signup": "accounts.login.forms.SignupForm",
    "add_email": "accounts.login.forms.AddEmailForm",
    "change_password": "accounts.login.forms.ChangePasswordForm",
    "set_password": "accounts.login.forms.SetPasswordForm",
    "reset_password": "accounts.login.forms.ResetPasswordForm",
    "reset_password_from_key": "accounts.login.forms.ResetPasswordKeyForm",
    "reauthenticate": "accounts.login.forms.ReauthenticateForm",
}
MFA_FORMS = {
    "authenticate": "accounts.login.factor_pages.CodeForm",
    "reauthenticate": "accounts.login.factor_pages.ConfirmByCodeForm",
    "activate_totp": "accounts.login.factor_pages.ActivateAppForm",
    "add_webauthn": "accounts.login.factor_pages.AddPasskeyForm",
    "edit_webauthn": "accounts.login.factor_pages.RenamePasskeyForm",
}


SPECTACULAR_SETTINGS: dict[str, Any] = {
    "OAS_VERSION": "3.1.1",
    "TITLE": "Tickwire API",
    "VERSION": "1",
    "SERVERS": [
        {"url": "/", "description": "The server this document came from"},
    ],
    "TAGS": [
        {"name": "Market", "description": "Instruments, candles and quotes."},
        {"name": "Signals", "description": "Published trade signals and their results."},
        {"name": "News", "description": "Curated news with sentiment."},
        {
            "name": "Analysis",
            "description": "What candles, news, order flow and signals say when taken together.",
        },
        {"name": "Archive", "description": "Past days as files: ticks, candles and their manifests."},
        {"name": "Service", "description": "The running service, and what is left of your limits."},
    ],
    "SCHEMA_PATH_PREFIX": "/api",
    # Docstrings are for maintainers; the public reads help texts and the `details` of an action.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
    "PREPROCESSING_HOOKS": ["core.contract.openapi.keep_api_paths"],
    "POSTPROCESSING_HOOKS": ["core.contract.openapi.complete"],
}
