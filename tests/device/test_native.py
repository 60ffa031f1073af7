"""The library of the loops in C: that set-up made it, its checksum, and what makes it unusable.

What the loops themselves do is in test_bursts.py.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accelhw.device import native
from accelhw.device.bursts import PlainBursts
from accelhw.transport.direct import direct_of
from accelhw.transport.memory import InProcessPair
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import HeaderWriter

from .burstends import LIBRARY, End

COMPILER = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
load = native.library.__wrapped__  # each time anew

# native.c: three thirds of so many lines are summed up side by side; those longer than a page, and
# hardly more than some pages, are cut.
LINE, PAGE = 64, 4096
THIRDS = (LINE, 2 * LINE, PAGE - LINE, *(pages * PAGE + lines * LINE
          for pages in (1, 2, 5) for lines in (0, 1, 3, 4, 5)))  # fmt: skip
NOISE = bytes((n * n * 7 + n // 251) & 0xFF for n in range(1 << 17))


@pytest.fixture(autouse=True)
def switched_on(monkeypatch) -> None:
    monkeypatch.delenv(native.SWITCH, raising=False)


if COMPILER and platform.system() == "Linux" and platform.machine() == "x86_64":

    def test_set_up_made_the_library_where_a_compiler_is() -> None:
        assert load().accel_usable()

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("unsigned accel_layout(void) { return 1; }", r" is of another version; install"),
            ("int nothing;", r": .*accel_layout"),
        ],
        ids=["another layout", "somebody else's"],
    )
    def test_a_library_that_is_not_of_this_source_is_refused(
        tmp_path, monkeypatch, text, why
    ) -> None:
        source, library = tmp_path / "other.c", tmp_path / "other.so"
        source.write_text(f"{text}\n")
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
        monkeypatch.setattr(native, "LIBRARY", library)
        with pytest.raises(native.Unusable, match=rf"other\.so{why}"):
            load()


def test_the_switch_excludes_it(monkeypatch) -> None:
    monkeypatch.setenv(native.SWITCH, "0")
    with pytest.raises(native.Unusable, match=r"^ACCEL_NATIVE=0$"):
        load()


def test_where_it_was_not_made_the_reason_is_told(monkeypatch) -> None:
    monkeypatch.setattr(native, "LIBRARY", Path(__file__).with_name("nowhere.so"))
    with pytest.raises(native.Unusable, match="no C compiler that works was there"):
        load()


def test_a_file_that_is_no_library_is_refused(tmp_path, monkeypatch) -> None:
    library = tmp_path / "text.so"
    library.write_text("no library")
    monkeypatch.setattr(native, "LIBRARY", library)
    with pytest.raises(native.Unusable, match=r"text\.so: .+"):
        load()


def test_without_it_the_data_path_stays_in_python(monkeypatch) -> None:
    def refuse() -> ctypes.CDLL:
        raise native.Unusable("for a test")

    monkeypatch.setattr(native, "library", refuse)
    with End(native.bursts, bytes(64)) as end:
        assert type(end.bursts) is PlainBursts


def test_it_is_for_sockets_alone() -> None:
    direct = direct_of(InProcessPair().a)
    chosen = native.bursts(direct, memoryview(bytearray(64)), HeaderWriter())
    assert type(chosen) is PlainBursts


if LIBRARY is not None:

    def test_sockets_have_it() -> None:
        with End(native.bursts, bytes(64)) as end:
            assert type(end.bursts) is native.NativeBursts

    def in_c(data: bytes, before: int = 0, start: int = 0) -> int:
        """The CRC-32C of data[start:], read where it stands."""
        assert LIBRARY is not None
        kept = ctypes.create_string_buffer(data, len(data))
        at = ctypes.addressof(kept) + start
        return int(LIBRARY.accel_crc32c(at, len(data) - start, before))

    def test_the_public_check_value_of_crc32c() -> None:
        assert in_c(b"123456789") == 0xE3069283

    @pytest.mark.parametrize("third", THIRDS)
    def test_lengths_about_each_boundary_of_the_thirds(third) -> None:
        for odd in (*range(-17, 18), LINE, 2 * LINE, 3 * LINE - 1):
            data = NOISE[: 3 * third + odd]
            assert in_c(data, 0x12345678) == crc32c(data, 0x12345678), len(data)

    def test_every_length_up_to_thirds_of_some_lines() -> None:
        for length in range(3 * 5 * LINE):
            assert in_c(NOISE[:length]) == crc32c(NOISE[:length]), length

    @settings(max_examples=300)
    @given(
        start=st.integers(0, 130),
        length=st.one_of(st.integers(0, 6 * PAGE), st.integers(0, 1 << 16)),
        before=st.integers(0, 0xFFFFFFFF),
        seed=st.binary(max_size=40),
    )
    @example(0, 0, 0, b"")
    @example(0, 0, 0xFFFFFFFF, b"")
    def test_any_bytes_at_any_address_after_any_others(start, length, before, seed) -> None:
        data = seed + NOISE[: start + length - len(seed)]
        start = min(start, len(data))
        assert in_c(data, before, start) == crc32c(data[start:], before)
