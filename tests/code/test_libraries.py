"""A library that is missing where programs run is named, and never held against a program."""

from __future__ import annotations

import pytest

import proctor
from conftest import RunInLanguages
from helpers.code_tasks import make_task, results, rows, write_rows
from helpers.toolchains import marks, needs_language
from proctor.code.imports import SYNTAX, MissingLibraryError, imported, probe, used
from proctor.code.libraries import imported as imported_anywhere
from proctor.code.tasks.apps import APPS
from proctor.code.tasks.ds1000 import DS1000
from proctor.sandbox import Limits, Outcome

pytestmark = pytest.mark.usefixtures("one_sandbox")

ABSENT = "no_such_library"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (
            "import numpy as np, scipy.stats\nfrom pandas.testing import assert_frame_equal",
            {"numpy", "scipy", "pandas"},
        ),
        ('code = r"""\nimport torch\n"""', {"torch"}),
        ("def f():\n    from sklearn import svm  # import tensorflow", {"sklearn"}),
        ("important = from_here = 1", set()),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: set[str]) -> None:
    assert imported_anywhere(source) == names


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more library in the environment of the benchmark, which nobody has installed."""
    for cls in (DS1000, APPS):
        monkeypatch.setattr(cls, "LIBRARIES", {**cls.LIBRARIES, ABSENT: "no-such-package"})


@pytest.mark.usefixtures("absent")
def test_a_missing_library_is_an_error_of_the_sample_with_its_name() -> None:
    row, needy = rows("ds1000")[0], rows("ds1000")[1]
    needy["code_context"] = f"import {ABSENT}\n{needy['code_context']}"
    report = proctor.evaluate(
        "code/ds1000-numpy-completion", "scripted/oracle", data=write_rows(row, needy), allow_code_execution=True
    )
    assert report.run.errors == 1
    assert report.metrics["pass@1"].value == 1
    assert report.metrics["pass@1"].n == 1
    (error,) = (record.error for record in report.records() if record.error)
    assert (error.kind, error.type) == ("judge", "MissingLibraryError")
    assert ABSENT in error.message
    assert "install no-such-package" in error.message


@pytest.mark.usefixtures("absent")
def test_so_it_is_where_the_answer_needs_it() -> None:
    task = make_task("ds1000-numpy-completion", rows("ds1000")[0])
    with pytest.raises(MissingLibraryError, match=ABSENT):
        results(task, f"import {ABSENT}\nresult = a.sum(axis=0)")
    answer = "import unheard_of\nresult = a.sum(axis=0)"  # no part of the benchmark's environment: a mistake
    assert results(task, answer)["pass@1"] == 0


@pytest.mark.usefixtures("absent")
def test_a_program_that_passes_all_the_same_is_no_error() -> None:
    task = make_task("apps-introductory", rows("apps")[0])
    solution = task.solution(task.rows()[0])
    assert results(task, f"try:\n    import {ABSENT}\nexcept ImportError:\n    pass\n{solution}")["pass@1"] == 1
    with pytest.raises(MissingLibraryError, match=ABSENT):
        results(task, f"import {ABSENT}\n{solution}")


# For each language: an import of something that is there, of something that is nowhere, and lines that only look so.
IMPORTS = {
    "ada": ("with Ada.Text_IO;", "with No_Such_Unit;", "-- with No_Such_Unit;\npackage Own is\nwith Own;"),
    "c": ("#include <stdio.h>", "#include <no/such.h>", '#include "own.h"'),
    "clojure": (
        "(require '[clojure.string :as string])",
        "(require '[no-such.space :refer [f]])",
        "(defn require [no-such])",
    ),
    "cpp": ("#include <bits/stdc++.h>", "#include <no/such.hpp>", "// include <no/such.hpp>"),
    "csharp": ("using System.Linq;", "using No.Such;", "// using No.Such;\nusing (var x = y) {}"),
    "d": ("import std.math;", "import no.such;", "// import no.such;"),
    "dart": ("import 'dart:math';", "import 'package:no_such/no_such.dart';", "// import 'no_such.dart';"),
    "elixir": ("use ExUnit.Case", "import No.Such", "defmodule Own do\nalias Own\n# import No.Such"),
    "go": (
        'import "github.com/stretchr/testify/assert"',
        'import (\n\t"fmt"\n\t"example.com/no/such"\n)',
        'cases := []string{\n"example.com/no/such",\n}',
    ),
    "go-test": (
        'import "github.com/stretchr/testify/assert"',
        'import (\n\t"fmt"\n\t"example.com/no/such"\n)',
        '// import "example.com/no/such"',
    ),
    "haskell": ("import qualified Data.Map as Map", "import No.Such (f)", "-- import No.Such"),
    "java": ("import org.javatuples.*;", "import static no.such.Thing.f;", "import java.util.*;\n// import no.such;"),
    "javascript": (
        "const fs = require('fs');",
        "const x = require('no-such');",
        "// take it from 'no-such'\nrequire('./own')\nrequire('node:fs')",
    ),
    "julia": ("using Test", "import NoSuch: f", "using the formula\n# using NoSuch"),
    "kotlin": ("import java.util.*", "import no.such.thing", "// import no.such.thing"),
    "lua": ("local lu = require('luaunit')", 'require "no.such"', "-- no.such is required"),
    "ocaml": ("open Str", "open No_such", "module Own = struct end\nopen Own"),
    "perl": ("use Test::Deep;", "use No::Such qw(f);", "use strict;\n# use No::Such;\npackage Own;\nuse Own;"),
    "php": ("echo mb_strlen('a');", "echo gmp_add(1, 2);", "// number of bytes"),
    "python": ("import json", "from no_such.thing import f", '"""\nfrom the list\nuse import\n"""'),
    "r": ("library(stats)", "suppressMessages(library('no.such'))", "# library(no.such)"),
    "racket": ("(require rackunit)", "(require no/such)", ";; requires nothing"),
    "ruby": ("require 'set'", "require 'no/such'", "# require 'no/such'"),
    "rust": ("use std::fmt;", "use no_such::Thing;", "/// use no_such here\nmod own {}\nuse own::f;\nuse Kind::*;"),
    "rust-test": ("use md5;", "use no_such::Thing;", "/// use no_such here\nuse super::*;"),
    "scala": ("import scala.math._", "import no.such._", "// import no.such._"),
    "swift": ("import Foundation", "import NoSuch", "// import NoSuch"),
    "typescript": ("const fs = require('fs');", "import x from 'no-such';", "// import x from 'no-such';"),
}


def test_every_language_with_imports_is_here() -> None:
    assert IMPORTS.keys() == SYNTAX.keys()


@pytest.mark.parametrize("language", SYNTAX)
def test_imports_are_told_from_prose(language: str) -> None:
    there, absent, prose = IMPORTS[language]
    assert imported(language, prose) == set()
    names = imported(language, absent)
    assert len(names) == 1
    assert used(language, names, f"{there}\n{absent}") == names
    assert used(language, names, f"{there}\n{prose}") == set()


@pytest.mark.parametrize("language", [pytest.param(name, marks=marks(name)) for name in SYNTAX])
def test_what_can_be_imported_is_found_out_where_programs_run(language: str, run_in_languages: RunInLanguages) -> None:
    there, absent, _ = IMPORTS[language]
    programs = [probe(language, name) for name in (*imported(language, there), *imported(language, absent))]
    needs_language(programs[0].language, libraries=True)
    *found, last = run_in_languages(programs, Limits(seconds=30.0))
    assert [verdict.outcome for verdict in found] == [Outcome.PASSED] * len(found), found
    assert last.outcome is Outcome.FAILED or language == "php", last  # gmp may be installed


def test_what_the_tests_import_excuses_programs_and_what_a_program_imports_does_not() -> None:
    needs_language("perl", libraries=True)
    perl = next(row for row in rows("multiple") if row["language"] == "pl")
    needy = {**perl, "tests": perl["tests"].replace("use Test::Deep;", "use Test::Deep;\nuse No::Such;")}
    task = make_task("multiple-pl", needy)
    with pytest.raises(MissingLibraryError, match="No::Such cannot be imported where programs run: install No::Such"):
        results(task, f"{task.get_prompt(needy)}{task.solution(needy)}")
    task = make_task("multiple-pl", perl)
    answer = f"{task.get_prompt(perl)}{task.solution(perl)}"
    assert results(task, answer)["pass@1"] == 1
    assert results(task, f"use Own::Invention;\n{answer}")["pass@1"] == 0


def test_a_missing_library_of_another_language_is_an_error_of_the_sample_too() -> None:
    needs_language("perl", libraries=True)
    perl = next(row for row in rows("multiple") if row["language"] == "pl")
    needy = {**perl, "name": "HumanEval_202_count_above", "prompt": f"use No::Such;\n{perl['prompt']}"}
    report = proctor.evaluate(
        "code/multiple-pl", "scripted/oracle", data=write_rows(perl, needy), allow_code_execution=True, workers=1
    )
    right, excused = report.records()
    assert right.score is not None
    assert excused.error is not None
    assert (right.score.value, excused.error.type, excused.score) == (1, "MissingLibraryError", None)


CRATES = {"md5": 'md5::compute("").len()', "regex": 'regex::Regex::new("a").unwrap().as_str().len()'}


@pytest.mark.slow
def test_humanevalpacks_rust_rows_are_excused_for_a_crate_that_is_missing() -> None:
    needs_language("rust-test", libraries=True)
    row = next(row for row in rows("humanevalpack") if row["task_id"].startswith("Rust"))
    row["declaration"] = row["declaration"].replace("use md5;", "use md5;\nuse no_such_crate;")
    task = make_task("humanevalsynthesize-rust", row)
    begun = f"{task.get_prompt(row)}"
    right = str(row["canonical_solution"])
    assert results(task, task.postprocess_generation(f"{begun}\n{right}", 0))["pass@1"] == 1
    for crate, value in CRATES.items():
        uses = right.replace("return largest;", f"let _length = {value}; return largest;")
        assert results(task, task.postprocess_generation(f"{begun}\n{uses}", 0))["pass@1"] == 1, crate
    needy = right.replace("return largest;", "no_such_crate::f(); return largest;")
    with pytest.raises(MissingLibraryError, match="no_such_crate cannot be imported"):
        results(task, task.postprocess_generation(f"{begun}\n{needy}", 0))
    invented = right.replace("return largest;", "own_invention::f(); return largest;")
    assert results(task, task.postprocess_generation(f"{begun}\n{invented}", 0))["pass@1"] == 0
