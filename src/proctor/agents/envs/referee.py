"""The referee of episodes in stepped environments: keeps time, ends what hangs, and attributes faults."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.envs.event_log import EpisodeEnding, close_log, read_events
from proctor.agents.envs.spaces import IllegalActionError
from proctor.agents.envs.types import (
    AGENT_ENDED,
    Clock,
    EnvDescription,
    EnvInfo,
    Episode,
    EpisodeFault,
    PromptView,
    success,
)
from proctor.agents.outcome import LOSSES, EpisodeOutcome
from proctor.agents.runtime.hosting.channel import IN_AGENT, IN_ENV
from proctor.agents.runtime.hosting.isolation import AgentSandbox, Isolation
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import RuntimeLimits
from proctor.agents.runtime.shielding import run_to_completion
from proctor.core.errors import ProctorError, UsageError
from proctor.core.types import Usage

logger = logging.getLogger("proctor.agents")

ENV = "proctor.agents.envs.hosted_env:HostedEnv"
AGENT = "proctor.agents.envs.timed_agent:TimedAgent"
ISOLATED_AGENT = "proctor.agents.envs.isolated_agent:IsolatedAgent"
OURS = ("AgentFailedError", "IllegalActionError")  # shown without the name of their type
DYING = 2.0  # seconds in which the guardian of a dead agent reports how it died
ENVIRONMENT = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}


class AsyncPolicy(Protocol):
    """Chooses actions outside of the environment's process: a language model, or a remote agent."""

    usage: Usage
    unreadable: int  # replies that were not an action

    @property
    def busy_seconds(self) -> float:
        """How long it has had the current observation, if that can be a hang; else 0."""
        ...

    def begin(self, about: EnvInfo) -> None: ...

    async def move(self, view: PromptView) -> Any:
        """Returns the next action; None if it has none."""


class EnvSession:
    """Plays episodes one after the other, in processes that are restarted when they had to be killed.

    With the clock `step` the agent shares the process of the environment, which waits for it. With the other clocks,
    and when it is isolated, it has its own process.
    """

    def __init__(
        self,
        env: Recipe,
        agent: Recipe | None,
        clock: Clock,
        log: Path,
        limits: RuntimeLimits | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._isolation = isolation
        self._sandbox: AgentSandbox | None = None
        self._attending: asyncio.Task[str] | None = None
        self._env_recipe, self._agent_recipe, self._clock, self._log = env, agent, clock, log
        self._limits = limits or RuntimeLimits()
        self._acted = False  # the agent may have acted in the current episode
        self._env: HostProcess | None = None
        self._agent: HostProcess | None = None
        self._about: EnvInfo | None = None

    async def prepare(self) -> EnvInfo:
        """Starts the processes if needed; raises EpisodeFault if one cannot be created."""
        living = [process is not None and process.is_alive for process in (self._env, self._agent)]
        if self._about is not None and living[0] and (living[1] or not self._has_agent_process):
            return self._about
        await self.close()
        try:
            return await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> EnvInfo:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        env_end, agent_end = socket.socketpair()
        with env_end, agent_end:
            handed = [env_end.fileno()] if self._isolation is not None else []
            try:
                self._env = await HostProcess.start(
                    ENV, self._env_recipe, self._log, ENVIRONMENT, self._limits, handed=handed
                )
                self._about = msgspec.convert(await self._env.call("about"), EnvInfo)
                if self._clock != "step":
                    await self._env.call("build_action_queue")
            except (HostedFaultError, HostDiedError) as error:
                raise EpisodeFault(
                    EpisodeOutcome.ENV_CRASH, f"the environment could not be created: {error}"
                ) from error
            if self._agent_recipe is not None:
                await self._make_agent(self._env, self._agent_recipe, agent_end.fileno())
        return self._about

    @property
    def _has_agent_process(self) -> bool:
        return self._agent_recipe is not None and (self._clock != "step" or self._isolation is not None)

    async def _make_agent(self, env: HostProcess, recipe: Recipe, line: int) -> None:
        try:
            log = self._log.with_suffix(".agent.log")
            if self._isolation is not None:
                self._sandbox = AgentSandbox(self._isolation, recipe)
                self._agent = await HostProcess.start(
                    ISOLATED_AGENT, recipe, log, ENVIRONMENT, self._limits, sandbox=self._sandbox, handed=[line]
                )
                if self._clock == "step":
                    await env.call("take_line")
                    self._attending = asyncio.create_task(_until_the_end(self._agent.call("attend")))
            elif self._has_agent_process:
                self._agent = await HostProcess.start(AGENT, recipe, log, ENVIRONMENT, self._limits)
            else:
                async with asyncio.timeout(self._limits.startup_timeout):
                    await env.call("take_agent", msgspec.msgpack.encode(recipe))
        except TimeoutError:
            why = f"{recipe.name} was not ready after {self._limits.startup_timeout:g} s"
            raise EpisodeFault(EpisodeOutcome.AGENT_CRASH, why) from None
        except (HostedFaultError, HostDiedError) as error:
            raise EpisodeFault(EpisodeOutcome.AGENT_CRASH, f"{recipe.name} could not be created: {error}") from error

    async def play(self, episode: Episode, policy: AsyncPolicy | None = None, held: str = "") -> EpisodeEnding:
        """Plays an episode and writes its ending into the log; `held` says where the agent ran."""
        is_reusable = self._acted = False
        try:
            ending = await self._played(episode, policy)
            is_reusable = ending.outcome.is_play
        except EpisodeFault as fault:
            ending = self._ending_from_log(episode, fault.outcome, str(fault))
        except Exception as error:
            if policy is not None or isinstance(error, ProctorError):
                raise  # a model's server is at fault, or it concerns the whole run
            # Otherwise an agent that causes an error in the referee would have its episode dropped.
            logger.exception("the referee failed in %s", episode.header.episode)
            why = f"the referee failed: {type(error).__name__}: {error}"
            ending = self._ending_from_log(episode, EpisodeOutcome.JUDGE_ERROR, why)
        finally:
            if not is_reusable:  # processes of a failed or cancelled episode are not reused
                await self.close()
        ending = msgspec.structs.replace(
            ending,
            events=str(Path(*Path(episode.log).parts[-2:])),
            by_agent=ending.outcome in LOSSES and self._acted,
            seed=episode.header.seed,
            interrupted=False,
            held=held,
        )
        if policy is not None:
            ending = msgspec.structs.replace(ending, usage=policy.usage, unreadable=policy.unreadable)
        close_log(Path(episode.log), ending)
        return ending

    async def _played(self, episode: Episode, policy: AsyncPolicy | None) -> EpisodeEnding:
        about = await self.prepare()
        if policy is not None:
            policy.begin(about)
        env = self._env
        assert env is not None
        crash = EpisodeOutcome.ENV_CRASH
        beginning = env.call("begin", episode)
        failed = await _asked(beginning, self._limits.setup_timeout, crash, crash, "reset of the world")
        if failed is not None:
            return msgspec.convert(failed, EpisodeEnding)
        self._acted = policy is None  # the agent's process is not observed
        try:
            if episode.clock != "step":
                result = await self._by_clock(env, about, episode, policy)
            else:
                playing = env.call("play") if policy is None else self._by_turns(env, policy)
                result = await _in_time(playing, env, episode, policy)
            return await self._with_cause(msgspec.convert(result, EpisodeEnding))
        except HostDiedError as error:
            together = not self._has_agent_process and policy is None
            agents = env.pulse.whose != IN_ENV and episode.clock == "step" and together
            raise EpisodeFault(
                EpisodeOutcome.AGENT_CRASH if agents else EpisodeOutcome.ENV_CRASH, str(error)
            ) from error
        except HostedFaultError as error:
            raise EpisodeFault(EpisodeOutcome.JUDGE_ERROR, str(error)) from error

    async def _with_cause(self, ending: EpisodeEnding) -> EpisodeEnding:
        """Adds how an isolated agent died: the environment only knows that it did."""
        if ending.why != AGENT_ENDED or self._attending is None:
            return ending
        done, _ = await asyncio.wait([self._attending], timeout=DYING)  # otherwise the agent itself reported it
        why = self._attending.result() if done else ""
        return msgspec.structs.replace(ending, why=f"{ending.why}: {why}") if why else ending

    async def _by_clock(self, env: HostProcess, about: EnvInfo, episode: Episode, policy: AsyncPolicy | None) -> Any:
        """Runs the environment by its clock, and concurrently the agent, which may be late, hang or die."""
        token = secrets.token_urlsafe(32)
        url = f"http://{NETWORK.DEFAULT_HOST}:{await env.call('serve', token)}"
        if policy is None:
            assert self._agent is not None
            info = EnvDescription(episode.header.task, about.actions, episode.clock, episode.fps)
            beginning = self._agent.call("begin", episode.agent_seed, info)
            timeout = min(self._limits.setup_timeout, episode.timeout)
            await _asked(
                beginning, timeout, EpisodeOutcome.AGENT_HANG, EpisodeOutcome.AGENT_CRASH, "reset of the agent"
            )
            acting: Coroutine[Any, Any, Any] = self._agent.call("play", url, token)
        else:
            acting = self._play_policy(url, token, policy, episode.in_words)
        ticking = asyncio.create_task(env.call("play_timed"))
        playing = asyncio.create_task(acting)
        try:
            lost = EpisodeOutcome.AGENT_CRASH if policy is None else EpisodeOutcome.JUDGE_ERROR
            ending = await _in_time(_first_of(ticking, playing, env, lost), env, episode, policy)
            if policy is not None and EpisodeOutcome(ending["outcome"]).is_play and policy.busy_seconds:
                await asyncio.wait([playing], timeout=max(0.0, _hang_seconds(episode) - policy.busy_seconds))
                _refuse_hanging(policy, episode)
            if policy is None and EpisodeOutcome(ending["outcome"]).is_play:
                ending["why"] = await self._let_finish(playing, episode) or ending["why"]
            return ending
        finally:
            for part in (ticking, playing):
                part.cancel()
            await asyncio.gather(ticking, playing, return_exceptions=True)

    async def _let_finish(self, playing: asyncio.Task[Any], episode: Episode) -> str:
        """Waits for the agent after the end of the episode. An agent that hangs does not return.

        An error that the agent raises only now did not end the episode: it is noted.
        """
        assert self._agent is not None
        was_dead = self._agent.closed_at is not None
        timeout = _hang_seconds(episode) - self._agent.pulse.busy_seconds
        await asyncio.wait([playing], timeout=max(TIMEOUTS.STOPPING, timeout))
        if not playing.done():
            why = f"in one call of the agent for {self._agent.pulse.busy_seconds:.1f} s, beyond the end of the episode"
            raise EpisodeFault(EpisodeOutcome.AGENT_HANG, why)
        if (fault := _fault_of(playing)) is not None:
            if was_dead or not isinstance(fault, EpisodeFault):
                raise fault
            return f"after the end, the agent: {fault}"
        if (gone := playing.exception()) is not None:
            raise _lost_the_env(EpisodeOutcome.AGENT_CRASH, gone)
        return ""

    async def _by_turns(self, env: HostProcess, policy: AsyncPolicy) -> Any:
        """The environment waits for a policy in this process."""
        result = await env.call("look")
        while "outcome" not in result:
            view = msgspec.convert(result, PromptView)
            if view.over:
                return await env.call("end", EpisodeOutcome.COMPLETED, "")
            action = await policy.move(view)
            self._acted = self._acted or action is not None
            result = await env.call("step", action)
        return result

    async def _play_policy(self, url: str, token: str, policy: AsyncPolicy, in_words: bool) -> None:
        """Plays a policy of this process in an environment that does not wait."""
        from proctor.agents.envs.observations import unpack
        from proctor.agents.envs.timed_agent import play_by_clock

        async def decide(frame: Any) -> Any:
            view = PromptView("", frame.reward, frame.tick, observation=frame.observation)
            if in_words:
                view = PromptView(unpack(frame.observation), frame.reward, frame.tick)
            action = await policy.move(view)
            self._acted = self._acted or action is not None
            return action

        try:
            await play_by_clock(url, token, decide)
        except IllegalActionError as error:
            raise EpisodeFault(EpisodeOutcome.AGENT_CRASH, str(error)) from error

    def _ending_from_log(self, episode: Episode, outcome: EpisodeOutcome, why: str) -> EpisodeEnding:
        """Restores the ending from the log when the environment's process cannot report it."""
        try:
            seen = read_events(Path(episode.log))
        except UsageError:
            return EpisodeEnding(outcome, why=why, clock=episode.clock)
        threshold = self._about.threshold if self._about else None
        succeeded = success(seen.success, seen.reward, episode.success_reward, threshold) if outcome.is_play else None
        seconds = (seen.lines[-1].ns - seen.lines[0].ns) / 1e9 if seen.lines else 0.0
        return EpisodeEnding(outcome, seen.reward, seen.length, succeeded, why, seen.trace, seconds, episode.clock)

    async def close(self) -> None:
        env, agent, attending, sandbox = self._env, self._agent, self._attending, self._sandbox
        self._env = self._agent = self._attending = self._sandbox = None
        await run_to_completion(asyncio.create_task(_end_all(env, agent)))
        if attending is not None:
            await attending
        if sandbox is not None:
            sandbox.close()


async def _until_the_end(attending: Coroutine[Any, Any, Any]) -> str:
    """Returns why an isolated agent ended."""
    try:
        await attending
    except (HostDiedError, HostedFaultError) as error:
        return str(error)
    return ""


async def end_env(process: HostProcess) -> None:
    """Closes the environment if it is idle, so that it removes files and shared memory, and ends the process."""
    if process.is_alive and await process.is_idle(0):
        with suppress(TimeoutError, HostDiedError, HostedFaultError):
            await asyncio.wait_for(process.call("close_env"), TIMEOUTS.CLOSING)
    await process.end()


async def _end_all(env: HostProcess | None, agent: HostProcess | None) -> None:
    """Ends both processes; then raises the first error."""
    endings = ([] if env is None else [end_env(env)]) + ([] if agent is None else [agent.end()])
    for error in await asyncio.gather(*endings, return_exceptions=True):
        if error is not None:
            raise error


async def _asked(
    calling: Awaitable[Any], seconds: float, hang: EpisodeOutcome, fault: EpisodeOutcome, what: str
) -> Any:
    """Returns the result of a short call, or raises a fault after its timeout."""
    try:
        async with asyncio.timeout(seconds):
            return await calling
    except TimeoutError:
        raise EpisodeFault(hang, f"the {what} did not return within {seconds:g} s") from None
    except HostDiedError as error:
        raise EpisodeFault(fault, f"the {what}: {error}") from error
    except HostedFaultError as error:
        expected = error.fault.type == "AgentFailedError"
        raise EpisodeFault(fault if expected else EpisodeOutcome.JUDGE_ERROR, str(error)) from error


async def _in_time(playing: Awaitable[Any], env: HostProcess, episode: Episode, policy: AsyncPolicy | None) -> Any:
    """Returns the result of the episode, or raises the fault at its timeout."""
    try:
        async with asyncio.timeout(episode.timeout + TIMEOUTS.STOPPING) as limit:
            return await playing
    except TimeoutError:
        if not limit.expired():
            raise
        if policy is not None:
            _refuse_hanging(policy, episode)
        raise _fault_at_timeout(env, episode) from None


async def _first_of(
    ticking: asyncio.Task[Any], playing: asyncio.Task[Any], env: HostProcess, lost: EpisodeOutcome
) -> Any:
    """Returns the environment's ending unless the agent fails first; `lost` is the outcome of an agent that left."""
    await asyncio.wait([ticking, playing], return_when=asyncio.FIRST_COMPLETED)
    if playing.done() and (fault := _fault_of(playing)) is not None:
        raise fault
    if ticking.done():
        return await ticking
    gone = playing.exception()
    if gone is None:  # the agent has seen the end
        return await ticking
    # The connection is lost. A dead environment does not answer; a living one was left by its agent.
    answering = asyncio.create_task(env.call("about"))
    try:
        await asyncio.wait([ticking, answering], return_when=asyncio.FIRST_COMPLETED)
        if ticking.done() or answering.exception() is not None:
            ending = await ticking
            if not EpisodeOutcome(ending["outcome"]).is_play:
                return ending
        raise _lost_the_env(lost, gone)
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


def _lost_the_env(outcome: EpisodeOutcome, gone: BaseException) -> EpisodeFault:
    return EpisodeFault(outcome, f"the agent lost the environment, which went on: {gone}")


def _fault_of(playing: asyncio.Task[Any]) -> BaseException | None:
    """Why the agent ended, unless the environment had ended."""
    error = playing.exception()
    if isinstance(error, HostDiedError):
        return EpisodeFault(EpisodeOutcome.AGENT_CRASH, str(error))
    if isinstance(error, HostedFaultError):
        if error.fault.type == "EnvGoneError":
            return None  # the environment's ending says why
        return EpisodeFault(EpisodeOutcome.AGENT_CRASH, error.fault.message if error.fault.type in OURS else str(error))
    return None if type(error).__name__ == "EnvGoneError" else error


def _refuse_hanging(policy: AsyncPolicy, episode: Episode) -> None:
    if policy.busy_seconds >= _hang_seconds(episode):
        raise EpisodeFault(EpisodeOutcome.AGENT_HANG, f"no answer to an observation for {policy.busy_seconds:.1f} s")


def _hang_seconds(episode: Episode) -> float:
    return min(TIMEOUTS.HANG, episode.timeout / 2)


def _fault_at_timeout(env: HostProcess, episode: Episode) -> EpisodeFault:
    """The fault by what was running when time was up."""
    busy, whose = env.pulse.busy_seconds, env.pulse.whose
    if busy >= _hang_seconds(episode):
        if whose == IN_AGENT:
            return EpisodeFault(EpisodeOutcome.AGENT_HANG, f"in one call of the agent for {busy:.1f} s")
        return EpisodeFault(EpisodeOutcome.ENV_CRASH, f"in one step of the environment for {busy:.1f} s")
    return EpisodeFault(EpisodeOutcome.TIMEOUT, "time was up")
