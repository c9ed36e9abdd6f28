"""The newest day of ticks in the archive, hour by hour, with DuckDB:

pip install ./clients/python duckdb
python clients/python/examples/archive_day.py EURUSD
"""

from __future__ import annotations

import argparse
import tempfile

import duckdb
from tickwire import Client

HOURS = """
    select extract('hour' from time) as hour, count(*) as ticks, avg(ask - bid) as spread,
           first(bid order by seq) as open, max(bid) as high, min(bid) as low, last(bid order by seq) as close
    from read_parquet(?) group by hour order by hour
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("symbol")
    wanted = parser.parse_args()

    with Client() as tickwire, tempfile.TemporaryDirectory() as folder:
        files = list(tickwire.archive(kind="ticks", symbol=wanted.symbol))
        if not files:
            raise SystemExit(f"The archive has no ticks of {wanted.symbol}.")
        day = tickwire.download(files[-1]["path"], folder)
        with duckdb.connect() as database:
            database.execute("set TimeZone = 'UTC'")
            rows = database.execute(HOURS, [str(day)]).fetchall()
    print(f"{files[-1]['path']}\nhour    ticks   spread     open     high      low    close")
    for hour, ticks, *prices in rows:
        print(f"{hour:02}:00 {ticks:7,} ", " ".join(f"{price:8.5f}" for price in prices))


if __name__ == "__main__":
    main()
