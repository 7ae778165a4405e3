"""The forms of code prompts: continuation, infilling, instruction."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from proctor.code import reply
from proctor.core.config import RunConfig
from proctor.core.errors import TaskError, UsageError
from proctor.core.types import FimFamily, Message, Prompt

# Prefix, suffix and the place where the model goes on; then the tokens that end its answer. Others share a layout:
# Granite 3, Stable Code and CodeQwen have StarCoder's; CodeGemma and Granite 4 have Qwen's, with ends of their own.
FIM_TOKENS: dict[FimFamily, tuple[str, tuple[str, ...]]] = {
    "starcoder": ("<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>", ("<|endoftext|>", "<file_sep>")),
    "santacoder": ("<fim-prefix>{prefix}<fim-suffix>{suffix}<fim-middle>", ("<|endoftext|>",)),
    "incoder": ("{prefix}<|mask:0|>{suffix}<|mask:1|><|mask:0|>", ("<|endofmask|>", "<|endoftext|>")),
    "codellama": ("<PRE> {prefix} <SUF>{suffix} <MID>", (" <EOT>", "<EOT>")),
    "qwen": (
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        ("<|endoftext|>", "<|end_of_text|>", "<|fim_pad|>", "<|file_sep|>", "<|file_separator|>", "<|repo_name|>"),
    ),
    "deepseek": ("<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>", ("<｜end▁of▁sentence｜>",)),
}
# What a model's name says about its family, the more telling words first.
_NAMES: dict[str, FimFamily] = {
    "starcoder": "starcoder",
    "santacoder": "santacoder",
    "incoder": "incoder",
    "codellama": "codellama",
    "code-llama": "codellama",
    "deepseek": "deepseek",
    "codeqwen": "starcoder",
    "qwen": "qwen",
    "codegemma": "qwen",
    "granite-4": "qwen",
    "granite": "starcoder",
    "stable-code": "starcoder",
}
_HOLE = "<FILL IN HERE>"


class Continuation(Struct, frozen=True):
    """Code to continue."""

    text: str

    @property
    def begun(self) -> str:
        return self.text

    def ask_to_complete(self, config: RunConfig) -> str:
        return config.prefix + self.text

    def ask_to_answer(self, config: RunConfig, language: str) -> str:
        code = f"{reply.title(language)} code".lstrip()
        return (
            f"Complete the following {code}. Reply with the complete code, including what is given, in one code "
            f"block.\n\n{fenced(config.prefix + self.text.rstrip(), language)}"
        )

    def with_completion(self, completion: str) -> str:
        return self.text + completion


class Infilling(Struct, frozen=True):
    """Code with a missing middle."""

    prefix: str
    suffix: str

    @property
    def begun(self) -> str:
        return self.prefix

    def ask_to_complete(self, config: RunConfig) -> str:
        pattern, _ = FIM_TOKENS[fim_family(config)]
        return pattern.format(prefix=config.prefix + self.prefix, suffix=self.suffix)

    def ask_to_answer(self, config: RunConfig, language: str) -> str:
        return f"Which code belongs at {_HOLE}? Reply with that code alone, in one code block.\n\n" + fenced(
            f"{config.prefix}{self.prefix}{_HOLE}{self.suffix}", language
        )

    def with_completion(self, completion: str) -> str:
        return self.prefix + completion + self.suffix


class Instruction(Struct, frozen=True):
    """An instruction, optionally with the beginning of the answer."""

    instruction: str
    context: str

    @property
    def begun(self) -> str:
        return self.context

    def ask_to_complete(self, config: RunConfig) -> str:
        user, end, assistant = instruction_tokens(config)
        return f"{config.prefix}{user}{self.instruction}{end}{assistant}{self.context}"

    def ask_to_answer(self, config: RunConfig, language: str) -> str:
        context = self.context.rstrip()
        begun = f"\n\nBegin with this code:\n\n{fenced(context, language)}" if context else ""
        return f"{config.prefix}{self.instruction}{begun}"

    def with_completion(self, completion: str) -> str:
        return self.context + completion


Form = Continuation | Infilling | Instruction


def form_of(prompt: Any) -> Form:
    """The form of the result of `get_prompt`."""
    if isinstance(prompt, str):
        return Continuation(prompt)
    if isinstance(prompt, dict):
        for form in (Infilling, Instruction):
            if set(prompt) == set(form.__struct_fields__) and all(isinstance(text, str) for text in prompt.values()):
                return form(**prompt)
    raise TaskError(
        "get_prompt gives a text, a dict of prefix and suffix, or a dict of instruction and context; "
        f"not {str(prompt)[:80]!r}."
    )


def present(form: Form, config: RunConfig, language: str, *, wrapped: bool) -> Prompt:
    """The prompt for the model. `wrapped`: in a chat, ask to complete the code."""
    if config.api == "completions":
        return form.ask_to_complete(config)
    if isinstance(form, Continuation) and not wrapped:
        return config.prefix + form.text
    return (Message("user", form.ask_to_answer(config, language)),)


def fenced(code: str, language: str) -> str:
    """The code as a block in Markdown, whose fence is longer than any in the code."""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language.partition('-')[0]}\n{code}\n{fence}"


def end_tokens(form: Form, config: RunConfig) -> tuple[str, ...]:
    """What ends an answer, whatever the task: the end of a middle, and the turns of an instruct model."""
    turns = instruction_tokens(config) if config.instruction_tokens is not None else ()
    middle = FIM_TOKENS[fim_family(config)][1] if isinstance(form, Infilling) else ()
    return (*middle, *(token for token in turns if token.strip()))


def fim_family(config: RunConfig) -> FimFamily:
    if config.fim:
        return config.fim
    name = config.model.lower()
    for word, family in _NAMES.items():
        if word in name:
            return family
    raise UsageError(
        f"How {config.model} fills in a missing middle is not known from its name: "
        f"say --fim {' or '.join(FIM_TOKENS)}, or use --api chat."
    )


def instruction_tokens(config: RunConfig) -> tuple[str, str, str]:
    if config.instruction_tokens is None:
        return "", "", "\n"
    user, end, assistant = config.instruction_tokens.split(",")
    return user, end, assistant
