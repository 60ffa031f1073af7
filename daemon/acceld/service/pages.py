"""Pages of a list: a token names the last item that was given, and the list it belongs to."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from acceld.errors import InvalidRequest

PAGE_SIZE = 500
PAGE_SIZE_MAX = 5000

T = TypeVar("T")
Key = tuple[int | str, ...]


def size_of(page_size: int) -> int:
    """Raises InvalidRequest for a negative size; a large one is cut."""
    if page_size < 0:
        raise InvalidRequest(
            "PAGE_SIZE_INVALID",
            f"a page of {page_size}; use 1 to {PAGE_SIZE_MAX}, or 0 for {PAGE_SIZE}",
            page_size=page_size,
        )
    return min(page_size or PAGE_SIZE, PAGE_SIZE_MAX)


def token_of(scope: str, key: Key) -> str:
    text = json.dumps([scope, *key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def key_of(scope: str, token: str) -> Key:
    """Raises InvalidRequest for a token that no list of this scope gave."""
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        found = json.loads(data)
        if isinstance(found, list) and found and found[0] == scope:
            key = tuple(found[1:])
            if key and all(isinstance(part, int | str) for part in key):
                return key
    except (binascii.Error, ValueError):
        pass
    raise InvalidRequest(
        "PAGE_TOKEN_INVALID",
        "this page token belongs to no such list; start again without one",
        page_token=token[:200],
    )


def page(
    items: Sequence[T], key: Callable[[T], Key], scope: str, page_size: int, token: str
) -> tuple[Sequence[T], str]:
    """The page of `items`, which are sorted by `key`, and the token of the next one."""
    size = size_of(page_size)
    if token:
        last = key_of(scope, token)
        try:
            items = [item for item in items if key(item) > last]
        except TypeError:
            key_of(scope, "")  # Of another shape: forged. This raises.
    chosen = items[:size]
    more = len(items) > size
    return chosen, token_of(scope, key(chosen[-1])) if more else ""
