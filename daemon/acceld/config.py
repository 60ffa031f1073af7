"""What `acceld serve` was told: options first, then the configuration file, then the defaults."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from acceld import paths
from acceld.errors import EXIT_DENIED, EXIT_USAGE, StartFailure
from accelhw.model.config import Config, TransportKind
from accelhw.model.configfile import CARDS_MAX, load, render
from accelhw.model.fleet import MISFITS, SHAPES, make_fleet, to_toml
from accelhw.model.profile import load_profile, profile_names

METRICS = "127.0.0.1:9437"
SOCKET_PATH_BYTES_MAX = 107  # sun_path of Linux, without its closing zero


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of `acceld serve`; None is: not given."""

    config: Path | None = None
    state_dir: Path | None = None
    socket: Path | None = None
    metrics: str | None = None
    chassis: str = "auto"  # auto, own, attach
    hardware_socket: Path | None = None
    log_format: str = "auto"
    log_level: str = "info"
    metrics_collect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything decided."""

    config: Path | None
    state_dir: Path
    socket: Path
    memory_socket: Path
    hardware_socket: Path
    metrics: tuple[str, int] | None  # None: off
    chassis: str
    log_format: str = "auto"
    log_level: str = "info"
    metrics_collect: tuple[str, ...] = ()  # groups of metrics beyond the usual ones


def read_config(path: Path) -> Config:
    """Raises StartFailure with every mistake, each with line and key."""
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise StartFailure(f"{path}: not UTF-8 text (byte {error.start})", EXIT_USAGE) from error
    except OSError as error:
        code = EXIT_DENIED if isinstance(error, PermissionError) else EXIT_USAGE
        raise StartFailure(f"{path}: {error.strerror}", code) from error
    result = load(text)
    if isinstance(result, Config):
        return result
    raise StartFailure(render(result, str(path)), EXIT_USAGE)


def rack_text(
    cards: int, profile: str, shape: str, transport: str, mtu: int, length_m: float
) -> str:
    """The configuration of a rack whose engines are all joined. Raises StartFailure."""
    kinds = [kind.value for kind in TransportKind if kind is not TransportKind.NETDEV]
    for word, value, known in (
        ("profile", profile, profile_names()), ("shape", shape, SHAPES),
        ("transport", transport, kinds),
    ):  # fmt: skip
        if value not in known:
            raise StartFailure(f"--{word} {value!r}: there is {', '.join(known)}", EXIT_USAGE)
    if cards < 1:
        raise StartFailure("--cards: a rack has at least one", EXIT_USAGE)
    if cards > CARDS_MAX:
        raise StartFailure(f"--cards: at most {CARDS_MAX} fit into one chassis", EXIT_USAGE)
    kind = load_profile(profile)
    if misfit := MISFITS[shape](cards, kind):
        raise StartFailure("--{}: {}; {}".format(*misfit), EXIT_USAGE)
    text = to_toml(make_fleet(cards, kind, shape, length_m, TransportKind(transport), mtu))
    if isinstance(mistakes := load(text), list):  # What is too much, or too long, or too small.
        raise StartFailure(str(mistakes[0]), EXIT_USAGE)
    return text


def decide(options: Options) -> Settings:
    """Raises StartFailure."""
    daemon = read_config(options.config).daemon if options.config else None
    if options.config is None and options.chassis != "attach":
        raise StartFailure(
            "say which hardware: --config FILE (examples/pair.toml is the smallest), or --chassis"
            " attach for a chassis that runs already",
            EXIT_USAGE,
        )
    # ACCEL_SOCKET is the environment's word, and weighs more than the file's.
    if options.socket:
        socket = options.socket
    elif daemon and daemon.socket and "ACCEL_SOCKET" not in os.environ:
        socket = Path(daemon.socket)
    else:
        socket = paths.api_socket()
    socket = socket.absolute()
    state = options.state_dir or (Path(daemon.state_dir) if daemon and daemon.state_dir else None)
    metrics = options.metrics or (daemon.metrics if daemon else None) or METRICS
    settings = Settings(
        config=options.config.absolute() if options.config else None,
        state_dir=(state or paths.state_folder()).absolute(),
        socket=socket,
        memory_socket=paths.memory_socket(socket),
        hardware_socket=(options.hardware_socket or paths.hardware_socket(socket)).absolute(),
        metrics=metrics_address(metrics),
        chassis=options.chassis,
        log_format=options.log_format,
        log_level=options.log_level,
        metrics_collect=options.metrics_collect,
    )
    for path in (settings.socket, settings.memory_socket, settings.hardware_socket):
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
            raise StartFailure(
                f"{path} is too long for a Unix socket (at most {SOCKET_PATH_BYTES_MAX} bytes);"
                " choose a shorter --socket",
                EXIT_USAGE,
            )
    return settings


def metrics_address(text: str) -> tuple[str, int] | None:
    """`127.0.0.1:9437` or `[::1]:9437`; None for `off`. Raises StartFailure."""
    if text == "off":
        return None
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise StartFailure(
            f"--metrics {text!r} is no address; try 127.0.0.1:9437, [::1]:9437 or off", EXIT_USAGE
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
