"""How a code task asks: to go on with a text, to fill a gap, to follow an instruction; with tokens or in a chat."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from proctor.code import reply
from proctor.code.forms import (
    FIM_TOKENS,
    Continuation,
    Infilling,
    Instruction,
    end_tokens,
    fenced,
    fim_family,
    form_of,
    present,
)
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.core.config import RunConfig, build_config
from proctor.core.errors import TaskError, UsageError
from proctor.core.types import FimFamily, Message

GAP = Infilling("A(", ")B")


def config(**options: Any) -> RunConfig:
    return RunConfig(task="t", **{"model": "scripted/oracle", "api": "completions"} | options)


# As the models' authors write them: the cards of StarCoder and SantaCoder, DeepSeek-Coder's README, Qwen2.5-Coder's
# example, InCoder's (with the extra sentinel that it recommends). Code Llama's is what transformers makes of a gap.
PUBLISHED = {
    "starcoder": "<fim_prefix>A(<fim_suffix>)B<fim_middle>",
    "santacoder": "<fim-prefix>A(<fim-suffix>)B<fim-middle>",
    "incoder": "A(<|mask:0|>)B<|mask:1|><|mask:0|>",
    "codellama": "<PRE> A( <SUF>)B <MID>",
    "qwen": "<|fim_prefix|>A(<|fim_suffix|>)B<|fim_middle|>",
    "deepseek": "<｜fim▁begin｜>A(<｜fim▁hole｜>)B<｜fim▁end｜>",
}


def test_every_family_is_in_the_table() -> None:
    assert set(PUBLISHED) == set(FIM_TOKENS) == set(get_args(FimFamily))


@pytest.mark.parametrize("family", PUBLISHED)
def test_the_layout_of_a_family(family: FimFamily) -> None:
    assert present(GAP, config(fim=family), "python", wrapped=True) == PUBLISHED[family]


@pytest.mark.parametrize("family", PUBLISHED)
def test_what_a_user_puts_before_is_part_of_the_prefix(family: FimFamily) -> None:
    shown = present(GAP, config(fim=family, prefix="# {x}\n"), "python", wrapped=True)
    assert shown == PUBLISHED[family].replace("A(", "# {x}\nA(")


@pytest.mark.parametrize(
    ("family", "output"),
    [
        ("starcoder", "x<|endoftext|>"),
        ("starcoder", "x<file_sep>other.py"),
        ("santacoder", "x<|endoftext|>def"),
        ("incoder", "x<|endofmask|>)B"),
        ("incoder", "x<|endoftext|>"),
        ("codellama", "x <EOT>"),
        ("codellama", "x<EOT></s>"),
        ("qwen", "x<|endoftext|>"),
        ("qwen", "x<|fim_pad|><|fim_pad|>"),
        ("qwen", "x<|file_sep|>b.py"),
        ("qwen", "x<|repo_name|>"),
        ("qwen", "x<|file_separator|>"),  # CodeGemma
        ("qwen", "x<|end_of_text|>"),  # Granite 4
        ("deepseek", "x<｜end▁of▁sentence｜>"),
    ],
)
def test_the_tokens_that_end_a_middle(family: FimFamily, output: str) -> None:
    assert cut(output, end_tokens(GAP, config(fim=family))) == "x"


def test_only_a_middle_has_an_end_of_its_own() -> None:
    assert end_tokens(Continuation("x"), config()) == end_tokens(Instruction("x", ""), config()) == ()


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/bigcode/starcoder", "starcoder"),
        ("openai/bigcode/starcoder2-15b", "starcoder"),
        ("gguf/models/StarCoderBase-1b.Q8_0.gguf", "starcoder"),
        ("openai/bigcode/santacoder", "santacoder"),
        ("openai/facebook/incoder-6B", "incoder"),
        ("openai/codellama/CodeLlama-7b-hf", "codellama"),
        ("openai/code-llama:13b-code", "codellama"),
        ("openai/Qwen/Qwen2.5-Coder-7B", "qwen"),
        ("openai/Qwen/CodeQwen1.5-7B", "starcoder"),
        ("openai/google/codegemma-2b", "qwen"),
        ("openai/deepseek-ai/deepseek-coder-6.7b-base", "deepseek"),
        ("openai/ibm-granite/granite-8b-code-base", "starcoder"),
        ("openai/ibm-granite/granite-4.0-h-small", "qwen"),
        ("openai/stabilityai/stable-code-3b", "starcoder"),
    ],
)
def test_the_family_follows_from_the_name(model: str, family: FimFamily) -> None:
    assert fim_family(config(model=model)) == family
    assert fim_family(config(model=model, fim="incoder")) == "incoder"


def test_an_unknown_name_is_a_question_to_the_user() -> None:
    with pytest.raises(UsageError, match=r"--fim starcoder or santacoder or .* or use --api chat"):
        present(GAP, config(model="openai/gpt-x"), "python", wrapped=True)
    assert present(GAP, config(model="openai/gpt-x", api="chat"), "python", wrapped=True)


@pytest.mark.parametrize(
    ("given_tokens", "text"),
    [
        (None, "do\nbegin"),
        ("<u>,<e>,<a>", "<u>do<e><a>begin"),
        ("[INST],[/INST],", "[INST]do[/INST]begin"),
        (",,", "dobegin"),
        ("<|user|>\n,<|end|>\n,<|assistant|>\n", "<|user|>\ndo<|end|>\n<|assistant|>\nbegin"),
    ],
)
def test_the_tokens_of_an_instruct_model(given_tokens: str | None, text: str) -> None:
    options = config(instruction_tokens=given_tokens)
    assert present(Instruction("do", "begin"), options, "python", wrapped=True) == text
    with_prefix = config(instruction_tokens=given_tokens, prefix="# p\n")
    assert present(Instruction("do", "begin"), with_prefix, "python", wrapped=True) == f"# p\n{text}"


def test_the_next_turn_ends_an_answer() -> None:
    spoken = config(instruction_tokens="<u>,<e>\n, ", fim="santacoder")
    assert end_tokens(Continuation("x"), spoken) == end_tokens(Instruction("x", ""), spoken) == ("<u>", "<e>\n")
    assert end_tokens(GAP, spoken) == ("<|endoftext|>", "<u>", "<e>\n")


@pytest.mark.parametrize("wrong", ["", "<u>", "<u>,<a>", "a,b,c,d"])
def test_there_are_three_tokens(wrong: str) -> None:
    with pytest.raises(UsageError, match="expected three texts, USER,END,ASSISTANT"):
        build_config({"task": "t", "model": "m", "instruction_tokens": wrong})


@pytest.mark.parametrize("options", [{}, {"api": "chat"}])
def test_a_chat_has_no_tokens_of_the_users(options: dict[str, Any]) -> None:
    given_tokens: dict[str, Any] = {"instruction_tokens": "<u>,<e>,<a>", "generation_only": True}
    with pytest.raises(UsageError, match=r"instruction_tokens: .* use --api completions"):
        proctor.evaluate("code/parity", "scripted/oracle", **given_tokens, **options)
    assert proctor.evaluate("code/parity", "scripted/oracle", **given_tokens, api="completions").run.errors == 0


@pytest.mark.parametrize(
    ("prompt", "form"),
    [
        ("def f():", Continuation("def f():")),
        ("", Continuation("")),
        ({"prefix": "a", "suffix": "b"}, Infilling("a", "b")),
        ({"suffix": "b", "prefix": "a"}, Infilling("a", "b")),
        ({"instruction": "a", "context": ""}, Instruction("a", "")),
    ],
)
def test_what_a_task_may_ask(prompt: Any, form: Any) -> None:
    assert form_of(prompt) == form


@pytest.mark.parametrize("prompt", [None, 3, ["a"], {}, {"prefix": "a"}, {"prefix": "a", "suffix": 1}, {"text": "a"}])
def test_what_it_may_not(prompt: Any) -> None:
    with pytest.raises(TaskError, match="a dict of prefix and suffix, or a dict of instruction and context"):
        form_of(prompt)


@pytest.mark.parametrize(
    ("form", "generation"),
    [(Continuation("A("), "A(x"), (GAP, "A(x)B"), (Instruction("do", "A("), "A(x")],
)
def test_a_completion_in_its_place(form: Any, generation: str) -> None:
    assert form.with_completion("x") == generation
    assert generation.startswith(form.begun)


def test_a_text_is_continued_as_it_is() -> None:
    form = Continuation("def f():\n")
    assert present(form, config(), "python", wrapped=True) == "def f():\n"
    assert present(form, config(prefix="# p\n"), "python", wrapped=False) == "# p\ndef f():\n"
    assert present(form, config(api="chat", prefix="# p\n"), "python", wrapped=False) == "# p\ndef f():\n"


def asked_in_chat(form: Any, language: str = "python", **options: Any) -> str:
    shown = present(form, config(api="chat", **options), language, wrapped=True)
    assert isinstance(shown, tuple)
    (message,) = shown
    assert isinstance(message, Message)
    assert message.role == "user"
    return message.text


def test_a_chat_is_told_what_to_do_with_begun_code() -> None:
    asked = asked_in_chat(Continuation("int f() {\n"), "cpp", prefix="// p\n")
    assert asked.startswith("Complete the following C++ code.")
    assert asked.endswith("```cpp\n// p\nint f() {\n```")


def test_a_chat_is_told_no_language_that_nobody_knows() -> None:
    asked = asked_in_chat(Continuation("f :: Int\n"), "")
    assert asked.startswith("Complete the following code. Reply")
    assert asked.endswith("```\nf :: Int\n```")


def test_a_chat_is_told_where_the_gap_is() -> None:
    asked = asked_in_chat(Infilling("a = ", " + 1\n"), prefix="# p\n")
    assert asked.endswith("```python\n# p\na = <FILL IN HERE> + 1\n\n```")


def test_a_chat_is_given_the_instruction_and_what_it_begins_with() -> None:
    assert asked_in_chat(Instruction("Do it.", " \n"), prefix="# p\n") == "# p\nDo it."
    asked = asked_in_chat(Instruction("Do it.", "def f():\n    "))
    assert asked.startswith("Do it.\n\n")
    assert asked.endswith("```python\ndef f():\n```")


def test_the_languages_of_the_sandbox_by_their_usual_names() -> None:
    shown = {name: reply.title(name) for name in ("python", "cpp", "csharp", "r", "d", "php", "ocaml", "go-test")}
    assert list(shown.values()) == ["Python", "C++", "C#", "R", "D", "PHP", "OCaml", "Go"]
    assert fenced("x", "rust-test") == "```rust\nx\n```"


@given(st.text(alphabet="`~a \n", max_size=30))
def test_a_fence_is_longer_than_any_in_the_code(code: str) -> None:
    assert reply.blocks(fenced(code, "python")) == [code]


class Asks(Task):
    """A task that asks in a given form."""

    def __init__(self, prompt: Any = "", executes: bool = True) -> None:
        super().__init__(stop_words=["\ndef"], requires_execution=executes)
        self.prompt = prompt

    def get_dataset(self) -> Any:
        return [{"entry_point": "f"}]

    def get_prompt(self, doc: Any) -> Any:
        return self.prompt

    def get_reference(self, doc: Any) -> str:
        return ""


BEGUN = "import math\n\ndef f(x):\n"
WHOLE = f"{BEGUN}    return x\n"


@pytest.mark.parametrize("prompt", [BEGUN, {"instruction": "Do it.", "context": BEGUN}])
def test_given_code_is_neither_cut_nor_doubled(prompt: Any) -> None:
    task = Asks(prompt)
    assert task.postprocess_generation(f"{WHOLE}\ndef g():", 0) == WHOLE
    for text in (WHOLE, f"```\n{WHOLE}```", "    return x", "return x"):
        found = task.read_chat({"entry_point": "f"}, form_of(prompt), text, 0)
        assert found.strip() == WHOLE.strip()


def test_an_instruction_without_code_is_answered_with_a_program() -> None:
    form = Instruction("Write f.", "")
    assert Asks().read_chat({"entry_point": "f"}, form, f"Well:\n```\n{WHOLE}```", 0) == WHOLE.strip()


@pytest.mark.parametrize("executes", [False, True])
def test_a_middle_is_put_in_its_gap_to_be_run_and_left_alone_to_be_compared(executes: bool) -> None:
    prompt = {"prefix": "def f(x):\n    return ", "suffix": "\n\ndef g(): pass\n"}
    task = Asks(prompt, executes)
    whole = "def f(x):\n    return 2 * x\n\ndef g(): pass\n"
    for text in ("2 * x", "`2 * x`", "```\n2 * x\n```", "```\n    return 2 * x\n```", f"```\n{whole}```"):
        assert task.read_chat({}, form_of(prompt), text, 0) == (whole if executes else "2 * x")
    for text in (whole, whole.replace("2 * x", "2 * x\ndef h(): pass")):
        assert task.postprocess_generation(text, 0) == (whole if executes else "2 * x")
