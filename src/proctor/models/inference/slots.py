"""Continuous batching: a fixed number of slots, which are filled again as completions end.

Each prompt is read once, together with others that wait, and its keys and values are shared by all its completions.
What a completion said last is looked at when the next step is under way, so the device does not wait for the host; a
step too many, of a completion that has ended, is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from proctor.models.base import Request
from proctor.models.inference.completion import Completion
from proctor.models.inference.engine import EngineThread, to_model_error, too_large_error
from proctor.models.inference.job import Job
from proctor.models.inference.memory import is_out_of_memory, release_memory
from proctor.models.inference.pages import PAGE, pages_for
from proctor.models.inference.stepper import PageAssignment, PendingStep, RowStart, Stepper

MAX_PREFILL_TOKENS = 8_192  # tokens of prompts
MAX_PADDING_FACTOR = 4  # times as many, with what makes all of them as long as the longest, for attention alone
RESERVED_TOKENS = 256  # tokens of a completion that memory is made for at once; more as they come


class SharedPrompt:
    """A prompt, for as long as somebody asks for completions of it."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.tokens = tokens
        self.pages: list[int] | None = None  # once it has been read
        self.askers = 0  # rows that wait or are seated
        self.users = 0  # rows that are seated

    @property
    def read_part(self) -> tuple[int, ...]:
        """The last token is for each row to begin with: what it expects to come next is then its own affair."""
        return self.tokens[:-1]


class SlotRequest:
    """A completion that waits for a slot, or has one."""

    def __init__(self, job: Job, prompt: SharedPrompt) -> None:
        self.job, self.prompt = job, prompt
        self.pages: list[int] = []
        self.slot = -1
        self.steps = 0  # that were started for it
        self.gone = False  # whatever else comes back for it is dropped

    @property
    def complete(self) -> bool:
        """Whether all the steps that it may have are under way."""
        return self.steps >= self.job.completion.room


class SlotEngine(EngineThread):
    def __init__(self, name: str, stepper: Stepper, begin: Callable[[Request], Completion], slots: int) -> None:
        super().__init__(name, begin, slots)
        self._stepper, self._pages = stepper, stepper.pages
        self._readable = MAX_PREFILL_TOKENS
        self._vacant = list(reversed(range(slots)))
        self._waiting: deque[SlotRequest] = deque()
        self._prompts: dict[tuple[int, ...], SharedPrompt] = {}
        self._rows: dict[int, SlotRequest] = {}  # by slot, the longest seated first
        self._seats: list[RowStart] = []  # what the device is to be told with the next step
        self._entries: list[PageAssignment] = []
        self._flights: deque[tuple[list[SlotRequest], PendingStep]] = deque()  # steps whose tokens were not looked at
        self._thread.start()

    def _work(self) -> None:
        with self._stepper.at_home():
            super()._work()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._rows or self._flights)

    def _accept(self, job: Job) -> None:
        tokens = job.completion.prompt
        prompt = self._prompts.setdefault(tokens, SharedPrompt(tokens))
        prompt.askers += 1
        self._waiting.append(SlotRequest(job, prompt))

    def _unanswered(self) -> Iterable[Job]:
        return [row.job for row in (*self._flying(), *self._rows.values(), *self._waiting)]

    def _flying(self) -> list[SlotRequest]:
        return [row for rows, _ in self._flights for row in rows]

    def _advance(self) -> None:
        for row in [row for row in self._rows.values() if not row.job.wanted]:
            self._dismiss(row)
        self._seat()
        launched = self._launch()
        if self._flights and (not launched or len(self._flights) > 1):
            self._collect(*self._flights[0])
            self._flights.popleft()

    # Coming

    def _seat(self) -> None:
        """Gives free slots to those who wait."""
        while self._waiting and len(self._rows) < self._most:
            row = self._waiting[0]
            if not row.job.wanted:
                self._waiting.popleft()
                self._ask_no_more(row)
            elif row.prompt.pages is None:
                if not self._read():
                    if self._rows:
                        return  # until somebody leaves
                    row.job.fail(too_large_error(row.job))
            else:
                self._waiting.popleft()
                self._take_seat(row)

    def _take_seat(self, row: SlotRequest) -> None:
        slot = row.slot = self._vacant.pop()
        prompt = row.prompt
        prompt.users += 1
        self._rows[slot] = row
        self._seats.append(RowStart(slot, prompt.tokens[-1], len(prompt.tokens) - 1, row.job.completion.sampling))
        self._entries += [PageAssignment(slot, column, page) for column, page in enumerate(prompt.pages or ())]
        row.job.begin()

    def _read(self) -> bool:
        """Reads the prompt of who waits first, and those after it that can be read along; false without memory."""
        if missing := self._foreseen():
            self._stepper.grow(missing)
        chosen: list[SharedPrompt] = []
        longest = total = needed = 0
        for prompt in dict.fromkeys(row.prompt for row in self._waiting if row.prompt.pages is None):
            length = len(prompt.read_part)
            if length == 0:
                prompt.pages = []
                continue
            more = needed + pages_for(length)
            longest = max(longest, length)
            full = total + length > self._readable or (len(chosen) + 1) * longest > MAX_PADDING_FACTOR * self._readable
            if chosen and (full or more > self._pages.free):
                break
            if more > self._pages.free and not self._make_room(more):
                return False
            chosen.append(prompt)
            total, needed = total + length, more
        if not chosen:
            return True
        pages = [self._pages.take(pages_for(len(prompt.read_part))) for prompt in chosen]
        if not self._try_to_read(chosen, pages):
            for taken in pages:
                self._pages.give(taken)
            release_memory()
            self._readable = max(1, self._readable // 2)
            return len(chosen) > 1 and self._read()
        for prompt, taken in zip(chosen, pages, strict=True):
            prompt.pages = taken
        return True

    def _try_to_read(self, prompts: list[SharedPrompt], pages: list[list[int]]) -> bool:
        try:
            self._stepper.read([(prompt.read_part, taken) for prompt, taken in zip(prompts, pages, strict=True)])
        except Exception as error:
            if is_out_of_memory(error):
                return False
            if len(prompts) > 1:  # one of them may be to blame, for which the others are not to suffer
                return all(self._try_to_read([prompt], [taken]) for prompt, taken in zip(prompts, pages, strict=True))
            for row in self._waiting:
                if row.prompt in prompts:
                    row.job.fail(to_model_error(error))
        return True

    # Going on

    def _launch(self) -> bool:
        """Starts the next step of everyone; false when there is nobody."""
        while True:
            going = list(self._rows.values())
            needy = [row for row in going if row.steps == len(row.pages) * PAGE]
            if len(needy) <= self._pages.free or self._make_room(len(needy)):
                break
            self._halve()
        if not going:
            return False
        for row in needy:
            column = len(row.prompt.pages or ()) + len(row.pages)
            row.pages += self._pages.take(1)
            self._entries.append(PageAssignment(row.slot, column, row.pages[-1]))
        if needy:
            self._stepper.widen(max(len(row.prompt.pages or ()) + len(row.pages) for row in needy))
        flight = self._stepper.launch(list(self._rows), self._seats, self._entries)
        self._flights.append((going, flight))
        self._seats, self._entries = [], []
        for row in going:
            row.steps += 1
            if row.complete:
                self._leave(row)  # somebody else may sit there in the next step already
        return True

    def _collect(self, rows: list[SlotRequest], flight: PendingStep) -> None:
        for row, token in zip(rows, flight.tokens(), strict=True):
            if row.gone:
                continue
            try:
                row.job.completion.take(token)
            except Exception as error:  # of its text alone: the others are none the worse for it
                self._dismiss(row)
                row.job.fail(to_model_error(error))
            else:
                if row.job.completion.finish:
                    self._dismiss(row)
                    row.job.succeed()

    # Leaving

    def _dismiss(self, row: SlotRequest) -> None:
        row.gone = True
        if not row.complete:
            self._leave(row)

    def _leave(self, row: SlotRequest) -> None:
        """Its slot and its pages are for others: what they do with them comes after all that is under way."""
        del self._rows[row.slot]
        self._vacant.append(row.slot)
        self._pages.give(row.pages)
        row.prompt.users -= 1
        self._ask_no_more(row)
        # It may have sat down only just now.
        self._seats = [seat for seat in self._seats if seat.slot != row.slot]
        self._entries = [entry for entry in self._entries if entry.slot != row.slot]

    def _ask_no_more(self, row: SlotRequest) -> None:
        prompt = row.prompt
        prompt.askers -= 1
        if not prompt.askers:
            self._pages.give(prompt.pages or ())
            del self._prompts[prompt.tokens]

    def _make_room(self, needed: int) -> bool:
        """Sees to it that so many pages are free, if there is memory for them."""
        while self._pages.free < needed:
            half_as_many = self._pages.count // 2
            if not self._stepper.grow(max(needed - self._pages.free, self._foreseen(), half_as_many)):
                break
        # What was read ahead can be read again.
        for row in reversed(self._waiting):
            if self._pages.free >= needed:
                break
            if row.prompt.pages and not row.prompt.users:
                self._pages.give(row.prompt.pages)
                row.prompt.pages = None
        return self._pages.free >= needed

    def _foreseen(self) -> int:
        """Pages that full slots will need, those that there are not counted in."""
        rows = [*self._rows.values(), *self._waiting]
        longest = max(pages_for(min(row.job.completion.room, RESERVED_TOKENS)) for row in rows)
        prompts = max(pages_for(len(prompt.tokens)) for prompt in self._prompts.values())
        return max(0, self._most * longest + pages_for(self._readable) + 2 * prompts - self._pages.count)

    def _halve(self) -> None:
        """The half that has come last begins anew; the others go on, for whom a step that broke off is made again."""
        self._stepper.forget_graphs()
        release_memory()
        if not self._rows:  # not even for what the first who waits would need
            if self._waiting:
                self._waiting[0].job.fail(too_large_error(self._waiting[0].job))
            return
        if len(self._rows) == 1:
            (row,) = self._rows.values()
            self._dismiss(row)
            row.job.fail(too_large_error(row.job))
            return
        self._most = len(self._rows) // 2
        self._say_halved(len(self._rows), self._most)
        for row in list(self._rows.values())[: self._most - 1 : -1]:
            row.prompt.askers += 1
            self._dismiss(row)
            row.job.completion.restart()
            self._waiting.appendleft(SlotRequest(row.job, row.prompt))

    def _fail_all(self, error: Exception) -> None:
        for row in dict.fromkeys([*self._flying(), *self._rows.values()]):
            if not row.gone:
                self._dismiss(row)
                row.job.fail(error)
        self._flights.clear()

    def _clear(self) -> None:
        self._rows.clear()
        self._flights.clear()
        self._stepper.forget_graphs()
