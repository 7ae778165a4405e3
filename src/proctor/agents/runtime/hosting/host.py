"""The process that hosts an agent, an evaluator or an environment; run as a program by a guardian.

It creates the object, then answers calls, each in its own thread, until the channel closes.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import msgspec

from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.runtime.hosting.channel import LENGTH, Fault, MethodCall, Pulse, Reply, pack, unpack_call
from proctor.agents.runtime.hosting.recipe import Recipe

LONGEST_TEXT = 20_000  # characters of an exception that are sent


class Host:
    """What a hosted object uses: its pulse, and notifications to the caller."""

    def __init__(self, channel: socket.socket, pulse: Pulse, handed: Sequence[int] = ()) -> None:
        self.pulse = pulse
        self.handed = handed  # further descriptors, for the role
        self._channel = channel
        self._writing = threading.Lock()

    def notify(self, value: Any) -> None:
        self._send(Reply(0, value))

    def serve(self) -> None:
        """Answers calls until the caller is gone."""
        call = self._receive()
        if call is None:
            return
        try:
            role = self._make(*call.args)
        except BaseException as error:  # also SystemExit and the like: the caller learns of it at once
            self._send(Reply(call.id, fault=described(error)))
            return
        self._send(Reply(call.id))
        while (call := self._receive()) is not None:
            threading.Thread(target=self._answer, args=(role, call), daemon=True, name=call.name).start()

    def _make(self, role: str, recipe: bytes, path: list[str]) -> Any:
        sys.path[:] = path  # what could be imported there can be imported here
        module, _, name = role.partition(":")
        made = getattr(import_module(module), name)
        return made(msgspec.msgpack.decode(recipe, type=Recipe), self)

    def _answer(self, role: Any, call: MethodCall) -> None:
        try:
            reply = Reply(call.id, getattr(role, call.name)(*call.args))
            message = pack(reply)
        except BaseException as error:
            message = pack(Reply(call.id, fault=described(error)))
        self._send_bytes(message)

    def _send(self, reply: Reply) -> None:
        self._send_bytes(pack(reply))

    def _send_bytes(self, message: bytes) -> None:
        with self._writing:
            self._channel.sendall(message)

    def _receive(self) -> MethodCall | None:
        head = self._read(LENGTH)
        body = self._read(int.from_bytes(head, "big")) if head else b""
        return unpack_call(body) if body else None

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._channel.recv(min(size - len(data), 1 << 20))
            if not part:
                return b""
            data += part
        return bytes(data)


def described(error: BaseException) -> Fault:
    try:
        message = str(error)
    except BaseException as second:  # an exception may be broken, too
        message = f"(its text cannot be had: {type(second).__name__})"
    try:
        where = "".join(traceback.format_exception(error)[-3:]).strip()
    except BaseException:
        where = ""
    message, where = (text[:LONGEST_TEXT].encode(errors="replace").decode() for text in (message, where))
    gone = isinstance(error, EnvironmentCrashedError)
    return Fault(type(error).__name__, message, where, gone, not isinstance(error, Exception))


def main() -> None:
    faulthandler.enable()  # if a library crashes, the log says where
    signal.signal(signal.SIGINT, signal.default_int_handler)
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    file = int(sys.argv[2])
    pulse = Pulse(file)
    os.close(file)
    handed = [int(number) for number in sys.argv[3:]]
    for descriptor in handed:
        os.set_inheritable(descriptor, False)
    try:
        Host(channel, pulse, handed).serve()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # threads of the object may never end


if __name__ == "__main__":
    main()
