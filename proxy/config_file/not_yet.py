"""Keys that this version does not take, and what to say about them.

A key of the configuration whose feature is missing is refused, never skipped: nothing may look enforced that
is not. The table is asked only about keys that nothing else takes, so a feature that comes with its key works
without an edit here; a test fails for the entry that it leaves behind.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from proxy.errors import Key, SettingsError, spell

NOT_YET: Final = {
    "listeners[].sni": "serving all brokers on one port by SNI",
}
"""Key (`[]` for any place in a list) to the feature, as the subject of "... is not in this version yet"."""


def unknown(key: Key, known: Iterable[str]) -> SettingsError:
    """The error for a key that is not among the `known` ones at its place."""
    feature = NOT_YET.get(re.sub(r"\[\d+\]", "[]", spell(key)))
    if feature is not None:
        advice = "remove the key, so that nothing looks enforced that is not"
        return SettingsError(f"{feature} is not in this version yet; {advice}", key)
    names = sorted(known)
    close = get_close_matches(str(key[-1]), names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(names)}"
    return SettingsError(f"unknown key; {hint}", key)
