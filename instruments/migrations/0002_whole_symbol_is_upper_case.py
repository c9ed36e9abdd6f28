from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Not only its first character."""

    dependencies = [("instruments", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("instrument", "instrument_symbol_is_upper_case"),
        migrations.AddConstraint(
            "instrument",
            models.CheckConstraint(
                name="instrument_symbol_is_upper_case",
                condition=Q(symbol__regex=r"^[A-Z0-9][A-Z0-9._-]*\Z"),
            ),
        ),
    ]
