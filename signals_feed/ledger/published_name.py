"""What an entry of the ledger calls its publisher, as the database finds it in the payload."""

from typing import Any

from django.db.models import CharField, Func

IN_POSTGRESQL = r"""UPPER(SUBSTRING(%(expressions)s FROM '"user":("(?:[^"\\]|\\.)*")'))"""
IN_SQLITE = """
UPPER(CASE WHEN JSON_VALID(%(expressions)s) THEN JSON_QUOTE(JSON_EXTRACT(%(expressions)s, '$.user')) END)
"""


class PublishedName(Func):
    """As JSON, in capitals. Whatever the payload is, this does not fail, or nobody could write it: whether it
    is a fact of ours is told by `verify_ledger`."""

    output_field = CharField()
    arity = 1

    def as_postgresql(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=IN_POSTGRESQL, **extra_context)

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=IN_SQLITE.strip(), **extra_context)
