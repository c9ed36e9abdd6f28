"""Adding a passkey. Apart from the other forms, because allauth's reads the settings when it is imported."""

from __future__ import annotations

from typing import Any

from allauth.mfa.webauthn.forms import AddWebAuthnForm


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].max_length = 60
        self.fields["name"].widget.attrs |= {"maxlength": 60, "autocomplete": "off"}
        self.fields["name"].help_text = "By which you know it again, such as “phone” or “blue key”."
        alone = self.fields["passwordless"]
        alone.label, alone.initial = "Log in with it alone, without name and password", True
        alone.help_text = "Your device then asks for a fingerprint, your face or a PIN."
