"""Frames as messages: in memory, as a picture, or as a place in a video."""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

import numpy
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from proctor.agents.desktop.interface import DesktopError
from proctor.agents.desktop.messages import OWAMessage

Frame = numpy.ndarray[Any, Any]
CHANNELS = 4  # blue, green, red and alpha
READING = 60.0  # seconds in which ffmpeg finds a frame
HALF_A_MICROSECOND = 5e-7  # ffmpeg prints and compares times in microseconds


class MediaRef(BaseModel):
    """Where a frame is: a path, a file:// address or a data: URI; with `pts_ns`, the video's frame at that time."""

    uri: str
    pts_ns: int | None = None

    @property
    def is_embedded(self) -> bool:
        return self.uri.startswith("data:")

    @property
    def is_video(self) -> bool:
        return self.pts_ns is not None

    @property
    def is_remote(self) -> bool:
        return self.uri.startswith(("http://", "https://"))

    @property
    def is_relative_path(self) -> bool:
        return "://" not in self.uri and not self.is_embedded and not Path(self.uri).is_absolute()

    def resolve_relative_path(self, base_path: str | Path) -> MediaRef:
        if not self.is_relative_path:
            return self
        return MediaRef(uri=(Path(base_path) / self.uri).as_posix(), pts_ns=self.pts_ns)

    def to_rgb_array(self) -> Frame:
        """Height × width × red, green, blue."""
        if self.is_embedded:
            header, _, data = self.uri.partition(",")
            content = base64.b64decode(data) if header.endswith(";base64") else unquote(data).encode("latin-1")
            return _decode_image(io.BytesIO(content))
        path = self._path()
        return _decode_image(path) if self.pts_ns is None else _decode_video(path, self.pts_ns)

    def to_pil_image(self) -> Image.Image:
        return Image.fromarray(self.to_rgb_array())

    def _path(self) -> Path:
        parts = urlsplit(self.uri)
        if "://" not in self.uri:
            return Path(self.uri)
        if parts.scheme != "file":
            raise DesktopError(f"a frame is read from a file or a data: URI, not from {parts.scheme}://")
        return Path(unquote(parts.path))


def _decode_image(source: Path | io.BytesIO) -> Frame:
    with Image.open(source) as image:
        return numpy.asarray(image.convert("RGB"))


def _decode_video(path: Path, pts_ns: int) -> Frame:
    """The first frame at this time or later."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise DesktopError("a frame of a video is read by ffmpeg: apt-get install ffmpeg")
    if not path.is_file():
        raise FileNotFoundError(path)
    at = max(0.0, pts_ns / 1e9 - HALF_A_MICROSECOND)
    command = [
        *(program, "-nostdin", "-loglevel", "error", "-copyts", "-i", str(path.absolute())),
        *("-vf", f"select=gte(t\\,{at:.9f})", "-frames:v", "1", "-fps_mode", "passthrough"),
        *("-f", "image2pipe", "-c:v", "bmp", "-"),
    ]
    done = subprocess.run(command, capture_output=True, timeout=READING, check=False)
    if not done.stdout:
        why = done.stderr.decode(errors="replace").strip() or f"it has no frame at {pts_ns / 1e9:g} s"
        raise DesktopError(f"{path}: {why}")
    return _decode_image(io.BytesIO(done.stdout))


class ScreenCaptured(OWAMessage):
    """A frame: `frame_arr` in memory (blue, green, red, alpha), or `media_ref`, which says where it is."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _type: ClassVar[str] = "desktop/ScreenCaptured"

    utc_ns: int | None = None
    source_shape: tuple[int, int] | None = None  # width and height of the screen or window
    shape: tuple[int, int] | None = None  # width and height of the frame
    media_ref: MediaRef | None = None
    frame_arr: SkipJsonSchema[Frame | None] = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _has_a_frame(self) -> Self:
        if self.frame_arr is None and self.media_ref is None:
            raise ValueError("a frame needs frame_arr or media_ref")
        if self.frame_arr is not None:
            if self.frame_arr.ndim != 3 or self.frame_arr.shape[2] != CHANNELS:
                raise ValueError("frame_arr must be height × width × blue, green, red, alpha")
            self.shape = self.frame_arr.shape[1], self.frame_arr.shape[0]
        return self

    def model_dump_json(self, **options: Any) -> str:
        if self.media_ref is None:
            raise ValueError("frame_arr is not part of the JSON: call embed_as_data_uri first")
        return super().model_dump_json(**options)

    def load_frame_array(self) -> Frame:
        """Reads the frame, if that was not done before."""
        if self.frame_arr is None:
            assert self.media_ref is not None
            rgb = self.media_ref.to_rgb_array()
            alpha = numpy.full((*rgb.shape[:2], 1), 255, numpy.uint8)
            self.frame_arr = numpy.concatenate((rgb[:, :, ::-1], alpha), axis=2)
            self.shape = self.frame_arr.shape[1], self.frame_arr.shape[0]
            self.source_shape = self.source_shape or self.shape
        return self.frame_arr

    def embed_as_data_uri(self, format: str = "png", quality: int | None = None) -> Self:  # noqa: A002 - its name
        """Puts the frame into `media_ref`, as a picture."""
        file = io.BytesIO()
        options = {} if quality is None else {"quality": quality}
        self.to_pil_image().save(file, format.upper(), **options)
        data = base64.b64encode(file.getvalue()).decode()
        self.media_ref = MediaRef(uri=f"data:image/{format.lower()};base64,{data}")
        return self

    def to_rgb_array(self) -> Frame:
        return numpy.ascontiguousarray(self.load_frame_array()[:, :, 2::-1])

    def to_pil_image(self) -> Image.Image:
        return Image.fromarray(self.to_rgb_array())

    def resolve_relative_path(self, mcap_path: str | Path) -> Self:
        """A reference is relative to the folder of its file."""
        if self.media_ref is not None:
            base = Path(mcap_path)
            self.media_ref = self.media_ref.resolve_relative_path(base.parent if base.suffix == ".mcap" else base)
        return self
