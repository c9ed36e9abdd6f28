"""How often language models were called: calls cost money, so the count outlives the process."""

from django.db import models


class LanguageUse(models.Model):
    """Calls of one language model on one UTC day, over all processes."""

    identifier = models.CharField(max_length=60)
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        app_label = "news"
        verbose_name_plural = "language use"
        constraints = (
            models.UniqueConstraint(fields=("identifier", "day"), name="language_use_one_row_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.identifier}: {self.used} on {self.day}"
