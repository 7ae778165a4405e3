"""One completion under way: its tokens, the text that they make, and when it is at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.random import mix
from proctor.models.base import Sampling
from proctor.models.inference.prompt import TokenizedPrompt

CONTEXT = 8  # tokens of the prompt that the text is read with: some tokenizers drop a space at the very start
STRIDE = 8  # tokens that `take` lets come before it looks for stop strings
INCOMPLETE_CHARACTER = "\ufffd"  # what a tokenizer makes of bytes that are not yet a character


class Completion:
    def __init__(
        self,
        passage: TokenizedPrompt,
        sampling: Sampling,
        room: int,
        ends: frozenset[int],
        tokenizer: Any,
        context: Sequence[int],
    ) -> None:
        self.passage = passage
        self.sampling = sampling
        self.room = room  # most tokens that it may have
        self._ends = ends  # tokens that end it, and are not part of its text
        self._phase = sampling.seed % STRIDE  # so that of many not all are looked at in the same moment
        self._stops = [stop for stop in sampling.stop if stop]
        self._tokenizer = tokenizer
        self._context = list(context)
        self.restart()

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.passage.tokens

    def restart(self) -> None:
        self.tokens: list[int] = []
        self.text = ""
        self.finish = ""  # "stop" or "length", once it has come to that
        self._ahead: list[int] = []  # taken, and not yet looked at
        self._read = list(self._context)  # the tokens that text is made of
        self._known = 0, len(self._read)  # those whose text is known; the first of them only for the sake of the others

    def draw(self) -> float:
        """The number in [0, 1) that picks the next token: it follows from the seed and the place alone.

        So what else is in the batch, or how often this was begun anew, changes nothing.
        """
        return (mix(self.sampling.seed, len(self.tokens)) >> 12) / 2**52

    def add(self, token: int) -> None:
        self.tokens.append(token)
        ended = token in self._ends
        full = len(self.tokens) >= self.room
        if not ended:
            self._read.append(token)
        # Text is made when somebody looks at it: with stop strings after every token, without them at the end.
        if (self._stops or ended or full) and self._grow(to_the_end=ended or full):
            self.finish = "stop"
        elif ended or full:
            self.finish = "stop" if ended else "length"

    def take(self, token: int) -> None:
        """As `add`, but where there are stop strings they are looked for in several tokens at once.

        That costs a fraction. The end is found late, and is where `add` would have found it.
        """
        if not self._stops:
            self.add(token)
            return
        self._ahead.append(token)
        count = len(self.tokens) + len(self._ahead)
        due = (count + self._phase) % STRIDE == 0 or len(self._ahead) > STRIDE
        if due or count >= self.room or token in self._ends:
            self._look()

    def _look(self) -> None:
        ahead, known = self._ahead, self._known
        before = len(self.tokens), len(self._read), self.text
        self.tokens += ahead[:-1]
        self._read += ahead[:-1]
        self.add(ahead[-1])
        undecided = not self.finish and self._known == known
        if undecided or (self.finish == "stop" and len(ahead) > 1):
            # Back to where it was. What may still become another text waits for more; and which token was the last
            # is found by going through them again.
            stopped, self.finish, self._known = bool(self.finish), "", known
            length, read, self.text = before
            del self.tokens[length:], self._read[read:]
            if not stopped:
                return
            for token in ahead:
                if not self.finish:
                    self.add(token)
        self._ahead = []

    def _grow(self, to_the_end: bool) -> bool:
        """Adds the text that has become certain; true when it is cut at a stop string."""
        start, end = self._known
        before = self._decode(self._read[start:end])
        now = self._decode(self._read[start:])
        if now == before or (now.endswith(INCOMPLETE_CHARACTER) and not to_the_end):
            return False
        self._known = end, len(self._read)
        length = len(self.text)
        self.text += now[len(before) :]
        found = [self.text.find(stop, max(0, length - len(stop) + 1)) for stop in self._stops]
        cuts = [place for place in found if place >= 0]
        if cuts:
            self.text = self.text[: min(cuts)]
        return bool(cuts)

    def _decode(self, tokens: list[int]) -> str:
        if not tokens:
            return ""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
