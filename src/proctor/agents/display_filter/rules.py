"""What an isolated agent may ask of its display: to see, to press, to point, to give a window the keyboard.

X protects no client from another: whoever has a connection may draw into the game's window, lay one over it, or end the
game. So requests are let through by this list, and by nothing else. It needs the standard library alone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from enum import Enum

Check = Callable[[bytearray, "Client"], bool]

NO_OPERATION = struct.pack("<BBH", 127, 0, 1)
# What the server gets instead of a request that is refused: it asks for the size of a drawable that there is not, so
# that the answer is an error, in its turn, and nothing happens.
REFUSED = struct.pack("<BxHI", 14, 2, 0)
LONGEST = 256 * 1024  # bytes of a request that is let through

_EVENT_MASK = 0x800  # of ChangeWindowAttributes
_REDIRECTIONS = 1 << 18 | 1 << 20  # a client that selects these controls the windows of others
_STACK_MODE = 0x40  # of ConfigureWindow
_TO_MANAGERS = 1 << 19 | 1 << 20
_CLIENT_MESSAGE = 33
_KEYS, _INPUTS = (2, 3), (2, 3, 4, 5, 6)  # kinds of input: keys; and buttons, and the pointer. No device of its own
STOP = 0xFFC7  # the keysym of F10


class Decision(Enum):
    PASS = "pass"
    IGNORE = "ignore"  # dropped; it has no reply
    REFUSE = "refuse"


class Client:
    """The state of a connection: the numbers of its own resources, of the root window, and of the stop key."""

    def __init__(self, root: int, stop_keys: Collection[int] = ()) -> None:
        self.root, self.stop_keys = root, stop_keys
        self.base = self.mask = 0

    def owns(self, resource: int) -> bool:
        return bool(self.mask) and resource & ~self.mask == self.base


def _word(request: bytearray, index: int) -> int:
    """The index-th 32-bit word of a request."""
    if len(request) < 4 * index + 4:
        return 0
    found: int = struct.unpack_from("<I", request, 4 * index)[0]
    return found


def _own(index: int) -> Check:
    return lambda request, client: client.owns(_word(request, index))


def _clearing(offset: int) -> Check:
    """Lets the request through with that byte cleared: a property may be read but not deleted."""

    def check(request: bytearray, client: Client) -> bool:
        if len(request) > offset:
            request[offset] = 0
        return True

    return check


def _only_listens(request: bytearray, client: Client) -> bool:
    return _word(request, 2) == _EVENT_MASK and not _word(request, 3) & _REDIRECTIONS


def _only_restacks(request: bytearray, client: Client) -> bool:
    return _word(request, 2) & 0xFFFF == _STACK_MODE


def _asks_a_manager(request: bytearray, client: Client) -> bool:
    to_root = _word(request, 1) == client.root and not _word(request, 2) & ~_TO_MANAGERS
    return to_root and len(request) > 12 and request[12] & 0x7F == _CLIENT_MESSAGE


def _is_no_stop(request: bytearray, client: Client) -> bool:
    """Refuses the user's stop key: an agent could press it to void its episode."""
    if len(request) < 6 or request[4] not in _INPUTS:
        return False
    return not (request[4] in _KEYS and request[5] in client.stop_keys)


def _makes_no_stop(request: bytearray, client: Client) -> bool:
    return all(_word(request, index) != STOP for index in range(2, len(request) // 4))


CORE: dict[int, Check | None] = {
    2: _only_listens,  # ChangeWindowAttributes
    3: None,  # GetWindowAttributes
    12: _only_restacks,  # ConfigureWindow
    14: None,  # GetGeometry
    15: None,  # QueryTree
    16: None,  # InternAtom
    17: None,  # GetAtomName
    20: _clearing(1),  # GetProperty
    21: None,  # ListProperties
    23: None,  # GetSelectionOwner
    25: _asks_a_manager,  # SendEvent
    38: None,  # QueryPointer
    39: None,  # GetMotionEvents
    40: None,  # TranslateCoordinates
    41: None,  # WarpPointer
    42: None,  # SetInputFocus
    43: None,  # GetInputFocus
    44: None,  # QueryKeymap
    73: None,  # GetImage
    91: None,  # QueryColors
    97: None,  # QueryBestSize
    98: None,  # QueryExtension
    99: None,  # ListExtensions
    100: _makes_no_stop,  # ChangeKeyboardMapping: how a text is typed for which the keyboard has no keys
    101: None,  # GetKeyboardMapping
    103: None,  # GetKeyboardControl
    106: None,  # GetPointerControl
    108: None,  # GetScreenSaver
    117: None,  # GetPointerMapping
    119: None,  # GetModifierMapping
    127: None,  # NoOperation
}
IGNORED = (36, 37)  # GrabServer, UngrabServer: it would stop everybody else

_ANY: dict[int, Check | None] = {}
EXTENSIONS: dict[str, dict[int, Check | None]] = {
    "BIG-REQUESTS": {0: None},
    "Generic Event Extension": {0: None},
    # System V segments belong to anybody on the server's machine: only segments passed as descriptors are allowed.
    "MIT-SHM": {0: None, 2: _own(1), 4: _own(6), 6: _own(1)},
    "RANDR": dict.fromkeys((0, 4, 5, 6, 8, 9, 10, 11, 20, 25, 27, 28, 31, 42)) | {15: _clearing(24)},
    "RECORD": {0: None} | {minor: _own(1) for minor in range(1, 8)},
    "RENDER": {0: None, 1: None},
    "SHAPE": {0: None, 5: None, 8: None},
    "SYNC": {0: None, 1: None},
    "X-Resource": {0: None, 1: None, 4: None},
    "XFIXES": {0: None, 3: None, 4: None, 25: None},
    "XINERAMA": dict.fromkeys(range(6)),
    "XInputExtension": dict.fromkeys((1, 2, 40, 45, 46, 47, 48, 50, 60)),
    "XKEYBOARD": dict.fromkeys((0, 1, 4, 6, 8, 10, 12, 13, 15, 17, 21, 24)),
    "XTEST": {0: None, 1: None, 2: _is_no_stop},
}
TAKES_DESCRIPTOR = ("MIT-SHM", 6)
LENGTHENS = ("BIG-REQUESTS", 0)
_NAMES = {
    1: "CreateWindow", 4: "DestroyWindow", 6: "ChangeSaveSet", 7: "ReparentWindow", 8: "MapWindow", 9: "MapSubwindows",
    10: "UnmapWindow", 12: "ConfigureWindow", 18: "ChangeProperty", 19: "DeleteProperty", 22: "SetSelectionOwner",
    25: "SendEvent", 26: "GrabPointer", 28: "GrabButton", 31: "GrabKeyboard", 33: "GrabKey", 53: "CreatePixmap",
    55: "CreateGC", 61: "ClearArea", 62: "CopyArea", 70: "PolyFillRectangle", 72: "PutImage", 113: "KillClient",
}  # fmt: skip


class Rules:
    """The rules, with the extension numbers of one server."""

    def __init__(self, numbers: dict[int, str]) -> None:
        self._numbers = numbers

    def judge(self, request: bytearray, client: Client) -> Decision:
        """Decides on a complete request with a short length field."""
        major = request[0]
        if major in IGNORED:
            return Decision.IGNORE
        known = CORE if major < 128 else EXTENSIONS.get(self._numbers.get(major, ""), _ANY)
        number = major if major < 128 else request[1]
        if number not in known:
            return Decision.REFUSE
        check = known[number]
        return Decision.PASS if check is None or check(request, client) else Decision.REFUSE

    def name(self, request: bytearray) -> str:
        major = request[0]
        if major < 128:
            return _NAMES.get(major, f"request {major}")
        return f"{self._numbers.get(major, f'extension {major}')} {request[1]}"

    def is_one_of(self, request: bytearray, what: tuple[str, int]) -> bool:
        return request[0] >= 128 and (self._numbers.get(request[0]), request[1]) == what
