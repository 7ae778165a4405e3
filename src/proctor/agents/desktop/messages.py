"""What is said about keyboard, mouse and windows: messages with the names and fields of owa-msgs 0.6."""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_pascal

MouseButton = Literal["unknown", "left", "middle", "right", "x1", "x2"]
KeyCode = Annotated[int, Field(ge=0, lt=256)]


class Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Readable(Protocol):
    def read(self) -> bytes: ...


class OWAMessage(BaseModel):
    """Base of all messages; one of your own has a `_type` with a slash, such as "game/Score"."""

    model_config = ConfigDict(extra="forbid")
    _type: ClassVar[str]

    def serialize(self, buffer: Writable) -> None:
        """Writes it as JSON, without fields that are None."""
        buffer.write(self.model_dump_json(exclude_none=True).encode())

    @classmethod
    def deserialize(cls, buffer: Readable) -> Self:
        return cls.model_validate_json(buffer.read())

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        return cls.model_json_schema()

    @classmethod
    def verify_type(cls) -> bool:
        """Raises ValueError if its `_type` is not domain/Name."""
        kind = getattr(cls, "_type", None)
        domain, slash, name = kind.partition("/") if isinstance(kind, str) else ("", "", "")
        if not (domain and slash and name):
            raise ValueError(f"{cls.__name__}._type must be domain/Name, not {kind!r}")
        return True


class KeyboardEvent(OWAMessage):
    _type: ClassVar[str] = "desktop/KeyboardEvent"

    event_type: Literal["press", "release"]
    vk: int
    timestamp: int | None = None  # nanoseconds since the epoch


class KeyboardState(OWAMessage):
    _type: ClassVar[str] = "desktop/KeyboardState"

    buttons: set[KeyCode]
    timestamp: int | None = None

    def __contains__(self, key: int) -> bool:
        return key in self.buttons


class MouseEvent(OWAMessage):
    _type: ClassVar[str] = "desktop/MouseEvent"

    event_type: Literal["move", "click", "scroll"]
    x: int
    y: int
    button: MouseButton | None = None
    pressed: bool | None = None
    dx: int | None = None
    dy: int | None = None
    timestamp: int | None = None


class MouseState(OWAMessage):
    _type: ClassVar[str] = "desktop/MouseState"

    x: int
    y: int
    buttons: set[MouseButton]
    timestamp: int | None = None


class RawMouseEvent(OWAMessage):
    """What a mouse reports before acceleration; flags are those of RAWMOUSE under Windows."""

    _type: ClassVar[str] = "desktop/RawMouseEvent"

    class UsFlags(IntFlag):
        MOUSE_MOVE_RELATIVE = 0x0000
        MOUSE_MOVE_ABSOLUTE = 0x0001
        MOUSE_VIRTUAL_DESKTOP = 0x0002
        MOUSE_ATTRIBUTES_CHANGED = 0x0004
        MOUSE_MOVE_NOCOALESCE = 0x0008

    class ButtonFlags(IntFlag):
        RI_MOUSE_NOP = 0x0000
        RI_MOUSE_LEFT_BUTTON_DOWN = 0x0001
        RI_MOUSE_LEFT_BUTTON_UP = 0x0002
        RI_MOUSE_RIGHT_BUTTON_DOWN = 0x0004
        RI_MOUSE_RIGHT_BUTTON_UP = 0x0008
        RI_MOUSE_MIDDLE_BUTTON_DOWN = 0x0010
        RI_MOUSE_MIDDLE_BUTTON_UP = 0x0020
        RI_MOUSE_BUTTON_4_DOWN = 0x0040
        RI_MOUSE_BUTTON_4_UP = 0x0080
        RI_MOUSE_BUTTON_5_DOWN = 0x0100
        RI_MOUSE_BUTTON_5_UP = 0x0200
        RI_MOUSE_WHEEL = 0x0400
        RI_MOUSE_HWHEEL = 0x0800

    last_x: int
    last_y: int
    us_flags: UsFlags = UsFlags.MOUSE_MOVE_RELATIVE
    button_flags: ButtonFlags = ButtonFlags.RI_MOUSE_NOP
    button_data: int = 0  # 120 for each notch of a wheel
    device_handle: int | None = None
    timestamp: int | None = None

    @field_validator("button_flags")
    @classmethod
    def _has_known_flags(cls, flags: ButtonFlags) -> ButtonFlags:
        if not 0 <= flags <= 0xFFF:
            raise ValueError(f"button_flags must be 0 to 0xFFF, not {int(flags):#x}")
        return flags

    @property
    def dx(self) -> int:
        return self._relative(self.last_x)

    @property
    def dy(self) -> int:
        return self._relative(self.last_y)

    def _relative(self, value: int) -> int:
        if self.us_flags != self.UsFlags.MOUSE_MOVE_RELATIVE:
            raise NotImplementedError("an absolute position is no movement")
        return value


class PointerBallisticsConfig(OWAMessage):
    """Settings of the pointer under Windows; elsewhere the values that Windows 11 has at first."""

    model_config = ConfigDict(populate_by_name=True, alias_generator=to_pascal, extra="forbid")
    _type: ClassVar[str] = "desktop/PointerBallisticsConfig"

    mouse_threshold1: int = 6
    mouse_threshold2: int = 10
    mouse_speed: int = 1
    mouse_sensitivity: int = 10
    smooth_mouse_x_curve: str = "0000000000000000156e000000000000004001000000000029dc0300000000000000280000000000"
    smooth_mouse_y_curve: str = "0000000000000000fd11010000000000002404000000000000fc12000000000000c0bb0100000000"


class WindowInfo(OWAMessage):
    _type: ClassVar[str] = "desktop/WindowInfo"

    title: str
    rect: tuple[int, int, int, int]  # left, top, right, bottom
    hWnd: int  # noqa: N815 - the name that it has everywhere

    @property
    def width(self) -> int:
        return self.rect[2] - self.rect[0]

    @property
    def height(self) -> int:
        return self.rect[3] - self.rect[1]
