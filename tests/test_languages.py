"""Every language's small program, compiled and run under a sandbox's limits; and where the tools are found."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from language_programs import PROGRAMS
from proctor.errors import MissingToolchainError, UnknownNameError
from proctor.sandbox.languages import LANGUAGES, Language, find_language
from proctor.sandbox.program import Limits
from proctor.sandbox.toolchain import NOT_PREPARED, Names, Recipe, Toolchain, locate

LIMITS = Limits()
PREPARED = "/prepared"
CPU_SECONDS = 10
by_name = pytest.mark.parametrize("name", [language.name for language in LANGUAGES])


class Ended(NamedTuple):
    status: int
    stdout: str
    stderr: str


class Box:
    """One language in bubblewrap, under the limits of the sandbox: its program is compiled once."""

    def __init__(self, toolchain: Toolchain, folder: Path, prepared: Path | None = None) -> None:
        self.toolchain = toolchain
        self.folder = folder
        self.prepared = prepared
        folder.mkdir()

    def compile(self, source: str) -> Ended:
        self.recipe = self.toolchain.recipe(
            source, LIMITS.memory_mib, PREPARED if self.prepared is not None else NOT_PREPARED
        )
        (self.folder / self.recipe.file).write_text(source)
        if not self.recipe.compile:
            return Ended(0, "", "")
        return self.execute(self.recipe.compile, self.recipe, cpu_seconds=60)

    def run(self, stdin: str, cpu_seconds: int = CPU_SECONDS) -> Ended:
        return self.execute(self.recipe.run, self.recipe, stdin, cpu_seconds)

    def execute(
        self, command: tuple[str, ...], recipe: Recipe, stdin: str = "", cpu_seconds: int = CPU_SECONDS
    ) -> Ended:
        variables = {"PATH": self.toolchain.path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
        visible = ["/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/alternatives", *self.toolchain.folders]
        bubble = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
        for name, value in (variables | dict(recipe.environment)).items():
            bubble += ["--setenv", name, value]
        bubble += ["--bind", str(self.folder), "/tmp", "--chdir", "/tmp"]
        for place in visible:
            bubble += ["--ro-bind-try", place, place]
        if self.prepared is not None:
            bubble += ["--ro-bind", str(self.prepared), PREPARED]
        limits = [
            "prlimit",
            f"--data={LIMITS.memory_mib << 20}",
            f"--nproc={LIMITS.processes}",
            f"--cpu={cpu_seconds}",
            "--core=0",
        ]
        done = subprocess.run([*bubble, *limits, *command], input=stdin.encode(), capture_output=True, check=False)
        return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def can_sandbox() -> bool:
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(trial, capture_output=True, check=False).returncode == 0


SANDBOXED = can_sandbox()


def toolchain_of(name: str) -> Toolchain:
    if not SANDBOXED:
        pytest.skip("bubblewrap does not work here")
    try:
        return locate(find_language(name), libraries=True)
    except MissingToolchainError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def boxes() -> dict[str, Box]:
    return {}


@pytest.fixture
def box(name: str, boxes: dict[str, Box], tmp_path_factory: pytest.TempPathFactory) -> Box:
    toolchain = toolchain_of(name)
    if name not in boxes:
        boxes[name] = Box(toolchain, tmp_path_factory.mktemp("box") / "work")
        compiled = boxes[name].compile(PROGRAMS[name])
        assert compiled.status == 0, compiled
    return boxes[name]


@by_name
def test_an_honest_program_reads_and_prints(name: str, box: Box):
    # GNAT reads bytes but writes characters
    who = "Zoe" if name == "ada" else "Zoë"
    ended = box.run(f"greet {who}\n")
    assert ended.status == 0, ended
    assert f"Hello, {who}!" in ended.stdout
    assert not any(sign in ended.stderr for sign in box.toolchain.language.failure_signs)


@by_name
def test_a_failed_check_is_noticed(name: str, box: Box):
    ended = box.run("fail Zoe\n")
    language = box.toolchain.language
    assert ended.status != 0 or any(sign in ended.stderr for sign in language.failure_signs), ended
    assert not any(sign in ended.stderr for sign in language.memory_signs)


@by_name
def test_the_end_of_memory_is_recognised(name: str, box: Box):
    ended = box.run("eat Zoe\n")
    signs = box.toolchain.language.memory_signs
    assert ended.status != 0
    assert not signs or any(sign in ended.stderr for sign in signs), ended


@by_name
def test_an_endless_program_runs_until_it_is_stopped(name: str, box: Box):
    ended = box.run("loop Zoe\n", cpu_seconds=1)
    assert ended.status in (128 + 9, 128 + 24) or "SIGXCPU" in ended.stderr, ended


@by_name
def test_a_broken_program_is_refused(name: str, tmp_path: Path):
    broken = Box(toolchain_of(name), tmp_path / "broken")
    compiled = broken.compile(PROGRAMS[name] + "\n)}] if (\n")
    assert (compiled.status or broken.run("greet Zoe\n").status) != 0


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES if language.prepare])
def test_a_prepared_folder_is_used(name: str, tmp_path: Path):
    """It is read-only, so a compiler that looked elsewhere or wanted to write there would show here."""
    toolchain = toolchain_of(name)
    preparing = Box(toolchain, tmp_path / "prepared")
    recipe = toolchain.preparation(LIMITS.memory_mib)
    prepared = preparing.execute(recipe.run, recipe, cpu_seconds=200)
    assert prepared.status == 0, prepared
    before = {path.name for path in preparing.folder.iterdir()}
    assert before
    box = Box(toolchain, tmp_path / "work", preparing.folder)
    assert box.compile(PROGRAMS[name]).status == 0
    assert "Hello, Zoe!" in box.run("greet Zoe\n").stdout
    assert not any(path.name == Path(NOT_PREPARED).name for path in box.folder.iterdir())


def test_the_libraries_of_benchmarks_are_linked(tmp_path: Path):
    box = Box(toolchain_of("cpp"), tmp_path / "work")
    source = """
        #include <boost/any.hpp>
        #include <openssl/md5.h>
        int main() {
            unsigned char digest[16];
            MD5(reinterpret_cast<const unsigned char *>("a"), 1, digest);
            return boost::any_cast<int>(boost::any(int(digest[0]))) == 0x0c ? 0 : 1;
        }
    """
    assert box.compile(source).status == 0
    assert box.run("").status == 0


def test_the_table_is_complete():
    assert [language.name for language in LANGUAGES] == list(PROGRAMS)
    names = [name for language in LANGUAGES for name in (language.name, *language.aliases)]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)
    for language in LANGUAGES:
        assert language.packages or language.site, language.name
        assert Path(language.file).suffix


def test_the_page_names_every_language_with_its_packages():
    page = (Path(__file__).parents[1] / "docs" / "languages.md").read_text()
    for language in LANGUAGES:
        names = ", ".join(f"`{name}`" for name in (language.name, *language.aliases))
        assert f"| {names} | {f'`{language.packages}`' if language.packages else '['}" in page


@pytest.mark.parametrize(
    ("alias", "name"), [("C++", "cpp"), ("js", "javascript"), ("rs", "rust"), ("Python3", "python"), ("cs", "csharp")]
)
def test_aliases(alias: str, name: str):
    assert find_language(alias).name == name


def test_an_unknown_language():
    with pytest.raises(UnknownNameError, match=r"Unknown language 'pyhton'; did you mean python\? Known are python, "):
        find_language("pyhton")


JAVA = "{} class {} {{ void f() {{}} {} }}"
MAIN = "public static void main(String[] args) {}"


@pytest.mark.parametrize(
    ("source", "public", "main"),
    [
        (JAVA.format("", "Problem", MAIN), "Problem", "Problem"),
        (JAVA.format("", "Solution", "") + JAVA.format("public", "Main", MAIN), "Main", "Main"),
        (JAVA.format("public final", "Shape", "") + JAVA.format("", "Runner", MAIN), "Shape", "Runner"),
        ("class A { static class B { } } class C { enum D { X } " + MAIN + " }", "C", "C"),
        ("class A { String s = \"} class B {\"; char c = '}'; /* } class B { */ " + MAIN + " }", "A", "A"),
        ("package a.b;\npublic class C { " + MAIN + " }", "C", "a.b.C"),
        ("record Point(int x, int y) {}\nclass Main { " + MAIN + " }", "Main", "Main"),
        ("import x._\nobject Problem {\n def main(args: Array[String]) = {} }", "Problem", "Problem"),
        ("case class P(x: Int)\nobject Hello extends App { println(1) }", "Hello", "Hello"),
        ("class Lonely {}", "Lonely", "Lonely"),
        ("", "Main", "Main"),
    ],
)
def test_the_classes_that_a_source_names(source: str, public: str, main: str):
    assert Names.of(source) == Names(public, main)


def test_what_the_source_and_the_limit_decide():
    toolchain = Toolchain(find_language("java"), {"javac": "/x/javac", "java": "/x/java"}, (), "", "/x")
    recipe = toolchain.recipe("public class Shape {} class Runner { static void main(String[] a) {} }", 400)
    assert recipe.file == "Shape.java"
    assert (recipe.compile[0], recipe.compile[-1]) == ("/x/javac", "Shape.java")
    assert (recipe.run[0], recipe.run[-1]) == ("/x/java", "Runner")
    assert "-Xmx300m" in recipe.run
    cpp = Toolchain(find_language("cpp"), {"g++": "/usr/bin/g++"}, (), "", "/usr")
    assert cpp.recipe("#include <openssl/md5.h>", 400).compile[-1] == "-lcrypto"
    assert cpp.recipe("#include <cmath>", 400).compile[-1] == "main.cpp"


@by_name
def test_nothing_is_left_to_fill_in(name: str):
    toolchain = Toolchain(find_language(name), {}, (), "", "/home")
    recipe = toolchain.recipe("", 1024)
    words = [recipe.file, *recipe.compile, *recipe.run, *recipe.environment.values()]
    assert not [word for word in words if re.search(r"\{\w+\}", word)]


def tool(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{home / '.local/bin'}:{os.environ['PATH']}")
    return home


GLAGOL = Language(name="glagol", file="main.gl", run=("glagol", "main.gl"), packages="glagol-base")


def test_a_missing_tool_is_named_with_its_packages():
    with pytest.raises(MissingToolchainError, match=r"in glagol need glagol, .* apt-get install glagol-base$"):
        locate(GLAGOL)
    abroad = Language(name="glagol", file="main.gl", run=("glagol",), site="https://glagol.example")
    with pytest.raises(MissingToolchainError, match=r"which was not found: see https://glagol\.example$"):
        locate(abroad)


def test_a_missing_library_is_named_only_when_asked_for():
    language = Language(name="x", file="x", run=("sh", "x"), libraries=("/usr/share/glagol/*.gl",), packages="glagol")
    assert locate(language).tools["sh"].endswith("bin/sh")
    with pytest.raises(MissingToolchainError, match=r"need /usr/share/glagol/\*\.gl"):
        locate(language, libraries=True)


def test_the_systems_tools_need_no_further_folder():
    toolchain = locate(find_language("bash"))
    assert toolchain.tools["bash"] in ("/usr/bin/bash", "/bin/bash")
    assert toolchain.folders == ()


def test_a_tool_under_the_home_folder_shows_its_own_folder_only(home: Path):
    real = tool(home / "apps" / "glagol-7" / "bin" / "glagol")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/glagol").symlink_to(real)
    toolchain = locate(GLAGOL)
    assert toolchain.tools["glagol"] == str(real)
    assert toolchain.folders == (str(home / "apps" / "glagol-7"),)
    assert toolchain.path.startswith(f"{real.parent}:")
    assert toolchain.home == str(home / "apps" / "glagol-7")


@pytest.mark.parametrize("folder", ["bin", ".local/bin"])
def test_the_home_folder_itself_is_never_shown(home: Path, folder: str):
    lonely = tool(home / folder / "glagol")
    assert locate(GLAGOL).folders == (str(lonely),)


def test_a_switch_between_versions_is_asked_for_the_real_tool(home: Path):
    real = tool(home / "versions" / "7" / "bin" / "glagol")
    tool(home / "bin" / "glagol", f"#!/bin/sh\n[ $1 = where ] && echo {home}/versions/7\n")
    language = Language(name="x", file="x", run=("glagol", "x"), packages="x", sysroot=("glagol", "where"))
    toolchain = locate(language)
    assert toolchain.tools["glagol"] == str(real)
    assert toolchain.folders == (str(home / "versions" / "7"),)


def test_python_is_the_one_that_runs_proctor():
    assert locate(find_language("python")).tools["python3"] == sys.executable
