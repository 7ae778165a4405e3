"""What a mouse reports itself, before acceleration: events of XInput as RawMouseEvent."""

from __future__ import annotations

import struct
import time
from typing import Any

from Xlib.ext import xinput
from Xlib.protocol import rq

from proctor.agents.desktop.messages import RawMouseEvent

NOTCH = 120  # of a wheel, in Windows' units
UNSIGNED = 0xFFFF  # where they stand as 16 bits without a sign
_FLAGS = RawMouseEvent.ButtonFlags
_BUTTONS = {
    1: (_FLAGS.RI_MOUSE_LEFT_BUTTON_DOWN, _FLAGS.RI_MOUSE_LEFT_BUTTON_UP),
    2: (_FLAGS.RI_MOUSE_MIDDLE_BUTTON_DOWN, _FLAGS.RI_MOUSE_MIDDLE_BUTTON_UP),
    3: (_FLAGS.RI_MOUSE_RIGHT_BUTTON_DOWN, _FLAGS.RI_MOUSE_RIGHT_BUTTON_UP),
    8: (_FLAGS.RI_MOUSE_BUTTON_4_DOWN, _FLAGS.RI_MOUSE_BUTTON_4_UP),
    9: (_FLAGS.RI_MOUSE_BUTTON_5_DOWN, _FLAGS.RI_MOUSE_BUTTON_5_UP),
}
_WHEEL = {
    4: (_FLAGS.RI_MOUSE_WHEEL, NOTCH),
    5: (_FLAGS.RI_MOUSE_WHEEL, -NOTCH),
    6: (_FLAGS.RI_MOUSE_HWHEEL, -NOTCH),
    7: (_FLAGS.RI_MOUSE_HWHEEL, NOTCH),
}


class _Rest(rq.ValueField):  # type: ignore[misc]
    """The bytes up to the end of an event."""

    structcode = None

    def parse_binary_value(self, data: Any, display: Any, length: Any, fmt: Any) -> tuple[bytes, bytes]:
        return bytes(data), b""


# python-xlib has no layout for raw events.
RAW_EVENT = rq.Struct(
    rq.Card16("deviceid"),
    rq.Card32("time"),
    rq.Card32("detail"),
    rq.Card16("sourceid"),
    rq.Card16("valuators_len"),
    rq.Card32("flags"),
    rq.Pad(4),
    _Rest("rest"),
)


class RawDecoder:
    """Made for a connection; asked for the events of mice in the order in which they came."""

    def __init__(self, display: Any) -> None:
        self._root = display.screen().root
        devices = display.xinput_query_device(xinput.AllDevices).devices
        self._reports_movement = {device.deviceid for device in devices if _reports_movement(device)}
        pointer = self._root.query_pointer()
        self._x, self._y = pointer.root_x, pointer.root_y

    def event(self, kind: int, data: Any, x: int, y: int) -> RawMouseEvent | None:
        """With the place of the pointer after it; None for the release of a wheel, which is no event of its own."""
        flags, amount = _FLAGS.RI_MOUSE_NOP, 0
        dx = dy = 0
        if kind == xinput.RawMotion:
            dx, dy = self._movement(data, x, y)
        elif data.detail in _WHEEL:
            if kind == xinput.RawButtonRelease:
                return None
            flags, amount = _WHEEL[data.detail]
        elif data.detail in _BUTTONS:
            flags = _BUTTONS[data.detail][kind == xinput.RawButtonRelease]
        return RawMouseEvent(
            last_x=dx,
            last_y=dy,
            button_flags=flags,
            button_data=amount & UNSIGNED,
            device_handle=data.sourceid,
            timestamp=time.time_ns(),
        )

    def _movement(self, data: Any, x: int, y: int) -> tuple[int, int]:
        """A device that reports places instead, such as a tablet or XTEST, has moved as far as the pointer has."""
        before, (self._x, self._y) = (self._x, self._y), (x, y)
        if data.sourceid not in self._reports_movement:
            return x - before[0], y - before[1]
        values = _raw_values(data.rest, data.valuators_len)
        return round(values.get(0, 0)), round(values.get(1, 0))


def _reports_movement(device: Any) -> bool:
    modes = [found.mode for found in device.classes if found.type == xinput.ValuatorClass]
    return bool(modes) and not any(modes) and "XTEST" not in device.name


def _raw_values(data: bytes, length: int) -> dict[int, float]:
    """By number of the axis. They stand behind as many values that are accelerated."""
    mask = int.from_bytes(data[: 4 * length], "little")
    axes = [axis for axis in range(32 * length) if mask >> axis & 1]
    start = 4 * length + 8 * len(axes)
    pairs = struct.unpack_from(f"<{'iI' * len(axes)}", data, start)
    return {axis: pairs[2 * i] + pairs[2 * i + 1] / 2**32 for i, axis in enumerate(axes)}
