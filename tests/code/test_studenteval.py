"""StudentEval: which prompts are asked, by which groups they are counted, and that most have no known answer."""

from __future__ import annotations

import json
from pathlib import Path

import proctor
from helpers.paths import DATA
from proctor.analysis.check import check_task

ROWS = [json.loads(line) for line in (DATA / "code_rows" / "studenteval.jsonl").read_text().splitlines()]
NO_GROUP = dict.fromkeys(("is_first_success", "is_last_success", "is_first_failure", "is_last_failure"), False)


def data(folder: Path) -> str:
    """Two that succeeded, one that failed at last, and one in between, which is not asked."""
    failed = ROWS[0] | NO_GROUP | {"is_last_failure": True, "is_success": False, "completion": "    return bill\n"}
    between = ROWS[0] | NO_GROUP
    file = folder / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, [*ROWS, between, failed])))
    return str(file)


def test_first_and_last_attempts_are_asked_and_counted_in_groups(tmp_path: Path) -> None:
    report = proctor.evaluate("code/studenteval", "scripted/blank", data=data(tmp_path), allow_code_execution=True)
    assert [record.sample.id for record in report.records()] == ["add_tip/0", "add_tip/1", "add_tip/2"]
    assert set(report.run.groups["group"]) == {"First Success", "Last Success", "Last Failure"}


def test_a_prompt_that_nobody_has_answered_is_no_fault(tmp_path: Path) -> None:
    findings = {finding.claim: finding for finding in check_task("code/studenteval", {}, data=data(tmp_path))}
    assert all(finding.holds for finding in findings.values())
    assert findings["the right answer gets full marks"].seen == "2 of 2"
    assert findings["a blank answer gets none"].seen == "0 of 3"
