"""Makes docs/alerts.md from monitoring/: `alert_reference.py FILE`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MONITORING = Path(__file__).resolve().parent.parent / "monitoring"
FILES = {
    "links": "Links",
    "lanes": "Lanes and lasers",
    "cards": "Cards and HBM",
    "host": "Daemon and workers",
    "causes": "What is told to nobody",
}

HEAD = """\
# Alerts

Made from `monitoring/alerts/` by `make reference`; do not edit.

Each alert has a page in [runbooks/](runbooks/AccelLinkDown.md) with what it means, how to see
it, likely causes, what to do, and the fault that fires it; its `runbook_url` leads there. Put
those pages where your people read them (a wiki, a file server), and say once where. No rule
looks at `accel_fault_active`: alerts know what an operator of real hardware could know.

## Install

Prometheus 2.42 or newer (rules use `keep_firing_for`), Alertmanager 0.22 or newer.

```console
# apt install prometheus prometheus-alertmanager
# make monitoring RUNBOOKS=https://wiki.example.com/acceld
build/monitoring: 46 alerts lead to https://wiki.example.com/acceld/
# cp -r build/monitoring/* /etc/prometheus/
# promtool check config /etc/prometheus/prometheus.yml
# amtool check-config /etc/prometheus/alertmanager.yml
# systemctl restart prometheus prometheus-alertmanager
```

Rules taken from `monitoring/alerts/` as they are name their pages under `acceld.example`, a host
that cannot exist.

Put your own receivers into `alertmanager.yml`: `page` is for what should wake somebody
(`critical`), `ticket` for what can wait for the morning (`warning`).

See it work: `accelctl fault inject fibre_cut --on card0/oe0`, and a minute later one page about
both ends; `accelctl fault clear --all`, and it resolves.

## What does not alarm

- A link that trains after power-on, a reset or a command: `accel_health_state` is 1 while it has
  its time, and the rules for links ask for it. A hundred resets in a row page nobody.
- A link that somebody switched off, at either end, or that is being tested.
- Falls that were planned: `accel_link_flaps_total` does not count them.
- Links that end on a card that is gone; the card is told (`accel:fibre_end_gone:max`).

## One cause pages once

- **Groups.** Both ends of a fibre have the same `fibre`, from `accel_link_info`; alerts about
  links and lanes carry it, and Alertmanager makes one notification of all of a group. Fibres
  between hosts have two `instance`s: if your names of fibres are unique over the site, take
  `instance` out of `group_by` and of `equal`. A lane that joins later updates the notification of
  its group, under the same group key: receivers that open incidents by it open no other.
- **Silence.** What names a cause silences what follows from it, by the table below. Such a rule
  waits no longer (`for`) than those that it silences.
- **And afterwards.** What follows ends later than its cause: a case that cools is below its alarm
  level first and below its warning level after that, windows forget slowly, rules hold on. So the
  silence goes on for 30 minutes, for warnings: `AccelCauseKnown` fires with each alert and so much
  longer, and has the name of that alert as its `cause`. It goes to the receiver `nobody`; send it
  to no other. What is still wrong then is told. Three rules that look back over hours ask `ALERTS`
  for themselves. A test counts for each line of the table that nothing outlives its silence.
- **What was told earlier** and ends in such a silence ends unseen: Alertmanager mutes resolutions
  as it mutes alerts. Close what followed when you close its cause.
- **Holding on.** A link that goes to and fro between whole and degraded is told once, because
  rules hold on for a while after the trouble ended.
"""
SILENCE_HEAD = """\
## Who silences whom

| while this fires | these are silent | on the same |
|---|---|---|
"""
HISTORY = """\
## A month in a minute

Rules and boards can be tried on the simulated past of a fleet: see [history](scenarios.md#history).
"""


def page() -> str:
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    yield from _silences()
    for stem, title in FILES.items():
        yield f"## {title}\n"
        yield "| alert | severity | after | says |"
        yield "|---|---|---|---|"
        for rule in _rules(stem):
            yield _row(rule)
        yield ""
    yield "## Records\n"
    yield "Figures that are computed once, for boards and alerts.\n"
    yield "| record | is |"
    yield "|---|---|"
    for rule in _rules("records"):
        yield f"| `{rule['record']}` | `{' '.join(rule['expr'].split())}` |".replace("|~", "\\|~")
    yield ""
    yield HISTORY


def _rules(stem: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((MONITORING / f"alerts/{stem}.rules.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def _row(rule: dict[str, Any]) -> str:
    name = rule["alert"]
    cells = (
        f"[{name}](runbooks/{name}.md)", rule["labels"]["severity"], rule.get("for", "at once"),
        _plain(rule["annotations"]["summary"]),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _plain(summary: str) -> str:
    """`CARD/OE on INSTANCE carries no data`."""
    text = re.sub(r"{{ with (\$labels\.\w+ }}.*?){{ \. }}(.*?){{ end }}", _named, summary)
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: found[1].upper(), text)


def _named(found: re.Match[str]) -> str:
    label, before = found[1].removeprefix("$labels.").split(" }}", 1)
    return f"{before}{label.upper()}{found[2]}"


def _silences() -> Iterator[str]:
    yield SILENCE_HEAD.rstrip()
    for rule in yaml.safe_load((MONITORING / "alertmanager.yml").read_text())["inhibit_rules"]:
        if rule["source_matchers"][0].startswith("cause"):
            continue  # one of the lines above, after its end
        source, target = (_matchers(rule[f"{side}_matchers"]) for side in ("source", "target"))
        yield f"| {source} | {target} | {', '.join(rule['equal'])} |"
    yield ""


def _matchers(matchers: list[str]) -> str:
    shown = []
    for matcher in matchers:
        label, how, value = re.fullmatch(r'(\w+)(=~|!~|!=|=)"(.*)"', matcher).groups()  # type: ignore[union-attr]
        text = f"`{value}`" if label == "alertname" else f"{label} `{value}`"
        shown.append(f"not {text}" if how.startswith("!") else text)
    return ", ".join(shown).replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
