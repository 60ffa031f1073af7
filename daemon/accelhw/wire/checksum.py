"""CRC-32C of bytes, and of two pieces joined without reading them again."""

from __future__ import annotations

from collections.abc import Callable

from crc32c import crc32c as _crc32c

# crc32c(data, crc_before=0): any buffer, without a copy, by the processor's instruction.
crc32c: Callable[..., int] = _crc32c

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bit-reflected
_Tables = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _columns_of_one_zero_byte() -> list[int]:
    """What eight zero bits do to each of the 32 bits of a CRC register."""
    columns = []
    for bit in range(32):
        value = 1 << bit
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        columns.append(value)
    return columns


def _tables(columns: list[int]) -> _Tables:
    """A linear map as four byte-indexed tables: four look-ups apply it."""
    result = []
    for byte in range(4):
        table = [0] * 256
        for bit in range(8):
            step = 1 << bit
            column = columns[8 * byte + bit]
            for low in range(step):
                table[step + low] = table[low] ^ column
        result.append(tuple(table))
    return (result[0], result[1], result[2], result[3])


def _apply(tables: _Tables, crc: int) -> int:
    return (
        tables[0][crc & 0xFF]
        ^ tables[1][crc >> 8 & 0xFF]
        ^ tables[2][crc >> 16 & 0xFF]
        ^ tables[3][crc >> 24]
    )


_powers: list[_Tables] = [_tables(_columns_of_one_zero_byte())]  # [k]: 2**k zero bytes
_prepared: dict[int, _Tables] = {}
_uses: dict[int, int] = {}
_PREPARED_MAX = 64  # lengths with tables of their own
_USES_BEFORE_PREPARED = 16


def _power(exponent: int) -> _Tables:
    while len(_powers) <= exponent:
        last = _powers[-1]
        _powers.append(_tables([_apply(last, _apply(last, 1 << bit)) for bit in range(32)]))
    return _powers[exponent]


def _shift(crc: int, zero_bytes: int) -> int:
    exponent = 0
    while zero_bytes:
        if zero_bytes & 1:
            crc = _apply(_power(exponent), crc)
        zero_bytes >>= 1
        exponent += 1
    return crc


def prepare_combine(length: int) -> None:
    """Make combining with second pieces of `length` bytes cost four look-ups.

    Lengths that return often are prepared without being asked for.
    """
    if length not in _prepared:
        _prepared[length] = _tables([_shift(1 << bit, length) for bit in range(32)])


def _combine_unprepared(first: int, second: int, second_length: int) -> int:
    if len(_prepared) < _PREPARED_MAX:
        if len(_uses) > 4 * _PREPARED_MAX:
            _uses.clear()
        _uses[second_length] = uses = _uses.get(second_length, 0) + 1
        if uses >= _USES_BEFORE_PREPARED:
            prepare_combine(second_length)
    return _shift(first, second_length) ^ second


def crc32c_combine(first: int, second: int, second_length: int) -> int:
    """CRC-32C of A + B from those of A and B and the length of B in bytes."""
    tables = _prepared.get(second_length)
    if tables is None:
        return _combine_unprepared(first, second, second_length)
    return (
        tables[0][first & 0xFF]
        ^ tables[1][first >> 8 & 0xFF]
        ^ tables[2][first >> 16 & 0xFF]
        ^ tables[3][first >> 24]
        ^ second
    )
