"""Extracts code from replies of chat models: fences, prose, and repeated prompts."""

from __future__ import annotations

import ast
import math
import re
import textwrap
import warnings
from collections.abc import Iterable

from proctor.core.reasoning import strip_reasoning

_FENCE = re.compile(r"(?P<before>.*?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
_SPAN = re.compile(r"(`+)[ \t]*([^`\n]+?)[ \t]*\1")
_TITLES = {
    "": "",
    "cpp": "C++",
    "csharp": "C#",
    "javascript": "JavaScript",
    "ocaml": "OCaml",
    "php": "PHP",
    "typescript": "TypeScript",
}


def title(language: str) -> str:
    """The usual name of a language; "go-test" is Go."""
    language = language.partition("-")[0]
    return _TITLES.get(language, language.capitalize())


def blocks(text: str) -> list[str]:
    """The contents of all fenced blocks, including a truncated one."""
    found = []
    lines = text.replace("\r\n", "\n").split("\n")
    position = 0
    while position < len(lines):
        opening = _opening(lines[position])
        position += 1
        if opening is None:
            continue
        indent, fence = opening
        end = _end_of_block(lines, position, indent, fence)
        inside = lines[position:end]
        if end < len(lines) and (code := _before_fence(lines[end], fence)).strip():
            inside.append(code)
        found.append("\n".join(re.sub(rf"^[ \t]{{0,{indent}}}", "", line) for line in inside))
        position = end + 1
    return found


def _opening(line: str) -> tuple[int, str] | None:
    """The indentation and fence of the block that starts here."""
    match = _FENCE.fullmatch(line)
    if match is None:
        return None
    before, info = match["before"], match["info"].strip()
    if not before.strip():
        return len(before), match["fence"]
    # A sentence goes on with the fence; one that only speaks of fences neither names a language nor ends in a colon.
    introduced = before.rstrip().endswith(":") and not info
    return (0, match["fence"]) if introduced or re.fullmatch(r"[\w+#.-]+", info) else None


def _end_of_block(lines: list[str], start: int, indent: int, fence: str) -> int:
    """The line with the closing fence; a more indented one may belong to a docstring."""
    for most in (indent + 3, math.inf):
        for position in range(start, len(lines)):
            if not lines[position].rstrip().endswith(fence):
                continue
            before = _before_fence(lines[position], fence)
            behind_code = bool(before.strip())
            if (behind_code and fence[0] not in before) or (not behind_code and len(before) <= most):
                return position
    return len(lines)


def _before_fence(line: str, fence: str) -> str:
    """The code before a closing fence on the same line."""
    return line.rstrip().rstrip(fence[0])


def code_in(text: str, entry_point: str = "") -> str:
    """The code of a reply: the block that defines the entry point, else the longest; without blocks, the whole text.

    Of several definitions the last counts, as an answer comes after its drafts; one that is no Python, only where all
    are none. What it needs of imports and helpers may stand in blocks of their own before it.
    """
    text = text.replace("\r\n", "\n")
    answer = strip_reasoning(text)
    if answer == text.strip():
        answer = text  # no thoughts: its indentation is left alone
    found = blocks(answer)
    if not found:
        span = _SPAN.fullmatch(answer.strip())
        return span[2] if span else answer
    defining = [position for position, block in enumerate(found) if entry_point and defines(block, entry_point)]
    if not defining:
        return max(found, key=len)
    position = next((position for position in reversed(defining) if compiles(found[position])), defining[-1])
    return _with_helpers(found[position], found[:position])


def _with_helpers(code: str, before: list[str]) -> str:
    """Python with what it uses of the imports and definitions in other blocks."""
    for block in reversed(before):
        tree, rest = parsed(block), parsed(code)
        if tree and rest and all(map(_only_defines, tree.body)):
            own = _names_of(rest.body)
            used = {node.id for node in ast.walk(rest) if isinstance(node, ast.Name)} - own
            others = [statement for statement in tree.body if not _names_of([statement]) & own]
            if _names_of(others) & (used | {"*"}):
                code = f"{ast.unparse(ast.Module(others, []))}\n\n\n{code}"
    return code


def _only_defines(statement: ast.stmt) -> bool:
    """Whether it can be run without what is defined elsewhere, and has no effect of its own: no examples, no tests."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        value = statement.value or statement
        return not any(isinstance(node, ast.Call | ast.Name) for node in ast.walk(value))
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _names_of(statements: list[ast.stmt]) -> set[str]:
    """What is defined by them."""
    found: set[str] = set()
    for statement in statements:
        match statement:
            case ast.Import(names) | ast.ImportFrom(names=names):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in names}
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                found.add(name)
            case ast.Assign(targets=[*targets]):
                found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            case ast.AnnAssign(target=ast.Name(name)):
                found.add(name)
    return found


_MODIFIERS = (
    "async const constexpr default export extern final fileprivate inline internal local open override private "
    "protected pub public static suspend unsafe virtual"
).replace(" ", "|")
_KEYWORDS = (
    "auto class const def define defn defp defun fn fun func function let local proc procedure struct sub val var"
).replace(" ", "|")
_STATEMENTS = "await|case|do|else|for|guard|if|match|return|switch|throw|until|while|yield"


def defines(code: str, name: str) -> bool:
    """Whether a function, class or variable of this name is defined, in whatever language; a call defines nothing."""
    name = re.escape(name)
    ways = (
        # def f, export async function f, fun <T> f, func (s *S) f, let rec f, (define (f
        rf"^[ \t(]*(?:(?:{_MODIFIERS})\s+)*(?:{_KEYWORDS})\s+"
        rf"(?:rec\s+|<[^>\n]*>\s*|\([^)\n]*\)\s*)?\(?(?:\w+[.:]+)*{name}\b",
        # f = …, f: T = …, f <- …, f :: …, f x y = …, f(x) = …
        rf"^[ \t]*{name}(?:[ \t]*:[^=:\n]+|(?:[ \t]+[\w()\[\],:]+)+|\([^()\n]*\))?[ \t]*(?:=(?![=>])|<-|::)",
        # int f(int x) {, f() {, std::vector<int> S::f(int x) const {, int f(int x) => …
        rf"^[ \t]*(?!(?:{_STATEMENTS})\b)(?:[\w:<>,.*&\[\]?]+[ \t]+)*[*&]*(?:\w+::)*{name}"
        r"[ \t]*\([^;{}]{0,2000}\)[^\n;{}=()]*\n?[ \t]*(?:\{|=>)",
    )
    return any(re.search(way, code, re.MULTILINE) for way in ways)


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
        return _with_imports(prompt, code) if language in _REPEATABLE else code
    return prompt + code


# Where an import that is there twice, or that nobody needs, does no harm.
_REPEATABLE = frozenset({"c", "cpp", "csharp", "java", "php"})
_IMPORT = re.compile(r"^[ \t]*(?:#[ \t]*include\b|using\b|import\b|<\?php).*$", re.MULTILINE)


def _with_imports(prompt: str, code: str) -> str:
    there = {line.strip() for line in code.splitlines()}
    missing = [line for line in _IMPORT.findall(prompt) if line.strip() not in there]
    return "\n".join([*missing, code])


def _python_program(prompt: str, code: str, entry_point: str) -> str:
    if not entry_point or not defines_at_top(code, entry_point):
        return joined(prompt, _as_body(prompt, code))
    # The function is there as a whole. The prompt stays before it for its imports and helpers; the half function at
    # its end is finished with nothing, and then replaced. What concerns the compiler has to come first.
    future = "".join(_FUTURE.findall(code))
    code = _FUTURE.sub("", code)
    last = prompt.rstrip().rpartition("\n")[2]
    indent = last[: len(last) - len(last.lstrip())]
    ways = (f"{future}{prompt.rstrip()}{ending}" for ending in ("", f"\n{indent}    pass", f"\n{indent}pass"))
    begun = next(filter(compiles, ways), future.rstrip("\n"))
    return f"{begun}\n\n\n{code}\n" if begun else f"{code}\n"


_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)


def joined(prompt: str, completion: str) -> str:
    """A Python program in two pieces; the second alone, if only that is one: then the prompt was prose."""
    whole = prompt + completion
    return completion if not compiles(whole) and completion.strip() and compiles(completion) else whole


def completion(prompt: str, text: str, entry_point: str) -> str:
    """What a reply adds to the prompt: for tasks whose own code expects prompt and completion in one piece."""
    code = code_in(text, entry_point).strip("\n")
    if not prompt.strip():
        return code
    if code.lstrip().startswith(prompt.strip()):
        return code.lstrip()[len(prompt.strip()) :]
    begun = begun_function(prompt)
    if begun is None:
        return _without_repetition(prompt, code)
    name, function = begun  # what stands before it may be prose
    body = _body_of(function, code, name)
    return body if body is not None else _as_body(function, code)


def begun_function(prompt: str) -> tuple[str, str] | None:
    """The Python function at the end of a prompt, of which there is nothing but its signature and its docstring."""
    positions = [(match.start(), match[1]) for match in _DEF.finditer(prompt)]
    for start, name in positions[-1:] if _is_open(prompt) else ():
        function = prompt[start:]
        for ending in ("", "\n    pass", "\n\tpass", "\n  pass"):
            tree = parsed(function.rstrip() + ending)
            match tree and tree.body:
                case [ast.FunctionDef(body=[*_, last]) | ast.AsyncFunctionDef(body=[*_, last]) as found]:
                    statements = found.body[ast.get_docstring(found) is not None :]
                    if not statements or (ending and statements == [last]):
                        return name, function
    return None


_DEF = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def _is_open(prompt: str) -> bool:
    """Whether a function at the end of a prompt can go on: a comment at the margin, or a heading, is behind it."""
    return not prompt.rstrip().rpartition("\n")[2].startswith("#")


def begins_python(prompt: str) -> bool:
    """Whether it is Python as far as it goes; its last line may be half of one."""
    whole, last = prompt.rstrip(), prompt.rstrip().rpartition("\n")
    indent = last[2][: len(last[2]) - len(last[2].lstrip())]
    endings = ("", f"\n{indent}    pass", f"\n{indent}pass")
    return any(parsed(whole + ending) is not None for ending in endings) or (
        bool(last[0].strip()) and parsed(last[0]) is not None and _HALF.fullmatch(last[2]) is not None
    )


_HALF = re.compile(r"[ \t]*(?:@|def|class|async|return|for|while|if|import|from)\b.*")


def _without_repetition(prompt: str, code: str) -> str:
    """A reply to a prompt that ends in the middle of a line, or with a line that begins a block in any language."""
    half = prompt.rpartition("\n")[2].strip()
    if half and code.lstrip().startswith(half):
        return code.lstrip()[len(half) :] + "\n"
    signature = prompt.rstrip().rpartition("\n")[2].strip()
    if signature.endswith("{") and signature in code:
        return code.partition(signature)[2] + "\n"
    lines = code.split("\n")
    repeated = [position for position, line in enumerate(lines) if line.strip() == signature]
    if repeated and re.search(r"\w", signature) and not signature.startswith("#"):
        return "\n" + "\n".join(lines[repeated[0] + 1 :]) + "\n"
    return _as_body(prompt, code)


def middle(prefix: str, suffix: str, text: str) -> str:
    """What a reply puts between two pieces of code, of which it may have repeated some."""
    code = code_in(text).strip("\n")
    line_begun = prefix.rpartition("\n")[2]
    for given in (prefix, line_begun):
        if len(given.strip()) > 3 and code.lstrip().startswith(given.strip()):
            code = code.lstrip()[len(given.strip()) :].strip("\n")
            code = code.lstrip() if given[-1] in " \t" else code
            break
    if len(suffix.strip()) > 3 and code.rstrip().endswith(suffix.strip()):
        code = code.rstrip()[: -len(suffix.strip())].rstrip()
    if line_begun:
        return code if line_begun.strip() else _indented(code, line_begun)
    return f"{code}\n" if code and suffix.strip() and not suffix.startswith("\n") else code


def _indented(code: str, indent: str) -> str:
    """Indents all lines of the code but the first, which is already indented."""
    first, *others = code.split("\n")
    if not all(line.startswith(indent) for line in others if line.strip()):
        others = [indent + line if line.strip() else line for line in others]
    return "\n".join([first.lstrip(), *others])


def _body_of(prompt: str, code: str, name: str) -> str | None:
    """The statements of a Python function, and whatever follows it; what stands before it is made a part of it."""
    tree = parsed(code)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)] if tree else []
    found = next((node for node in functions if node.name == name), functions[-1] if functions and not name else None)
    if found is None:
        return None
    statements = found.body[1:] if ast.get_docstring(found) is not None else found.body
    if not statements:
        return None
    lines = code.split("\n")
    first = _first_line(statements[0])
    if first == found.lineno:  # def f(x): return x
        body = "    " + lines[first - 1].encode()[statements[0].col_offset :].decode()
        first += 1
    else:
        body = "\n".join(lines[first - 1 : found.end_lineno])
        first = (found.end_lineno or 0) + 1
    before = "\n".join(lines[: _first_line(found) - 1]).strip("\n")
    after = "".join(f"\n{line}" for line in lines[first - 1 :]) + "\n"
    bodies = (body, textwrap.indent(textwrap.dedent(body), "    "))
    helped = (f"{textwrap.indent(before, '    ')}\n{body}" for body in bodies if before)
    return _first_to_compile(prompt, (way + after for way in (*helped, *bodies)), body + after)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _as_body(prompt: str, code: str) -> str:
    """A continuation, indented where the model forgot to: the first way that makes a program."""
    indented = textwrap.indent(textwrap.dedent(code), "    ")
    ways = [indented, code] if _wants_a_body(prompt) else [code, indented]
    return _first_to_compile(prompt, [*ways, f"    {code}"], code) + "\n"


def _wants_a_body(prompt: str) -> bool:
    """Whether the prompt ends with a function of which there is nothing but its signature and its docstring."""
    tree = parsed(prompt)
    if tree is None or not _is_open(prompt):
        return tree is None
    match tree.body:
        case [*_, ast.FunctionDef(body=[_]) | ast.AsyncFunctionDef(body=[_]) as last]:
            return ast.get_docstring(last) is not None
    return False


def _first_to_compile(prompt: str, ways: Iterable[str], otherwise: str) -> str:
    joined = (glue + way for way in ways for glue in ("", "\n"))
    return next((way for way in joined if compiles(prompt + way)), otherwise)


def defines_at_top(code: str, name: str) -> bool:
    name = re.escape(name)
    return (
        re.search(rf"^(?:async\s+def|def|class)\s+{name}\b|^{name}\s*(?::[^=\n]+)?=(?!=)", code, re.MULTILINE)
        is not None
    )


def parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the code, which is not ours
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def compiles(code: str) -> bool:
    """Parsing is not enough: a `return` outside of every function parses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(code, "reply", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
