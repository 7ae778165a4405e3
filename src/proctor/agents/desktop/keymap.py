"""The keyboard of an X display: which of its keys is which."""

from __future__ import annotations

import threading
from typing import Any

from Xlib import XK, X
from Xlib.protocol import event

from proctor.agents.desktop.interface import DesktopError
from proctor.agents.desktop.vk import KEYSYMS, SIDES

XK.load_keysym_group("xf86")
# Names of keysyms that python-xlib does not know.
_MORE = {
    "Hangul": 0xFF31,
    "Hangul_Hanja": 0xFF34,
    "Hangul_Jeonja": 0xFF38,
    "3270_EraseEOF": 0xFD06,
    "3270_PA1": 0xFD0A,
    "3270_Attn": 0xFD0E,
    "3270_Play": 0xFD16,
    "3270_ExSelect": 0xFD1B,
    "3270_CursorSelect": 0xFD1C,
    "3270_PrintScreen": 0xFD1D,
    "XF86_Clear": 0x1008FF55,
    "XF86_ZoomIn": 0x1008FF8B,
}
VENDORS = 0x10000000  # where the keysyms begin that makers of keyboards have added
UNICODE = 0x01000000  # added to the number of a character, it is the keysym of it


class Keymap:
    """Which key of the keyboard is which. A key that the keyboard lacks is put where it has room."""

    def __init__(self, connection: Any, lock: threading.RLock) -> None:
        """The lock is that of the connection: who presses keys has it, who listens to them comes without."""
        self._display, self._lock = connection, lock
        self._codes: dict[int, int] = {}
        self._vks: dict[int, int] = {}
        for vk in KEYSYMS:
            code = self._plain_code(self._keysym(vk))
            if code and code not in self._vks:
                self._codes[vk] = code
                self._vks[code] = SIDES.get(vk, vk)
        for vk, side in SIDES.items():
            if side in self._codes or vk in self._codes:
                self._codes[vk] = self._codes[side] = self._codes.get(side, self._codes.get(vk, 0))

    @staticmethod
    def _keysym(vk: int) -> int:
        name = KEYSYMS.get(vk)
        if name is None:
            raise DesktopError(f"there is no key {vk!r}: keys are members of VK")
        return _MORE.get(name) or int(XK.string_to_keysym(name))

    def code(self, vk: int) -> int:
        if vk not in self._codes:
            code = self._codes[vk] = self._placed(self._keysym(vk))
            self._vks[code] = vk
        return self._codes[vk]

    def vk(self, code: int) -> int | None:
        with self._lock:
            if code not in self._vks:  # perhaps a key that another process has put there
                keysym = self._display.get_keyboard_mapping(code, 1)[0][0]
                vk = next((vk for vk in KEYSYMS if self._keysym(vk) == keysym), None)
                if vk is None:
                    return None
                self._vks[code] = SIDES.get(vk, vk)
            return self._vks[code]

    def stroke(self, character: str) -> tuple[int, bool]:
        """The key that types it, and whether with shift."""
        special = {"\n": "Return", "\t": "Tab", "\b": "BackSpace"}
        number = ord(character)
        keysym = XK.string_to_keysym(special[character]) if character in special else number
        if number > 0xFF:
            keysym = UNICODE + number
        for code, index in self._display.keysym_to_keycodes(keysym):
            if index in (0, 1):
                return code, index == 1
        return self._placed(keysym), False

    def _plain_code(self, keysym: int) -> int:
        """Where the keysym stands on a key, without shift if possible."""
        found = sorted(self._display.keysym_to_keycodes(keysym), key=lambda place: place[1])
        return found[0][0] if found else 0

    def _spare_codes(self) -> list[int]:
        first, last = self._display.display.info.min_keycode, self._display.display.info.max_keycode
        mapping = self._display.get_keyboard_mapping(first, last - first + 1)
        empty = [first + i for i, keysyms in enumerate(mapping) if not any(keysyms)]
        # After those, keys of which nobody here has heard, such as the launchers of old keyboards.
        ours = {self._keysym(vk) for vk in KEYSYMS}
        unheard = [first + i for i, (keysym, *_) in enumerate(mapping) if keysym >= VENDORS and keysym not in ours]
        return unheard + empty

    def _placed(self, keysym: int) -> int:
        self._display.grab_server()  # another process may be about to do the same
        try:
            self._read_again()
            code = self._plain_code(keysym)
            if not code:
                spare = self._spare_codes()
                if not spare:
                    raise DesktopError("the keyboard has no room for another key")
                code = spare[-1]
                self._display.change_keyboard_mapping(code, [[keysym, keysym]])
                self._read_again()
            return code
        finally:
            self._display.ungrab_server()
            self._display.sync()

    def _read_again(self) -> None:
        first, last = self._display.display.info.min_keycode, self._display.display.info.max_keycode
        whole = event.MappingNotify(
            request=X.MappingKeyboard, first_keycode=first, count=last - first + 1, sequence_number=0
        )
        self._display.refresh_keyboard_mapping(whole)
