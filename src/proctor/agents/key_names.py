"""What people and models call a key: names of VK, of other libraries, and of everyday language."""

from __future__ import annotations

import re
from functools import cache

from proctor.agents.desktop.vk import KEYSYMS, VK

MODIFIERS = frozenset({VK.CONTROL, VK.SHIFT, VK.MENU, VK.LWIN, VK.LCONTROL, VK.RCONTROL, VK.LSHIFT, VK.RSHIFT,
                       VK.LMENU, VK.RMENU, VK.RWIN})  # fmt: skip
ARROWS = frozenset({VK.LEFT, VK.RIGHT, VK.UP, VK.DOWN})

# Everyday names. A space stands for any of space, hyphen and underscore, or for none.
ALIASES: dict[str, int] = {
    **{f"{name} arrow": key for name, key in (("left", VK.LEFT), ("right", VK.RIGHT), ("up", VK.UP), ("down", VK.DOWN))},
    **{f"arrow {name}": key for name, key in (("left", VK.LEFT), ("right", VK.RIGHT), ("up", VK.UP), ("down", VK.DOWN))},
    **{f"dpad {name}": key for name, key in (("left", VK.LEFT), ("right", VK.RIGHT), ("up", VK.UP), ("down", VK.DOWN))},
    "←": VK.LEFT, "→": VK.RIGHT, "↑": VK.UP, "↓": VK.DOWN, "⬅️": VK.LEFT, "➡️": VK.RIGHT, "⬆️": VK.UP, "⬇️": VK.DOWN,
    "⬅": VK.LEFT, "➡": VK.RIGHT, "⬆": VK.UP, "⬇": VK.DOWN, "⏎": VK.RETURN, "↵": VK.RETURN, "␣": VK.SPACE,
    "space bar": VK.SPACE, "enter": VK.RETURN, "esc": VK.ESCAPE, "back space": VK.BACK, "bksp": VK.BACK,
    "ctrl": VK.CONTROL, "ctl": VK.CONTROL, "alt": VK.MENU, "option": VK.MENU, "win": VK.LWIN, "windows": VK.LWIN,
    "super": VK.LWIN, "meta": VK.LWIN, "cmd": VK.LWIN, "command": VK.LWIN,
    "left ctrl": VK.LCONTROL, "right ctrl": VK.RCONTROL, "left control": VK.LCONTROL, "right control": VK.RCONTROL,
    "left shift": VK.LSHIFT, "right shift": VK.RSHIFT, "left alt": VK.LMENU, "right alt": VK.RMENU,
    "ctrl_l": VK.LCONTROL, "ctrl_r": VK.RCONTROL, "control_l": VK.LCONTROL, "control_r": VK.RCONTROL,
    "shift_l": VK.LSHIFT, "shift_r": VK.RSHIFT, "alt_l": VK.LMENU, "alt_r": VK.RMENU, "super_l": VK.LWIN,
    "controlleft": VK.LCONTROL, "controlright": VK.RCONTROL, "shiftleft": VK.LSHIFT, "shiftright": VK.RSHIFT,
    "altleft": VK.LMENU, "altright": VK.RMENU, "metaleft": VK.LWIN, "metaright": VK.RWIN,
    "page up": VK.PRIOR, "pg up": VK.PRIOR, "page down": VK.NEXT, "pg down": VK.NEXT, "pg dn": VK.NEXT,
    "del": VK.DELETE, "ins": VK.INSERT, "caps lock": VK.CAPITAL, "caps": VK.CAPITAL, "num lock": VK.NUMLOCK,
    "scroll lock": VK.SCROLL, "print screen": VK.SNAPSHOT, "prt sc": VK.SNAPSHOT, "context menu": VK.APPS,
    "left click": VK.LBUTTON, "right click": VK.RBUTTON, "middle click": VK.MBUTTON,
    "left mouse button": VK.LBUTTON, "right mouse button": VK.RBUTTON, "middle mouse button": VK.MBUTTON,
    "minus": VK.OEM_MINUS, "plus": VK.OEM_PLUS, "equals": VK.OEM_PLUS, "comma": VK.OEM_COMMA,
    "period": VK.OEM_PERIOD, "semicolon": VK.OEM_1, "slash": VK.OEM_2, "backslash": VK.OEM_5, "grave": VK.OEM_3,
    "tilde": VK.OEM_3, "backtick": VK.OEM_3, "apostrophe": VK.OEM_7, "quote": VK.OEM_7,
    "bracket left": VK.OEM_4, "bracket right": VK.OEM_6, "left bracket": VK.OEM_4, "right bracket": VK.OEM_6,
    **{f"numpad {digit}": VK[f"NUMPAD{digit}"] for digit in range(10)},
    **{f"kp {digit}": VK[f"NUMPAD{digit}"] for digit in range(10)},
    "kp enter": VK.RETURN, "numpad enter": VK.RETURN,
}  # fmt: skip
# Names of keys that are words of a sentence, too, or that no keyboard of today has: only in capitals are they keys.
RARE = frozenset({"NEXT", "PRIOR", "CANCEL", "CLEAR", "PAUSE", "CAPITAL", "KANA", "JUNJA", "KANJI", "CONVERT", "NONCONVERT",
                  "MODECHANGE", "SELECT", "PRINT", "EXECUTE", "SNAPSHOT", "HELP", "APPS", "SLEEP", "MULTIPLY", "ADD",
                  "SEPARATOR", "SUBTRACT", "DECIMAL", "DIVIDE", "SCROLL", "ATTN", "CRSEL", "EXSEL", "EREOF", "PLAY", "ZOOM",
                  "MENU", "BACK", "CAPS", "OPTION", "WIN", "WINDOWS", "SUPER", "META", "COMMAND", "PERIOD", "PLUS", "MINUS",
                  "QUOTE", "GRAVE", "COMMA", "SLASH", "EQUALS", "TILDE"})  # fmt: skip
# The same in prose: there only capitals, quotes, the word "key" or a verb that names a key tell them from words.
_PREFIX = r"(?:vk[_.]|k_|kc_|keys?[._]|keycode_(?:dpad_)?|key\s*code\s*)"


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


@cache
def names() -> dict[str, int]:
    """Plain name -> key."""
    found: dict[str, int] = {}
    for key in VK:
        if key in KEYSYMS or key in (VK.LBUTTON, VK.RBUTTON, VK.MBUTTON):
            found[_plain(key.name.removeprefix("KEY_"))] = key
    found |= {_plain(name): key for name, key in ALIASES.items()}
    return found | {f"digit{digit}": VK[f"KEY_{digit}"] for digit in range(10)}


def key_named(text: str) -> int | None:
    """The key that a text is the name of, with or without the prefix of a library (`VK_LEFT`, `Key.left`, `KeyA`)."""
    bare = re.sub(rf"^{_PREFIX}", "", text.strip(), flags=re.IGNORECASE)
    found = names().get(_plain(bare))
    if found is None and (match := re.fullmatch(r"Key([A-Z])", bare)):
        found = names()[match[1].casefold()]
    return found


@cache
def name_pattern() -> str:
    """Matches the name of a key, the longest first. A space in a name may be missing, or be another separator."""
    known = {*ALIASES, *(key.name.removeprefix("KEY_") for key in VK)}
    shaped = {name: r"[ \t_-]*".join(map(re.escape, name.split(" "))) for name in known}
    longest = sorted(shaped, key=len, reverse=True)
    words = "|".join(shaped[name] for name in longest if name[0].isascii() and len(name) > 1)
    signs = "|".join(shaped[name] for name in longest if not name[0].isascii())
    return (
        rf"(?<![A-Za-z0-9_])(?:{_PREFIX})?(?:{words}|digit[0-9]|(?-i:Key[A-Z])|[A-Za-z0-9])(?![A-Za-z0-9_])"
        rf"|{signs}"
    )
