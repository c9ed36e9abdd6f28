from django.db import migrations, models

# What it writes, the new constraints allow, too.
contracts = "0.1.0"

RULES = ["quote", "fill", "target", "stop", "current", "stop_at_open", "stop_at_worst", "worst"]


class Migration(migrations.Migration):
    dependencies = [("signals_feed", "0018_ticks_of_evidence")]

    operations = [
        migrations.RemoveConstraint(model_name="evidence", name="evidence_rule_is_known"),
        migrations.RemoveConstraint(model_name="evidence", name="evidence_kind_is_known"),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("rule__in", RULES)), name="evidence_rule_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="evidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ("entry", "fill", "exit"))), name="evidence_kind_is_known"
            ),
        ),
    ]
