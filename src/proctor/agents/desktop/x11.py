"""A desktop under X: keys through XTEST, focus, capture through shared memory, listeners through XInput."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import mss
import numpy
from Xlib import X, Xatom, display, error
from Xlib.ext import res, xinput, xtest
from Xlib.protocol import event

from proctor.agents.desktop.authority import VARIABLE, authority_of
from proctor.agents.desktop.interface import Cursor, DesktopError, Stop
from proctor.agents.desktop.keymap import Keymap
from proctor.agents.desktop.messages import KeyboardEvent, MouseButton, MouseEvent, RawMouseEvent, WindowInfo
from proctor.agents.desktop.raw_mouse import RAW_EVENT, RawDecoder
from proctor.agents.desktop.vk import BUTTONS, VK

_RAW = (xinput.RawKeyPress, xinput.RawKeyRelease, xinput.RawButtonPress, xinput.RawButtonRelease, xinput.RawMotion)
_WHEEL = {4: (0, 1), 5: (0, -1), 6: (-1, 0), 7: (1, 0)}  # the buttons that are a wheel, and what they turn
_BUTTON_NAMES: dict[int, MouseButton] = {1: "left", 2: "middle", 3: "right", 8: "x1", 9: "x2"}
_VK_OF_BUTTON = {button: vk for vk, button in BUTTONS.items()}
_BUTTON_MASKS = {VK.LBUTTON: X.Button1Mask, VK.MBUTTON: X.Button2Mask, VK.RBUTTON: X.Button3Mask}
BY_HAND = 2  # a request that a window manager takes for the user's own
EVERYWHERE = 0xFFFFFFFF  # the number of the desktop of a window that is on all of them
MANAGING = 5.0  # seconds in which a window manager does what it is asked for, on a busy machine
ARRIVED = 0.1  # seconds at one place
LOOK_AGAIN = 0.001
NOWHERE = (0, 0, 0, 0)


class XDesktop:
    """One X display. Its connection may be used by several threads."""

    def __init__(self, name: str | None = None, authority: Path | None = None) -> None:
        """The authority is the Xauthority file of the display, if it is not that of this process."""
        self.authority = authority
        self.name = name or os.environ.get("DISPLAY", "")
        if not self.name:
            raise DesktopError("there is no display: $DISPLAY is not set")
        try:
            with authority_of(authority):
                self._display = display.Display(self.name)
        except (error.DisplayError, OSError) as failure:
            raise DesktopError(f"the display {self.name} cannot be opened: {failure}") from failure
        if not self._display.has_extension("XTEST"):
            self._display.close()
            raise DesktopError(f"the display {self.name} lets nobody press keys: it has no XTEST")
        self._root = self._display.screen().root
        self._lock = threading.RLock()
        self._has_cursor_version = False
        self._grabber: mss.MSS | None = None  # opened for the first picture; it may be used by several threads, too
        self._kept_above: set[int] = set()  # windows that a manager would not put below the active one
        self._keys = Keymap(self._display, self._lock)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to open the same display."""
        return {"DISPLAY": self.name} | ({} if self.authority is None else {VARIABLE: str(self.authority)})

    @property
    def size(self) -> tuple[int, int]:
        """Of the display, now: that of a person may be turned or exchanged."""
        with self._lock:
            found = self._root.get_geometry()
        return found.width, found.height

    # Keys and buttons

    def key(self, vk: int, down: bool) -> None:
        if vk in BUTTONS:
            self.button(vk, down)
            return
        with self._lock:
            self._fake(X.KeyPress if down else X.KeyRelease, self._keys.code(vk))

    def type_text(self, text: str) -> None:
        with self._lock:
            shift = self._keys.code(VK.LSHIFT)
            for character in text:
                code, shifted = self._keys.stroke(character)
                for kind, key in _strokes(code, shift if shifted else None):
                    self._fake(kind, key)

    def press_character(self, character: str) -> None:
        with self._lock:
            code, shifted = self._keys.stroke(character)
            held = self.keys_down() if shifted else {VK.LSHIFT}
            shift = None if held & {VK.LSHIFT, VK.RSHIFT} else self._keys.code(VK.LSHIFT)
            strokes = [(X.KeyPress, code)]
            if shift is not None:
                strokes = [(X.KeyPress, shift), *strokes, (X.KeyRelease, shift)]
            for kind, key in strokes:
                self._fake(kind, key)

    def release_character(self, character: str) -> None:
        with self._lock:
            self._fake(X.KeyRelease, self._keys.stroke(character)[0])

    def keys_down(self) -> set[int]:
        with self._lock:
            bits = self._display.query_keymap()
            codes = (8 * byte + bit for byte, value in enumerate(bits) for bit in range(8) if value >> bit & 1)
            return {vk for code in codes if (vk := self._keys.vk(code)) is not None}

    def button(self, vk: int, down: bool) -> None:
        with self._lock:
            self._fake(X.ButtonPress if down else X.ButtonRelease, BUTTONS[vk])

    def move(self, x: int, y: int) -> None:
        with self._lock:
            xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
            self._display.sync()

    def scroll(self, dx: int, dy: int) -> None:
        turns = {button: turn[0] * dx + turn[1] * dy for button, turn in _WHEEL.items()}
        with self._lock:
            for button, times in turns.items():
                for _ in range(max(0, times)):
                    self._fake(X.ButtonPress, button)
                    self._fake(X.ButtonRelease, button)

    def pointer(self) -> tuple[int, int, set[int]]:
        with self._lock:
            found = self._root.query_pointer()
        return found.root_x, found.root_y, {int(vk) for vk, mask in _BUTTON_MASKS.items() if found.mask & mask}

    def buttons_down(self) -> set[int]:
        """Also those that the core protocol has no bits for."""
        with self._lock:
            if not self._knows_buttons:
                return self.pointer()[2]
            devices = self._display.xinput_query_device(xinput.AllMasterDevices).devices
        states = [info.state for device in devices for info in device.classes if info.type == xinput.ButtonClass]
        return {int(vk) for vk, button in BUTTONS.items() for state in states if state[button - 1]}

    @cached_property
    def _knows_buttons(self) -> bool:
        if not self._display.has_extension("XInputExtension"):
            return False
        self._display.xinput_query_version()
        return True

    def _fake(self, kind: int, detail: int) -> None:
        xtest.fake_input(self._display, kind, detail)
        self._display.sync()  # when this returns, the server has it

    # Windows

    def windows(self) -> list[WindowInfo]:
        with self._lock:
            found = [info for window in self._visible(self._root) if (info := self._info(window)) is not None]
        return [info for info in found if info.width > 0 and info.height > 0]  # a manager has one beyond the screen

    def hidden_windows(self) -> list[WindowInfo]:
        with self._lock, suppress(error.XError):
            shown = {window.id for window in self._visible(self._root)}
            hidden = [self._resource(number) for number in reversed(self._managed()) if number not in shown]
            return [info for window in hidden if (info := self._info(window)) is not None]
        return []

    def _visible(self, parent: Any) -> list[Any]:
        """All that are mapped, the topmost first: those of a window manager are children of its frames."""
        found: list[Any] = []
        with suppress(error.XError):
            for window in reversed(parent.query_tree().children):
                with suppress(error.XError):
                    if window.get_attributes().map_state == X.IsViewable:
                        found += [window, *self._visible(window)]
        return found

    def _info(self, window: Any) -> WindowInfo | None:
        with suppress(error.XError):
            title = self._title(window)
            if not title:
                return None
            size = window.get_geometry()
            place = self._root.translate_coords(window, 0, 0)
            # What lies beyond the edges of the screen cannot be seen.
            screen = self._display.screen()
            left, top = max(0, place.x), max(0, place.y)
            right = min(screen.width_in_pixels, place.x + size.width)
            bottom = min(screen.height_in_pixels, place.y + size.height)
            return WindowInfo(title=title, rect=(left, top, right, bottom), hWnd=window.id)
        return None

    def _title(self, window: Any) -> str:
        for name in ("_NET_WM_NAME", "WM_NAME"):
            found = window.get_full_property(self._display.intern_atom(name), X.AnyPropertyType)
            if found is not None and found.value:
                value = found.value
                return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        return ""

    def active_window(self) -> WindowInfo | None:
        with self._lock:
            window: Any = self._display.get_input_focus().focus
            while hasattr(window, "query_tree"):
                if (info := self._info(window)) is not None:
                    return info
                with suppress(error.XError):
                    window = window.query_tree().parent
                    continue
                return None
        return None

    def window_pid(self, window: WindowInfo) -> int | None:
        """As the server knows it, and else as the window says, which may say anything."""
        with self._lock, suppress(error.XError):
            if self._knows_processes and (pid := self._client_pid(window.hWnd)) is not None:
                return pid
            found = self._window(window).get_full_property(self._display.intern_atom("_NET_WM_PID"), Xatom.CARDINAL)
            return int(found.value[0]) if found else None
        return None

    @cached_property
    def _knows_processes(self) -> bool:
        """Not if the server is on another machine, or counts processes otherwise, as it does outside our container."""
        if not self._display.has_extension(res.extname):
            return False
        version = self._display.res_query_version()
        if (version.server_major, version.server_minor) < (1, 2):
            return False
        return self._client_pid(self._display.display.info.resource_id_base) == os.getpid()

    def _client_pid(self, resource: int) -> int | None:
        """The process that has made it."""
        asked = {"client": resource, "mask": res.LocalClientPIDMask}
        told = self._display.res_query_client_ids([asked]).ids
        return int(told[0].value[0]) if told else None

    def activate(self, window: WindowInfo) -> None:
        target = self._window(window)
        if not self._is_managed(target):
            self._focus(target)
            return
        if self._is_in_front(target):
            return
        was_hidden = self._place(target) == NOWHERE
        with self._lock, suppress(error.XError):
            place = self._numbers(target, "_NET_WM_DESKTOP")
            if place not in ([], [EVERYWHERE], self._numbers(self._root, "_NET_CURRENT_DESKTOP")):
                self._ask_manager(self._root, "_NET_CURRENT_DESKTOP", place[0], X.CurrentTime)
            self._ask_manager(target, "_NET_ACTIVE_WINDOW", BY_HAND, X.CurrentTime)
            self._display.sync()
        deadline = time.monotonic() + MANAGING
        while not self._is_in_front(target):
            if time.monotonic() > deadline:
                self._do_without_manager(target)
                return
            time.sleep(LOOK_AGAIN)
        if was_hidden:
            self._let_arrive(target)

    def _do_without_manager(self, target: Any) -> None:
        """It does not answer, gives the keyboard to nobody who asks, or keeps another window on top."""
        with self._lock:
            if self._has_keyboard(target):
                self._kept_above |= set(self._covering(target))  # so that nobody waits for it again
            self._focus(target)

    def _let_arrive(self, target: Any) -> None:
        """A manager may let a window that comes back wander to its place."""
        deadline = time.monotonic() + MANAGING
        place, since = self._place(target), time.monotonic()
        while (now := time.monotonic()) < min(deadline, since + ARRIVED):
            time.sleep(LOOK_AGAIN)
            if (there := self._place(target)) != place:
                place, since = there, now

    def _ask_manager(self, window: Any, what: str, *data: int) -> None:
        values = [*data, 0, 0, 0, 0, 0][:5]
        message = event.ClientMessage(window=window, client_type=self._display.intern_atom(what), data=(32, values))
        self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)

    def _focus(self, target: Any) -> None:
        """Without a manager's help."""
        with self._lock:
            caught = error.CatchError(error.BadMatch, error.BadWindow)
            target.configure(stack_mode=X.Above, onerror=caught)
            if not self._has_keyboard(target):
                self._display.set_input_focus(target, X.RevertToPointerRoot, X.CurrentTime, onerror=caught)
            self._display.sync()

    def _is_in_front(self, target: Any) -> bool:
        with self._lock:
            return self._has_keyboard(target) and not self._covering(target)

    def _has_keyboard(self, target: Any) -> bool:
        """Whether keys go to it, or to a part of it."""
        window: Any = self._display.get_input_focus().focus
        with suppress(error.XError):
            while hasattr(window, "query_tree"):
                if window == target:
                    return True
                window = window.query_tree().parent
        return False

    def _covering(self, target: Any) -> list[int]:
        """The windows that hide a part of it, but for those that a manager keeps above all others."""
        stacked = self._managed()
        above = stacked[stacked.index(target.id) + 1 :] if target.id in stacked else []
        place = self._place(target)
        return [
            number
            for number in above
            if number not in self._kept_above and _overlap(place, self._place(self._outermost(self._resource(number))))
        ]

    def _outermost(self, window: Any) -> Any:
        """The window with the frame that a manager has put around it."""
        with self._lock, suppress(error.XError):
            while (parent := window.query_tree().parent) != self._root:
                window = parent
        return window

    def _place(self, window: Any) -> tuple[int, int, int, int]:
        """Left, top, right and bottom; nothing for one that is not shown."""
        with self._lock, suppress(error.XError):
            if window.get_attributes().map_state == X.IsViewable:
                size, place = window.get_geometry(), self._root.translate_coords(window, 0, 0)
                return place.x, place.y, place.x + size.width, place.y + size.height
        return NOWHERE

    def _is_managed(self, target: Any) -> bool:
        """Whether there is a window manager that gives it the keyboard when asked to."""
        if target.id not in self._managed():
            return False
        with self._lock, suppress(error.XError):
            check = self._numbers(self._root, "_NET_SUPPORTING_WM_CHECK")
            # What a manager has said of itself stays when it is gone, but for what it has said there.
            if not check or self._numbers(self._resource(check[0]), "_NET_SUPPORTING_WM_CHECK") != check:
                return False
            return self._display.intern_atom("_NET_ACTIVE_WINDOW") in self._numbers(self._root, "_NET_SUPPORTED")
        return False

    def _managed(self) -> list[int]:
        """The windows that a window manager takes care of, from the bottom to the top."""
        with self._lock:
            return self._numbers(self._root, "_NET_CLIENT_LIST_STACKING")

    def _numbers(self, window: Any, name: str) -> list[int]:
        found = window.get_full_property(self._display.intern_atom(name), X.AnyPropertyType)
        return [] if found is None else list(found.value)

    def _resource(self, number: int) -> Any:
        return self._display.create_resource_object("window", number)

    def _window(self, window: WindowInfo) -> Any:
        return self._resource(window.hWnd)

    # Pictures

    def capture(self, window: WindowInfo | None = None) -> numpy.ndarray[Any, Any]:
        screen = self._display.screen()
        left, top, right, bottom = window.rect if window else (0, 0, screen.width_in_pixels, screen.height_in_pixels)
        with self._lock:
            if self._grabber is None:
                with authority_of(self.authority):
                    self._grabber = mss.MSS(display=self.name, backend="xshmgetimage")
            grabber = self._grabber
        shot = grabber.grab({"left": left, "top": top, "width": right - left, "height": bottom - top})
        return numpy.frombuffer(shot.raw, numpy.uint8).reshape(shot.height, shot.width, 4)

    def cursor(self) -> Cursor | None:
        if not self._display.has_extension("XFIXES"):
            return None
        with self._lock:
            if not self._has_cursor_version:
                self._display.xfixes_query_version()  # before it nothing else may be asked
                self._has_cursor_version = True
            found = self._display.xfixes_get_cursor_image(self._root)
        pixels = numpy.array(found.cursor_image, numpy.uint32).astype("<u4")
        image = pixels.view(numpy.uint8).reshape(found.height, found.width, 4)
        return Cursor(image, found.x - found.xhot, found.y - found.yhot)

    # Listening

    def listen(
        self,
        keys: Callable[[KeyboardEvent], None],
        mouse: Callable[[MouseEvent], None],
        raw: Callable[[RawMouseEvent], None] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> Stop:
        return Listening(self.name, self.authority, self._keys, keys, mouse, raw, ended).stop

    def close(self) -> None:
        with self._lock:
            grabber, self._grabber = self._grabber, None
            if grabber is not None:
                with suppress(mss.ScreenShotError):  # the display may be gone
                    grabber.close()
            with suppress(error.ConnectionClosedError, OSError):
                self._display.close()


def _ask_for_input_during_grabs(connection: Any) -> None:
    """By version 2.1 of XInput raw events come also while a program has grabbed keyboard or mouse, as games do.

    python-xlib asks for 2.0, by which they do not.
    """
    opcode = connection.display.get_extension_major(xinput.extname)
    xinput.XIQueryVersion(display=connection.display, opcode=opcode, major_version=2, minor_version=1)


def _overlap(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _strokes(code: int, shift: int | None) -> list[tuple[int, int]]:
    keys = [shift, code] if shift is not None else [code]
    return [(X.KeyPress, key) for key in keys] + [(X.KeyRelease, key) for key in reversed(keys)]


class Listening:
    """A connection of its own that is told of all input by XInput: by RECORD, a busy process would miss some."""

    def __init__(
        self,
        name: str,
        authority: Path | None,
        keymap: Keymap,
        keys: Callable[[KeyboardEvent], None],
        mouse: Callable[[MouseEvent], None],
        raw: Callable[[RawMouseEvent], None] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._keymap, self._keys, self._mouse, self._raw, self._ended = keymap, keys, mouse, raw, ended
        with authority_of(authority):
            self._display = display.Display(name)
        if not self._display.has_extension("XInputExtension"):
            self._display.close()
            raise DesktopError(f"the display {name} lets nobody listen: it has no XInput")
        _ask_for_input_during_grabs(self._display)
        number = self._display.query_extension("XInputExtension").major_opcode
        mask = 0
        for kind in _RAW:
            self._display.ge_add_event_data(number, kind, RAW_EVENT)
            mask |= 1 << kind
        self._root = self._display.screen().root
        self._root.xinput_select_events([(xinput.AllMasterDevices, mask)])
        self._display.sync()  # from now on nothing is missed
        self._decoder = None if raw is None else RawDecoder(self._display)
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True, name="proctor-listener")
        self._thread.start()

    def stop(self) -> None:
        with suppress(OSError):
            os.write(self._wake, b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                # Asking where the pointer is may have brought further events with it: all of them, before the wait.
                while self._display.pending_events():
                    self._tell(self._display.next_event())
                if self._woken in select.select([self._display, self._woken], [], [])[0]:
                    return
        except (error.ConnectionClosedError, OSError, AssertionError):
            pass  # the display is gone
        finally:
            os.close(self._woken)
            os.close(self._wake)
            with suppress(Exception):  # of a connection that was cut, python-xlib raises what it likes
                self._display.close()
            self._ended()

    def _tell(self, found: Any) -> None:
        kind = getattr(found, "evtype", None)
        if kind not in _RAW:
            return
        now, detail = time.time_ns(), found.data.detail
        if kind in (xinput.RawKeyPress, xinput.RawKeyRelease):
            vk = self._keymap.vk(detail)
            if vk is not None:
                down = kind == xinput.RawKeyPress
                self._keys(KeyboardEvent(event_type="press" if down else "release", vk=vk, timestamp=now))
            return
        pointer = self._root.query_pointer()
        x, y = pointer.root_x, pointer.root_y
        if self._raw is not None and self._decoder is not None:
            raw = self._decoder.event(kind, found.data, x, y)
            if raw is not None:
                self._raw(raw)
        if kind == xinput.RawMotion:
            self._mouse(MouseEvent(event_type="move", x=x, y=y, timestamp=now))
        elif detail not in _WHEEL:
            pressed = kind == xinput.RawButtonPress
            button = _BUTTON_NAMES.get(detail, "unknown")
            self._mouse(MouseEvent(event_type="click", x=x, y=y, button=button, pressed=pressed, timestamp=now))
        elif kind == xinput.RawButtonPress:
            dx, dy = _WHEEL[detail]
            self._mouse(MouseEvent(event_type="scroll", x=x, y=y, dx=dx, dy=dy, timestamp=now))
