"""What news is about: the filter values of the specification."""

from django.db import models


class Category(models.TextChoices):
    FOREX = "forex"
    GOLD = "gold"
    CRYPTO = "crypto"
    MACRO = "macro"
