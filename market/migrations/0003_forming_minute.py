import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q


def price(**more):
    return models.DecimalField(max_digits=18, decimal_places=8, **more)


class Migration(migrations.Migration):
    dependencies = [
        ("instruments", "0001_initial"),
        ("market", "0002_whole_ask_extremes"),
    ]

    operations = [
        migrations.CreateModel(
            name="FormingMinute",
            fields=[
                ("opened_at", models.DateTimeField()),
                ("open", price()),
                ("high", price()),
                ("low", price()),
                ("close", price()),
                ("volume", models.DecimalField(decimal_places=8, max_digits=24)),
                ("ask_high", price(blank=True, null=True)),
                ("ask_low", price(blank=True, null=True)),
                (
                    "instrument",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="forming_minute",
                        serialize=False,
                        to="instruments.instrument",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        name="formingminute_high_is_highest",
                        condition=Q(high__gte=F("open")) & Q(high__gte=F("close")) & Q(high__gte=F("low")),
                    ),
                    models.CheckConstraint(
                        name="formingminute_low_is_lowest",
                        condition=Q(low__lte=F("open")) & Q(low__lte=F("close")) & Q(low__gt=0),
                    ),
                    models.CheckConstraint(
                        name="formingminute_volume_is_not_negative", condition=Q(volume__gte=0)
                    ),
                    models.CheckConstraint(
                        name="formingminute_ask_extremes_are_ordered",
                        condition=Q(ask_high__isnull=True, ask_low__isnull=True)
                        | Q(
                            ask_high__isnull=False,
                            ask_low__isnull=False,
                            ask_high__gte=F("ask_low"),
                            ask_low__gt=0,
                        ),
                    ),
                ],
            },
        ),
    ]
