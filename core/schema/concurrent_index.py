"""An index that is made while others write. On PostgreSQL its migration needs `atomic = False`."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex
from django.db.migrations.state import ProjectState

INVALID = """
SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relname = %s AND NOT indisvalid
"""


class ConcurrentIndex(AddIndexConcurrently):
    """It waits for transactions that are under way, as long as they take, and holds nobody up meanwhile. One
    that was broken off leaves an index that answers nothing; the next attempt begins by taking it away."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            lock_timeout = cursor.fetchone()[0]
            cursor.execute("SET lock_timeout = 0")
            try:
                cursor.execute(INVALID, [self.index.name])
                if cursor.fetchone():
                    name = schema_editor.quote_name(self.index.name)
                    cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            finally:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [lock_timeout])

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        is_postgres = schema_editor.connection.vendor == "postgresql"
        kind = AddIndexConcurrently if is_postgres else AddIndex
        kind.database_backwards(self, app_label, schema_editor, from_state, to_state)
