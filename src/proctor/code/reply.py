"""Reading code out of what a chat model says: fences, prose around them, and prompts that it repeats or leaves out."""

from __future__ import annotations

import ast
import re
import textwrap

from proctor.thoughts import without_thoughts

_FENCE = re.compile(
    r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^\n`]*)\n(.*?)(?:^[ \t]*\2[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_TITLES = {"cpp": "C++", "csharp": "C#", "javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP", "r": "R"}


def title(language: str) -> str:
    return _TITLES.get(language, language.capitalize())


def blocks(text: str) -> list[str]:
    """The contents of all fenced blocks; one that was cut off by the length limit counts too."""
    return [textwrap.dedent(match[4]) if match[1] else match[4] for match in _FENCE.finditer(text)]


def code_in(text: str, entry_point: str = "") -> str:
    """The code of a reply: the block that defines the entry point, else the longest; without blocks, the whole text."""
    if "<think" in text.lower():  # else its indentation is left alone
        text = without_thoughts(text)
    found = blocks(text)
    if not found:
        return text
    defining = [block for block in found if entry_point and defines(block, entry_point)]
    return max(defining or found, key=len)


def defines(code: str, name: str) -> bool:
    """Whether a function, class or variable of this name is defined, in whatever language."""
    keyword = r"(?:def|class|function|func|fn|fun|sub|proc|let|const|var|local function|defn|define|void|auto)"
    return (
        re.search(rf"(?:\b{keyword}\s+|\(\s*def\w*\s+)\(?{re.escape(name)}\b|\b{re.escape(name)}\s*(?:=(?!=)|\()", code)
        is not None
    )


def program(prompt: str, text: str, entry_point: str, language: str) -> str:
    """The whole program that a reply to a begun one stands for, with all that the prompt had: imports, helpers."""
    code = code_in(text, entry_point).strip("\n")
    if not code.strip():
        return prompt
    if code.lstrip().startswith(prompt.strip()):
        return code
    if language == "python":
        return _python_program(prompt, code, entry_point)
    if entry_point and defines(code, entry_point):
        return code
    return prompt + code


def _python_program(prompt: str, code: str, entry_point: str) -> str:
    if not entry_point or not _defines_at_top(code, entry_point):
        return joined(prompt, _as_body(prompt, code))
    # The function is there as a whole. The prompt stays before it for its imports and helpers; the half function at
    # its end is finished with nothing, and then replaced.
    for begun in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        if _parses(begun):
            return f"{begun.rstrip()}\n\n\n{code}\n"
    return f"{code}\n"


def joined(prompt: str, completion: str) -> str:
    """A Python program in two pieces; the second alone, if only that is one: then the prompt was prose."""
    whole = prompt + completion
    return completion if not _parses(whole) and completion.strip() and _parses(completion) else whole


def completion(prompt: str, text: str, entry_point: str) -> str:
    """What a reply adds to the prompt: for tasks whose own code expects prompt and completion in one piece."""
    code = code_in(text, entry_point).strip("\n")
    if code.lstrip().startswith(prompt.strip()):
        return code.lstrip()[len(prompt.strip()) :]
    body = _body_of(code, entry_point)
    return body if body is not None else _as_body(prompt, code)


def _body_of(code: str, name: str) -> str | None:
    """The lines of a Python function after its signature and docstring, and whatever follows the function."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = next((node for node in functions if node.name == name), functions[-1] if functions and not name else None)
    if found is None:
        return None
    statements = found.body[1:] if ast.get_docstring(found) is not None else found.body
    if not statements or statements[0].lineno == found.lineno:
        return None
    lines = code.splitlines(keepends=True)
    return "".join(lines[statements[0].lineno - 1 :]) + "\n"


def _as_body(prompt: str, code: str) -> str:
    """A continuation, indented where the model forgot to: the first way that makes a program."""
    ways = [code, textwrap.indent(code, "    "), f"\n{code}"]
    return next((way for way in ways if _parses(prompt + way)), code) + "\n"


def _defines_at_top(code: str, name: str) -> bool:
    return (
        re.search(rf"^(?:async\s+def|def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*=", code, re.MULTILINE)
        is not None
    )


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
