"""Exports: Parquet, and the files of lm-evaluation-harness and of the BigCode harness."""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest

import proctor as package
from conftest import Command
from proctor.cli.main import main
from proctor.core.types import Message, Metric, Output, Record, Run, Sample, SampleError, Score
from proctor.formats.harness_results import save_results
from proctor.store import open_store
from proctor.store.parquet import GROUP, write_parquet


def test_parquet_has_typed_columns(tmp_path: Path, adding: str) -> None:
    report = package.evaluate(adding, "scripted/oracle", limit=3, epochs=2)
    assert main(["export", "latest", "--out", "records.parquet"]) == 0
    table = pyarrow.parquet.read_table("records.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["index"], kinds["score"], kinds["started"]) == ("int64", "double", "timestamp[us, tz=UTC]")
    rows = table.to_pylist()
    assert [(row["id"], row["epoch"]) for row in rows] == [(f"add-{i}", epoch) for i in range(3) for epoch in (0, 1)]
    assert [row["score"] for row in rows] == [1.0] * 6
    assert rows[2]["outputs"][0]["text"] == rows[2]["target"] == "2"
    assert json.loads(rows[2]["metadata"]) == {"odd": 1}
    run = msgspec.json.decode(table.schema.metadata[b"proctor"], type=Run)
    assert run == report.run


def test_parquet_holds_any_record(tmp_path: Path) -> None:
    records = [
        Record(Sample("a", 0, (Message("user", "hi"),), target={"x": [1]}), outputs=(Output("é"),), score=Score(0.5)),
        Record(Sample("b", 1, "q", target=3), error=SampleError("model", "Error", "gone")),
        Record(Sample("c", 2, "q"), outputs=(Output("1"), Output("2")), score=Score(None, "unscored", ["1", {"y": 2}])),
    ]
    run = Run("r", "t", "1", "m", {"settings": {}}, {}, 0.0)
    with (tmp_path / "r.parquet").open("wb") as file:
        write_parquet(run, records, file)
    rows = pyarrow.parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert [row["target"] for row in rows] == ['{"x":[1]}', "3", None]
    assert [row["score"] for row in rows] == [0.5, None, None]
    assert rows[1]["error"] == {"kind": "model", "type": "Error", "message": "gone", "where": ""}
    assert rows[2]["answer"] == '["1",{"y":2}]'
    assert [len(row["outputs"]) for row in rows] == [1, 0, 2]


def test_parquet_is_written_in_row_groups(tmp_path: Path) -> None:
    pulled = 0

    def records() -> Iterator[Record]:
        nonlocal pulled
        for i in range(2 * GROUP + 5):
            pulled += 1
            yield Record(Sample(str(i), i, "q"), score=Score(1.0))

    with (tmp_path / "r.parquet").open("wb") as file:
        write_parquet(Run("r", "t", "1", "m", {"settings": {}}, {}, 0.0), records(), file)
    content = pyarrow.parquet.ParquetFile(tmp_path / "r.parquet").metadata
    assert [content.row_group(i).num_rows for i in range(content.num_row_groups)] == [GROUP, GROUP, 5]
    assert pulled == content.num_rows
    with (tmp_path / "empty.parquet").open("wb") as file:
        write_parquet(Run("r", "t", "1", "m", {"settings": {}}, {}, 0.0), [], file)
    assert pyarrow.parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


def test_parquet_without_pyarrow_names_the_extra(
    proctor: Command, adding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.evaluate(adding, "scripted/oracle", limit=1)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = proctor("export", "latest", "--out", "r.parquet")
    assert done.returncode == 2
    assert "pip install 'proctor-eval[parquet]'" in done.stderr


# The keys of a file that lm-evaluation-harness 0.4.13 wrote.
RESULTS = [
    "results",
    "group_subtasks",
    "configs",
    "versions",
    "n-shot",
    "higher_is_better",
    "n-samples",
    "config",
    "git_hash",
    "date",
    "pretty_env_info",
    "transformers_version",
    "lm_eval_version",
    "upper_git_hash",
    "task_hashes",
    "model_source",
    "model_name",
    "model_name_sanitized",
    "system_instruction",
    "system_instruction_sha",
    "fewshot_as_multiturn",
    "chat_template",
    "chat_template_sha",
    "total_evaluation_time_seconds",
]
CONFIG = [
    "model",
    "model_args",
    "batch_size",
    "batch_sizes",
    "device",
    "use_cache",
    "limit",
    "bootstrap_iters",
    "gen_kwargs",
    "random_seed",
    "numpy_seed",
    "torch_seed",
    "fewshot_seed",
]
SAMPLE = [
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "accuracy",
]


def exported(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (results,) = folder.glob("*/results_*.json")
    (samples,) = folder.glob("*/samples_*.jsonl")
    return json.loads(results.read_text()), [json.loads(line) for line in samples.read_text().splitlines()]


def test_lm_eval_export_has_the_files_of_the_harness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = package.evaluate("shapes/count", "scripted/random", limit=8, epochs=2, few_shot=1, temperature=0.5)
    assert main(["export", "latest", "--format", "lm-eval", "--out", "out"]) == 0
    assert capsys.readouterr().err.count("wrote out/scripted__random/") == 2
    results, samples = exported(tmp_path / "out")
    assert list(results) == RESULTS
    assert list(results["config"]) == CONFIG
    metric = report.metrics["accuracy"]
    assert results["results"] == {
        "count": {
            "name": "count",
            "alias": "shapes/count",
            "sample_len": 8,
            "accuracy,none": metric.value,
            "accuracy_stderr,none": metric.stderr,
        }
    }
    assert results["n-shot"] == {"count": 1}
    assert results["versions"] == {"count": 4}
    assert results["higher_is_better"] == {"count": {"accuracy": True}}
    assert results["n-samples"] == {"count": {"original": 8, "effective": 8}}
    assert results["configs"]["count"]["repeats"] == 2
    assert results["config"]["gen_kwargs"]["do_sample"] is True

    assert [set(sample) for sample in samples] == [set(SAMPLE)] * 8
    assert sum(sample["accuracy"] for sample in samples) / 8 == pytest.approx(metric.value)
    first = samples[0]
    assert [message["role"] for message in json.loads(first["arguments"]["gen_args_0"]["arg_0"])][-1] == "user"
    records = list(report.records())[:2]
    assert first["resps"] == [[record.outputs[0].text for record in records]]
    digests = "".join(s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in samples)
    assert results["task_hashes"] == {"count": hashlib.sha256(digests.encode()).hexdigest()}
    assert first["target_hash"] == hashlib.sha256(first["target"].encode()).hexdigest()


def test_lm_eval_export_leaves_out_unscored_samples(tmp_path: Path) -> None:
    run = Run(
        "r", "my/file.py:Exam", "1a", "openai/a:b", {"settings": {}}, {}, 0.0,
        total=2,
        metrics={
            "a,b": Metric(None, None, None, None, 0, "wilson"),
            "late": Metric(3, None, None, None, 1, "count"),
        },
    )  # fmt: skip
    records = [
        Record(Sample("a", 0, "q", target="1"), outputs=(Output("1"),), score=Score(1.0, answer="1")),
        Record(Sample("b", 1, "q"), error=SampleError("model", "Error", "gone")),
    ]
    save_results(run, records, tmp_path)
    results, samples = exported(tmp_path)
    assert [sample["doc_id"] for sample in samples] == [0]
    assert results["n-samples"] == {"Exam": {"original": 2, "effective": 1}}
    assert results["versions"] == {"Exam": "1a"}
    figures = results["results"]["Exam"]
    assert figures["a;b,none"] == figures["a;b_stderr,none"] == "N/A"
    assert results["higher_is_better"] == {"Exam": {"a;b": True, "late": None}}
    assert next(tmp_path.iterdir()).name == "openai__a__b"


def test_bigcode_export_has_the_files_of_the_harness(tmp_path: Path, adding: str) -> None:
    package.evaluate(adding, "scripted/oracle", limit=3, samples=2, temperature=0.2)
    assert main(["export", "latest", "--format", "bigcode", "--out", "out"]) == 0
    assert json.loads((tmp_path / "out/generations_adding.json").read_text()) == [["0", "0"], ["2", "2"], ["4", "4"]]
    assert json.loads((tmp_path / "out/references_adding.json").read_text()) == ["0", "2", "4"]
    results = json.loads((tmp_path / "out/evaluation_results.json").read_text())
    assert results["adding"] == {"accuracy": 1.0}
    expected = {"tasks": "adding", "model": "scripted/oracle", "n_samples": 2, "do_sample": True, "temperature": 0.2}
    assert {key: results["config"][key] for key in expected} == expected
    again = package.evaluate(adding, "scripted/generations:out/generations_adding.json", limit=3, samples=2)
    assert again.metrics["accuracy"].value == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "lm-eval"], "lm-eval needs a folder, --out DIR"),
        (["--format", "parquet"], "parquet needs a file, --out FILE.parquet"),
        (["--format", "lm-eval", "--out", "d", "--reviewed"], "remove --reviewed"),
        (["--out", "r.txt"], "use .jsonl, .json, .csv, .parquet, or give --format"),
        (["--out", "no/folder/r.parquet"], "Cannot write no/folder/r.parquet"),
        (["--format", "bigcode", "--out", "file"], "Cannot write"),
        (["--format", "lm-eval", "--out", "file"], "Cannot write"),
    ],
)
def test_impossible_exports_are_refused(
    adding: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    package.evaluate(adding, "scripted/oracle", limit=1)
    Path("file").write_text("in the way")
    assert main(["export", "latest", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err


def test_lm_eval_export_leaves_out_images(tmp_path: Path) -> None:
    report = package.evaluate("shapes/count", "scripted/oracle", limit=1, modality="image")
    store = open_store()
    save_results(report.run, store.records(report.run), tmp_path)
    store.close()
    _, (sample,) = exported(tmp_path)
    assert len(json.dumps(sample)) < 3000
