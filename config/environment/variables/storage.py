from functools import partial

from ..addresses import read_redis_prefix, read_redis_url
from ..database import read_database_url
from ..variable import VariableGroup, number, secret, text, whole

DATABASE = VariableGroup(
    "The database",
    (
        secret(
            "DATABASE_URL",
            "postgresql://user:password@host:5432/name, with libpq options in its query, or sqlite:///path.",
            otherwise="an SQLite file in `VAR_DIR`",
            default=None,
            read=read_database_url,
            is_needed=True,
        ),
        whole(
            "DATABASE_POOL",
            None,
            "The maximum number of connections from one process to PostgreSQL.",
            lowest=1,
            otherwise="`API_THREADS` + `PAGE_THREADS` + 4",
        ),
        text(
            "DATABASE_POOLER",
            "none",
            "Use `transaction` with a PgBouncer in front of PostgreSQL that has `pool_mode = transaction`.",
            among=("none", "transaction"),
        ),
        number(
            "DATABASE_IDLE_TRANSACTION_S",
            10.0,
            "Seconds after which PostgreSQL ends an idle transaction; 0 means never. Unused behind a pooler.",
        ),
        number(
            "KEYS_TRUSTED_FOR_S",
            900.0,
            "Seconds that known keys and open streams outlast the database; a revocation can be as late.",
        ),
        whole(
            "MIGRATION_LOCK_MS",
            1_000,
            "How long a migration waits for a table in use; later queries queue behind it for that time.",
        ),
    ),
)

REDIS = VariableGroup(
    "Redis",
    (
        secret(
            "REDIS_URL",
            "redis://host:6379/0, rediss:// (TLS), or redis+sentinel://host,host/name/0, for many processes.",
            otherwise="none: one process does everything",
            read=read_redis_url,
            is_needed=True,
        ),
        text(
            "REDIS_PREFIX",
            "tickwire",
            "The beginning of all keys and channels; installations that share a Redis need different ones.",
            read=read_redis_prefix,
        ),
        secret(
            "BUS_REDIS_URL",
            "A separate Redis for the market's ticks, in the same forms.",
            otherwise="`REDIS_URL`",
            read=partial(read_redis_url, variable="BUS_REDIS_URL"),
        ),
        secret(
            "BUS_REPLICA_URL",
            "A replica of that Redis near this machine, from which web processes read ticks.",
            otherwise="none: they read from the Redis itself",
            read=partial(read_redis_url, variable="BUS_REPLICA_URL", sentinel=False),
        ),
    ),
)
