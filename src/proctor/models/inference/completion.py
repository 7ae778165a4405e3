"""One completion: its tokens, their text, and the conditions that end it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.random import mix
from proctor.models.base import Sampling
from proctor.models.inference.prompt import TokenizedPrompt

# Prompt tokens that are decoded along with the text, because some tokenizers drop a space at
# the start of a text.
CONTEXT = 8
STRIDE = 8  # tokens that `add_deferred` collects before it searches for stop strings
INCOMPLETE_CHARACTER = "\ufffd"  # decoded from bytes that do not form a character yet


class Completion:
    def __init__(
        self,
        prompt: TokenizedPrompt,
        sampling: Sampling,
        max_tokens: int,
        eos_tokens: frozenset[int],
        tokenizer: Any,
        context: Sequence[int],
    ) -> None:
        self.prompt = prompt
        self.sampling = sampling
        self.max_tokens = max_tokens
        self._eos_tokens = eos_tokens  # end the completion and are not part of its text
        self._phase = sampling.seed % STRIDE  # spreads the searches of a batch over its steps
        self._stops = [stop for stop in sampling.stop if stop]
        self._tokenizer = tokenizer
        self._context = list(context)
        self.restart()

    @property
    def prompt_tokens(self) -> tuple[int, ...]:
        return self.prompt.tokens

    def restart(self) -> None:
        self.tokens: list[int] = []
        self.text = ""
        self.finish = ""  # "stop" or "length" once the completion has ended
        self._deferred: list[int] = []  # added without a search for stop strings
        self._text_tokens = list(self._context)
        # The tokens that were decoded last: they are the context of the next ones.
        self._decoded = 0, len(self._text_tokens)

    def draw(self) -> float:
        """The number in [0, 1) that picks the next token.

        It depends on the seed and the position alone, not on the batch or on restarts.
        """
        return (mix(self.sampling.seed, len(self.tokens)) >> 12) / 2**52

    def add(self, token: int) -> None:
        self.tokens.append(token)
        ended = token in self._eos_tokens
        full = len(self.tokens) >= self.max_tokens
        if not ended:
            self._text_tokens.append(token)
        # Only stop strings need the text after every token.
        if (self._stops or ended or full) and self._extend_text(is_last=ended or full):
            self.finish = "stop"
        elif ended or full:
            self.finish = "stop" if ended else "length"

    def add_deferred(self, token: int) -> None:
        """Like `add`, but searches several tokens at once for stop strings, which is faster.

        The completion ends late, but with the same tokens and text as with `add`.
        """
        if not self._stops:
            self.add(token)
            return
        self._deferred.append(token)
        count = len(self.tokens) + len(self._deferred)
        due = (count + self._phase) % STRIDE == 0 or len(self._deferred) > STRIDE
        if due or count >= self.max_tokens or token in self._eos_tokens:
            self._add_all_deferred()

    def _add_all_deferred(self) -> None:
        tokens, decoded = self._deferred, self._decoded
        before = len(self.tokens), len(self._text_tokens), self.text
        self.tokens += tokens[:-1]
        self._text_tokens += tokens[:-1]
        self.add(tokens[-1])
        undecided = not self.finish and self._decoded == decoded
        if undecided or (self.finish == "stop" and len(tokens) > 1):
            # Undo. If the text is still incomplete, wait for more tokens. If a stop string
            # ended it, add the tokens one by one to find the one that completed the string.
            stopped, self.finish, self._decoded = bool(self.finish), "", decoded
            length, text_length, self.text = before
            del self.tokens[length:], self._text_tokens[text_length:]
            if not stopped:
                return
            for token in tokens:
                if not self.finish:
                    self.add(token)
        self._deferred = []

    def _extend_text(self, is_last: bool) -> bool:
        """Append the text that later tokens cannot change; true when a stop string cut it."""
        start, end = self._decoded
        before = self._decode(self._text_tokens[start:end])
        now = self._decode(self._text_tokens[start:])
        if now == before or (now.endswith(INCOMPLETE_CHARACTER) and not is_last):
            return False
        self._decoded = end, len(self._text_tokens)
        length = len(self.text)
        self.text += now[len(before) :]
        starts = [self.text.find(stop, max(0, length - len(stop) + 1)) for stop in self._stops]
        cuts = [start for start in starts if start >= 0]
        if cuts:
            self.text = self.text[: min(cuts)]
        return bool(cuts)

    def _decode(self, tokens: list[int]) -> str:
        if not tokens:
            return ""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
