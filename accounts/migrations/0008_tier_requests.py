import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Q

STATES = [("open", "waiting"), ("accepted", "accepted"), ("declined", "declined"), ("withdrawn", "withdrawn")]


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_event_account_of_past")]

    operations = [
        migrations.CreateModel(
            name="TierRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("why", models.CharField(max_length=500)),
                ("state", models.CharField(choices=STATES, default="open", max_length=9)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("decided_by", models.CharField(blank=True, max_length=150)),
                ("answer", models.CharField(blank=True, max_length=500)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tier_requests",
                        to="accounts.account",
                    ),
                ),
                (
                    "wanted",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="accounts.tier"
                    ),
                ),
            ],
            options={
                "ordering": ("-pk",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(state="open"), fields=("account",), name="tier_request_one_open"
                    ),
                    models.CheckConstraint(
                        condition=Q(state__in=("open", "accepted", "declined", "withdrawn")),
                        name="tier_request_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(state="open", decided_at=None) | (~Q(state="open") & ~Q(decided_at=None)),
                        name="tier_request_decided_once",
                    ),
                    models.CheckConstraint(
                        condition=~Q(state="declined") | ~Q(answer=""),
                        name="tier_request_declined_with_words",
                    ),
                ],
            },
        ),
    ]
