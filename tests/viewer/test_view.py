"""The results page in a real browser, over a store with runs of all families: opened, clicked through, typed at."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from helpers import needs

needs.module("playwright", "dev")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    needs.program("chromium", "chromium")

from msgspec.structs import replace
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright
from test_viewer_server import Viewer

import proctor
from conftest import Stalling
from helpers.results_store import CUT_OFF, HOSTILE, make_record, make_run
from proctor.core.errors import ProctorError
from proctor.core.types import Record
from proctor.store import open_store
from proctor.viewer.assets import page_files

DEADLINE = 120_000  # milliseconds
expect.set_options(timeout=DEADLINE)  # much more than is ever needed, on a machine that has other work too
LONG = 20_000
FIRST, SECOND, LONGEST, EVIL, REASONING = (f"20260101-00000{number}-aaaaaa" for number in range(5))
PROGRAMS = """
from proctor.code import Task

PROBLEMS = [
    {"task_id": "own/0", "prompt": "def double(x):\\n", "canonical_solution": "    return 2 * x\\n",
     "test": "assert double(3) == 6", "entry_point": "double"},
    {"task_id": "own/1", "prompt": "def half(x):\\n", "canonical_solution": "    return half_of(x)\\n",
     "test": "assert half(4) == 2", "entry_point": "half"},
]

class Own(Task):
    def __init__(self):
        super().__init__(stop_words=[], requires_execution=True)

    def get_dataset(self):
        return PROBLEMS

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Made-up runs and real ones; where slow tests are run, of all families."""
    root = tmp_path_factory.mktemp("view")
    place = str(root / "store")
    for model in ("scripted/oracle", "scripted/random"):
        proctor.evaluate("shapes/count", model, limit=30, store=place, group_by=["shapes"], tags=["nightly"])
    store = open_store(place)
    make_run(
        store, FIRST, 60, lambda i: make_record(i, float(i % 2) if i else None), candidate="made/first", tags=["a"]
    )
    make_run(store, SECOND, 60, lambda i: make_record(i, float(i % 3 > 0), words=""), candidate="made/second")
    hostile = {0: 0.0, 1: 1.0}
    make_run(
        store, EVIL, 2, lambda i: make_record(i, hostile[i], HOSTILE, HOSTILE), candidate=HOSTILE, task="made/evil"
    )
    make_run(
        store,
        REASONING,
        40,
        lambda i: make_record(i, float(i % 2), CUT_OFF if i % 4 == 0 else "unreadable" if i % 4 == 2 else ""),
        candidate="made/reasoning",
        task="made/reasoned",
    )
    if any(item.path == request.path and item.get_closest_marker("slow") for item in request.session.items):
        make_run(store, LONGEST, LONG, lambda i: make_record(i, float(i % 4 > 0)), task="made/long")
        add_families(root, place)
    store.close()
    return root


def add_families(root: Path, place: str) -> None:
    """All before the browser is started, whose loop would be in the way."""
    (root / "own.py").write_text(PROGRAMS)
    proctor.evaluate(
        "shapes/existence", "scripted/random", limit=5, modality="image", few_shot=1, shots="other", store=place
    )
    proctor.evaluate("agents/catch", agent="random", limit=2, store=place)
    try:
        proctor.evaluate(f"{root / 'own.py'}:Own", "scripted/oracle", allow_code_execution=True, store=place)
    except ProctorError:
        shutil.rmtree(
            root / "own.py", ignore_errors=True
        )  # a machine that holds no programs: the test of them is skipped


@pytest.fixture(scope="module")
def film(folder: Path) -> str:
    """A run with a film; it is there before the browser, whose loop would be in the way."""
    needs.program("Xvfb", "xvfb")
    needs.program("ffmpeg", "ffmpeg")
    needs.module("pygame", "desktop")
    player = "proctor.agents.games.hexagon.window_players:ReferenceAgent"
    command = [sys.executable, "-m", "proctor", "run", "agents/hexagon", "--agent", player, "--episodes", "1", "-q"]
    settings = ["--set", "timeout=3", "--set", "survive=1", "--store", str(folder / "films")]
    subprocess.run([*command, *settings], check=True, capture_output=True, timeout=600)
    return str(folder / "films")


@pytest.fixture(scope="module")
def viewer(folder: Path) -> Iterator[Viewer]:
    viewer = Viewer("--store", str(folder / "store"))
    yield viewer
    assert viewer.stop() == 0


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        alone = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=alone)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
    yield context
    context.close()


class Watched:
    """A page of which nothing may go wrong unseen, and nothing may ask another machine."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.troubles: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(DEADLINE)
        page.on("console", lambda message: self.troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: self.troubles.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, address: str = "#/") -> Page:
        self.page.goto(f"{self.url}{address}")
        self.page.locator(f'html[data-shown="{address}"]').wait_for(state="attached")
        return self.page

    def check(self) -> None:
        assert self.troubles == []
        own = urlsplit(self.url)[:2]
        assert {urlsplit(url)[:2] for url in self.requests if not url.startswith("data:")} <= {own}


@pytest.fixture
def watch(context: BrowserContext) -> Iterator[Callable[[str], Watched]]:
    watched: list[Watched] = []

    def watch(url: str) -> Watched:
        watched.append(Watched(context.new_page(), url))
        return watched[-1]

    yield watch
    for one in watched:
        one.check()


@pytest.fixture
def view(watch: Callable[[str], Watched], viewer: Viewer) -> Watched:
    return watch(viewer.url)


def rows(page: Page) -> Locator:
    return page.locator(".rows .row:not(.empty)")


def scroll_to(page: Page, share: float) -> int:
    """Scrolls a table of so many rows, and says which of them is then in the middle, once it is drawn."""
    middle = page.evaluate(
        """([share, n]) => {
            scrollTo(0, share * document.body.scrollHeight);
            const rows = document.querySelector(".rows").getBoundingClientRect();
            return Math.floor((innerHeight / 2 - rows.top) / (rows.height / n));
        }""",
        [share, LONG],
    )
    return int(middle)


def row_at(page: Page, position: int) -> Locator:
    return page.locator(f'.rows .row:not(.empty)[aria-rowindex="{position + 2}"]')  # counted from 1, with the head


def run_of(page: Page, task: str, candidate: str = "") -> str:
    """The id of a run in the list."""
    row = rows(page).filter(has_text=task).filter(has_text=candidate).first
    return (row.locator("a.opens").get_attribute("href") or "").removeprefix("#/run/")


# -- the list of runs ---------------------------------------------------------------------------------


def test_runs_are_listed_with_their_results(view: Watched) -> None:
    page = view.open()
    expect(page).to_have_title("Runs – Proctor")
    expect(page.locator(".summary")).to_have_text(re.compile(r"^\d+ runs$"))
    assert "token" not in page.url, "it need not stand in the address"
    row = rows(page).filter(has_text="shapes/count").filter(has_text="scripted/oracle")
    expect(row).to_contain_text("1.000")
    expect(row.locator(".interval")).to_have_attribute("aria-label", re.compile(r"95 % interval 0\.\d+ – 1\.000"))
    expect(row.locator(".tag")).to_have_text("nightly")


@pytest.mark.slow
def test_runs_are_filtered_and_the_address_holds_it(view: Watched) -> None:
    page = view.open()
    page.get_by_label("Task").select_option("shapes/count")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Model or agent").select_option("scripted/random")
    expect(rows(page)).to_have_count(1)
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Task")).to_have_value("shapes/count")
    view.open("#/?q=made+second")
    expect(rows(page)).to_have_count(1)
    view.open("#/?tag=a")
    expect(rows(page)).to_contain_text("made/first")
    view.open("#/?from=2024-01-01&task=made%2Fsums")
    expect(page.locator(".summary")).to_contain_text("0 of")
    view.open("#/?from=2023-11-01&to=2023-11-30&task=made%2Fsums")
    expect(rows(page)).to_have_count(2)


# -- a run --------------------------------------------------------------------------------------------


def test_a_run_shows_what_came_out(view: Watched) -> None:
    page = view.open(f"#/run/{FIRST}")
    expect(page.locator("h1")).to_contain_text("made/sums")
    expect(page.locator(".results")).to_contain_text("accuracy")
    expect(page.get_by_role("region").or_(page.locator("section")).filter(has_text="accuracy by level")).to_be_visible()
    expect(page.locator(".outcomes")).to_contain_text("passed 30")
    expect(page.locator(".found")).to_have_text("60 records")
    page.locator(".results").get_by_role("link", name="hard").click()
    expect(page.locator(".found")).to_have_text("20 found")
    page.get_by_text("Configuration and provenance").click()
    expect(page.locator(".actions pre")).to_contain_text('"model": "made/first"')


def test_outputs_that_were_cut_off_are_counted_apart_and_announced(view: Watched) -> None:
    page = view.open(f"#/run/{REASONING}")
    expect(page.locator(".notice")).to_have_text(
        "25.0 % of the outputs (10 of 40) ended by length before an answer: raise --max-tokens (it was 64)."
    )
    chips = page.locator(".outcomes").get_by_role("button")
    assert [" ".join(text.split()) for text in chips.all_text_contents()] == [
        "all 40",
        "✓ passed 20",
        "✗ failed 20",
        "? unparsed 10",
        "… truncated 10",
    ]
    chips.filter(has_text="truncated").click()
    expect(page.locator(".found")).to_have_text("10 found")
    expect(rows(page).first.locator(".mark")).to_have_attribute("aria-label", "cut off before an answer")
    rows(page).first.locator("a.opens").click()
    expect(page.locator(".verdict-panel.truncated")).to_contain_text("reached its most tokens before an answer")
    expect(page.get_by_text("ended by")).to_be_visible()
    view.open(f"#/run/{FIRST}")
    expect(page.locator("h1")).to_contain_text("made/sums")
    expect(page.locator(".notice")).to_have_count(0)


@pytest.mark.slow
def test_samples_are_filtered(view: Watched) -> None:
    page = view.open(f"#/run/{FIRST}")
    found = page.locator(".found")
    for name, n in (("failed", 29), ("passed", 30), ("errors", 1)):
        page.locator(".outcomes").get_by_role("button", name=name).click()
        expect(found).to_have_text(f"{n} found")
    expect(rows(page)).to_contain_text("made-0")
    assert "outcome=error" in page.url
    page.locator(".outcomes").get_by_role("button", name="all").click()
    search = page.get_by_label("Search in prompts")
    search.fill("What is 1")
    expect(found).to_have_text("11 found")
    search.fill("WHAT level:hard odd:0")
    expect(found).to_have_text("10 found")
    search.fill('"level:hard"')
    expect(found).to_have_text("0 found")
    page.get_by_label("starred").check()
    expect(found).to_have_text("0 found")
    page.reload()
    expect(page.get_by_label("starred")).to_be_checked()
    expect(search).to_have_value('"level:hard"')


@pytest.mark.slow
def test_a_long_table_scrolls(view: Watched) -> None:
    page = view.open(f"#/run/{LONGEST}")
    expect(page.locator(".found")).to_have_text("20,000 records")
    assert page.locator(".rows .row").count() < 100, "only the rows in sight are there"
    for share, near in ((0.5, 10_000), (1.0, 19_999), (0.1, 2_000)):
        middle = scroll_to(page, share)
        assert abs(middle - near) < 100
        row = row_at(page, middle)
        expect(row).to_be_in_viewport()
        expect(row).to_contain_text(f"made-{middle}")
        expect(page.locator(".row.empty")).to_have_count(0)
        shown = [int(text.removeprefix("made-")) for text in rows(page).locator(".sample").all_inner_texts()]
        assert shown == sorted(shown), "also for those who read them one after the other"
    page.locator(".outcomes").get_by_role("button", name="failed").click()
    expect(page.locator(".found")).to_have_text("5,000 found")
    expect(rows(page).first).to_contain_text("made-")


# -- a sample -----------------------------------------------------------------------------------------


def test_a_sample_shows_question_answer_and_verdict(view: Watched) -> None:
    page = view.open(f"#/run/{FIRST}/2")
    expect(page.locator("h1")).to_have_text("made-2")
    expect(page.locator(".verdict-panel")).to_contain_text("wrong")
    expect(page.locator(".verdict-panel")).to_contain_text("not the sum")
    expect(page.locator(".message.system")).to_contain_text("You are sitting an exam.")
    expect(page.locator(".message.user")).to_contain_text("What is 2 + 2?")
    expect(page.locator(".verdict-panel")).to_contain_text("20 in, 3 out")
    expect(page.locator(".verdict-panel")).to_contain_text("0.0001")
    expect(page.locator(".verdict-panel")).to_contain_text("450 ms")
    page.get_by_text("The whole record").click()
    expect(page.locator(".more pre").last).to_contain_text('"id": "made-2"')
    view.open(f"#/run/{FIRST}/0")
    expect(page.locator(".verdict-panel")).to_contain_text("ModelError: the server did not answer")


@pytest.mark.slow
def test_a_canvas_is_drawn_and_pictures_are_shown(view: Watched) -> None:
    page = view.open()
    run = run_of(page, "shapes/count", "scripted/random")
    view.open(f"#/run/{run}/3")
    expect(page.locator(".canvas img")).to_be_visible()
    assert page.locator(".canvas img").evaluate("picture => picture.naturalWidth") > 100
    view.open()
    run = run_of(page, "shapes/existence")
    view.open(f"#/run/{run}/1")
    expect(page.locator(".message.user")).to_have_count(2)  # a worked example before the question
    expect(page.locator(".message.assistant .role").first).to_have_text("assistant")
    for number in range(2):
        assert page.locator(".message.user img").nth(number).evaluate("picture => picture.naturalWidth") > 100
    expect(page.locator(".canvas")).to_have_count(0)


@pytest.mark.slow
def test_a_program_is_shown_with_its_verdict(view: Watched, folder: Path) -> None:
    if not (folder / "own.py").exists():
        pytest.skip("this machine cannot contain programs")
    page = view.open()
    run = run_of(page, "own.py:Own")
    view.open(f"#/run/{run}/0")
    expect(page.locator(".trial")).to_contain_text("return 2 * x")
    expect(page.locator(".trial .badge")).to_have_text("✓ passed")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_have_text("own/1")
    expect(page.locator(".trial .badge")).to_contain_text("✗")
    expect(page.locator(".trial .fault")).to_contain_text("half_of")


@pytest.mark.slow
def test_an_episode_of_a_world_has_its_steps(view: Watched) -> None:
    page = view.open()
    run = run_of(page, "agents/catch")
    view.open(f"#/run/{run}/0")
    expect(page.locator(".episode h3")).to_have_text("35 steps")
    expect(page.locator(".events li").nth(1)).to_contain_text("step 1: action")
    expect(page.locator(".came-back .pairs")).to_contain_text("completed")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="events.jsonl").click()
    expect(opened.value.locator("body")).to_contain_text('"task":"agents/catch"')


@pytest.mark.slow
def test_a_film_plays_and_events_lead_into_it(watch: Callable[[str], Watched], film: str) -> None:
    viewer = Viewer("--store", film)
    try:
        view = watch(viewer.url)
        page = view.open("#/run/latest/0")
        video = page.locator("video")
        page.locator(".events li").first.wait_for()
        seconds = _when(video, "loadedmetadata", "video.readyState >= 1 && video.duration")
        assert seconds > 2
        press = page.locator(".event", has_text="SPACE").first
        press.click()
        at = _when(video, "seeked", "!video.seeking && video.currentTime")
        minutes, _, rest = press.locator(".figure").inner_text().partition(":")
        assert abs(at - (60 * int(minutes) + float(rest))) < 3, "the film began a moment before the log"
        assert page.locator(".lane-name", has_text="SPACE").is_visible()
        parts = [url for url in view.requests if url.endswith("film.mp4")]
        assert parts
    finally:
        assert viewer.stop() == 0


def _when(video: Locator, event: str, found: str) -> float:
    """What is found at a film, now or after an event."""
    seen = video.evaluate(
        f"""video => new Promise((resolve) => {{
            const look = () => {{ const found = {found}; if (found) resolve(found); return found; }};
            if (!look()) video.addEventListener("{event}", look);
        }})"""
    )
    return float(seen)


# -- by keyboard --------------------------------------------------------------------------------------


def test_the_keyboard_is_enough(view: Watched) -> None:
    page = view.open()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("made/first")
    expect(rows(page)).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(rows(page).locator("a.opens")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("made/sums")
    page.keyboard.press("/")
    page.keyboard.type("level:hard")
    expect(page.locator(".found")).to_have_text("20 found")
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(rows(page).nth(2).locator("a.opens")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("made-6")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_have_text("made-9")
    expect(page.locator(".neighbours")).to_contain_text("4 of 20 found")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("h1")).to_have_text("made-6")
    page.keyboard.press("k")
    expect(page.locator("h1")).to_have_text("made-3")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator(".found")).to_have_text("20 found")
    expect(page.locator(".row.chosen")).to_contain_text("made-3")
    page.keyboard.press("j")
    expect(page.locator(".row.chosen")).to_contain_text("made-6")
    page.keyboard.press("Escape")
    expect(page.locator(".summary")).to_be_visible()
    expect(page.locator(".row.chosen")).to_contain_text("made/first")


@pytest.mark.slow
def test_the_way_back_leads_to_the_same_place(view: Watched) -> None:
    page = view.open(f"#/run/{LONGEST}")
    middle = scroll_to(page, 0.3)
    row, name = row_at(page, middle), f"made-{middle}"
    expect(row).to_be_in_viewport()
    row.click()
    expect(page.locator("h1")).to_have_text(name)
    page.go_back()
    expect(row).to_be_in_viewport()
    expect(row).to_contain_text(name)


# -- several runs -------------------------------------------------------------------------------------


def test_runs_are_compared(view: Watched) -> None:
    page = view.open("#/?task=made%2Fsums")
    for name in ("made/first", "made/second"):
        rows(page).filter(has_text=name).get_by_role("checkbox").check()
    page.get_by_role("link", name="Compare").click()
    expect(page.locator("h1")).to_contain_text("made/sums")
    expect(page.locator(".compared")).to_contain_text("baseline")
    expect(page.get_by_text(re.compile(r"95 % interval .* p "))).to_be_visible()
    flipped = int(page.locator(".chip").first.locator(".figure").inner_text())
    expect(page.locator(".flips")).to_have_attribute("aria-rowcount", str(flipped + 1))
    page.locator(".chip", has_text="worse").click()
    worse = int(page.locator(".chip", has_text="worse").locator(".figure").inner_text())
    expect(page.locator(".flips")).to_have_attribute("aria-rowcount", str(worse + 1))
    rows(page).first.locator("a.opens").click()
    sample = page.locator(".compared-sample")
    expect(sample.locator("del")).not_to_have_count(0)
    expect(sample.locator("ins")).not_to_have_count(0)
    expect(sample.locator(".neighbours")).to_contain_text(f"1 of {worse}")
    first = sample.locator("h2").inner_text()
    page.keyboard.press("j")
    expect(sample.locator("h2")).not_to_have_text(first)
    page.get_by_role("link", name="as baseline").click()
    expect(page.locator(".compared tbody tr").first).to_contain_text("made/")


@pytest.mark.slow
def test_other_exams_are_not_compared(view: Watched) -> None:
    page = view.open(f"#/compare/{FIRST}/{EVIL}")
    expect(page.locator(".notice")).to_contain_text("different exams")


@pytest.mark.slow
def test_leaderboards_and_plots(view: Watched) -> None:
    page = view.open("#/tasks")
    page.get_by_role("link", name="shapes/count").click()
    board = page.locator(".board").first
    expect(board.locator("tbody tr").first).to_contain_text("scripted/oracle")
    board.get_by_role("link", name="Compare the two").click()
    expect(page.locator(".compared")).to_be_visible()
    page.get_by_role("button", name="Plots").click()
    expect(page.locator(".plots img").first).to_be_visible()
    view.open(f"#/run/{FIRST}")
    page.get_by_role("button", name="Plots").click()
    for number in range(page.locator(".plots img").count()):
        plot = page.locator(".plots img").nth(number)
        assert plot.evaluate("picture => picture.naturalWidth") > 100
        assert len(plot.get_attribute("alt") or "") > 20


# -- review -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_samples_are_reviewed(watch: Callable[[str], Watched], folder: Path) -> None:
    viewer = Viewer("--store", str(folder / "store"), "--review", "anna")
    try:
        page = watch(viewer.url).open(f"#/run/{SECOND}/3")
        page.get_by_role("button", name="Star").click()
        expect(page.get_by_role("button", name="Starred")).to_have_attribute("aria-pressed", "true")
        page.get_by_text("Comment or score as anna").click()
        page.get_by_label("Comment", exact=True).fill(HOSTILE.replace("\0", ""))
        page.get_by_role("button", name="Keep it").click()
        expect(page.locator(".reviews")).to_contain_text("<script>window.hacked")
        page.get_by_text("Comment or score as anna").click()
        page.get_by_label("Score, from 0 to 1").fill("0.5")
        page.keyboard.press("Enter")
        expect(page.locator(".reviews")).to_contain_text("would score 0.500")
        expect(page.locator(".verdict-panel")).to_contain_text("0")
        expect(page.locator(".verdict-panel .badge")).to_contain_text("wrong")
        assert page.evaluate("window.hacked") is None
        page.locator(".crumbs a").click()
        expect(page.locator(".results .metrics").first).to_contain_text("0.667")
        page.get_by_text("Count the scores of people (1)").click()
        expect(page.locator(".reviewed")).to_contain_text("0.675")
        expect(page.locator(".reviewed")).to_contain_text("anna 1")
        page.get_by_label("starred").check()
        expect(page.locator(".found")).to_have_text("1 found")
        expect(rows(page)).to_contain_text("★")
    finally:
        assert viewer.stop() == 0


@pytest.mark.slow
def test_a_reader_cannot_review(view: Watched) -> None:
    page = view.open(f"#/run/{SECOND}/4")
    expect(page.locator(".star-button")).to_have_count(0)
    expect(page.locator(".review-forms")).to_have_count(0)


# -- live ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_live_run_appears_and_grows(view: Watched, folder: Path, adding: str, stalling: Stalling) -> None:
    page = view.open()
    server = stalling(6)
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "openai/m", "--base-url", server.url, "-q"]
    options = ["--limit", "10", "--store", str(folder / "store"), "--concurrency", "1"]
    run = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, env=os.environ | {"OPENAI_API_KEY": "k"})
    try:
        row = rows(page).filter(has_text="adding.py:Adding")
        expect(row).to_contain_text("in progress")
        expect(row).to_contain_text("6 of 10")
        row.locator("a.opens").click()
        expect(page.locator(".found")).to_have_text("6 records")
        server.open_gate()
        expect(page.locator(".found")).to_have_text("10 records")
        expect(page.locator(".metrics")).to_contain_text("1.000")
    finally:
        server.open_gate()
        assert run.wait(DEADLINE / 1000) == 0


@pytest.mark.slow
def test_a_page_without_its_server_says_so(context: BrowserContext, folder: Path) -> None:
    viewer = Viewer("--store", str(folder / "store"))
    page = Watched(context.new_page(), viewer.url).open()
    assert viewer.stop() == 0
    expect(page.locator(".live")).to_contain_text("does not answer")
    expect(rows(page).first).to_be_visible()


# -- texts that would like to be more -----------------------------------------------------------------


def test_hostile_texts_stay_texts(view: Watched) -> None:
    page = view.open()
    run = run_of(page, "made/evil")
    for address in (f"#/run/{run}", f"#/run/{run}/0", f"#/run/{run}/1", "#/tasks/made%2Fevil", "#/?q=%3Cscript%3E"):
        view.open(address)
        expect(page.locator("main")).to_contain_text("<script>window.hacked = 1</script>")
        assert page.evaluate("window.hacked") is None
        assert (
            page.locator("main script, main svg, main iframe, main object, main [onerror], main [onload]").count() == 0
        )
        assert page.locator("main a[href^='javascript']").count() == 0
    page.goto(f"{view.url}#/<img src=x onerror=alert(1)>/%3Cscript%3E")
    expect(page.locator("main")).to_contain_text("no such page")


@pytest.mark.slow
def test_an_unknown_run_is_told_in_words(context: BrowserContext, viewer: Viewer) -> None:
    watched = Watched(context.new_page(), viewer.url)
    for name in ("1999", "%E0%A4%A"):
        page = watched.open(f"#/run/{name}")
        expect(page.locator(".notice")).to_contain_text(name)


# -- every page, in every form ------------------------------------------------------------------------


def every_page(page: Page, view: Watched) -> list[str]:
    view.open()
    shapes, catch = run_of(page, "shapes/count", "scripted/random"), run_of(page, "agents/catch")
    return [
        "#/",
        f"#/run/{FIRST}",
        f"#/run/{FIRST}/2",
        f"#/run/{shapes}/1",
        f"#/run/{catch}/0",
        f"#/compare/{FIRST}/{SECOND}",
        f"#/compare/{FIRST}/{SECOND}?sample=3",
        "#/tasks",
        "#/tasks/shapes%2Fcount",
        f"#/run/{EVIL}/0",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone(view: Watched, scheme: Literal["light", "dark"]) -> None:
    page = view.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme=scheme)
    for address in every_page(page, view):
        view.open(address)
        wide = page.evaluate(
            """[...document.querySelectorAll("main *")].filter((e) =>
                e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .cell, .events"))
                .map((e) => e.outerHTML.slice(0, 200))"""
        )
        assert wide == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 380
    assert light == (scheme == "light")


@pytest.mark.slow
def test_everything_has_a_name(view: Watched) -> None:
    page = view.page
    for address in every_page(page, view):
        view.open(address)
        nameless = page.evaluate(
            """[...document.querySelectorAll("button, a[href], input, select, textarea, video, img")].filter((e) =>
                !(e.getAttribute("aria-label") || e.textContent.trim() || e.getAttribute("alt") || e.labels?.length))
                .map((e) => e.outerHTML.slice(0, 200))"""
        )
        assert nameless == [], address
        assert page.locator("h1").count() == 1, address


@pytest.mark.slow
def test_an_export_shows_the_same_without_a_server(
    watch: Callable[[str], Watched], folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    names = [FIRST, SECOND, EVIL]
    store = open_store(str(folder / "store"), mode="read")
    names += [run.id for run in store.runs() if run.task in ("shapes/count", "agents/catch")]
    store.close()
    command = [sys.executable, "-m", "proctor", "view", *names, "--store", str(folder / "store"), "--export", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    view = watch((out / "index.html").as_uri())
    page = view.page
    for address in every_page(page, view):
        view.open(address)
        expect(page.locator(".notice")).to_have_count(0)
        assert page.evaluate("window.hacked") is None
    view.open(f"#/run/{FIRST}?outcome=fail&q=level:hard")
    expect(page.locator(".found")).to_have_text("9 found")
    rows(page).nth(1).locator("a.opens").click()
    expect(page.locator(".neighbours")).to_contain_text("2 of 9 found")
    page.keyboard.press("k")
    expect(page.locator(".neighbours")).to_contain_text("1 of 9 found")
    page.keyboard.press("u")
    page.get_by_label("Search in prompts").fill("what is 1")
    expect(page.locator(".found")).to_have_text("5 found")
    assert all(url.startswith(("file:", "data:")) for url in view.requests)


@pytest.mark.slow
def test_every_value_of_the_metadata_finds_its_samples(watch: Callable[[str], Watched], tmp_path: Path) -> None:
    """Whatever it is, and however its key is written; in an export, too."""
    held = {
        "ratio": 1.0,
        "large": 1e16,
        "two words": "a b",
        "lines": "a\nb",
        "said": 'a "b"',
        "ключ": "да",
        "no": False,
    }
    place, run = str(tmp_path / "store"), FIRST

    def awkward(index: int) -> Record:
        record = make_record(index, 1.0)
        metadata = record.sample.metadata | (held if index else dict.fromkeys(held, "other"))
        return replace(record, sample=replace(record.sample, metadata=metadata))

    store = open_store(place)
    make_run(store, run, 3, awkward)
    store.close()
    viewer = Viewer("--store", place)
    command = [sys.executable, "-m", "proctor", "view", "--store", place, "--export", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    for url in (viewer.url, (tmp_path / "out" / "index.html").as_uri()):
        view = watch(url)
        for key in held:
            page = view.open(f"#/run/{run}/1")
            page.locator(".more .facts div").filter(has=page.get_by_text(key, exact=True)).locator("a").click()
            expect(page.locator(".found")).to_have_text("2 found")
    assert viewer.stop() == 0


# -- colours ------------------------------------------------------------------------------------------


def test_colours_can_be_read() -> None:
    """A contrast of at least 4.5 between all texts and the grounds they stand on."""
    css = page_files()["page.css"][1].decode()
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in css.split("@media")[:2])
    for palette in (light, light | dark):
        texts = ("ink", "soft", "link", "pass", "fail", "error", "unparsed")
        pairs = [(text, ground) for text in texts for ground in ("paper", "sheet", "hollow")]
        pairs += [(kind, f"{kind}-ground") for kind in ("pass", "fail", "error", "unparsed", "link")]
        pairs += [("ink", ground) for ground in ("fail-ground", "link-ground", "come", "gone")] + [("sheet", "link")]
        low = {pair: round(_contrast(palette[pair[0]], palette[pair[1]]), 2) for pair in pairs}
        assert {pair: value for pair, value in low.items() if value < 4.5} == {}


def _contrast(one: str, other: str) -> float:
    bright, dim = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
