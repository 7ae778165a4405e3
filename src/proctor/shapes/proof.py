"""The proof of a sample: what it shows in words and in pixels is read back, and must lead to the answer of the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from proctor.core.types import Image, Message, Sample
from proctor.shapes.canvas import Shape

Solver = Callable[[str, str], str | None]  # answers from description and question, and from nothing else
Describer = Callable[[Sequence[Shape]], str]


def find_faults(sample: Sample, describe: Describer, solve: Solver | None, instruction: str) -> Iterator[str]:
    """Faults of the sample and of its worked examples; of a task without a solver, only of what its pictures show."""
    turns = (Message("user", sample.input),) if isinstance(sample.input, str) else sample.input
    answers = [*(message.text for message in turns[1::2]), sample.target]
    description, images = "", list[Image]()
    for message, answer in zip(turns[::2], answers, strict=True):
        shown, blank_line, question = message.text.rpartition("\n\n")
        if blank_line:  # else it is about the same canvas as the question before it
            description, images = shown, message.images
        question = question.removesuffix(instruction).rstrip()
        yield from _Turn(description, images, question, answer, describe, solve).faults()


class _Turn(Struct):
    """A question as the candidate is asked it, with what it is shown of the canvas."""

    description: str
    images: list[Image]
    question: str
    answer: str
    describe: Describer
    solve: Solver | None

    def faults(self) -> Iterator[str]:
        if self.images:
            yield from self._faults_of_picture()
        else:
            yield from self._compare("text", self.description)

    def _faults_of_picture(self) -> Iterator[str]:
        from proctor.shapes.pixels import read_png  # with numpy and Pillow

        shapes = read_png(self.images[0].data)
        _, _, words = self.description.partition("\n")  # without the caption, which is one line
        story = words
        if words.startswith(self.describe([])):  # the same canvas in words
            yield from self._compare("text", words)
            # Put into the order of the text, the shapes of the picture must give the same text, letter by letter.
            seen = self.describe(sorted(shapes, key=lambda shape: words.find(str(shape))))
            story = words[len(seen) + 1 :]
            if words != _join(seen, story):
                yield "the picture shows other shapes than the text"
        yield from self._compare("picture", _join(self.describe(shapes), story))

    def _compare(self, source: str, account: str) -> Iterator[str]:
        if self.solve is not None and (solved := self.solve(account, self.question)) != self.answer:
            yield f"the {source} says {solved}, the key says {self.answer}"


def _join(canvas: str, story: str) -> str:
    return f"{canvas}\n{story}" if story else canvas
