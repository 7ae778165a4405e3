"""A canvas as a picture: drawn, read back from its pixels, and sent to a server that looks at it."""

import base64
import io
import json
import math
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageColor, ImageDraw

import proctor as package
from conftest import Command, Serve, TaskFile
from helpers.colour_vision import VISIONS, ciede2000, lab
from helpers.shapes_settings import settings_of
from proctor.analysis.check import check_task
from proctor.core.config import build_config
from proctor.core.errors import TaskError, UsageError
from proctor.core.random import Stream
from proctor.core.task import create_task, take_samples
from proctor.core.types import Message, Record, Sample, Text
from proctor.models.base import as_messages
from proctor.shapes import Shape, Task, drawing
from proctor.shapes.canvas import LARGE, SMALL, Board, draw_canvas
from proctor.shapes.drawing import COLOURS, HALF_WIDTH, caption, png, svg
from proctor.shapes.pixels import read_png
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.store import open_store

MODALITIES = ("text", "image", "both")
PICTURED = sorted(name for name, cls in REGISTERED_TASKS.items() if create_task(cls, name, {}).has_pictures())
WITHOUT = sorted(REGISTERED_TASKS.keys() - PICTURED)

boards = st.sampled_from([SMALL, LARGE])


@st.composite
def canvases(draw: st.DrawFn) -> tuple[list[Shape], Board]:
    board = draw(boards)
    n = draw(st.integers(0, len(board.kinds)))
    return draw_canvas(n, Stream(draw(st.integers())), board), board


@st.composite
def single_shapes(draw: st.DrawFn) -> tuple[list[Shape], Board]:
    """One shape of any kind, anywhere on a board, also at its very edge."""
    board = draw(boards)
    kind = draw(st.sampled_from(board.kinds))
    reach = board.bound - {"small": 3, "large": 4}[kind[0]]
    x, y = draw(st.integers(-reach, reach)), draw(st.integers(-reach, reach))
    return [Shape(*kind, x, y)], board


def in_order(shapes: list[Shape]) -> list[Shape]:
    return sorted(shapes, key=lambda shape: (shape.x, shape.y))


def samples(name: str, n: int = 3, **options: Any) -> list[Sample]:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", options.get("settings", {}))
    return list(take_samples(task, config(task.name, limit=n, **options)))


def config(task: str, **options: Any) -> package.RunConfig:
    return build_config({"task": task, "model": "scripted/oracle"} | options)


# -- the picture ----------------------------------------------------------------------------------


@given(st.one_of(canvases(), single_shapes()))
def test_the_pixels_of_a_png_tell_all_shapes(canvas: tuple[list[Shape], Board]) -> None:
    shapes, board = canvas
    assert in_order(read_png(png(shapes, board))) == in_order(shapes)


@given(st.one_of(canvases(), single_shapes()))
def test_the_elements_of_an_svg_tell_all_shapes(canvas: tuple[list[Shape], Board]) -> None:
    shapes, board = canvas
    root = ElementTree.fromstring(svg(shapes, board))
    side = 8 * board.bound
    assert root.get("viewBox") == f"0 0 {side} {side}"
    background, *elements = root
    assert (background.get("width"), background.get("height"), background.get("fill")) == (
        str(side - 2),
        str(side - 2),
        "#ffffff",
    )
    assert (background.get("x"), background.get("y"), background.get("stroke-width")) == ("1", "1", "2")
    assert background.get("stroke") == COLOURS["gray"]
    assert [read_element(element, board) for element in elements] == shapes


def read_element(element: ElementTree.Element, board: Board) -> Shape:
    names = {value: name for name, value in COLOURS.items()}
    form = element.tag.rpartition("}")[2]

    def number(key: str) -> int:
        return int(element.get(key, ""))

    if form == "rect":
        form, left, top, width, height = "square", number("x"), number("y"), number("width"), number("height")
    elif form == "circle":
        radius = number("r")
        left, top, width, height = number("cx") - radius, number("cy") - radius, 2 * radius, 2 * radius
    else:
        (ax, ay), (bx, by), (cx, cy) = (map(int, point.split(",")) for point in element.get("points", "").split())
        assert form == "polygon"
        assert by == cy > ay, "it points up"
        assert 2 * ax == bx + cx
        form, left, top, width, height = "triangle", cx, ay, bx - cx, by - ay
    assert width == height
    size = {14: "small", 28: "large"}[width]
    x, y = (left + width // 2) / 4 - board.bound, board.bound - (top + height // 2) / 4
    return Shape(size, names[element.get("fill", "")], form, int(x), int(y))


@pytest.mark.parametrize(("board", "side"), [(SMALL, 256), (LARGE, 416)])
def test_size_and_format(board: Board, side: int) -> None:
    picture = Image.open(io.BytesIO(png([], board)))
    assert (picture.format, picture.size, picture.mode) == ("PNG", (side, side), "P")
    inside = (side - 4) ** 2
    colours = {colour: n for n, colour in picture.convert("RGB").getcolors() or []}
    assert colours == {(255, 255, 255): inside, ImageColor.getrgb(COLOURS["gray"]): side**2 - inside}, "a frame"
    assert len(png(draw_canvas(len(board.kinds), Stream(1), board), board)) < 4_000, (
        "small enough to be stored in a record"
    )


@given(canvases())
def test_pillow_draws_the_same_but_for_single_pixels_at_the_edge(canvas: tuple[list[Shape], Board]) -> None:
    shapes, board = canvas
    side = 8 * board.bound
    drawn = Image.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(drawn)
    pen.rectangle((0, 0, side - 1, side - 1), outline=COLOURS["gray"], width=2)
    for shape in shapes:
        half = HALF_WIDTH[shape.size]
        x, y = 4 * (shape.x + board.bound), 4 * (board.bound - shape.y)
        left, top, right, bottom = x - half, y - half, x + half - 1, y + half - 1
        if shape.form == "triangle":
            pen.polygon([(x, top), (right, bottom), (left, bottom)], COLOURS[shape.colour])
        else:
            draw = pen.rectangle if shape.form == "square" else pen.ellipse
            draw((left, top, right, bottom), COLOURS[shape.colour])
    ours = Image.open(io.BytesIO(png(shapes, board))).convert("RGB")
    different = np.any(np.asarray(drawn) != np.asarray(ours), axis=2).sum()
    assert different <= 16 * sum(shape.form != "square" for shape in shapes)


def least_difference(names: tuple[str, ...], vision: str) -> float:
    colours = [lab(COLOURS[name], vision) for name in names]
    return min(ciede2000(a, b) for a, b in combinations(colours, 2))


def test_differences_of_colours_are_as_published() -> None:
    """Three of the pairs that Sharma, Wu and Dalal give for those who implement CIEDE2000."""
    assert ciede2000((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert ciede2000((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)
    assert ciede2000((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514)) == pytest.approx(0.9082, abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("board", "least"), [(SMALL, 17.5), (LARGE, 9.9)])
def test_colours_differ_for_everybody(board: Board, least: float, vision: str) -> None:
    """From each other and from the background, also for those who are colour-blind."""
    assert least_difference(("white", *board.colours), vision) > least


@pytest.mark.parametrize(("board", "least"), [(SMALL, 10), (LARGE, 7.5)])
def test_colours_differ_without_colour_vision(board: Board, least: float) -> None:
    lightness = sorted(lab(COLOURS[name])[0] for name in ("white", *board.colours))
    assert min(b - a for a, b in pairwise(lightness)) > least


def test_colours_are_what_people_call_them() -> None:
    """Each is nearer to the usual meaning of its own name than to that of any other."""
    assert set(COLOURS) == {"white", "gray", *LARGE.colours}
    for name in LARGE.colours:
        rgb = ImageColor.getrgb(COLOURS[name])
        assert min(LARGE.colours, key=lambda other: math.dist(rgb, ImageColor.getrgb(other))) == name


@pytest.mark.parametrize("draw", [png, svg])
def test_a_shape_over_the_edge_is_not_drawn(draw: Callable[[list[Shape], Board], object]) -> None:
    with pytest.raises(ValueError, match=r"the large red circle at \(29, 0\) reaches over the edge"):
        draw([Shape("large", "red", "circle", 29, 0)], SMALL)


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda pen: pen.rectangle((9, 9, 22, 26), fill="red"), "neither as wide nor as high as a shape"),
        (lambda pen: pen.rectangle((10, 9, 23, 22), fill="red"), "stands between two units"),
        (lambda pen: pen.polygon([(16, 9), (22, 16), (16, 22), (9, 16)], fill="red"), "the outline of no form"),
        (lambda pen: pen.polygon([(9, 9), (22, 9), (16, 22)], fill="red"), "the outline of no form"),
        (lambda pen: pen.polygon([(9, 9), (22, 22), (9, 22)], fill="red"), "the outline of no form"),
        (lambda pen: pen.rectangle((0, 0, 255, 255), outline="white", width=2), "no frame"),
        (lambda pen: pen.rectangle((0, 40, 0, 60), fill="black"), "no frame"),
    ],
)
def test_what_is_no_shape_is_not_taken_for_one(draw: Callable[[ImageDraw.ImageDraw], None], said: str) -> None:
    picture = Image.new("RGB", (256, 256), "white")
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, 255, 255), outline="gray", width=2)
    draw(pen)
    file = io.BytesIO()
    picture.save(file, "PNG")
    with pytest.raises(ValueError, match=said):
        read_png(file.getvalue())


# -- the sample -----------------------------------------------------------------------------------


def test_which_tasks_have_pictures() -> None:
    assert {"comparison", "coordinate", "count", "existence", "existence_tracking", "logic", "superlative"} <= set(
        PICTURED
    )
    assert {"transitivity", "shuffle_tracking"} <= set(WITHOUT)


@pytest.mark.parametrize("name", PICTURED)
@settings(max_examples=10)
@given(
    data=st.data(), modality=st.sampled_from(["image", "both"]), seed=st.integers(0, 1000), few_shot=st.integers(0, 2)
)
def test_the_answer_is_entailed_by_the_picture(
    name: str, data: st.DataObject, modality: str, seed: int, few_shot: int
) -> None:
    taken = data.draw(settings_of(name).filter(lambda values: fits(name, values)))
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", taken)
    for sample in samples(name, 2, seed=seed, few_shot=few_shot, settings=taken, modality=modality):
        assert list(task.proofs(sample)) == []


def fits(name: str, values: dict[str, object]) -> bool:
    try:
        create_task(REGISTERED_TASKS[name], name, values)
    except UsageError:
        return False
    return True


def messages(sample: Sample) -> tuple[Message, ...]:
    assert not isinstance(sample.input, str)
    return sample.input


def words(sample: Sample) -> str:
    assert isinstance(sample.input, str)
    return sample.input


@pytest.mark.parametrize("name", PICTURED)
def test_every_modality_asks_the_same(name: str) -> None:
    text, image, both = (samples(name, 20, modality=modality) for modality in MODALITIES)
    assert [(s.id, s.target, s.choices, s.metadata) for s in text] == [
        (s.id, s.target, s.choices, s.metadata) for s in image
    ]
    for read, picture, all_of_it in zip(text, image, both, strict=True):
        (seen,), (shown,) = messages(picture), messages(all_of_it)
        assert seen.images == shown.images
        assert [type(part).__name__ for part in seen.content] == ["Image", "Text"]
        assert shown.text == f"{caption(SMALL, in_words=True)}\n{words(read)}"
        question = words(read).rpartition("\n\n")[2]
        assert seen.text.startswith(caption(SMALL, in_words=False))
        assert seen.text.endswith(f"\n\n{question}")
        assert not any(f"{shape} at (" in seen.text for shape in read_png(seen.images[0].data)), "the picture tells it"


def test_events_stay_in_words() -> None:
    (text,), (image,) = (samples("existence_tracking", 1, modality=modality) for modality in ("text", "image"))
    events = [
        line for line in words(text).splitlines() if " is removed." in line or "All " in line or " is added." in line
    ]
    assert len(events) == 5
    assert messages(image)[0].text.splitlines()[1:6] == events


@pytest.mark.parametrize("modality", ["image", "both"])
def test_every_worked_example_has_its_own_picture(modality: str) -> None:
    for sample in samples("count", 10, few_shot=3, shots="other", modality=modality):
        assert [message.role for message in messages(sample)] == ["user", "assistant"] * 3 + ["user"]
        pictures = [message.images for message in messages(sample)[::2]]
        assert [len(images) for images in pictures] == [1] * 4
        assert len({images[0].data for images in pictures}) == 4


@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.parametrize("modality", ["image", "both"])
def test_a_task_with_a_description_of_its_own_has_no_picture(proctor: Command, name: str, modality: str) -> None:
    done = proctor("run", "shapes/existence", f"shapes/{name}", "--model", "scripted/oracle", "--modality", modality)
    assert done.returncode == 2
    assert done.stderr == f"proctor: shapes/{name} has no images: use --modality text.\n"
    assert not Path("store").exists(), "not even the first one was begun"


def test_a_wildcard_means_the_tasks_with_pictures_where_pictures_are_wanted(proctor: Command) -> None:
    done = proctor(
        "run", "shapes/*", "--model", "scripted/oracle", "--modality", "image", "--limit", "1", "--json", "-q"
    )
    assert done.returncode == 0, done.stderr
    ran = {run["task"].removeprefix("shapes/") for run in json.loads(done.stdout)["runs"]}
    assert ran == REGISTERED_TASKS.keys() - set(WITHOUT)
    assert len(done.stderr.splitlines()) == len(WITHOUT), "a note for each of the others"


def test_any_other_task_has_no_picture(adding: str) -> None:
    with pytest.raises(UsageError, match="has no images"):
        package.evaluate(adding, "scripted/oracle", modality="image")
    with pytest.raises(UsageError, match="has no images"):
        package.sweep("shapes/transitivity", "scripted/oracle", "shapes", [5, 6], modality="both")


class Edge(Task):
    """A user's task: its shapes are where it wants them."""

    place = 28
    said: str | None = None

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        return [Shape("large", "red", "circle", self.place, 0), Shape("large", "blue", "circle", 20, 3)]

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.description = self.said
        return [("How many?", "2")]


def first_picture(cls: type[Task]) -> Sample:
    return next(take_samples(create_task(cls, "mine", {}), config("mine", modality="image")))


def test_a_picture_that_cannot_be_drawn_is_a_fault_of_the_task() -> None:
    class Outside(Edge):
        place = 31

    class Telling(Edge):
        said = "There are two."

    assert len(read_png(messages(first_picture(Edge))[0].images[0].data)) == 2
    with pytest.raises(TaskError, match=r"the large red circle at \(31, 0\) reaches over the edge of the canvas"):
        first_picture(Outside)
    with pytest.raises(TaskError, match=r"mine: 'How many\?' is about a description of its own, which has no picture"):
        first_picture(Telling)
    assert not create_task(Telling, "mine", {}).has_pictures()


# -- the check ------------------------------------------------------------------------------------


def recoloured(shapes: list[Shape], board: Board) -> bytes:
    return png([msgspec.structs.replace(shape, colour="red") for shape in shapes[:1]] + shapes[1:], board)


def moved(shapes: list[Shape], board: Board) -> bytes:
    return png(
        [msgspec.structs.replace(shape, y=shape.y + 1 if shape.y < 0 else shape.y - 1) for shape in shapes], board
    )


def one_less(shapes: list[Shape], board: Board) -> bytes:
    return png(shapes[1:], board)


FAULTS = [("existence", recoloured), ("existence_tracking", moved), ("superlative", one_less)]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param(name, wrong, marks=[] if (name, wrong) in FAULTS else [pytest.mark.slow])
        for name, _ in FAULTS
        for _, wrong in FAULTS
    ],
)
def test_check_finds_a_picture_that_shows_something_else(
    name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "png", wrong)
    failed = {finding.claim: finding.fault for finding in check_task(f"shapes/{name}", {}, n=30) if not finding.holds}
    assert "images, where it has any, show the same" in failed
    assert "an independent solver, where there is one, agrees" not in failed, "the text is as good as it was"


def test_check_finds_that_the_picture_gives_another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "png", lambda shapes, board: png(shapes[1:], board))
    task = create_task(REGISTERED_TASKS["count"], "shapes/count", {})
    faults = [fault for sample in samples("count", 50, modality="image") for fault in task.proofs(sample)]
    assert faults
    assert all(fault.startswith("the picture says ") for fault in faults)
    faults = [fault for sample in samples("count", 50, modality="both") for fault in task.proofs(sample)]
    assert faults.count("the picture shows other shapes than the text") == 50


def test_a_task_without_a_solver_has_its_pictures_checked_too(
    monkeypatch: pytest.MonkeyPatch, proctor: Command
) -> None:
    proctor("new", "shapes", "left_of")
    assert [finding for finding in check_task("left_of.py:LeftOf", {}, n=20) if not finding.holds] == []
    monkeypatch.setattr(drawing, "png", moved)
    failed = {
        finding.claim: finding.fault for finding in check_task("left_of.py:LeftOf", {}, n=20) if not finding.holds
    }
    assert failed["images, where it has any, show the same"].endswith("the picture shows other shapes than the text")


# -- the run --------------------------------------------------------------------------------------


def look(content: list[dict[str, Any]]) -> tuple[list[Shape], str]:
    """What a server finds in a message: the shapes in its picture, and its words."""
    picture, text = content
    assert (picture["type"], text["type"]) == ("image_url", "text")
    head, _, data = picture["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    return read_png(base64.b64decode(data)), text["text"]


def answer_by_looking(body: dict[str, Any], _: int) -> str:
    shapes, text = look(body["messages"][-1]["content"])
    return ExistenceTask.solve(
        "\n".join(f"- {shape} at ({shape.x}, {shape.y})" for shape in shapes), text.rpartition("\n\n")[2]
    )


@pytest.mark.parametrize("modality", ["image", "both"])
def test_a_server_that_looks_at_the_picture_knows_the_answer(serve: Serve, modality: str) -> None:
    server = serve(answer_by_looking)
    options: dict[str, Any] = {
        "base_url": server.url,
        "limit": 30,
        "modality": modality,
        "few_shot": 2,
        "shots": "other",
    }
    report = package.evaluate("shapes/existence", "openai/m", **options)
    assert report.metrics["accuracy"].value == 1
    assert f"(version 4, modality {modality})" in str(report)
    for record in report.records():
        assert all(len(message.images) == 1 for message in messages(record.sample)[::2])


def test_the_server_receives_the_canvas_itself(serve: Serve) -> None:
    server = serve(lambda body, number: "Yes")
    package.evaluate(
        "shapes/existence",
        "openai/m",
        base_url=server.url,
        limit=5,
        few_shot=1,
        shots="other",
        modality="both",
        concurrency=1,
    )
    for body in server.requests:
        worked, answer, asked = (message["content"] for message in body["messages"])
        assert answer in ("Yes", "No")
        for content in (worked, asked):
            shapes, text = look(content)
            assert len(shapes) == 7
            assert all(f"- {shape} at ({shape.x}, {shape.y})\n" in text for shape in shapes)


def test_the_completions_endpoint_takes_no_pictures(serve: Serve, proctor: Command) -> None:
    server = serve(lambda body, number: "Yes")
    flags = ["--base-url", server.url, "--api", "completions", "--modality", "image"]
    done = proctor("run", "shapes/existence", "--model", "openai/m", *flags)
    assert done.returncode == 2
    assert done.stderr.startswith("proctor: openai/m does not take images: the completions endpoint takes text only")
    assert len(done.stderr.splitlines()) == 1
    assert server.requests == []
    assert open_store().runs() == []


@pytest.mark.parametrize("model", ["smollm2", "gguf/none.gguf"])
def test_embedded_models_take_no_pictures(proctor: Command, tmp_path: Path, model: str) -> None:
    done = proctor(
        "run", "shapes/existence", "--model", model, "--modality", "both", XDG_CACHE_HOME=str(tmp_path / "c")
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"proctor: {model} does not take images: embedded models read text only")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "c").exists(), "no weights were fetched for it"


def test_models_of_vllm_take_no_pictures(proctor: Command) -> None:
    done = proctor("run", "shapes/existence", "--model", "vllm/none", "--modality", "image")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("proctor: vllm/none does not take images: vllm/ models take text only.")


def test_a_picture_that_comes_later_is_an_error_of_its_sample(serve: Serve, task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *
        from proctor import Image, Message, Text

        class Later(Adding):
            def samples(self, config):
                for sample in super().samples(config):
                    shown = (Message("user", (Text(sample.input), Image(b"x"))),) if sample.index == 3 else sample.input
                    yield Sample(sample.id, sample.index, shown, sample.target)
        """
    )
    server = serve(lambda body, number: "1")
    report = package.evaluate(f"{path}:Later", "openai/m", base_url=server.url, api="completions", limit=5)
    (failed,) = (record for record in report.records() if record.error)
    assert failed.sample.index == 3
    assert failed.error is not None
    assert failed.error.message == "a plain-text prompt cannot contain an image"


def test_scripted_candidates_work_with_pictures() -> None:
    for modality in ("image", "both"):
        report = package.evaluate("shapes/superlative", "scripted/oracle", limit=10, modality=modality)
        assert report.metrics["accuracy"].value == 1
        assert list(report.to_pandas()["score"]) == [1] * 10


def test_the_cache_tells_pictures_apart(serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The questions repeat; what is different is the picture."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(answer_by_looking)
    options: dict[str, Any] = {
        "base_url": server.url,
        "cache": True,
        "limit": 40,
        "modality": "image",
        "settings": {"shapes": 2},
    }
    reports = [package.evaluate("shapes/existence", "openai/m", **options) for _ in range(2)]
    assert [report.metrics["accuracy"].value for report in reports] == [1, 1]
    assert len(server.requests) == 40
    assert all(record.outputs[0].cached for record in reports[1].records())


@pytest.mark.parametrize("form", ["jsonl", "json", "csv"])
def test_records_with_pictures_are_exported(proctor: Command, form: str) -> None:
    proctor("run", "shapes/count", "--model", "scripted/oracle", "--limit", "3", "--modality", "image")
    done = proctor("export", "latest", "--format", form)
    assert done.returncode == 0
    if form == "csv":
        assert len(done.stdout.splitlines()) == 4
        return
    rows = json.loads(done.stdout) if form == "json" else [json.loads(line) for line in done.stdout.splitlines()]
    (record, *_) = package.Report(open_store().run("latest"), open_store().url).records()
    picture, text = rows[0]["input"][0]["content"]
    assert base64.b64decode(picture["data"]) == messages(record.sample)[0].images[0].data
    assert (picture["type"], picture["media_type"], text["type"]) == ("image", "image/png", "text")


def test_messages_stored_before_there_were_pictures_are_read() -> None:
    old = b'{"sample":{"id":"a","index":0,"input":[{"role":"user","content":"2+2="}],"target":"4"},"epoch":0}'
    record = msgspec.json.decode(old, type=Record)
    assert record.sample.input == (Message("user", "2+2="),)
    assert as_messages(record.sample.input) == [{"role": "user", "content": "2+2="}]
    parts = Message("user", (Text("a"), Text("b")))
    assert (parts.text, parts.images) == ("a\nb", [])


def test_a_run_goes_on_only_in_its_own_modality(proctor: Command) -> None:
    proctor("run", "shapes/count", "--model", "scripted/oracle", "--limit", "3", "--modality", "image")
    assert proctor("resume", "latest", "--quiet").returncode == 0
    refused = proctor("resume", "latest", "--modality", "text")
    assert refused.returncode == 2
    assert "modality 'image' → 'text'" in refused.stderr


def test_a_run_from_before_there_were_pictures_goes_on() -> None:
    report = package.evaluate("shapes/count", "scripted/oracle", limit=3)
    store = open_store()
    run = msgspec.structs.replace(report.run, config={k: v for k, v in report.run.config.items() if k != "modality"})
    store.save(run)
    store.close()
    from proctor.core.evaluation import resume

    assert resume(run.id, {}).run.n == 3
    with pytest.raises(UsageError, match="modality"):
        resume(run.id, {"modality": "both"})


# -- the command line -----------------------------------------------------------------------------


def test_show_says_that_there_is_a_picture_and_writes_it(proctor: Command, tmp_path: Path) -> None:
    shown = proctor("show", "shapes/count", "--modality", "image", "--few-shot", "1", "--shots", "other")
    assert shown.stdout.count("[image, image/png, ") == 2
    assert "--images DIR writes it" in shown.stdout
    assert "base64" not in shown.stdout
    flags = ["--modality", "both", "--few-shot", "1", "--shots", "other", "--index", "4", "--images", "pictures"]
    written = proctor("show", "shapes/count", *flags)
    assert "pictures/sample4-1.png" in written.stdout
    for path in (tmp_path / "pictures" / "sample4-1.png", tmp_path / "pictures" / "sample4-2.png"):
        shapes = read_png(path.read_bytes())
        assert all(f"- {shape} at ({shape.x}, {shape.y})\n" in written.stdout for shape in shapes)
    whole = json.loads(proctor("show", "shapes/count", "--modality", "image", "--json").stdout)
    assert read_png(base64.b64decode(whole["input"][0]["content"][0]["data"]))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--images", "x"], "There is no image to write: --images needs --modality image or both."),
        (["--modality", "image", "--images", "/proc/x"], "Cannot write to /proc/x"),
        (["--modality", "picture"], "invalid choice: 'picture'"),
    ],
)
def test_show_says_what_it_cannot_do(proctor: Command, flags: list[str], said: str) -> None:
    done = proctor("show", "shapes/count", *flags)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("modality", "imported"), [("text", ""), ("image", "numpy")])
def test_what_is_heavy_is_imported_only_for_pictures(modality: str, imported: str) -> None:
    """And what reads pictures back, only by the check."""
    code = (
        f"import sys, proctor; proctor.evaluate('shapes/existence', 'scripted/oracle', limit=2, modality={modality!r});"
        "print(', '.join(sorted({'numpy', 'PIL', 'aiohttp', 'rich', 'pandas'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == imported
