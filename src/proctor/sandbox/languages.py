"""The table of languages: how programs of each are compiled and run."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from proctor.core.errors import UnknownNameError


class Extra(Struct, frozen=True):
    """A library that few programs need and that is slow to prepare: prepared on demand."""

    prepare: str
    """A shell script, run once in an empty folder. If it fails, the library is missing."""
    compile: tuple[str, ...]
    """Further compiler arguments; ``{extra}`` is the folder that the script filled."""


class Language(Struct, frozen=True, kw_only=True):
    """One row of the table.

    `Toolchain.build_steps` fills in: ``{public}`` and ``{main}``, the classes of a JVM source;
    ``{file}``; ``{heap}``, three quarters of the memory limit in MiB, because garbage
    collectors need to know it; ``{prepared}``, the folder that ``prepare`` filled;
    ``{home}``, the folder above the first tool's bin.
    """

    name: str
    aliases: tuple[str, ...] = ()
    """Other names, as in MultiPL-E and HumanEvalPack."""
    file: str
    """The file name of the source in the working directory, /tmp."""
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    """Writes to the working directory; without it, `run` executes the source."""
    compile_with: Mapping[str, tuple[str, ...]] = {}
    """Further compiler arguments, by a text in the source."""
    prepare: str = ""
    """A shell script, run once in an empty folder, whose files speed up compilations."""
    extras: Mapping[str, Extra] = {}
    """By a pattern that matches sources which need them."""
    tools: tuple[str, ...] = ()
    """Further tools: programs, or patterns of files."""
    libraries: tuple[str, ...] = ()
    """Patterns of files that only programs of benchmarks need."""
    packages: str = ""
    """The Debian packages of all these."""
    site: str = ""
    """The download page, if not every Debian version has a package."""
    sysroot: tuple[str, ...] = ()
    """Asks a launcher on the PATH, such as rustup's, for the path of the real tool."""
    folders: tuple[str, ...] = ()
    """Patterns of further folders that the tools read."""
    environment: Mapping[str, str] = {}
    """Variables besides PATH, HOME, TMPDIR and LANG."""
    memory_signs: tuple[str, ...] = ()
    """Texts on stderr that report a lack of memory."""
    failure_signs: tuple[str, ...] = ()
    """Texts on stderr by which a test library reports failures with exit status 0."""


def find_language(name: str) -> Language:
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        hint = f"Known are {', '.join(language.name for language in LANGUAGES)}."
        raise UnknownNameError("language", name, _BY_NAME, hint) from None


# These start a thread per core otherwise, and hit the limit on processes.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# The same threads and heap on every machine; no messages on stdout, no files for profilers.
_JVM = (
    "-Xmx{heap}m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-XX:ActiveProcessorCount=2",
    "-Xlog:disable",
)
# A compiler runs briefly: the second optimiser of the JVM costs more than it saves.
_JVM_COMPILER = (*_JVM, "-XX:TieredStopAtLevel=1", "-XX:SharedArchiveFile={prepared}/classes.jsa")
_JVM_ARCHIVING = " ".join((*_JVM, "-XX:ArchiveClassesAtExit=classes.jsa"))
_JVM_MEMORY = ("java.lang.OutOfMemoryError", "error='Not enough space'")
_JVM_FOLDERS = ("/etc/java-*",)

_JAVATUPLES = "/usr/share/java/javatuples.jar"
_CLOJURE = "/usr/share/java/clojure.jar"
# clojure.test ignores failures at exit: here they end the program. Its report goes to stderr,
# as in other languages.
_CLOJURE_TESTS = """
(do
  (require 'clojure.test)
  (alter-var-root #'clojure.test/*test-out* (constantly *err*))
  (let [report (get-method clojure.test/report :summary)]
    (defmethod clojure.test/report :summary [counts]
      (report counts)
      (when-not (clojure.test/successful? counts) (System/exit 1))))
  nil)
"""

# Folders of modules installed by Debian packages and by `npm install --global`.
_NODE = {"NODE_PATH": "/usr/local/lib/node_modules:/usr/lib/node_modules:/usr/share/nodejs"}
_NODE_MEMORY = ("heap out of memory", "process out of memory", "Array buffer allocation failed")
_NODE_FAILURES = ("Assertion failed",)  # of console.assert

# Without optimisation, as in the benchmarks: optimised, a function without a return value
# behaves arbitrarily. Even so it returns the content of a register, so it is stopped here.
_CPP = ("g++", "-std=c++17", "-fsanitize=return", "-fsanitize-undefined-trap-on-error")
_WRAPPED = {"__wrap_main": ("-Wl,--wrap=main",)}  # see `endings`

# As in MultiPL-E and `cargo test`: overflows panic.
_RUST = ("rustc", "--edition=2021", "-Copt-level=1", "-Cdebug-assertions=on", "-Ccodegen-units=1")


def _crate(name: str, version: str) -> Extra:
    """Builds a crate by cargo from local sources: Debian packages, or `cargo vendor`."""
    local = "--config 'source.crates-io.replace-with=\"here\"' --config \"source.here.directory='$registry'\""
    script = f"""
        mkdir -p work/src; : > work/src/lib.rs
        printf '[package]\\nname = "work"\\nversion = "0.0.0"\\n' > work/Cargo.toml
        printf '[dependencies]\\n{name} = {version}\\n' >> work/Cargo.toml
        export CARGO_HOME="$PWD/home"
        for registry in {" ".join(_REGISTRIES)}; do
            if (cd work; cargo build -q --offline {local}); then break; fi
        done
        mv work/target/debug/deps/*.rlib .
        mv lib{name}-*.rlib lib{name}.rlib
        rm -rf work home
    """
    return Extra(script, ("-L", "dependency={extra}", "--extern", f"{name}={{extra}}/lib{name}.rlib"))


_REGISTRIES = ("/usr/local/share/cargo/registry", "/usr/share/cargo/registry")
# What HumanEvalPack's rows import, in the versions that they are written for. Debian has no such version of rand.
_CRATES = {
    rf"\b{name}(?:::|;)": _crate(name, version)
    for name, version in (
        ("rand", '"0.4"'),
        ("regex", '{ version = "1", default-features = false, features = ["std", "unicode"] }'),  # Debian's has no more
        ("md5", '"0.7"'),
    )
}

_GO = {
    "CGO_ENABLED": "0",
    "GO111MODULE": "off",  # one file, without a module around it
    "GOCACHE": "{prepared}/go",
    "GOMAXPROCS": "2",
    "GOMEMLIMIT": "{heap}MiB",
    "GOPATH": "/tmp/.go:/usr/share/gocode",
}
_GO_MEMORY = ("out of memory", "cannot allocate memory")
_GO_PACKAGES = (
    "bufio bytes container/heap crypto/md5 encoding/json errors fmt math/big math/rand os regexp sort testing time"
)

LANGUAGES = (
    Language(
        name="python",
        aliases=("py", "python3"),
        file="main.py",
        run=("python3", "main.py"),
        packages="python3",
        environment=_ONE_THREAD,
        memory_signs=("MemoryError",),
    ),
    Language(
        name="javascript",
        aliases=("js", "node", "nodejs"),
        file="main.js",
        run=("node", "--max-old-space-size={heap}", "main.js"),
        packages="nodejs",
        environment=_NODE,
        memory_signs=_NODE_MEMORY,
        failure_signs=_NODE_FAILURES,
    ),
    Language(
        name="typescript",
        aliases=("ts",),
        file="main.ts",
        compile=("tsc", "--target", "esnext", "--module", "commonjs", "--skipLibCheck", "main.ts"),
        run=("node", "--max-old-space-size={heap}", "main.js"),
        packages="node-typescript nodejs",
        environment=_NODE,
        memory_signs=_NODE_MEMORY,
        failure_signs=_NODE_FAILURES,
    ),
    Language(
        name="java",
        file="{public}.java",
        compile=(
            "javac",
            *(f"-J{option}" for option in _JVM_COMPILER),
            *("-encoding", "UTF-8", "-proc:none", "-nowarn", "-d", ".", "-cp", _JAVATUPLES, "{file}"),
        ),
        run=("java", *_JVM, "-ea", "-cp", f".:{_JAVATUPLES}", "{main}"),
        prepare="echo 'class Main {}' > Main.java; javac -J" + _JVM_ARCHIVING.replace(" ", " -J") + " Main.java",
        libraries=(_JAVATUPLES,),
        packages="default-jdk-headless libjavatuples-java",
        folders=_JVM_FOLDERS,
        memory_signs=_JVM_MEMORY,
    ),
    Language(
        name="c",
        file="main.c",
        compile=("gcc", "-std=gnu17", "-o", "main", "main.c", "-lm"),
        compile_with=_WRAPPED,
        run=("./main",),
        packages="gcc libc6-dev",
        memory_signs=("Cannot allocate memory",),
    ),
    Language(
        name="cpp",
        aliases=("c++", "cxx", "cc"),
        file="main.cpp",
        compile=(*_CPP, "-I{prepared}", "-o", "main", "main.cpp"),
        # A precompiled header is used only when it comes first, so it is put there: three quarters of the time saved.
        compile_with={"<bits/stdc++.h>": ("-include", "bits/stdc++.h"), "<openssl/": ("-lcrypto",), **_WRAPPED},
        run=("./main",),
        prepare="mkdir bits; echo '#include_next <bits/stdc++.h>' > bits/stdc++.h; "
        + " ".join((*_CPP, "-x", "c++-header", "bits/stdc++.h")),
        libraries=("/usr/include/boost/any.hpp", "/usr/include/openssl/md5.h"),
        packages="g++ libboost-dev libssl-dev",
        memory_signs=("std::bad_alloc",),
    ),
    Language(
        name="rust",
        aliases=("rs",),
        file="main.rs",
        compile=(*_RUST, "-o", "main", "main.rs"),
        run=("./main",),
        tools=("cc",),
        packages="rustc gcc libc6-dev",
        sysroot=("rustc", "--print", "sysroot"),
        memory_signs=("memory allocation of ",),
    ),
    Language(
        name="rust-test",
        file="main.rs",
        compile=(*_RUST, "--test", "-o", "main", "main.rs"),
        run=("./main", "--test-threads=1", "--nocapture"),
        extras=_CRATES,
        tools=("cc",),
        libraries=("cargo", *(f"{_REGISTRIES[1]}/{crate}*" for crate in ("md5-0.7", "regex-1"))),
        packages="rustc gcc libc6-dev cargo librust-md5-dev librust-regex-dev",
        sysroot=("rustc", "--print", "sysroot"),
        memory_signs=("memory allocation of ",),
    ),
    Language(
        name="go",
        aliases=("golang",),
        file="main.go",
        compile=("go", "build", "-ldflags=-s -w", "-o", "main", "main.go"),
        run=("./main",),
        prepare=f"go build {_GO_PACKAGES}",
        packages="golang-go",
        sysroot=("go", "env", "GOROOT"),
        environment=_GO,
        memory_signs=_GO_MEMORY,
    ),
    Language(
        name="go-test",
        aliases=("go_test.go",),
        file="main_test.go",
        compile=("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", "main", "main_test.go"),
        run=("./main", "-test.v"),  # else nothing tells a source without tests from one whose tests passed
        prepare=f"go build {_GO_PACKAGES} github.com/stretchr/testify/assert || true; "
        "echo 'package main_test' > main_test.go; go test -c -vet=off -o main main_test.go",
        libraries=("/usr/share/gocode/src/github.com/stretchr/testify",),
        packages="golang-go golang-github-stretchr-testify-dev",
        sysroot=("go", "env", "GOROOT"),
        environment=_GO,
        memory_signs=_GO_MEMORY,
    ),
    Language(
        name="php",
        file="main.php",
        # Debian's settings are those of a server: there assertions are not even compiled.
        run=(
            *("php", "-d", "memory_limit={heap}M", "-d", "zend.assertions=1", "-d", "display_errors=stderr"),
            *("-d", "log_errors=0", "-d", "html_errors=0", "main.php"),
        ),
        libraries=("/usr/lib/php/*/mbstring.so",),
        packages="php-cli php-mbstring",
        folders=("/etc/php",),
        memory_signs=("Allowed memory size of ", "Out of memory"),
    ),
    Language(
        name="ruby",
        aliases=("rb",),
        file="main.rb",
        run=("ruby", "main.rb"),
        packages="ruby",
        memory_signs=("NoMemoryError",),
    ),
    Language(
        name="lua",
        file="main.lua",
        run=("lua", "main.lua"),
        libraries=("/usr/share/lua/5.*/luaunit.lua",),
        packages="lua5.4 lua-unit",
        memory_signs=("not enough memory",),
    ),
    Language(
        name="perl",
        aliases=("pl",),
        file="main.pl",
        run=("perl", "main.pl"),
        libraries=("/usr/share/perl5/Test/Deep.pm",),
        packages="perl libtest-deep-perl",
        memory_signs=("Out of memory",),
    ),
    Language(
        name="bash",
        aliases=("sh", "shell"),
        file="main.sh",
        run=("bash", "main.sh"),
        packages="bash",
        memory_signs=("cannot allocate", "Cannot allocate memory"),
    ),
    Language(
        name="r",
        file="main.r",
        run=("Rscript", "--vanilla", "main.r"),
        packages="r-base-core",
        folders=("/etc/R",),
        environment=_ONE_THREAD,
        memory_signs=("cannot allocate",),
    ),
    Language(
        name="racket",
        aliases=("rkt",),
        file="main.rkt",
        run=("racket", "main.rkt"),
        packages="racket",
        folders=("/etc/racket",),
        memory_signs=("out of memory",),
        failure_signs=("--------------------\nFAILURE\n", "--------------------\nERROR\n"),
    ),
    Language(
        name="scala",
        file="{public}.scala",
        compile=("scalac", "-nowarn", "-d", ".", "{file}"),
        run=("java", *_JVM, "-cp", ".:{home}/lib/*", "{main}"),
        prepare="echo 'object Main extends App { println(args.toList.map(_.length)) }' > Main.scala; "
        f"JAVA_OPTS='{_JVM_ARCHIVING}' scalac -d . Main.scala",
        packages="scala default-jre-headless",
        folders=_JVM_FOLDERS,
        environment={"JAVA_OPTS": " ".join(_JVM_COMPILER)},
        memory_signs=_JVM_MEMORY,
    ),
    Language(
        name="kotlin",
        aliases=("kt",),
        file="Main.kt",
        compile=("kotlinc", "-nowarn", "-include-runtime", "-d", "main.jar", "Main.kt"),
        run=("java", *_JVM, "-ea", "-jar", "main.jar"),
        prepare="echo 'fun main() = println(readLine()!!.lines().map { it.length })' > Main.kt; "
        f"JAVA_OPTS='{_JVM_ARCHIVING}' kotlinc -include-runtime -d main.jar Main.kt",
        packages="kotlin default-jre-headless",
        folders=_JVM_FOLDERS,
        environment={"JAVA_OPTS": " ".join(_JVM_COMPILER)},
        memory_signs=_JVM_MEMORY,
    ),
    Language(
        name="clojure",
        aliases=("clj",),
        file="main.clj",
        run=(
            *("java", *_JVM, "-XX:SharedArchiveFile={prepared}/classes.jsa", "-Dclojure.main.report=stderr"),
            *("-cp", _CLOJURE, "clojure.main", "-e", _CLOJURE_TESTS, "main.clj"),
        ),
        prepare=f'java {_JVM_ARCHIVING} -cp {_CLOJURE} clojure.main -e "(require \'clojure.test)"',
        tools=(_CLOJURE,),
        packages="clojure default-jre-headless",
        folders=_JVM_FOLDERS,
        memory_signs=_JVM_MEMORY,
    ),
    Language(
        name="csharp",
        aliases=("cs", "c#"),
        file="main.cs",
        compile=("mcs", "-d:DEBUG", "-r:System.Numerics.dll", "-out:main.exe", "main.cs"),
        compile_with={"class ProctorEnd": ("-main:ProctorEnd",)},
        run=("mono", "main.exe"),
        packages="mono-mcs mono-runtime",
        folders=("/etc/mono",),
        environment={"MONO_TRACE_LISTENER": "Console.Error"},
        memory_signs=("System.OutOfMemoryException",),
        failure_signs=("System.Diagnostics.TraceInternal.Fail",),
    ),
    Language(
        name="d",
        aliases=("dlang",),
        file="main.d",
        compile=("ldc2", "-unittest", "-of=main", "main.d"),
        run=("./main",),
        packages="ldc",
        folders=("/etc/ldc2.conf",),
        memory_signs=("OutOfMemoryError",),
    ),
    Language(
        name="haskell",
        aliases=("hs",),
        file="main.hs",
        compile=("ghc", "-v0", "-O0", "-fno-ignore-asserts", "-rtsopts", "-o", "main", "main.hs"),
        compile_with={"proctorEnd ::": ("-main-is", "proctorEnd")},
        run=("./main", "+RTS", "-M{heap}m", "-RTS"),
        packages="ghc",
        folders=("/var/lib/ghc",),
        memory_signs=("Heap exhausted", "heap overflow"),
    ),
    Language(
        name="ocaml",
        aliases=("ml",),
        file="main.ml",
        compile=("ocamlopt", "-w", "-a", "-o", "main", "unix.cmxa", "str.cmxa", "main.ml"),
        run=("./main",),
        packages="ocaml-nox",
        memory_signs=("Out of memory", "Out_of_memory"),
    ),
    Language(
        name="elixir",
        aliases=("ex", "exs"),
        file="main.exs",
        run=("elixir", "main.exs"),
        packages="elixir",
        environment={
            "ELIXIR_ERL_OPTIONS": "+S 2:2 +SDcpu 2:2 +SDio 1 +A 1",
            "ERL_CRASH_DUMP_SECONDS": "0",  # a dump of a gigabyte takes longer than any program may
        },
        memory_signs=("Cannot allocate",),
    ),
    Language(
        name="ada",
        aliases=("adb",),
        file="main.ada",
        # A source holds several units, of which the compiler wants each in a file of its own.
        compile=(
            "sh",
            "-ec",
            "gnatchop -q -w main.ada .; unit=main; if [ -f proctor_end.adb ]; then unit=proctor_end; fi; "
            "gnatmake -q -gnatW8 -gnata -gnateE -gnat2022 -o main $unit.adb -bargs -Es",
        ),
        run=("./main",),
        tools=("gnatchop", "gnatmake"),
        packages="gnat",
        memory_signs=("heap exhausted",),
    ),
    Language(
        name="julia",
        aliases=("jl",),
        file="main.jl",
        run=("julia", "--startup-file=no", "--heap-size-hint={heap}M", "main.jl"),
        site="https://julialang.org/downloads",
        environment=_ONE_THREAD,
        memory_signs=("OutOfMemoryError",),
    ),
    Language(
        name="swift",
        file="main.swift",
        compile=("swiftc", "-o", "main", "main.swift"),
        run=("./main",),
        packages="swiftlang",  # from Debian 13 on
        site="https://www.swift.org/install",
        environment={"SWIFT_BACKTRACE": "enable=no"},  # when memory ends it says nothing, at length
    ),
    Language(
        name="dart",
        file="main.dart",
        run=("dart", "--old_gen_heap_size={heap}", "--enable-asserts", "main.dart"),
        site="https://dart.dev/get-dart",
        memory_signs=("Out of Memory",),
    ),
)

_BY_NAME = {name: language for language in LANGUAGES for name in (language.name, *language.aliases)}
