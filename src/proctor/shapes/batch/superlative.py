"""Which shape is leftmost, or third highest?"""

from __future__ import annotations

from proctor.shapes.batch.canvas import Canvas, draw_with_selected
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.places import add_places, draw_place
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.tasks.superlative import QUESTION


class SuperlativeMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        self._questions = add_places(self.book, QUESTION, self.n)

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        return draw_with_selected(wanted, self.n, streams, self.board)

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        return [self.names_of(canvas.kinds)]

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        return [], [self._questions + draw_place(canvas, wanted, streams)]
