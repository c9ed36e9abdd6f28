from django.db import migrations, models

# It writes entries without ON CONFLICT, and only those that the new constraints allow, too.
contracts = "0.1.0"


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0016_parts_of_entries")]

    operations = [
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(
                fields=("signal", "kind", "part"), name="ledger_tells_a_part_once"
            ),
        ),
        migrations.RemoveConstraint(model_name="ledgerentry", name="ledger_tells_a_fact_once"),
        migrations.RemoveConstraint(model_name="ledgerentry", name="ledger_kind_is_known"),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind__in", ("publish", "fill", "close_request", "close", "cancel", "remove")),
                        ("part", ""),
                    ),
                    models.Q(("kind__in", ("arm", "archive")), models.Q(("part", ""), _negated=True)),
                    _connector="OR",
                ),
                name="ledger_kind_is_known",
            ),
        ),
    ]
