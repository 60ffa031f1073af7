"""telemetry.parquet: the columns of telemetry.csv, typed and compressed. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelhw.sim.telemetry import Row

ROWS_AT_ONCE = 1 << 17  # of a row group
COLUMN_BYTES = 2  # of a row, usually: most columns hardly change


class NoParquet(Exception):
    """pyarrow is not installed; the message says how to get it."""


def check() -> None:
    """Raises NoParquet."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise NoParquet("Parquet needs pyarrow: pip install 'acceld[parquet]'") from error


class ParquetTable:
    def __init__(self, path: Path, rows: Sequence[Row]) -> None:
        """Raises NoParquet, OSError."""
        check()
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa = pa
        self._schema = pa.schema([(row.name, self._type(row)) for row in rows])
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._waiting: list[Sequence[NDArray[Any]]] = []
        self._count = 0

    def _type(self, row: Row) -> Any:
        pa = self._pa
        if not row.form:
            return pa.dictionary(pa.int32(), pa.string())
        return pa.int64() if row.form == "%d" else pa.float64()

    def write(self, columns: Sequence[NDArray[Any]]) -> None:
        self._waiting.append(columns)
        self._count += len(columns[0])
        if self._count >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        pa = self._pa
        arrays = []
        for kind, parts in zip(self._schema.types, zip(*self._waiting, strict=True), strict=True):
            whole = np.concatenate(parts)
            if pa.types.is_dictionary(kind):
                arrays.append(pa.array(whole.tolist(), pa.string()).dictionary_encode())
            elif pa.types.is_integer(kind):
                arrays.append(pa.array(whole.astype(np.int64)))
            else:
                arrays.append(pa.array(whole.astype(np.float64), from_pandas=True))  # nan: null
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._waiting.clear()
        self._count = 0

    @property
    def bytes_each(self) -> int:
        return len(self._schema.names) * COLUMN_BYTES

    def close(self) -> None:
        self._flush()
        self._writer.close()
