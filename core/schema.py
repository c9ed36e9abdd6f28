"""Changes of tables that a running service does not notice."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex
from django.db.migrations.state import ProjectState


# An index that is made while others write. On PostgreSQL its migration needs `atomic = False`.
class ConcurrentIndex(AddIndexConcurrently):
    """Waits for running transactions, however long they take, without blocking others. An interrupted attempt
    may leave an index, valid or not; the next one first drops it."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        name = schema_editor.quote_name(self.index.name)
        if schema_editor.connection.vendor != "postgresql":
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
            AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
            return
        self._ensure_not_in_transaction(schema_editor)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT current_schema(), current_setting('lock_timeout')")
            schema, lock_timeout = cursor.fetchone()
            cursor.execute("SET lock_timeout = 0")
            try:
                # Other schemas may have an index of that name.
                place = f"{schema_editor.quote_name(schema)}.{name}"
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {place}")
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
