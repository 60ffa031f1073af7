"""Bad input: each mistake is refused with the right code and a word on what works."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .rack import PATIENCE_S, Rack, pair_config, program, until

pytestmark = pytest.mark.network

MIB = 1 << 20


@pytest.fixture(scope="module")
def furnished(pair: Rack) -> Iterator[Rack]:
    pair.fill("card0:weights", MIB)
    pair.fill("card1:large", 2 * MIB)
    yield pair
    for region in ("card0:weights", "card1:large"):
        pair.client.regions.delete(region)


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("card show crd0", 3, "did you mean card0?"),
        ("link show card0/oe7", 3, "card0/oe0"),
        ("lane show card0/oe0/lane9", 3, "card0/oe0 has lane0"),
        ("hbm free card0:wieghts", 3, "did you mean card0:weights?"),
        ("hbm sha256 card1:weights", 3, "there is no region 'weights' on card1"),
        ("hbm alloc card0:x 97GiB", 2, "card0 has"),
        ("hbm alloc card0:x 15GiB", 6, "hbm_budget_gib"),
        ("hbm alloc card0:x 4096 --address 0", 6, "taken by card0:weights"),
        ("hbm alloc card0:x 4096 --address 100", 2, "multiple of 4096"),
        ("hbm alloc card0:weights 4096", 6, "exists already"),
        ("hbm alloc card0:x 0", 2, "at least 1 byte"),
        ("cp card1:large card0:weights", 2, "do not fit into card0:weights"),
        ("cp card0:weights card2:x", 3, "did you mean card1?"),
        ("cp card0:weights card0:weights+4096 --length 8192", 2, "overlap"),
        ("cp card0:weights+1048576 card1:x", 2, "holds 0 bytes from offset 1048576"),
        ("cp /none card0:x", 3, "there is no such file"),
        ("cp / card0:x", 2, "is a folder"),
        ("cp /dev/null card0:x", 2, "not a regular file"),
        ("cp card0:weights /none/copy", 3, "cannot write /none/copy"),
        ("link map card0 --set 0=64", 2, "card0 has 0 to"),
        ("link train card0/oe5", 3, "card0/oe0"),
        ("transfer show 3f2a", 3, "3f2a"),
    ],
)
def test_a_mistake_is_refused_with_what_works(
    furnished: Rack, line: str, code: int, hint: str
) -> None:
    done = furnished.cli(*line.split())
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert hint in done.stderr
    assert done.stderr.count("\n") == 1
    regions = {region.name for region in furnished.client.regions.list()}
    assert not any(name.endswith("/x") for name in regions)


def test_a_file_that_shrinks_while_it_is_read(pair: Rack, tmp_path: Path) -> None:
    source = tmp_path / "shrinking"
    with source.open("wb") as file:
        file.truncate(1 << 30)
    copying = pair.running("cp", str(source), "card0:shrinking")
    until(lambda: pair.client.regions.get("card0:shrinking"), "it has begun")
    os.truncate(source, 4096)
    _, errors = copying.communicate(timeout=PATIENCE_S)
    assert copying.returncode == 6, errors
    assert "did it shrink while it was read?" in errors
    assert pair.cli("hbm", "sha256", "card0:shrinking").returncode == 3


def private_mount(script: str, *arguments: str) -> list[str]:
    """A shell script in a mount namespace of its own, whose mounts nobody else sees."""
    return ["unshare", "--mount", "sh", "-euc", script, "sh", *arguments]


def needs_mounts(folder: Path) -> None:
    probe = private_mount('mount -t tmpfs tmpfs "$1"', str(folder))
    done = subprocess.run(probe, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


def test_a_full_disk_leaves_no_part_of_a_file(pair: Rack, tmp_path: Path) -> None:
    needs_mounts(tmp_path)
    pair.fill("card0:large", 4 * MIB)
    script = 'mount -t tmpfs -o size=1m tmpfs "$1"; folder=$1; shift; "$@" || code=$?; ' \
             'ls -A "$folder"; exit $code'  # fmt: skip
    copy = program("accelctl", "cp", "card0:large", str(tmp_path / "copy"))
    done = subprocess.run(
        private_mount(script, str(tmp_path), *copy),
        env=pair.environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert "the disk is full" in done.stderr
    pair.client.regions.delete("card0:large")


@pytest.mark.parametrize(
    "mount",
    [
        'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"',
        'mount -t tmpfs -o size=64k tmpfs "$1" && { cat /dev/zero > "$1/zeros" || true; }',
    ],
    ids=["read-only", "full"],
)
def test_a_daemon_serves_without_a_disk_and_says_so(rack: Rack, mount: str) -> None:
    needs_mounts(rack.folder)
    state = rack.folder / "state"
    state.mkdir()
    wrapper = private_mount(f'{mount} 2>/dev/null; shift; exec "$@"', str(state))
    rack.serve(wrapper=wrapper)
    rack.wait_up()
    sha = rack.fill("card0:w", MIB)
    rack.done(rack.begin("card0:w", "card1:w"))
    assert rack.sha256("card1:w") == sha
    (told,) = [e for e in rack.told("STORE_DEGRADED") if e.kind == "STORE_DEGRADED"]
    assert str(state) in told.message


def refused(rack: Rack, *arguments: str, wrapper: tuple[str, ...] = ()) -> tuple[int, str]:
    """A daemon that does not start: its exit code, and its last line."""
    rack.serve(*arguments, wrapper=wrapper, wait=False)
    assert rack.daemon is not None
    code = rack.daemon.wait(PATIENCE_S)
    said = rack.logs()
    assert "Traceback" not in said
    return code, said.strip().splitlines()[-1]


def test_a_socket_in_use(pair: Rack, rack: Rack) -> None:
    code, said = refused(rack, "--socket", str(pair.socket))
    assert (code, str(pair.socket) in said) == (6, True), said
    assert pair.client.host().chassis_attached


def test_a_chassis_with_a_driver(pair: Rack, rack: Rack) -> None:
    code, said = refused(
        rack, "--chassis", "attach", "--hardware-socket", str(pair.hardware_socket)
    )
    assert (code, "another driver is attached" in said) == (6, True), said
    code, said = refused(rack, "--chassis", "own", "--hardware-socket", str(pair.hardware_socket))
    assert (code, "a chassis answers" in said) == (6, True), said
    assert pair.client.host().chassis_attached


def test_a_metrics_port_in_use(pair: Rack, rack: Rack) -> None:
    address = pair.client.host().metrics_address
    code, said = refused(rack, "--metrics", address)
    assert (code, address in said) == (6, True), said


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ('name = "card1"', 'name = "card0"', "card0"),
        ('b = "card1/oe0"', 'b = "card2/oe0"', "card1"),
        ('b = "card1/oe0"', 'b = "card0/oe0"', "card0/oe0"),
        ('profile = "single"', 'profile = "singel"', "single"),
        ("length_m = 2", "length_m = 2\nmtu = 500", "mtu"),
        ("length_m = 2", "lenght_m = 2", "length_m"),
        ("length_m = 2", "length_m = [", "rack.toml"),
    ],
)
def test_a_mistake_in_the_configuration(rack: Rack, before: str, after: str, hint: str) -> None:
    rack.config.write_text(rack.config.read_text().replace(before, after))
    code, said = refused(rack)
    assert (code, hint in said) == (2, True), said
    checked = subprocess.run(
        program("acceld", "check-config", str(rack.config)), capture_output=True, text=True
    )
    assert (checked.returncode, hint in checked.stdout) == (2, True), checked.stdout


def test_an_interface_that_is_not_there(rack: Rack) -> None:
    rack.config.write_text(pair_config(fibre='transport = "netdev"\ninterface_a = "none0"\n'
                                             'interface_b = "none1"'))  # fmt: skip
    code, _ = refused(rack)
    assert code == 6, rack.logs()
    assert "there is no interface 'none0'" in rack.logs()


def test_without_the_right_to_make_interfaces(rack: Rack) -> None:
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--")
    code, _ = refused(rack, wrapper=drop)
    assert code == 4, rack.logs()
    assert "CAP_NET_ADMIN" in rack.logs()
    # Cards whose fibre is no interface need no right at all.
    rack.config.write_text(pair_config(fibre='transport = "memory"'))
    rack.serve(wrapper=drop)
    rack.wait_up()
    sha = rack.fill("card0:w", MIB)
    rack.done(rack.begin("card0:w", "card1:w"))
    assert rack.sha256("card1:w") == sha
