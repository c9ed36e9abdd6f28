"""What accounts announce, and ask, of rooms above, which connect receivers in the `ready` of their app."""

from django.dispatch import Signal

name_chosen = Signal()
"""A new `name` for the user with this `user_id`, or for a new one. A receiver returns why it may not be
theirs, or an empty text."""

powers_given = Signal()
"""Staff give a `user` powers: `is_staff`, `is_superuser`, `groups`, `permissions`. A receiver raises
PowerRefused if that may not be now."""

role_changed = Signal()
"""Staff give a `group` these `permissions`. A receiver raises PowerRefused if that may not be now."""

account_deleted = Signal()
"""Just before an `account` is deleted, in the same transaction. A receiver returns what is called at its end,
with `by`: it announces what has ended with the account."""

sample_wanted = Signal()
"""The first steps of an account need a symbol that trades now. A receiver returns one."""
