"""The texts that an installation begins with. Staff edit them; nothing here is read again."""

from typing import Any

from django.db import migrations

TERMS = """\
# Terms of use

Tickwire serves market data, trade signals and news over REST and WebSocket. By opening an account you agree to
these terms.

## Your account

- Give an e-mail address at which we can reach you, and keep your password and API keys to yourself.
- What is done with your keys counts as done by you. Revoke a key in your settings as soon as others may know it.
- Limits hold for the account as a whole. Do not open several accounts to get around them.

## The data

- Prices, candles, order flow and news are provided as they are. Feeds fail, venues correct their prices, and
  markets close: what we know of such gaps and corrections we publish.
- Some sources forbid passing their data on. You may use what you receive for your own trading and software.
  Ask us before you display or redistribute it.
- Signals are the opinions of those who publish them. Nothing here is investment advice, and past results say
  nothing certain about future ones.

## What we may do

- We may slow down, refuse or end connections that endanger the service for others.
- We may close an account that breaks these terms. Its owner is told why.
- We may change these terms. The date of the last change is given below.

## Liability

To the extent that the law allows, we are not liable for losses that follow from the use of the service or from
its absence.
"""

PRIVACY = """\
# Privacy

We keep what the service needs to work, show it to you on request, and delete it when you leave.

## What we keep

- **Your account:** username, e-mail addresses, and the password as a salted hash. Second factors are encrypted.
- **Your API keys:** as hashes, each with its name and when it was last used. A key itself is shown only once.
- **Your usage:** the number of requests, streams and AI calls, by the minute for 2 days and by the day for 400 days.
- **What happened to your account,** such as logins, keys and changes of tier: for 400 days, shown in your settings.
- **Your sessions:** the address and browser from which you are logged in, until the session ends.
- **Signals that you publish,** which are public and stay so.
- **Logs:** requests that were refused or failed, with the network address they came from, as long as the
  operator's logs are kept.

Visitors without an account: where the terminal is open to them, their network address is kept until they have been
away for a day, to limit how much one address may ask for.

## Cookies and storage

Two cookies keep you logged in and protect forms against forgery. Your browser also remembers your choices, such as
the theme and the timeframe; they are not sent to us. Our pages load nothing from other hosts. There is no
advertising and no tracking.

## Whom we give it to

Nobody, except where the law demands it. E-mail is delivered by the mail server that the operator has set up.

## Your rights

Under **Settings → Account** you can download all that we keep about you, and delete your account. Deletion takes
effect within seconds. Signals that you published stay in the record under a pseudonym.
"""


def write(apps: Any, schema_editor: Any) -> None:
    text = apps.get_model("pages", "SiteText")
    for name, body in (("terms", TERMS), ("privacy", PRIVACY)):
        text.objects.get_or_create(name=name, defaults={"body": body})


class Migration(migrations.Migration):
    dependencies = [("pages", "0001_site_texts")]

    operations = [migrations.RunPython(write, migrations.RunPython.noop)]
