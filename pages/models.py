"""The texts of the site that staff edit."""

from django.db import models


class SiteText(models.Model):
    class Name(models.TextChoices):
        TERMS = "terms", "Terms of use"
        PRIVACY = "privacy", "Privacy"

    name = models.CharField(max_length=20, choices=Name, unique=True)
    body = models.TextField(
        blank=True,
        help_text="Markdown; HTML is not interpreted. Leave it empty to return to the text that comes with"
        " Tickwire.",
    )
    changed_at = models.DateTimeField(
        null=True, blank=True, help_text="Empty while the text is the one that comes with Tickwire."
    )

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.Name(self.name).label
