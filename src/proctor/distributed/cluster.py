"""The Ray cluster that a process joins for the duration of a run."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.core.errors import ProctorError, UsageError
from proctor.core.extras import import_extra

JOIN_SECONDS = 120.0  # timeout for a cluster to answer at its address
START_SECONDS = 180.0  # timeout for a node to register, over all attempts
# A raylet exits if its agents take 15 seconds to start, as on a busy machine with cold files.
START_ATTEMPTS = 5
OBJECT_STORE_BYTES = 256 << 20


class Capacity(Struct, frozen=True):
    cpus: int
    gpus: int
    largest: int
    """The CPUs of the largest node."""


class Cluster:
    """The cluster of this process: the one at `address`, the one it is already
    connected to, or one that it starts.
    """

    def __init__(self, address: str | None, cpus: int) -> None:
        self._address, self._cpus = address, cpus
        self._folder: str | None = None
        self._is_joined = False
        self.joining: Future[None] = Future()
        self.leaving = threading.Event()
        self.left: Future[None] = Future()
        self.reserved_cpus = 0  # by the pools

    def start(self) -> None:
        """Joins in a thread, because joining takes seconds. The thread stays until the end,
        because Linux ends the processes that Ray starts together with it.
        """
        threading.Thread(target=self._run, name="proctor-cluster", daemon=True).start()

    def _run(self) -> None:
        try:
            self._join()
        except BaseException as error:
            self.joining.set_exception(error)
        else:
            self.joining.set_result(None)
            self.leaving.wait()
        finally:
            try:
                self._leave()
            finally:
                self.left.set_result(None)

    def _join(self) -> None:
        ray = import_ray()
        if ray.is_initialized():
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        if self._address is not None:
            ray.init(self._address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            self._folder = tempfile.mkdtemp(prefix="proctor-ray-")
            deadline = time.monotonic() + START_SECONDS
            for attempt in range(1, START_ATTEMPTS + 1):
                try:
                    self._start(ray, quiet, deadline)
                    break
                except Exception:
                    _kill_children(self._folder)
                    if attempt == START_ATTEMPTS or self.leaving.is_set() or time.monotonic() >= deadline:
                        raise
        self._is_joined = True

    def _start(self, ray: Any, quiet: dict[str, Any], deadline: float) -> None:
        with longer_start(deadline, self.leaving):
            ray.init(
                "local",
                num_cpus=self._cpus,
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=self._folder,
                _system_config={"worker_niceness": 0},  # workers get as much CPU time as locally
                **quiet,
            )

    def _leave(self) -> None:
        """Leaves the cluster, and stops it if this process started it."""
        try:
            if self._is_joined:
                shutdown = import_ray().shutdown
                # Only newer versions of Ray can wait for their processes.
                can_wait = "wait_for_processes" in inspect.signature(shutdown).parameters
                shutdown(**{"wait_for_processes": True} if can_wait else {})
        finally:
            if self._folder is not None:
                _kill_children(self._folder)
                shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def longer_start(deadline: float, leaving: threading.Event) -> Iterator[None]:
    """Lets a starting node register until the deadline, unless its raylet exits or the
    run ends first.

    Ray gives up after 30 seconds, fixed in its code, which is too short on a busy machine.
    Within that time it retries whatever raises a RuntimeError.
    """
    services = import_ray()._private.services
    get_node, start_raylet = getattr(services, "get_node", None), getattr(services, "start_raylet", None)
    if get_node is None or start_raylet is None:  # another version of Ray: its own timeout applies
        yield
        return
    raylets: list[subprocess.Popen[bytes]] = []

    def record_raylet(*arguments: Any, **options: Any) -> Any:
        started = start_raylet(*arguments, **options)
        raylets.append(started.process)
        return started

    def wait_for_node(*arguments: Any, **options: Any) -> Any:
        while True:
            try:
                return get_node(*arguments, **options)
            except RuntimeError as error:  # it has not registered
                if any(raylet.poll() is not None for raylet in raylets):
                    raise ChildProcessError("its raylet exited before its node registered") from error
                if time.monotonic() >= deadline:
                    raise TimeoutError("its node did not register in time") from error
            if leaving.wait(0.1):
                raise InterruptedError("the run ended before its node registered")

    services.get_node, services.start_raylet = wait_for_node, record_raylet
    try:
        yield
    finally:
        services.get_node, services.start_raylet = get_node, start_raylet


def _kill_children(folder: str) -> None:
    """Kills the processes of a cluster that did not start, with their children: Ray
    loses track of them.
    """
    parents: dict[int, int] = {}
    ours: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            process = int(path.name)
            stat = (path / "stat").read_text(errors="replace")  # a process name may hold any bytes
            parents[process] = int(stat.rpartition(")")[2].split()[1])
            if parents[process] == os.getpid() and folder.encode() in (path / "cmdline").read_bytes():
                ours.add(process)
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    for process in ours:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    for process in ours:
        if parents[process] == os.getpid():
            with suppress(OSError):
                os.waitpid(process, 0)


_current: Cluster | None = None


@asynccontextmanager
async def join_cluster(address: str | None, cpus: int) -> AsyncIterator[dict[str, Any]]:
    """Joins a cluster, which pools use until the block ends; yields its description.

    Without an address it starts a cluster with this many CPUs, and stops it afterwards.
    """
    global _current
    import_ray()
    _current = cluster = Cluster(address, cpus)
    is_main_thread = threading.current_thread() is threading.main_thread()
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    joining, left = asyncio.wrap_future(cluster.joining), asyncio.wrap_future(cluster.left)
    cluster.start()
    try:
        try:
            async with asyncio.timeout(None if address is None else JOIN_SECONDS):
                await asyncio.shield(joining)
        except Exception as error:  # Ray raises exceptions of any class, Exception itself among them
            if isinstance(error, ProctorError):
                raise
            if address is None:
                raise ProctorError(f"Ray did not start on this machine: {error}") from error
            why = str(error).strip().partition("\n")[0] or f"no answer within {JOIN_SECONDS:.0f} seconds"
            raise UsageError(f"ray_address: no cluster answers at {address!r}: {why}") from None
        if is_main_thread:
            signal.signal(signal.SIGTERM, sigterm_handler)  # Ray installs one that exits at once
        yield describe()
    finally:
        _current = None
        cluster.leaving.set()
        if address is None or joining.done():  # else Ray may search for minutes
            await asyncio.wait([left])


def describe() -> dict[str, Any]:
    """The description of the cluster that is stored with a run."""
    ray = import_ray()
    nodes = {node_name(node["NodeManagerHostname"], node["NodeID"]): node["Resources"] for node in _nodes()}
    counts = {
        name: {kind: int(resources.get(kind, 0)) for kind in ("CPU", "GPU")}
        for name, resources in sorted(nodes.items())
    }
    return {"ray": ray.__version__, "nodes": counts}


def capacity() -> Capacity:
    nodes = [node["Resources"] for node in _nodes()]
    cpus = [int(node.get("CPU", 0)) for node in nodes]
    return Capacity(sum(cpus), sum(int(node.get("GPU", 0)) for node in nodes), max(cpus, default=0))


def free_cpus() -> int:
    """The CPUs that no pool of this process has reserved."""
    return capacity().cpus - current().reserved_cpus


def current() -> Cluster:
    if _current is None:
        raise RuntimeError("no cluster has been joined")
    return _current


def _nodes() -> list[dict[str, Any]]:
    return [node for node in import_ray().nodes() if node["Alive"]]


def node_name(host: str, identifier: str) -> str:
    return f"{host}/{identifier[:8]}"  # one machine may run several nodes


def import_ray() -> Any:
    return import_extra("ray", "The engine ray", "ray")
