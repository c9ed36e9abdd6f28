"""Files as the documentation shows them."""

from hashlib import sha256

from archive.manifests import ArchiveManifest, LedgerAt, ManifestFile

from .days import ArchiveFile

DAY = "2026-11-20"


def sample(path: str, kind: str, symbol: str | None, size: int, rows: int | None) -> ArchiveFile:
    return ArchiveFile(path, kind, symbol, DAY, size, rows, sha256(path.encode()).hexdigest())


CANDLES = sample(f"candles/1m/EURUSD/{DAY}.parquet", "candles", "EURUSD", 48_213, 1440)
MANIFEST = sample(f"manifests/{DAY}.json", "manifest", None, 1204, None)
TICKS = sample(f"ticks/EURUSD/{DAY}.parquet", "ticks", "EURUSD", 1_904_771, 88_412)
MANIFEST_BODY = ArchiveManifest(
    day=DAY,
    version=1,
    made_at="2026-11-21T00:05:12.804Z",
    complete=True,
    holes=[],
    ledger=LedgerAt(431, sha256(b"431").hexdigest()),
    files=[
        ManifestFile(each.path, each.kind, "EURUSD", each.sha256, each.bytes, each.rows or 0, ["kraken"])
        for each in (CANDLES, TICKS)
    ],
)
