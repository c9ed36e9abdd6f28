from django.db import migrations, models

from core.schema import ConcurrentIndex
from signals_feed.ledger.ledger import PublishedName


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("signals_feed", "0008_feed_of_a_publisher")]

    operations = [
        ConcurrentIndex("ledgerentry", models.Index(PublishedName("payload"), name="ledger_published_name")),
    ]
