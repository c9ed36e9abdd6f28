from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("market", "0011_basis_of_price_alone"),
    ]

    operations = [
        migrations.AddField(
            model_name="unfinishedimport",
            name="got_on_at",
            field=models.DateTimeField(auto_now=True, null=True),
        ),
    ]
