"""Continuous batching: a fixed number of slots, refilled as completions end.

Each prompt is prefilled once, together with other waiting prompts, and its completions share
its keys and values. The host reads the tokens of a step while the next step runs, so the
device never waits for the host; the extra step of a completion that has ended is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from proctor.models.base import Request
from proctor.models.inference.completion import Completion
from proctor.models.inference.engine import EngineThread, make_too_large_error, to_model_error
from proctor.models.inference.job import Job
from proctor.models.inference.memory import is_out_of_memory, release_memory
from proctor.models.inference.pages import PAGE, pages_for
from proctor.models.inference.stepper import PageAssignment, PendingStep, RowStart, Stepper

MAX_PREFILL_TOKENS = 8_192  # tokens of the prompts that are prefilled together
MAX_PADDING_FACTOR = 4  # the same with padding, which only attention has: so many times as many
RESERVED_TOKENS = 256  # of a completion, for which pages are reserved when it starts


class SharedPrompt:
    """A prompt while any completion of it waits or runs."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self.tokens = tokens
        self.pages: list[int] | None = None  # set when it is prefilled
        self.references = 0  # rows that wait or run
        self.running = 0  # rows that run

    @property
    def prefix(self) -> tuple[int, ...]:
        """All tokens but the last, with which each row starts."""
        return self.tokens[:-1]


class SlotRequest:
    """A completion that waits for a slot, or has one."""

    def __init__(self, job: Job, prompt: SharedPrompt) -> None:
        self.job, self.prompt = job, prompt
        self.pages: list[int] = []
        self.slot = -1
        self.steps = 0  # launched
        self.finished = False  # further tokens are dropped

    @property
    def fully_launched(self) -> bool:
        """Whether the step of its last possible token was launched."""
        return self.steps >= self.job.completion.max_tokens


class SlotEngine(EngineThread):
    def __init__(self, name: str, stepper: Stepper, start: Callable[[Request], Completion], slots: int) -> None:
        super().__init__(name, start, slots)
        self._stepper, self._pages = stepper, stepper.pages
        self._max_prefill = MAX_PREFILL_TOKENS
        self._free_slots = list(reversed(range(slots)))
        self._waiting: deque[SlotRequest] = deque()
        self._prompts: dict[tuple[int, ...], SharedPrompt] = {}
        self._rows: dict[int, SlotRequest] = {}  # by slot, the oldest first
        # Changes that the next step sends to the device.
        self._row_starts: list[RowStart] = []
        self._page_assignments: list[PageAssignment] = []
        # Launched steps whose tokens were not read yet.
        self._pending_steps: deque[tuple[list[SlotRequest], PendingStep]] = deque()
        self._thread.start()

    def _work(self) -> None:
        with self._stepper.on_device():
            super()._work()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._rows or self._pending_steps)

    def _enqueue(self, job: Job) -> None:
        tokens = job.completion.prompt_tokens
        prompt = self._prompts.setdefault(tokens, SharedPrompt(tokens))
        prompt.references += 1
        self._waiting.append(SlotRequest(job, prompt))

    def _pending_jobs(self) -> Iterable[Job]:
        rows = (*self._rows_in_flight(), *self._rows.values(), *self._waiting)
        return [row.job for row in rows]

    def _rows_in_flight(self) -> list[SlotRequest]:
        return [row for rows, _ in self._pending_steps for row in rows]

    def _advance(self) -> None:
        for row in [row for row in self._rows.values() if not row.job.is_pending]:
            self._finish_row(row)
        self._fill_slots()
        launched = self._launch_step()
        if self._pending_steps and (not launched or len(self._pending_steps) > 1):
            self._read_tokens(*self._pending_steps[0])
            self._pending_steps.popleft()

    # Starting rows

    def _fill_slots(self) -> None:
        while self._waiting and len(self._rows) < self._max_batch_size:
            row = self._waiting[0]
            if not row.job.is_pending:
                self._waiting.popleft()
                self._release_prompt(row)
            elif row.prompt.pages is None:
                if not self._prefill():
                    if self._rows:
                        return  # retry when a row has released its pages
                    row.job.fail(make_too_large_error(row.job))
            else:
                self._waiting.popleft()
                self._start_row(row)

    def _start_row(self, row: SlotRequest) -> None:
        slot = row.slot = self._free_slots.pop()
        prompt = row.prompt
        prompt.running += 1
        self._rows[slot] = row
        sampling = row.job.completion.sampling
        self._row_starts.append(RowStart(slot, prompt.tokens[-1], len(prompt.tokens) - 1, sampling))
        self._page_assignments += [PageAssignment(slot, column, page) for column, page in enumerate(prompt.pages or ())]
        row.job.start()

    def _prefill(self) -> bool:
        """Prefill the first waiting prompt and those after it that fit into the same pass.

        Returns false when there is no memory for its pages.
        """
        if missing := self._missing_pages():
            self._stepper.grow(missing)
        chosen: list[SharedPrompt] = []
        longest = total = needed = 0
        unread = (row.prompt for row in self._waiting if row.prompt.pages is None)
        for prompt in dict.fromkeys(unread):
            length = len(prompt.prefix)
            if length == 0:
                prompt.pages = []
                continue
            more = needed + pages_for(length)
            longest = max(longest, length)
            padded = (len(chosen) + 1) * longest
            full = total + length > self._max_prefill or padded > MAX_PADDING_FACTOR * self._max_prefill
            if chosen and (full or more > self._pages.free):
                break
            if more > self._pages.free and not self._ensure_free_pages(more):
                return False
            chosen.append(prompt)
            total, needed = total + length, more
        if not chosen:
            return True
        pages = [self._pages.allocate(pages_for(len(prompt.prefix))) for prompt in chosen]
        if not self._try_prefill(chosen, pages):
            for allocated in pages:
                self._pages.release(allocated)
            release_memory()
            self._max_prefill = max(1, self._max_prefill // 2)
            return len(chosen) > 1 and self._prefill()
        for prompt, allocated in zip(chosen, pages, strict=True):
            prompt.pages = allocated
        return True

    def _try_prefill(self, prompts: list[SharedPrompt], pages: list[list[int]]) -> bool:
        """False when memory ran out; any other error fails the jobs of the prompt."""
        pairs = list(zip(prompts, pages, strict=True))
        try:
            self._stepper.prefill([(prompt.prefix, allocated) for prompt, allocated in pairs])
        except Exception as error:
            if is_out_of_memory(error):
                return False
            if len(prompts) > 1:  # find the prompt that fails, and prefill the others
                return all(self._try_prefill([prompt], [allocated]) for prompt, allocated in pairs)
            for row in self._waiting:
                if row.prompt in prompts:
                    row.job.fail(to_model_error(error))
        return True

    # Steps

    def _launch_step(self) -> bool:
        """Launch the next step of all rows; false when there are none."""
        while True:
            rows = list(self._rows.values())
            needing_page = [row for row in rows if row.steps == len(row.pages) * PAGE]
            if len(needing_page) <= self._pages.free or self._ensure_free_pages(len(needing_page)):
                break
            self._halve_batch()
        if not rows:
            return False
        for row in needing_page:
            column = len(row.prompt.pages or ()) + len(row.pages)
            row.pages += self._pages.allocate(1)
            self._page_assignments.append(PageAssignment(row.slot, column, row.pages[-1]))
        if needing_page:
            widest = max(len(row.prompt.pages or ()) + len(row.pages) for row in needing_page)
            self._stepper.widen_tables(widest)
        step = self._stepper.launch(list(self._rows), self._row_starts, self._page_assignments)
        self._pending_steps.append((rows, step))
        self._row_starts, self._page_assignments = [], []
        for row in rows:
            row.steps += 1
            if row.fully_launched:
                self._release_slot(row)  # the next step may reuse it
        return True

    def _read_tokens(self, rows: list[SlotRequest], step: PendingStep) -> None:
        for row, token in zip(rows, step.tokens(), strict=True):
            if row.finished:
                continue
            try:
                row.job.completion.add_deferred(token)
            except Exception as error:  # concerns the text of this completion only
                self._finish_row(row)
                row.job.fail(to_model_error(error))
            else:
                if row.job.completion.finish:
                    self._finish_row(row)
                    row.job.succeed()

    # Releasing slots and pages

    def _finish_row(self, row: SlotRequest) -> None:
        row.finished = True
        if not row.fully_launched:
            self._release_slot(row)

    def _release_slot(self, row: SlotRequest) -> None:
        """Release its slot and pages; steps that are already launched run before any reuse."""
        del self._rows[row.slot]
        self._free_slots.append(row.slot)
        self._pages.release(row.pages)
        row.prompt.running -= 1
        self._release_prompt(row)
        # The row may have started since the last step.
        self._row_starts = [start for start in self._row_starts if start.slot != row.slot]
        self._page_assignments = [assignment for assignment in self._page_assignments if assignment.slot != row.slot]

    def _release_prompt(self, row: SlotRequest) -> None:
        prompt = row.prompt
        prompt.references -= 1
        if not prompt.references:
            self._pages.release(prompt.pages or ())
            del self._prompts[prompt.tokens]

    def _ensure_free_pages(self, needed: int) -> bool:
        """Add pages, or release those of prompts that only wait; false if that is not enough."""
        while self._pages.free < needed:
            half_as_many = self._pages.count // 2
            missing = needed - self._pages.free
            if not self._stepper.grow(max(missing, self._missing_pages(), half_as_many)):
                break
        # A waiting prompt can be prefilled again.
        for row in reversed(self._waiting):
            if self._pages.free >= needed:
                break
            if row.prompt.pages and not row.prompt.running:
                self._pages.release(row.prompt.pages)
                row.prompt.pages = None
        return self._pages.free >= needed

    def _missing_pages(self) -> int:
        """Pages to add so that all slots can run."""
        rows = [*self._rows.values(), *self._waiting]
        longest = max(pages_for(min(row.job.completion.max_tokens, RESERVED_TOKENS)) for row in rows)
        prompts = max(pages_for(len(prompt.tokens)) for prompt in self._prompts.values())
        expected = self._max_batch_size * longest + pages_for(self._max_prefill) + 2 * prompts
        return max(0, expected - self._pages.count)

    def _halve_batch(self) -> None:
        """Restart the newer half of the rows later; the others repeat the failed step."""
        self._stepper.forget_graphs()
        release_memory()
        if not self._rows:  # the first waiting prompt does not fit
            if self._waiting:
                self._waiting[0].job.fail(make_too_large_error(self._waiting[0].job))
            return
        if len(self._rows) == 1:
            (row,) = self._rows.values()
            self._finish_row(row)
            row.job.fail(make_too_large_error(row.job))
            return
        self._max_batch_size = len(self._rows) // 2
        self._log_halved(len(self._rows), self._max_batch_size)
        for row in list(self._rows.values())[: self._max_batch_size - 1 : -1]:
            row.prompt.references += 1
            self._finish_row(row)
            row.job.completion.restart()
            self._waiting.appendleft(SlotRequest(row.job, row.prompt))

    def _fail_all(self, error: Exception) -> None:
        for row in dict.fromkeys([*self._rows_in_flight(), *self._rows.values()]):
            if not row.finished:
                self._finish_row(row)
                row.job.fail(error)
        self._pending_steps.clear()

    def _clear(self) -> None:
        self._rows.clear()
        self._pending_steps.clear()
        self._stepper.forget_graphs()
