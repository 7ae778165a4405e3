"""What people and models call a key: names of VK, of other libraries, and of everyday language."""

from __future__ import annotations

import re
from functools import cache

from proctor.agents.desktop.vk import KEYSYMS, VK

ARROWS = frozenset({VK.LEFT, VK.RIGHT, VK.UP, VK.DOWN})
_SIDED = ("LCONTROL", "RCONTROL", "LSHIFT", "RSHIFT", "LMENU", "RMENU", "LWIN", "RWIN")
MODIFIERS = frozenset({VK.CONTROL, VK.SHIFT, VK.MENU, *(VK[name] for name in _SIDED)})

# Everyday names. Where they have a space, a hyphen, an underscore or nothing may stand, too.
_TABLE = """
LEFT: left arrow, arrow left, dpad left, ←, ⬅️, ⬅
RIGHT: right arrow, arrow right, dpad right, →, ➡️, ➡
UP: up arrow, arrow up, dpad up, ↑, ⬆️, ⬆
DOWN: down arrow, arrow down, dpad down, ↓, ⬇️, ⬇
RETURN: enter, ⏎, ↵, kp enter, numpad enter
SPACE: space bar, ␣
ESCAPE: esc
BACK: back space, bksp
DELETE: del
INSERT: ins
PRIOR: page up, pg up
NEXT: page down, pg down, pg dn
CONTROL: ctrl, ctl
LCONTROL: left ctrl, left control, ctrl_l, control_l, controlleft
RCONTROL: right ctrl, right control, ctrl_r, control_r, controlright
LSHIFT: left shift, shift_l, shiftleft
RSHIFT: right shift, shift_r, shiftright
MENU: alt, option
LMENU: left alt, alt_l, altleft
RMENU: right alt, alt_r, altright
LWIN: win, windows, super, super_l, meta, metaleft, cmd, command
RWIN: metaright
CAPITAL: caps lock, caps
NUMLOCK: num lock
SCROLL: scroll lock
SNAPSHOT: print screen, prt sc
APPS: context menu
LBUTTON: left click, left mouse button
RBUTTON: right click, right mouse button
MBUTTON: middle click, middle mouse button
OEM_MINUS: minus
OEM_PLUS: plus, equals
OEM_COMMA: comma
OEM_PERIOD: period
OEM_1: semicolon
OEM_2: slash
OEM_3: grave, tilde, backtick
OEM_4: bracket left, left bracket
OEM_5: backslash
OEM_6: bracket right, right bracket
OEM_7: apostrophe, quote
"""
# Names of keys that are words of a sentence, too, or that keyboards no longer have: only in capitals are they keys.
RARE = frozenset(
    """NEXT PRIOR CANCEL CLEAR PAUSE CAPITAL KANA JUNJA KANJI CONVERT NONCONVERT MODECHANGE SELECT PRINT
    EXECUTE SNAPSHOT HELP APPS SLEEP MULTIPLY ADD SEPARATOR SUBTRACT DECIMAL DIVIDE SCROLL ATTN CRSEL
    EXSEL EREOF PLAY ZOOM MENU BACK CAPS OPTION WIN WINDOWS SUPER META COMMAND PERIOD PLUS MINUS QUOTE
    GRAVE COMMA SLASH EQUALS TILDE""".split()  # noqa: SIM905 - a table
)
_PREFIX = r"(?:vk[_.]|k_|kc_|keys?[._]|keycode_(?:dpad_)?|key\s*code\s*)"


def _aliases() -> dict[str, int]:
    rows = (line.split(": ") for line in _TABLE.strip().splitlines())
    found = {name: int(VK[key]) for key, names in rows for name in names.split(", ")}
    digits = {f"{pad} {digit}": int(VK[f"NUMPAD{digit}"]) for pad in ("numpad", "kp") for digit in range(10)}
    return found | digits


ALIASES = _aliases()


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


@cache
def names() -> dict[str, int]:
    """Plain name -> key."""
    pressed = [key for key in VK if key in KEYSYMS or key in (VK.LBUTTON, VK.RBUTTON, VK.MBUTTON)]
    found = {_plain(key.name.removeprefix("KEY_")): int(key) for key in pressed}
    found |= {_plain(name): key for name, key in ALIASES.items()}
    return found | {f"digit{digit}": int(VK[f"KEY_{digit}"]) for digit in range(10)}


def key_named(text: str) -> int | None:
    """The key of this name, with or without the prefix of a library: `VK_LEFT`, `Key.left`, `KeyA`."""
    bare = re.sub(rf"^{_PREFIX}", "", text.strip(), flags=re.IGNORECASE)
    found = names().get(_plain(bare))
    if found is None and (match := re.fullmatch(r"Key([A-Z])", bare)):
        found = names()[match[1].casefold()]
    return found


@cache
def name_pattern() -> str:
    """Matches the name of a key, the longest first."""
    known = {*ALIASES, *(key.name.removeprefix("KEY_") for key in VK)}
    shaped = {name: r"[ \t_-]*".join(map(re.escape, name.split(" "))) for name in known}
    longest = sorted(shaped, key=len, reverse=True)
    words = "|".join(shaped[name] for name in longest if name[0].isascii() and len(name) > 1)
    signs = "|".join(shaped[name] for name in longest if not name[0].isascii())
    single = r"digit[0-9]|(?-i:Key[A-Z])|[A-Za-z0-9]"
    return rf"(?<![A-Za-z0-9_])(?:{_PREFIX})?(?:{words}|{single})(?![A-Za-z0-9_])|{signs}"
