"""Tables as CSV: rows that know their line, and cells that no spreadsheet takes for a formula."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# What Excel, LibreOffice and Google Sheets start a formula or a command with; the wide forms too.
_RUNS = re.compile(r"\A'*[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class BadSheet(ValueError):
    """The file is not such a table; the message says where and why."""


class SheetRow(NamedTuple):
    line: int
    """Where the row begins in the file."""
    cells: dict[str, str]


def guard(cell: str) -> str:
    """Makes a text harmless with an apostrophe in front. A negative number is no formula."""
    return f"'{cell}" if _RUNS.match(cell) and not NUMBER.fullmatch(cell) else cell


def unguard(cell: str) -> str:
    """Removes one apostrophe, and only where `guard` would have put it."""
    return cell[1:] if cell.startswith("'") and _RUNS.match(cell) else cell


def write_sheet(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([guard(str(cell)) for cell in row] for row in rows)
    return out.getvalue()


def read_sheet(content: bytes, columns: Sequence[str]) -> list[SheetRow]:
    """All columns must be there, in any order, and no others: a misspelt one would be left out silently."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSheet("The file is not UTF-8. Save it as “CSV UTF-8”.") from None
    rows, lines = list[SheetRow](), _rows(text)
    _, header = next(lines, (1, []))
    _check_header(header, columns)
    for line, row in lines:
        if len(row) != len(header):
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise BadSheet(f"Line {line} has {cells}; {len(header)} are expected.")
        if "\0" in "".join(row):
            raise BadSheet(f"Line {line}: a cell contains the character NUL.")
        rows.append(SheetRow(line, dict(zip(header, map(unguard, row), strict=True))))
    return rows


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadSheet(f"Line {line}: {error}.") from None


def _check_header(header: list[str], columns: Sequence[str]) -> None:
    if len(header) == 1 < len(columns) and ";" in header[0]:
        raise BadSheet("Line 1: the columns are separated by semicolons. Save the file as CSV with commas.")
    faults = {
        "missing": [name for name in columns if name not in header],
        "unknown": [name for name in header if name not in columns],
        "twice": sorted({name for name in header if header.count(name) > 1}),
    }
    found = [f"{fault}: {', '.join(names)}" for fault, names in faults.items() if names]
    if found:
        raise BadSheet(f"Line 1: the columns must be {', '.join(columns)}; {'; '.join(found)}.")
