"""An agent that spies at one level: python -m helpers.isolated_driver NUMBER. For any user; prints what it saw."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from pathlib import Path

from helpers import isolated_players
from proctor import evaluate
from proctor.sandbox import isolated
from proctor.sandbox.isolation import levels


def main(which: int) -> None:
    level = [level for level in levels() if level.safe][which]
    isolated.levels = lambda: [level]  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listening:
        os.environ["PROCTOR_STORE"] = store = str(Path(folder) / "store")
        os.environ["FORGED_STATE"] = str(Path(folder) / "state")
        os.environ["SPIED_UPON"] = json.dumps({"store": store, "port": listening.getsockname()[1]})
        os.environ["SOME_API_KEY"] = isolated_players.SECRET
        place = f"{isolated_players.__file__}:"
        report = evaluate(
            f"{place}Scored",
            agent=f"{place}Spy",
            limit=1,
            settings={"timeout": 20.0, "attempts": 1},
            isolate_agent=True,
            agent_env=["SPIED_UPON"],
        )
        attempt = json.loads(next(iter(report.records())).outputs[-1].text)
        print(json.dumps({"held": attempt["held"], "said": attempt["notes"]}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
