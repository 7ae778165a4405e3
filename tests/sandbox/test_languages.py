"""Every language's small program in the sandbox; and where the tools are found."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from conftest import RunInLanguages
from helpers.language_programs import PROGRAMS
from helpers.paths import CHECKOUT
from helpers.toolchains import marks, needs_language
from proctor.core.errors import MissingToolchainError, UnknownNameError
from proctor.sandbox import Limits, Outcome, Program, Verdict, languages, run
from proctor.sandbox.languages import LANGUAGES, Language, find_language
from proctor.sandbox.toolchain import SourceNames, Toolchain, locate

LIMITS = Limits(seconds=10.0, memory_mib=512)
by_name = pytest.mark.parametrize("name", [language.name for language in LANGUAGES])


@pytest.fixture
def judge(run_in_languages: RunInLanguages) -> RunInLanguages:
    def judge(name: str, *sources: tuple[str, str], limits: Limits = LIMITS) -> list[Verdict]:
        needs_language(name, libraries=True)
        return run_in_languages(
            [Program(source=source, language=name, stdin=stdin) for source, stdin in sources], limits
        )

    return judge


@pytest.mark.parametrize("name", [pytest.param(language.name, marks=marks(language.name)) for language in LANGUAGES])
def test_verdicts_in_every_language(name: str, judge: RunInLanguages) -> None:
    source = PROGRAMS[name]
    who = "Zoe" if name == "ada" else "Zoë"  # GNAT reads bytes but writes characters
    greet, fail, eat, broken = judge(
        name,
        (source, f"greet {who}\n"),
        (source, "fail Zoe\n"),
        (source, "eat Zoe\n"),
        (source + "\n)}] if (\n", "greet Zoe\n"),
    )
    assert greet.outcome is Outcome.PASSED, greet
    assert f"Hello, {who}!" in greet.stdout
    assert fail.outcome in (Outcome.FAILED, Outcome.CRASHED), fail
    assert eat.outcome is Outcome.MEMORY or not find_language(name).memory_signs, eat
    assert eat.outcome is not Outcome.PASSED
    assert broken.outcome is Outcome.FAILED, broken
    (endless,) = judge(name, (source, "loop Zoe\n"), limits=Limits(seconds=1.0, memory_mib=512))
    assert endless.outcome is Outcome.TIMEOUT, endless


@pytest.mark.parametrize("name", ["c", pytest.param("cpp", marks=pytest.mark.slow)])
def test_strict_umask_of_the_harness_has_no_effect(name: str) -> None:
    """Programs, compilers and the harness may be three users."""
    needs_language(name)
    program = Program(source=PROGRAMS[name], language=name, stdin="greet Zoe\n")

    before = os.umask(0o077)
    try:
        (verdict,) = asyncio.run(run([program], LIMITS, workers=1))
    finally:
        os.umask(before)
    assert "Hello, Zoe!" in verdict.stdout, verdict


def test_concurrent_compilations_stay_separate(judge: RunInLanguages) -> None:
    source = '#include <stdio.h>\nint main(void) {{ printf("%d", {}); return 0; }}\n'
    verdicts = judge("c", *((source.format(number % 5), "") for number in range(20)))
    assert [verdict.stdout for verdict in verdicts] == [str(number % 5) for number in range(20)]


@pytest.mark.slow
def test_the_libraries_of_benchmarks_are_linked(judge: RunInLanguages) -> None:
    source = """
        #include <boost/any.hpp>
        #include <openssl/md5.h>
        int main() {
            unsigned char digest[16];
            MD5(reinterpret_cast<const unsigned char *>("a"), 1, digest);
            return boost::any_cast<int>(boost::any(int(digest[0]))) == 0x0c ? 0 : 1;
        }
    """
    (verdict,) = judge("cpp", (source, ""))
    assert verdict.passed, verdict


VENDORED = """
    mkdir -p registry/rand-0.4.9/src
    printf '[package]\\nname = "rand"\\nversion = "0.4.9"\\n' > registry/rand-0.4.9/Cargo.toml
    echo 'pub fn four() -> u32 { 4 }' > registry/rand-0.4.9/src/lib.rs
    echo '{"files": {}, "package": "none"}' > registry/rand-0.4.9/.cargo-checksum.json
"""


@pytest.mark.slow
def test_vendored_crate_is_built_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_language("rust-test", libraries=True)
    language = find_language("rust-test")
    pattern, extra = next(iter(language.extras.items()))
    script = VENDORED + extra.prepare.replace("/usr/local/share/cargo/registry", '"$PWD/registry"')
    extras = {pattern: msgspec.structs.replace(extra, prepare=script)}
    changed = msgspec.structs.replace(language, extras=extras)
    monkeypatch.setitem(vars(languages)["_BY_NAME"], "rust-test", changed)
    source = "use rand;\n#[test]\nfn four() { assert_eq!(rand::four(), 4); }\n"
    (verdict,) = asyncio.run(run([Program(source=source, language="rust-test")], LIMITS, workers=1))
    assert verdict.passed, verdict


def test_a_missing_toolchain_is_an_error_that_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.sandbox.toolchain.SYSTEM_PATH", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    (verdict,) = asyncio.run(run([Program(source="", language="lua")], LIMITS, workers=1))
    assert verdict.outcome is Outcome.ERROR
    assert verdict.detail.endswith("apt-get install lua5.4 lua-unit"), verdict.detail


def test_the_table_is_complete() -> None:
    assert [language.name for language in LANGUAGES] == list(PROGRAMS)
    names = [name for language in LANGUAGES for name in (language.name, *language.aliases)]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for name in names)
    for language in LANGUAGES:
        assert language.packages or language.site, language.name
        assert Path(language.file).suffix


def test_page_lists_every_language_with_packages() -> None:
    page = (CHECKOUT / "docs" / "languages.md").read_text()
    for language in LANGUAGES:
        names = ", ".join(f"`{name}`" for name in (language.name, *language.aliases))
        assert f"| {names} | {f'`{language.packages}`' if language.packages else '['}" in page


def test_set_up_installs_the_tools_of_every_language() -> None:
    script = (CHECKOUT / "scripts" / "setup-system").read_text()
    listed = " ".join(re.findall(r'\[(?:sandbox|toolchains)\]="([^"]*)"', script)).split()
    packages = {package for language in LANGUAGES for package in language.packages.split()}
    unlisted = packages - set(listed)
    # The first two every Debian has, the third comes with the JDK, the fourth is not in every Debian.
    assert unlisted == {"bash", "python3", "default-jre-headless", "swiftlang"}


@pytest.mark.parametrize(
    ("alias", "name"), [("C++", "cpp"), ("js", "javascript"), ("rs", "rust"), ("Python3", "python"), ("cs", "csharp")]
)
def test_aliases(alias: str, name: str) -> None:
    assert find_language(alias).name == name


def test_an_unknown_language() -> None:
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
def test_source_names_of_java_and_scala(source: str, public: str, main: str) -> None:
    assert SourceNames.of(source) == SourceNames(public, main)


def test_build_steps_depend_on_source_and_limit() -> None:
    toolchain = Toolchain(find_language("java"), {"javac": "/x/javac", "java": "/x/java"}, (), "", "/x")
    build_steps = toolchain.build_steps("public class Shape {} class Runner { static void main(String[] a) {} }", 400)
    assert build_steps.file == "Shape.java"
    assert (build_steps.compile[0], build_steps.compile[-1]) == ("/x/javac", "Shape.java")
    assert (build_steps.run[0], build_steps.run[-1]) == ("/x/java", "Runner")
    assert "-Xmx300m" in build_steps.run
    cpp = Toolchain(find_language("cpp"), {"g++": "/usr/bin/g++"}, (), "", "/usr")
    assert cpp.build_steps("#include <openssl/md5.h>", 400).compile[-1] == "-lcrypto"
    assert cpp.build_steps("#include <cmath>", 400).compile[-1] == "main.cpp"


@by_name
def test_build_steps_have_no_open_placeholders(name: str) -> None:
    toolchain = Toolchain(find_language(name), {}, (), "", "/home")
    build_steps = toolchain.build_steps("", 1024)
    words = [build_steps.file, *build_steps.compile, *build_steps.run, *build_steps.environment.values()]
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


def test_a_missing_tool_is_named_with_its_packages() -> None:
    with pytest.raises(MissingToolchainError, match=r"in glagol need glagol, .* apt-get install glagol-base$"):
        locate(GLAGOL)
    abroad = Language(name="glagol", file="main.gl", run=("glagol",), site="https://glagol.example")
    with pytest.raises(MissingToolchainError, match=r"which was not found: see https://glagol\.example$"):
        locate(abroad)


def test_a_launcher_without_a_version_to_start_is_a_missing_tool(home: Path) -> None:
    launcher = tool(home / "bin" / "glagol")
    language = msgspec.structs.replace(GLAGOL, sysroot=("glagol", "--sysroot"))
    launcher.write_text("#!/bin/sh\necho no default version >&2\nexit 1\n")
    with pytest.raises(MissingToolchainError, match=r"which does not start \(no default version\): apt-get install"):
        locate(language)
    launcher.write_text("#!/bin/sh\n")
    with pytest.raises(MissingToolchainError, match=r"which does not start \(no error message\)"):
        locate(language)


def test_a_missing_library_is_named_only_when_asked_for() -> None:
    language = Language(name="x", file="x", run=("sh", "x"), libraries=("/usr/share/glagol/*.gl",), packages="glagol")
    assert locate(language).tools["sh"].endswith("bin/sh")
    with pytest.raises(MissingToolchainError, match=r"need /usr/share/glagol/\*\.gl"):
        locate(language, libraries=True)


def test_system_tools_need_no_extra_folder() -> None:
    toolchain = locate(find_language("bash"))
    assert toolchain.tools["bash"] in ("/usr/bin/bash", "/bin/bash")
    assert toolchain.folders == ()


def test_tool_in_the_home_folder_exposes_only_its_folder(home: Path) -> None:
    real = tool(home / "apps" / "glagol-7" / "bin" / "glagol")
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/glagol").symlink_to(real)
    toolchain = locate(GLAGOL)
    assert toolchain.tools["glagol"] == str(real)
    assert toolchain.folders == (str(home / "apps" / "glagol-7"),)
    assert toolchain.path.startswith(f"{real.parent}:")
    assert toolchain.home == str(home / "apps" / "glagol-7")


@pytest.mark.parametrize("folder", ["bin", ".local/bin"])
def test_home_folder_is_never_exposed(home: Path, folder: str) -> None:
    lonely = tool(home / folder / "glagol")
    assert locate(GLAGOL).folders == (str(lonely),)


def test_version_manager_is_asked_for_the_real_tool(home: Path) -> None:
    real = tool(home / "versions" / "7" / "bin" / "glagol")
    tool(home / "bin" / "glagol", f"#!/bin/sh\n[ $1 = where ] && echo {home}/versions/7\n")
    language = Language(name="x", file="x", run=("glagol", "x"), packages="x", sysroot=("glagol", "where"))
    toolchain = locate(language)
    assert toolchain.tools["glagol"] == str(real)
    assert toolchain.folders == (str(home / "versions" / "7"),)


def test_python_toolchain_is_sys_executable() -> None:
    assert locate(find_language("python")).tools["python3"] == sys.executable
