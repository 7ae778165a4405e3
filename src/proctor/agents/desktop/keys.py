"""Keys as agents write them: a member of VK or its number, a character, or the name that pynput gives it."""

from __future__ import annotations

from proctor.agents.desktop.vk import VK

# Those of pynput that are not the name in VK, in lower case.
_NAMES = {
    "alt": VK.MENU,
    "alt_gr": VK.RMENU,
    "alt_l": VK.LMENU,
    "alt_r": VK.RMENU,
    "backspace": VK.BACK,
    "caps_lock": VK.CAPITAL,
    "cmd": VK.LWIN,
    "cmd_l": VK.LWIN,
    "cmd_r": VK.RWIN,
    "ctrl": VK.CONTROL,
    "ctrl_l": VK.LCONTROL,
    "ctrl_r": VK.RCONTROL,
    "enter": VK.RETURN,
    "esc": VK.ESCAPE,
    "media_next": VK.MEDIA_NEXT_TRACK,
    "media_previous": VK.MEDIA_PREV_TRACK,
    "media_volume_down": VK.VOLUME_DOWN,
    "media_volume_mute": VK.VOLUME_MUTE,
    "media_volume_up": VK.VOLUME_UP,
    "menu": VK.APPS,
    "num_lock": VK.NUMLOCK,
    "page_down": VK.NEXT,
    "page_up": VK.PRIOR,
    "print_screen": VK.SNAPSHOT,
    "scroll_lock": VK.SCROLL,
    "shift_l": VK.LSHIFT,
    "shift_r": VK.RSHIFT,
}
_SIGNS = {" ": VK.SPACE, "\n": VK.RETURN, "\r": VK.RETURN, "\t": VK.TAB, "\b": VK.BACK, "\x1b": VK.ESCAPE}
# A key that stands for either of two is down when one of them is.
EITHER = {
    VK.SHIFT: (VK.LSHIFT, VK.RSHIFT),
    VK.CONTROL: (VK.LCONTROL, VK.RCONTROL),
    VK.MENU: (VK.LMENU, VK.RMENU),
}


def parse_key(key: str | int) -> VK | str:
    """A key of VK; a character that only a key with shift, or none of VK, writes is left as it is."""
    if isinstance(key, int):
        return VK(key)
    if len(key) == 1:
        if key in _SIGNS:
            return _SIGNS[key]
        if key in "abcdefghijklmnopqrstuvwxyz0123456789":
            return VK[f"KEY_{key.upper()}"]
        return key
    found = _NAMES.get(key.lower()) or VK.__members__.get(key.upper())
    if found is None:
        raise ValueError(f"there is no key {key!r}: give a member of VK, a character, or a name such as 'enter'")
    return found


def char_to_vk(char: str) -> int:
    """Of a letter or a digit."""
    found = parse_key(char.lower()) if len(char) == 1 and char.isascii() and char.isalnum() else None
    if not isinstance(found, VK):
        raise ValueError(f"there is no VK for the character {char!r}: it must be a letter or a digit")
    return int(found)


def vk_to_name(vk: int) -> str:
    try:
        return VK(vk).name
    except ValueError:
        return "Unknown"
