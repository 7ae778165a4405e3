"""The server of the results page, asked by hand: who gets an answer, and what can never be had."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

import proctor as proctor_package
from conftest import Command
from helpers.results_store import make_record, make_run
from proctor.store import open_store
from proctor.viewer.assets import page_files
from proctor.viewer.timeline import read_timeline

RUN = "20260101-000000-aaaaaa"
DEADLINE = 120  # seconds, for what takes a moment on a machine with nothing else to do
SECRET = "nobody outside may read this"


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Viewer:
    """`proctor view` as a process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "proctor", "view", "--no-browser", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._output, self._errors = self.process.stdout, self.process.stderr
        self.url = self._output.readline().strip()
        assert self.url, self._errors.read()
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname or "", parts.port
        self.token = parse_qs(parts.query)["token"][0]

    def ask(
        self,
        path: str,
        *,
        token: bool = True,
        method: str = "GET",
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: str,
    ) -> Reply:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        given = {name.replace("_", "-"): value for name, value in {**(headers or {}), **more}.items()}
        if token:
            given.setdefault("Cookie", f"proctor-{self.port}={self.token}")
        connection.request(method, path, body, given)
        reply = connection.getresponse()
        answer = Reply(reply.status, reply.headers, reply.read())
        connection.close()
        return answer

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(DEADLINE)
        self._output.close()
        self._errors.close()
        return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("viewer")
    (root / "secret.txt").write_text(SECRET)
    store = open_store(str(root / "store"))
    make_run(store, RUN, 30, lambda index: make_record(index, float(index % 3 > 0) if index else None))
    files = store.artifact_folder(store.run(RUN)) / "000003-0-1"
    files.mkdir(parents=True)
    (files / "film.mp4").write_bytes(bytes(range(256)) * 40)
    (files / "page.html").write_text("<script>1</script>")
    (files / "events.jsonl").write_text('{"ns": 1000000000, "event": "started"}\n')
    (files / "link.txt").symlink_to(root / "secret.txt")
    (files.parent / "elsewhere").symlink_to(root)
    store.close()
    return root


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Callable[..., Viewer]]:
    started: list[Viewer] = []

    def start(*arguments: str) -> Viewer:
        started.append(Viewer("--store", str(folder / "store"), *arguments))
        return started[-1]

    yield start
    for viewer in started:
        assert viewer.stop() == 0


@pytest.fixture(scope="module")
def viewer(start: Callable[..., Viewer]) -> Viewer:
    return start()


@pytest.fixture(scope="module")
def reviewing(start: Callable[..., Viewer]) -> Viewer:
    return start("--review", "anna")


PATHS = [
    "/",
    "/page.js",
    "/page.css",
    "/api/runs",
    f"/api/run?run={RUN}",
    f"/files/{RUN}/000003-0-1/film.mp4",
    "/nothing",
]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_told(viewer: Viewer, path: str) -> None:
    for headers in ({}, {"Cookie": f"proctor-{viewer.port}=guess"}, {"Cookie": f"proctor-1={viewer.token}"}):
        reply = viewer.ask(path, token=False, headers=headers)
        assert reply.status == 401
        assert b"proctor view" in reply.body
        assert "Set-Cookie" not in reply.headers
    assert viewer.ask(f"{path}{'&' if '?' in path else '?'}token=guess", token=False).status == 401


def test_the_token_in_the_address_becomes_a_cookie(viewer: Viewer) -> None:
    reply = viewer.ask(f"/?token={viewer.token}", token=False)
    assert reply.status == 200
    cookie = reply.headers["Set-Cookie"]
    assert cookie.startswith(f"proctor-{viewer.port}={viewer.token}")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert viewer.ask("/").status == 200


def test_another_name_is_refused(viewer: Viewer) -> None:
    """A site whose name was made to lead to this machine knows no token; and would be refused with one."""
    assert viewer.ask("/api/runs", Host="evil.example").status == 403
    assert viewer.ask("/api/runs", Host=f"evil.example:{viewer.port}").status == 403
    for name in (f"127.0.0.1:{viewer.port}", f"localhost:{viewer.port}"):
        assert viewer.ask("/api/runs", Host=name).status == 200


def test_the_browser_is_told_to_be_strict(viewer: Viewer) -> None:
    for path in ("/", "/api/runs", "/nothing"):
        headers = viewer.ask(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(viewer: Viewer, method: str) -> None:
    own = {"Origin": f"http://127.0.0.1:{viewer.port}", "Content_Type": "application/json"}
    for path in ("/api/runs", "/api/reviews", "/"):
        assert viewer.ask(path, method=method, body="{}", headers=own).status in (404, 405)
        assert viewer.ask(path, method=method, body="{}").status == 403


WAYS_OUT = [
    "../../../secret.txt",
    "..%2f..%2f..%2fsecret.txt",
    "%2e%2e/%2e%2e/%2e%2e/secret.txt",
    "000003-0-1/../../../../secret.txt",
    "000003-0-1/..%2f..%2f..%2f..%2fsecret.txt",
    "000003-0-1/link.txt",
    "elsewhere/secret.txt",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    "000003-0-1\\..\\..\\..\\..\\secret.txt",
    "000003-0-1/film.mp4%00.txt",
    "../../runs.db",
    "000003-0-1",
    ".",
    "%00",
]


@pytest.mark.parametrize("name", WAYS_OUT)
def test_no_file_outside_of_a_run_can_be_read(viewer: Viewer, name: str) -> None:
    for path in (f"/files/{RUN}/{name}", f"/files/%2e%2e/{name}", f"/files/..%2f{RUN}/{name}", f"/{name}"):
        reply = viewer.ask(path)
        assert reply.status in (400, 403, 404)
        assert SECRET.encode() not in reply.body
        assert b"root:" not in reply.body
    reply = viewer.ask(f"/api/events?run={RUN}&name={name}")
    assert reply.status in (400, 404)
    assert SECRET.encode() not in reply.body


def test_a_film_can_be_had_in_parts(viewer: Viewer) -> None:
    path, whole = f"/files/{RUN}/000003-0-1/film.mp4", bytes(range(256)) * 40
    reply = viewer.ask(path)
    assert (reply.status, reply.body) == (200, whole)
    assert reply.headers["Content-Type"] == "video/mp4"
    assert reply.headers["Accept-Ranges"] == "bytes"
    for asked, start, stop in (("bytes=0-", 0, 10240), ("bytes=100-199", 100, 200), ("bytes=-40", 10200, 10240)):
        reply = viewer.ask(path, Range=asked)
        assert (reply.status, reply.body) == (206, whole[start:stop])
        assert reply.headers["Content-Range"] == f"bytes {start}-{stop - 1}/10240"
    assert viewer.ask(path, Range="bytes=20000-").status == 416
    assert viewer.ask(path, Range="bytes=nonsense").status in (400, 416)
    assert viewer.ask(path, method="HEAD").headers["Content-Length"] == "10240"


def test_a_page_that_an_agent_left_is_no_page(viewer: Viewer) -> None:
    reply = viewer.ask(f"/files/{RUN}/000003-0-1/page.html")
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Disposition"] == "attachment"
    assert "sandbox" in reply.headers["Content-Security-Policy"]


def test_answers_are_compressed_and_not_sent_twice(viewer: Viewer) -> None:
    for path in ("/page.js", f"/api/lines?run={RUN}&limit=30"):
        plain = viewer.ask(path)
        packed = viewer.ask(path, Accept_Encoding="gzip")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        again = viewer.ask(path, If_None_Match=plain.headers["ETag"])
        assert (again.status, again.body) == (304, b"")


def test_questions_are_answered_or_refused_in_words(viewer: Viewer) -> None:
    assert [run["id"] for run in viewer.ask("/api/runs").json["runs"]] == [RUN]
    about = viewer.ask("/api/run?run=2026").json
    assert about["run"]["id"] == RUN
    assert about["kinds"] == {"pass": 20, "fail": 9, "error": 1, "unparsed": 0, "truncated": 0}
    assert about["notice"] == ""
    lines = viewer.ask(f"/api/lines?run={RUN}&outcome=fail&start=2&limit=3&metadata.level=hard").json
    assert (lines["total"], [line["sample"] for line in lines["lines"]]) == (9, [9, 12, 15])
    sample = viewer.ask(f"/api/sample?run={RUN}&sample=9&outcome=fail").json
    assert (sample["position"], sample["previous"]["sample"], sample["next"]["sample"]) == (2, 6, 12)
    outside = viewer.ask(f"/api/sample?run={RUN}&sample=10&outcome=fail").json
    assert (outside["position"], outside["previous"]["sample"], outside["next"]["sample"]) == (None, 9, 12)
    for path, status in (
        ("/api/run?run=1999", 404),
        ("/api/run", 400),
        (f"/api/sample?run={RUN}&sample=1000", 404),
        (f"/api/sample?run={RUN}&sample=x", 400),
        (f"/api/lines?run={RUN}&start=no", 400),
        (f"/api/comparison?runs={RUN}", 404),
    ):
        reply = viewer.ask(path)
        assert reply.status == status
        assert reply.json["error"]


def test_reviews_are_taken_from_the_page_alone(reviewing: Viewer, viewer: Viewer) -> None:
    own = {"Origin": f"http://127.0.0.1:{reviewing.port}", "Content_Type": "application/json"}

    def send(told: dict[str, Any], **headers: str) -> Reply:
        return reviewing.ask("/api/reviews", method="POST", body=json.dumps(told), headers=own | headers)

    star = {"run": RUN, "sample": 4, "epoch": 0, "kind": "star", "body": True}
    assert send(star, Origin="http://evil.example").status == 403
    assert send(star, Content_Type="text/plain").status == 403
    assert reviewing.ask("/api/reviews", token=False, method="POST", body=json.dumps(star), headers=own).status == 401
    reply = send(star | {"author": "somebody else", "created": 5.0})
    assert reply.status == 200
    assert reply.json["author"] == "anna", "who writes is not the browser's to say"
    assert reply.json["created"] > 1e9
    for wrong in (
        {"kind": "score", "body": 2},
        {"kind": "score", "body": True},
        {"kind": "star", "body": "yes"},
        {"kind": "comment", "body": 1.5},
        {"kind": "verdict", "body": "x"},
        {"sample": 5000},
        {"sample": 2**64},
        {"epoch": -1},
        {"run": "1999"},
    ):
        assert send(star | wrong).status in (400, 404)
    assert send(star | {"kind": "comment", "body": "x" * 100_000}).status == 413
    starred = viewer.ask(f"/api/lines?run={RUN}&starred=1").json
    assert [line["sample"] for line in starred["lines"]] == [4]


def test_a_stranger_to_the_store_is_told_so(proctor: Command, tmp_path: Path) -> None:
    done = proctor("view", "--store", str(tmp_path / "none"), "--no-browser")
    assert done.returncode == 2
    assert "No store" in done.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        open_store(str(tmp_path / "store")).close()
        done = proctor("view", "--store", str(tmp_path / "store"), "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "Cannot listen" in done.stderr
    for wrong in (["--port", "70000"], ["--review", "x" * 200], ["a", "b"], ["1999", "--no-browser"]):
        assert proctor("view", "--store", str(tmp_path / "store"), *wrong).returncode == 2


def test_the_page_is_light() -> None:
    assert sum(len(content) for _, content in page_files().values()) < 150_000


def test_a_log_becomes_a_timeline() -> None:
    lines = [
        {"ns": 10_000_000_000, "event": "started", "timeout": 20.0},
        {"ns": 10_500_000_000, "event": "frame", "hash": "x"},
        {"ns": 11_000_000_000, "event": "input", "kind": "press", "what": "LEFT"},
        {"ns": 11_250_000_000, "event": "input", "kind": "release", "what": "LEFT"},
        {"ns": 12_000_000_000, "event": "result", "outcome": "completed"},
        {"ns": 13_000_000_000, "event": "frame", "hash": "y"},
    ]
    log = b"\n".join(json.dumps(line).encode() for line in lines) + b'\n{"ns": 14'
    found = read_timeline(log)
    assert [(event.at, event.what, event.held) for event in found.events] == [
        (0.0, "started", 0.0),
        (1.0, "LEFT", 0.25),
        (2.0, "result", 0.0),
    ]
    assert (found.length, found.left_out, found.by_step) == (2.0, 2, False)
    assert read_timeline(b"\0\0").events == []


def test_an_export_writes_over_nothing_else(proctor: Command, folder: Path, tmp_path: Path) -> None:
    store = str(folder / "store")
    for _ in range(2):  # the second takes the place of the first
        done = proctor("view", "--store", store, "--export", str(tmp_path / "out"))
        assert done.returncode == 0, done.stderr
    assert not any(SECRET.encode() in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = proctor("view", "--store", store, "--export", str(tmp_path / "mine"))
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


@pytest.mark.slow
def test_a_team_store_is_shown_the_same(postgres: str) -> None:
    for agent in ("random", "proctor.agents.envs.catch:Catcher"):
        proctor_package.evaluate("agents/catch", agent=agent, limit=3, store=postgres)
    viewer = Viewer("--store", postgres, "--review", "anna")
    try:
        first, second = (run["id"] for run in viewer.ask("/api/runs").json["runs"])
        shown = viewer.ask(f"/api/sample?run={first}&sample=1").json
        assert shown["artifacts"] == ["000001-0-1/events.jsonl"]
        assert viewer.ask(f"/api/events?run={first}&name={shown['artifacts'][0]}").json["by_step"]
        path = f"/files/{first}/{shown['artifacts'][0]}"
        whole = viewer.ask(path)
        assert whole.body.startswith(b'{"task":"agents/catch"')
        assert viewer.ask(path, Range="bytes=10-99").body == whole.body[10:100]
        assert viewer.ask(f"/files/{first}/../{second}/000001-0-1/events.jsonl").status == 404
        assert viewer.ask(f"/api/comparison?runs={first},{second}").json["contrasts"]
        assert viewer.ask(f"/api/plots?runs={first}").json["plots"]
        star = {"run": first, "sample": 1, "epoch": 0, "kind": "star", "body": True}
        own = {"Origin": f"http://127.0.0.1:{viewer.port}", "Content_Type": "application/json"}
        before = viewer.ask("/api/changes").json
        assert viewer.ask("/api/reviews", method="POST", body=json.dumps(star), headers=own).status == 200
        assert viewer.ask("/api/changes").json != before
        assert viewer.ask(f"/api/lines?run={first}&starred=1").json["total"] == 1
    finally:
        assert viewer.stop() == 0
