"""Task files of the BigCode evaluation harness run as they are. Those here are our own, with the same imports."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import Command
from helpers.bigcode_tasks import FUNCTIONS, ROWS, RUNNING, code_task, values, write_rows, write_task
from helpers.code_tasks import prompt_text
from proctor.code.tasks import TASK_REGISTRY, get_task
from proctor.core import registry
from proctor.core.errors import UsageError
from proctor.integrations.bigcode.evaluate import load

# As guides to the harness teach it: the first task, the patterns, the pitfalls, the factory.
GUIDED = """
import json
import os
from evaluate import load
from PACKAGE.base import Task

class Custom(Task):
    DATASET_PATH = "someone/something"
    DATASET_NAME = None

    def __init__(self):
        super().__init__(stop_words=["\\nclass", "\\ndef", "\\n#"], requires_execution=True)

    def get_dataset(self):
        from datasets import load_dataset
        return load_dataset(self.DATASET_PATH, self.DATASET_NAME, split="test")

    def get_prompt(self, doc):
        return doc["prompt"]

    def get_reference(self, doc):
        return doc["test"]

    def postprocess_generation(self, generation, idx):
        for word in self.stop_words:
            if word in generation:
                generation = generation[: generation.index(word)]
        return generation

    def process_results(self, generations, references):
        results, _ = load("code_eval").compute(references=references, predictions=generations, k=[1, 10], timeout=10.0)
        return results

class Careful(Custom):
    def postprocess_generation(self, generation, idx):
        if not generation or not generation.strip():
            return ""
        return super().postprocess_generation(generation, idx).rstrip()

class Compared(Custom):
    def __init__(self):
        Task.__init__(self, stop_words=["\\n\\n"], requires_execution=False)

    def get_reference(self, doc):
        return doc["prompt"] + doc["canonical_solution"]

    def process_results(self, generations, references):
        from evaluate import load
        predictions = [texts[0] for texts in generations]
        found = load("bleu").compute(predictions=predictions, references=[[one] for one in references])
        return {"bleu": found["bleu"]}

class Plain(Compared):
    def get_reference(self, doc):
        return doc["canonical_solution"]

    postprocess_generation = Task.postprocess_generation

class FewShot(Custom):
    def __init__(self):
        super().__init__()
        with open(os.path.join(os.path.dirname(__file__), "few_shot_examples", "adding.json")) as file:
            self.examples = json.load(file)

    def get_prompt(self, doc):
        shown = "".join(f"# {one['problem']}\\n{one['solution']}\\n\\n" for one in self.examples[:2])
        return f"{shown}# {doc['sentence']}\\n{doc['prompt']}"

    def postprocess_generation(self, generation, idx):
        return generation[len(self.get_prompt(self.get_dataset()[idx])) - len(self.get_dataset()[idx]["prompt"]) :]

class Infilling(Task):
    PREFIX, SUFFIX, MIDDLE = "<fim_prefix>", "<fim_suffix>", "<fim_middle>"

    def __init__(self):
        super().__init__(stop_words=["<|endoftext|>", self.MIDDLE], requires_execution=False)

    def get_prompt(self, doc):
        return f"{self.PREFIX}{doc['prompt']}{self.SUFFIX}\\n{self.MIDDLE}"

    def get_reference(self, doc):
        return doc["canonical_solution"].strip()

    def postprocess_generation(self, generation, idx):
        if self.MIDDLE in generation:
            generation = generation.split(self.MIDDLE)[0]
        return generation.strip()

    def process_results(self, generations, references):
        return load("exact_match").compute(predictions=[texts[0] for texts in generations], references=references)

class Instructed(Task):
    def __init__(self):
        super().__init__(stop_words=["</s>"], requires_execution=True)

    def get_prompt(self, doc):
        return f"Write a Python function {doc['entry_point']}(x) that {doc['sentence']}.\\n\\nOnly the function:\\n"

    def get_reference(self, doc):
        return doc["test"]

def create_all_tasks():
    return {f"adding-{name}": create_task_class(name) for name in ("one", "two")}

def create_task_class(name):
    class Adding(Custom):
        DATASET_NAME = name
    return Adding
"""


NAMES = ["Custom", "Careful", "Compared", "Plain", "FewShot", "Infilling", "adding-one"]


@pytest.fixture
def guided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], list[str]]]:
    """The guide's tasks, to be found in some way: what they are called then."""
    before = set(sys.modules)

    def make(package: str, way: str) -> list[str]:
        path = write_task(GUIDED.replace("PACKAGE", package), name="guided.py")
        (tmp_path / "tasks" / "few_shot_examples").mkdir()
        examples = [{"problem": "twice", "solution": "def twice(x):\n    return 2 * x"}] * 2
        (tmp_path / "tasks" / "few_shot_examples" / "adding.json").write_text(json.dumps(examples))
        if way == "by path":
            return [f"{path}:{name}" for name in NAMES]
        monkeypatch.syspath_prepend(tmp_path / "tasks")
        if way == "installed":
            info = tmp_path / "tasks" / "guided-1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guided\nVersion: 1\n")
            points = [f"guided/{name} = guided:{name}" for name in NAMES if name != "adding-one"]
            (info / "entry_points.txt").write_text("\n".join(["[proctor.tasks]", *points]))
            return [f"guided/{name}" for name in NAMES if name != "adding-one"]
        module = importlib.import_module("guided")
        tasks = {name: getattr(module, name) for name in NAMES if name != "adding-one"}
        for name, cls in {**tasks, **module.create_all_tasks()}.items():
            monkeypatch.setitem(TASK_REGISTRY, name, cls)
        return [f"code/{name}" for name in NAMES]

    yield make
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "guided":
            del sys.modules[name]


EXPECTED = dict(zip(NAMES, ["pass@1", "pass@1", "bleu", "bleu", "pass@1", "exact_match", "pass@1"], strict=True))
WAYS = [
    ("proctor.code", "chat", "registered", ["Plain", "adding-one"]),
    ("bigcode_eval", "completions", "installed", ["FewShot"]),
    *(
        pytest.param(package, api, way, NAMES, marks=pytest.mark.slow)
        for package in ("bigcode_eval", "proctor.code")
        for api in ("chat", "completions")
        for way in ("by path", "registered", "installed")
    ),
]


@pytest.mark.parametrize(("package", "api", "way", "wanted"), WAYS)
def test_what_the_guide_teaches_runs(
    proctor: Command, guided: Callable[[str, str], list[str]], package: str, api: str, way: str, wanted: list[str]
) -> None:
    names = [name for name in guided(package, way) if re.split("[:/]", name)[-1] in wanted]
    options = ["--data", write_rows(), "--api", api, "--allow_code_execution", "--json", "-q"]
    done = proctor("run", *names, "--model", "scripted/oracle", *options)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    marks = [next(iter(run["metrics"].items())) for run in runs]
    assert [name for name, _ in marks] == [EXPECTED[re.split("[:/]", name)[-1]] for name in names]
    assert [metric["value"] for _, metric in marks] == [1.0] * len(names)
    assert [run["n"] for run in runs] == [3] * len(names)


@pytest.mark.parametrize("way", ["by path", "registered", "installed"])
def test_the_guides_own_tests_of_a_task(guided: Callable[[str, str], list[str]], way: str) -> None:
    name, *_ = guided("bigcode_eval", way)
    assert importlib.import_module("bigcode_eval.tasks").get_task is get_task, (
        "which is where the guide imports it from"
    )
    task = get_task(name, data=write_rows())
    assert task is not None
    dataset = task.get_dataset()
    assert len(dataset) > 0
    prompt = task.get_prompt(dataset[0])
    assert isinstance(prompt, str)
    assert len(prompt) > 0
    assert "class Bar" not in task.postprocess_generation("def foo():\n    return 1\n\nclass Bar:", 0)


@pytest.mark.parametrize(
    ("package", "way"),
    [pytest.param("bigcode_eval", "by path", marks=pytest.mark.slow), ("proctor.code", "registered")],
)
def test_the_guides_comparison_of_texts_passes_the_check(
    proctor: Command, guided: Callable[[str, str], list[str]], package: str, way: str
) -> None:
    """A prompt is no part of a text that is compared with another."""
    name = next(name for name in guided(package, way) if "Plain" in name)
    done = proctor("check", name, "--data", write_rows())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_module_that_was_imported_before_finds_the_same(guided: Callable[[str, str], list[str]]) -> None:
    """Whoever registers a task may have imported it before anything of ours, with the packages that there were."""
    guided("proctor.code", "registered")
    script = """
        import sys, types
        sys.modules["evaluate"] = types.SimpleNamespace(load=None)
        import guided
        from proctor.code import TASK_REGISTRY, get_task
        TASK_REGISTRY["mine"] = guided.Custom
        import proctor
        report = proctor.evaluate("code/mine", "scripted/oracle", data=DATA, allow_code_execution=True, store="store")
        assert report.metrics["pass@1"].value == 1
        assert len(get_task("mine", data=DATA).get_dataset()) == 3
    """
    source = textwrap.dedent(script).replace("DATA", repr(write_rows()))
    path = {"PYTHONPATH": f"tasks:{Path(proctor.__file__).parents[1]}"}
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=100, check=False, env=os.environ | path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "api"),
    [
        ("bigcode_eval", "completions"),
        ("proctor.code", "chat"),
        pytest.param("bigcode_eval", "chat", marks=pytest.mark.slow),
        pytest.param("proctor.code", "completions", marks=pytest.mark.slow),
    ],
)
def test_an_instruction_is_no_part_of_the_program(package: str, api: str) -> None:
    rows = [{**row, "canonical_solution": function} for row, function in zip(ROWS, FUNCTIONS, strict=True)]
    data = write_rows(rows, "whole.jsonl")
    task = f"{write_task(GUIDED.replace('PACKAGE', package))}:Instructed"
    report = proctor.evaluate(task, "scripted/oracle", data=data, api=api, allow_code_execution=True)
    assert report.metrics["pass@1"].value == 1


class TestARegisteredTask:
    """What the guide tests of a task, with the other package name."""

    def test_task_loads(self) -> None:
        assert get_task("humaneval") is not None

    def test_dataset_loads(self) -> None:
        assert len(get_task("humaneval").get_dataset()) > 0

    def test_prompt_format(self) -> None:
        task = get_task("humaneval")
        prompt = task.get_prompt(task.get_dataset()[0])
        assert isinstance(prompt, str)
        assert len(prompt) > 0

    def test_postprocess(self) -> None:
        assert "class Bar" not in get_task("humaneval").postprocess_generation("def f():\n    pass\n\nclass Bar:", 0)


def test_nothing_changes_for_other_modules() -> None:
    """The stand-ins are seen by task files, and by nobody else."""
    path = write_task(GUIDED.replace("PACKAGE", "bigcode_eval"))
    script = f"""
        import sys
        import proctor
        assert not any(name.startswith("proctor.integrations") for name in sys.modules)
        before = list(sys.meta_path)
        from proctor.core import registry
        registry.load_task_class({str(path) + ":Custom"!r})
        assert len(sys.meta_path) == len(before) + 1
        import subprocess, tempfile, concurrent.futures
        assert type(subprocess).__name__ == type(concurrent.futures).__name__ == "module"
        assert "datasets" not in sys.modules and "evaluate" not in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr


Install = Callable[[str, str], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a module, which is forgotten afterwards."""
    before = set(sys.modules)

    def install(name: str, source: str) -> None:
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        monkeypatch.syspath_prepend(tmp_path / "site")

    yield install
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("datasets", "evaluate"):
            del sys.modules[name]


def test_unknown_metrics_are_asked_of_the_real_package(installed: Install) -> None:
    with pytest.raises(UsageError, match=r"'meteor' needs the package evaluate: .* there are bleu, code_eval"):
        load("meteor")
    installed("evaluate.py", "def load(*args, **kwargs): return args, kwargs\n")
    assert load("meteor", module_type="metric") == (("meteor",), {"module_type": "metric"})


def test_the_rest_of_a_replaced_package_is_its_own(installed: Install) -> None:
    hub = (
        "class Dataset: pass\ndef load_dataset(path, name=None, split=None, **options): return [path, name, options]\n"
    )
    installed("datasets/__init__.py", hub)
    installed("datasets/depths.py", "DEEP = True\n")
    path = write_task(
        """
        import datasets, datasets.depths
        from datasets.depths import DEEP
        from datasets import Dataset, load_dataset
        found = (datasets.Dataset is Dataset, datasets.depths.DEEP is DEEP, load_dataset("a", "b", revision="c"))
        from proctor.code import Task
        class Asking(Task):
            def get_prompt(self, doc): return ""
            def get_reference(self, doc): return ""
        """
    )
    module = sys.modules[registry.load_task_class(path).__module__]
    assert module.found == (True, True, ["a", "b", {"revision": "c"}])


def test_files_of_the_harness_are_found_beside_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks import each other, forks add metrics and helpers, and examples lie below the folder of the harness."""
    write_task(
        "VERSION = 3\nfrom bigcode_eval.base import Task\nclass Parent(Task):\n    origin = __name__\n",
        "fork/bigcode_eval/tasks",
        "parent.py",
    )
    write_task("def shout(text): return text.upper()\n", "fork/bigcode_eval", "utils.py")
    write_task(
        "from evaluate import load\nmine = load('exact_match').name\n",
        "fork/bigcode_eval/tasks/custom_metrics",
        "mine.py",
    )
    write_task('{"hello": "world"}', "fork/bigcode_eval/tasks/few_shot_examples", "hello.json")
    path = write_task(
        """
        import json
        from bigcode_eval.tasks.parent import Parent, VERSION
        from bigcode_eval.tasks.custom_metrics.mine import mine
        from bigcode_eval.tasks.custom_metrics.code_eval import compute_code_eval
        from bigcode_eval.utils import remove_after_return, shout
        from bigcode_eval import tasks
        from . import parent
        from .custom_metrics import mine as again

        class Child(Parent):
            def get_prompt(self, doc):
                with open("bigcode_eval/tasks/few_shot_examples/hello.json") as file:
                    return json.load(file)["hello"] + doc["prompt"]

            def get_reference(self, doc):
                return doc["test"]

        assert parent.Parent is Parent and "humaneval" in tasks.ALL_TASKS
        found = (Child.origin, VERSION, mine, again.mine, shout("a"))
        """,
        "fork/bigcode_eval/tasks",
        "child.py",
    )
    data = write_rows()
    missing = write_task("from bigcode_eval.utils import nowhere_to_be_found", "lone", "lone.py")
    monkeypatch.chdir("/")
    cls = code_task(f"{path}:Child")
    said = sys.modules[cls.__module__].found
    assert said == ("bigcode_eval.tasks.parent", 3, "exact_match", "exact_match", "A")
    task = cls.build(cls.Settings(), data)
    assert prompt_text(task, ROWS[0]).startswith("worlddef add_0")
    with pytest.raises(UsageError, match="cannot import name 'nowhere_to_be_found'"):
        registry.load_task_class(missing)


def test_tasks_that_a_file_makes() -> None:
    path = write_task(GUIDED.replace("PACKAGE", "bigcode_eval"))
    assert code_task(f"{path}:adding-two").DATASET_NAME == "two"
    with pytest.raises(UsageError, match="did you mean adding-two"):
        registry.load_task_class(f"{path}:adding-too")
    with pytest.raises(UsageError, match="Which task"):
        registry.load_task_class(path)
    broken = write_task("def create_all_tasks():\n    return 1 / 0\n", name="broken.py")
    with pytest.raises(UsageError, match=r"could not create its tasks: ZeroDivisionError: division by zero \(line 2\)"):
        registry.load_task_class(f"{broken}:x")


def test_arguments_without_a_default() -> None:
    constructor = """
        def __init__(self, prompt, level):
            super().__init__()
    """
    path = write_task(RUNNING + constructor)
    with pytest.raises(UsageError, match="missing required field level"):
        proctor.evaluate(f"{path}:Running", "scripted/blank", data=write_rows())
    report = proctor.evaluate(
        f"{path}:Running",
        "scripted/blank",
        data=write_rows(),
        settings={"level": 3},
        allow_code_execution=True,
        limit=1,
    )
    assert report.run.config["settings"] == {"prompt": "prompt", "level": 3}, "the harness always passes a prompt"


FILLING = """
    from bigcode_eval.base import Task
    from evaluate import load

    class Filling(Task):
        def __init__(self):
            super().__init__(stop_words=["<|endoftext|>"], requires_execution=False)

        def get_prompt(self, doc):
            return {"prefix": doc["prompt"], "suffix": ""}

        def get_reference(self, doc):
            return doc["canonical_solution"]

        def postprocess_generation(self, generation, idx):
            before, end, _ = generation.partition("<|endoftext|>")
            return before if end else "it did not end"

        def process_results(self, generations, references):
            return load("exact_match").compute(predictions=[texts[0] for texts in generations], references=references)
"""


def test_the_middle_alone_and_the_end_of_the_text_as_the_harness_has_them() -> None:
    task = f"{write_task(FILLING)}:Filling"
    said = [{"id": row["task_id"], "outputs": [{"text": row["canonical_solution"]}]} for row in ROWS]
    model = f"scripted/replay:{write_rows(said, 'said.jsonl')}"
    report = proctor.evaluate(task, model, data=write_rows(), api="completions", fim="starcoder")
    assert values(report) == {"exact_match": 1}


BLOCKS = """
    import re
    from evaluate import load

    class Blocks(Running):
        escape = staticmethod(str)
        words = ["\\nclass", "\\ndef", "\\n#"]

        def __init__(self):
            super().__init__(stop_words=self.words, requires_execution=True)

        def postprocess_generation(self, generation, idx):
            prompt = self.get_prompt(self.get_dataset()[idx])
            stops = "|".join(self.escape(word) for word in self.stop_words)
            # It ends with a stop word, and with what comes after it.
            return prompt + "".join(re.split(f"({stops})", generation[len(prompt) :])[:-2])

        def process_results(self, generations, references):
            return load("code_eval").compute(predictions=generations, references=references, k=[1])[0]

    class Escaped(Blocks):
        escape = staticmethod(re.escape)

    class WithEnd(Escaped):
        words = ["\\nclass", "<|endoftext|>"]

    class Uncut(Blocks):
        def postprocess_generation(self, generation, idx):
            return generation
"""


@pytest.mark.parametrize("api", [pytest.param("chat", marks=pytest.mark.slow), "completions"])
@pytest.mark.parametrize(
    "name", ["Blocks", *(pytest.param(name, marks=pytest.mark.slow) for name in ("Escaped", "WithEnd", "Uncut"))]
)
def test_generations_end_as_those_of_the_harness(name: str, api: str) -> None:
    task = f"{write_task(textwrap.dedent(RUNNING) + textwrap.dedent(BLOCKS))}:{name}"
    report = proctor.evaluate(task, "scripted/oracle", data=write_rows(), api=api, allow_code_execution=True)
    assert values(report) == {"pass@1": 1}
    cls = code_task(task)
    assert cls.build(cls.Settings(), write_rows()).stop_words.count("<|endoftext|>") == 1


STOPPING = """
    class Stopping(Running):
        def __init__(self):
            super().__init__(stop_words=["never"], requires_execution=True)

        def check_fn(self, completion):
            return completion.splitlines()[-1][:1] == "#"

        def postprocess_generation(self, generation, idx):
            return generation[len(self.get_prompt(self.get_dataset()[idx])) :]

        def process_results(self, generations, references):
            assert {text for texts in generations for text in texts} == {"    a()\\n#"}, generations
            return {"right": 1.0}

    class Long(Stopping):
        check_fn = None
        max_length_multiplier = 1.5

        def process_results(self, generations, references):
            assert all(len(texts[0]) == len("def f():\\n") // 2 for texts in generations), generations
            return {"right": 1.0}

    class Encoding(Stopping):
        def get_prompt_encoder(self, doc):
            return doc["prompt"]
"""


def test_where_a_task_says_that_a_completion_ends() -> None:
    row = {"prompt": "def f():\n", "canonical_solution": "    a()\n# b\n    c()\n", "test": ""}
    path = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(STOPPING))
    options: dict[str, Any] = {
        "data": write_rows([row], "stopping.jsonl"),
        "api": "completions",
        "allow_code_execution": True,
    }
    for name in ("Stopping", "Long"):
        assert values(proctor.evaluate(f"{path}:{name}", "scripted/oracle", **options)) == {"right": 1}
    with pytest.raises(UsageError, match=r"a text for the encoder and another for the decoder \(get_prompt_encoder\)"):
        proctor.evaluate(f"{path}:Encoding", "hf/nowhere", modeltype="seq2seq", **options)


SOLVED = """
    from evaluate import load

    class Mending(Running):
        def __init__(self):
            super().__init__(stop_words=["\\ndef"], requires_execution=True)

        def get_prompt(self, doc):
            return "Mend this function.\\n" + doc["prompt"]

        def get_reference(self, doc, get_solution=False):
            return doc["prompt"] + doc["canonical_solution"] if get_solution else doc["test"]

        def postprocess_generation(self, generation, idx):
            doc = self.get_dataset()[idx]
            body = generation[len(self.get_prompt(doc)) :]
            return doc["prompt"] + "\\n".join(line for line in body.split("\\n") if line[:1] == " ")

        def process_results(self, generations, references):
            return load("code_eval").compute(predictions=generations, references=references, k=[1])[0]

    class Translating(Running):
        def __init__(self):
            super().__init__(stop_words=["\\n"], requires_execution=False)

        def get_reference(self, doc):
            return [doc["sentence"] + " and says so", "nothing"]

        def postprocess_generation(self, generation, idx):
            return generation[len(self.get_prompt(self.get_dataset()[idx])) :]

        def process_results(self, generations, references):
            return load("bleu").compute(predictions=[texts[0] for texts in generations], references=references)
"""


@pytest.mark.parametrize("api", ["chat", pytest.param("completions", marks=pytest.mark.slow)])
def test_solutions_are_judged_as_they_are(proctor: Command, api: str) -> None:
    path = write_task(textwrap.dedent(RUNNING) + textwrap.dedent(SOLVED))
    tasks = [f"{path}:Mending", f"{path}:Translating"]
    options = ["--check_references", "--allow_code_execution", "--data", write_rows(), "--api", api, "--json", "-q"]
    done = proctor("run", *tasks, *options)
    assert done.returncode == 0, done.stderr
    mended, translated = json.loads(done.stdout)["runs"]
    assert mended["metrics"]["pass@1"]["value"] == translated["metrics"]["bleu"]["value"] == 1


def test_rows_of_a_file_answer_like_a_data_set() -> None:
    task = code_task(f"{write_task(RUNNING)}:Running").build(proctor.core.task.NoSettings(), write_rows())
    table = task.dataset["validation"]
    assert (table.num_rows, table.column_names[:2]) == (3, ["task_id", "prompt"])
    assert table["entry_point"][1] == table[1]["entry_point"] == table[1:]["entry_point"][0] == "add_1"
    assert table.filter(lambda row: row["task_id"] > "add/0").select([1])[0]["task_id"] == "add/2"
    assert table.map(lambda row, i: {"number": i}, with_indices=True)["number"] == [0, 1, 2]
    assert table.sort("task_id", reverse=True)[0] == table[-1] == ROWS[2]
    assert sorted(table.shuffle(seed=1)["task_id"]) == table["task_id"]
    assert table.add_column("new", "abc")[2]["new"] == "c"
    assert table.to_list() == list(table) == ROWS
    with pytest.raises(KeyError):
        table["nothing"]
    with pytest.raises(AttributeError, match=r"A data set's 'to_pandas', .* needs the extra 'hub'"):
        table.to_pandas()
