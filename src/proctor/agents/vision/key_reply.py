"""What a model's reply says to press: keys in the format that it was asked for, in JSON, or in a sentence."""

from __future__ import annotations

import json
import re
from typing import Any

from proctor.agents.vision.key_prose import read_prose
from proctor.agents.vision.key_tokens import AmbiguousError, Stroke, Token, strokes_of, tokens_of, within_limits, words
from proctor.core.reasoning import strip_reasoning

LONGEST = 8_000  # characters at the end of a reply in which its answer stands
# Words that may stand beside keys in an answer that is no sentence.
_FILLERS = words(
    """then and key keys arrow arrows button buttons the for press hold tap hit push holding
    pressing tapping followed by again please just now quickly briefly answer final action
    actions move moves output command input decision response result duration time seconds sec
    s x of quick short brief light single keydown sleep keyboard pyautogui pydirectinput pynput hotkey
    keypress presskey both together simultaneously at same with while finally first after next step"""
)
_SIGNS = frozenset(",;:.+-–—>=()[]{}<>&*_`'\"“”‘’#!•·|/@$\\~")
_FENCE = re.compile(r"```[a-zA-Z]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_TAG = re.compile(
    r"<(answer|action|actions|keys?|output|move|response|tool_call|function_call|command)>(.*?)</\1>",
    re.DOTALL | re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}?\}")
_ENUMERATED = re.compile(r"^\s*(?:\(?(?:\d+|[a-z])[.)]|(?:step|action|move|key) ?#?\d+ ?[:.)-])\s+", re.IGNORECASE)
_LET_GO = re.compile(r"[\w.]*(?:key_?up|release)\w*\([^()]*\)", re.IGNORECASE)  # keys are released anyway
_REMARK = re.compile(r"\([^()]*\)")
_COMMENT = re.compile(r"(?<=\S)\s+(?:#|//)\s.*")
_BULLET = re.compile(r"^\s*[-*•>]\s+")
_QUOTES = re.compile(r"(?<!\w)[*`'\"“”‘’_]{1,3}|(?<=\w)[*`\"“”]{1,3}(?! ?\d)|(?<=\w)['’_]{1,3}(?!\w)")
_MARKERS = re.compile(r"<\|[^|<>]{1,40}\|>|</?s>|<(?:eos|end_of_turn|eot_id)>|\[/?INST\]")  # of chat templates
_ROW = re.compile(r"[ \t]*\|(.*)\|[ \t]*$", re.MULTILINE)
# Names that replies in JSON give to keys and to times.
_KEYS = """keys key actions action press presses moves move input inputs answer command commands output button buttons
    sequence response strokes next_keys next_key arguments parameters args""".split()  # noqa: SIM905 - a list of words
_TIMES = ("duration", "seconds", "hold", "time", "length", "hold_time", "hold_seconds", "duration_s", "for")
_MILLISECONDS = ("duration_ms", "ms", "hold_ms", "milliseconds", "time_ms")
_KINDS = ("type", "kind", "name")  # of an action
_TOGETHER = ("combo", "chord", "hotkey", "combination", "together")


def read_strokes(text: str) -> list[Stroke] | None:
    """What to press, in its order; empty for no key; None if a person could not tell."""
    answer = _MARKERS.sub(" ", strip_reasoning(text)[-LONGEST:]).strip()
    if not answer:
        return None
    try:
        for read in (_tagged, _as_json, _in_lines):
            found = read(answer)
            if found is not None:
                return found
    except (AmbiguousError, RecursionError):
        pass
    return None


def _tagged(text: str) -> list[Stroke] | None:
    """Of the last tag or box that is there for the answer."""
    found = [match[2] for match in _TAG.finditer(text)] or [match[1] for match in _BOXED.finditer(text)]
    if not found:
        return None
    read = _as_json(found[-1])
    return _in_lines(found[-1]) if read is None else read


# JSON


def _as_json(text: str) -> list[Stroke] | None:
    for part in [*reversed(_FENCE.findall(text)), text, *_objects(text)]:
        try:
            value = json.loads(part)
        except ValueError:
            continue
        if isinstance(value, dict | list):
            found = _from_json(value)
            if found is None and not any(map(str.isalpha, part)):
                continue  # [0.4] behind a key
            if found is None:
                raise AmbiguousError("JSON that names no key")
            return found
    return None


def _objects(text: str) -> list[str]:
    """From the first bracket to the last of its kind: JSON with words around it."""
    found = []
    for opening, closing in ("{}", "[]"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end:
            found.append(text[begin : end + 1])
    return found


def _from_json(value: Any) -> list[Stroke] | None:
    match value:
        case None:
            return []
        case str():
            return _bare(value)
        case int() if not isinstance(value, bool) and 0 <= value <= 9:
            return _bare(str(value))
        case [str() as name, float() as seconds]:
            return _held(_bare(name), seconds)
        case list():
            parts = [_from_json(item) for item in value]
            return None if None in parts else [stroke for part in parts for stroke in part or []]
        case dict():
            return _from_object(value)
    return None


def _from_object(value: dict[str, Any]) -> list[Stroke] | None:
    folded = {str(name).casefold(): item for name, item in value.items()}
    seconds = _json_seconds(folded)
    together = [folded[name] for name in _TOGETHER if isinstance(folded.get(name), list | str)]
    if together:
        return _held(_joined(_from_json(together[0])), seconds)
    # {"action": "press", "key": "LEFT"}: the verb is no key.
    named = [folded[name] for name in _KEYS if name in folded]
    for item in named:
        if isinstance(item, str) and (item.casefold() in _FILLERS or item.casefold() == "keydown"):
            continue
        found = _from_json(item)
        if found is not None:
            return _held(found, seconds)
    if named:
        return None
    if any(folded.get(name) in ("wait", "sleep", "pause") for name in _KINDS):
        return _held(_bare("wait"), seconds)
    if folded.get("wait") is not None and isinstance(folded["wait"], int | float):
        return strokes_of(tokens_of(f"wait {float(folded['wait'])}"))
    if value and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value.values()):
        return _bare(" ".join(f"{name}:{float(item)}" for name, item in value.items()))  # {"LEFT": 0.5}
    return None


def _json_seconds(folded: dict[str, Any]) -> float | None:
    for names, unit in ((_TIMES, 1.0), (_MILLISECONDS, 0.001)):
        for name in names:
            item = folded.get(name)
            if isinstance(item, str):
                return _seconds_in(item)
            if isinstance(item, int | float) and not isinstance(item, bool):
                return item * unit
    return None


def _seconds_in(text: str) -> float | None:
    """Of `0.5`, `0.5 s`, `300 ms`."""
    for token in tokens_of(text):
        if token.kind == "time":
            return token.seconds
        if token.text.isdigit():
            return float(token.text)
    return None


def _held(strokes: list[Stroke] | None, seconds: float | None) -> list[Stroke] | None:
    if not strokes or seconds is None:
        return strokes
    return [Stroke(stroke.keys, within_limits(seconds)) for stroke in strokes]


def _joined(strokes: list[Stroke] | None) -> list[Stroke] | None:
    if not strokes:
        return strokes
    return [Stroke(tuple(dict.fromkeys(key for stroke in strokes for key in stroke.keys)), strokes[0].seconds)]


# Lines


def _in_lines(text: str) -> list[Stroke] | None:
    """Of the last line that says what to press. An answer in the first line stands, whatever follows it."""
    plain = _ROW.sub(_read_row, re.sub(r"```[a-zA-Z]*", "\n", text))
    plain = _REMARK.sub(_without_idle_words, _LET_GO.sub(" ", _COMMENT.sub("", plain)))
    lines = [line for line in plain.splitlines() if line.strip(" \t-=*_#:")]
    groups = _groups(lines)
    if groups and isinstance(groups[0], list) and not all(map(_ENUMERATED.match, groups[0])):
        return strokes_of(_bare_tokens("\n".join(groups[0])) or [])
    prose: list[str] = []
    for group in reversed(groups):
        if isinstance(group, str):
            prose.insert(0, group)
            continue
        later = read_prose("\n".join(prose), commands_only=True) if prose else None
        return later if later is not None else strokes_of(_bare_tokens("\n".join(group)) or [])
    return read_prose("\n".join(prose))


def _read_row(match: re.Match[str]) -> str:
    """The cells of a row of a table, without its number."""
    cells = [cell.strip() for cell in match[1].split("|")]
    return " ".join(cells[1:] if cells[0].rstrip(".").isdigit() else cells)


def _without_idle_words(match: re.Match[str]) -> str:
    """What stands in brackets, if it has to do with keys."""
    return " " if all(token.kind in ("word", "sign") for token in tokens_of(match[0])) else match[0]


def _groups(lines: list[str]) -> list[list[str] | str]:
    """Lines of keys that follow each other, and between them lines of prose."""
    groups: list[list[str] | str] = []
    for line in lines:
        if _bare_tokens(line) is None:
            groups.append(line)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _bare(text: str) -> list[Stroke] | None:
    tokens = _bare_tokens(text)
    return None if tokens is None else strokes_of(tokens)


def _bare_tokens(text: str) -> list[Token] | None:
    """Of a text that is no sentence: it names keys, times or none, and little else."""
    tokens: list[Token] = []
    for line in text.splitlines():
        bare = _BULLET.sub("", _ENUMERATED.sub("", line)) if len(line.split()) > 1 else line
        tokens += tokens_of(_QUOTES.sub(" ", bare))
    for token in tokens:
        if token.kind == "word" and token.word not in _FILLERS and token.word not in ("or", "either"):
            return None
        if token.kind == "sign" and token.text not in _SIGNS:
            return None
    return tokens if any(token.kind in ("key", "nothing", "wait", "time") for token in tokens) else None
