"""Stop words: texts that start something new after the answer."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.models.base import cut as cut

# By the sandbox's name of the language. A task adds what its own prompts need. All begin a line that an answer cannot
# have; a brace that closes the answer is a part of it.
STOP_WORDS: dict[str, list[str]] = {
    "python": ["\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\n```"],
    "javascript": ["\nfunction", "\nconst", "\nlet", "\nvar", "\nclass", "\nconsole.log", "\n//", "\n/*", "\n```"],
    "typescript": ["\nfunction", "\nconst", "\nlet", "\nexport", "\nclass", "\nconsole.log", "\n//", "\n/*", "\n```"],
    "java": ["\npublic", "\nprivate", "\nclass", "\n//", "\n```"],
    "c": ["\nint main", "\n#include", "\n//", "\n/*", "\n```"],
    "cpp": ["\nint main", "\nclass", "\nnamespace", "\n#include", "\n//", "\n/*", "\n```"],
    "csharp": ["\npublic", "\nclass", "\n//", "\n```"],
    "go": ["\nfunc", "\ntype", "\nstruct", "\npackage", "\nimport", "\n//", "\n```"],
    "rust": ["\nfn", "\npub", "\nmod", "\nimpl", "\nstruct", "\n#[", "\n//", "\n```"],
    "php": ["\nfunction", "\nclass", "\n?>", "\n//", "\n#", "\n```"],
    "ruby": ["\nclass", "\ndef", "\nmodule", "\nputs", "\n#", "\n```"],
    "lua": ["\nlocal", "\nfunction", "\n--", "\n```"],
    "perl": ["\nsub", "\npackage", "\n#", "\n```"],
    "bash": ["\nfunction", "\n#", "\n```"],
    "r": ["\nlibrary", "\nprint", "\n#", "\n```"],
    "scala": ["\nobject", "\nclass", "\ntrait", "\n//", "\n```"],
    "swift": ["\nfunc", "\nclass", "\nstruct", "\n//", "\n```"],
    "kotlin": ["\nfun", "\nclass", "\nobject", "\n//", "\n```"],
    "haskell": ["\nmain", "\nmodule", "\nimport", "\n--", "\n```"],
}


def cut_generation(generation: str, prompt: str, stop_words: Iterable[str], suffix: str = "") -> str:
    """The same for prompt, completion and perhaps a suffix in one piece: what the given code contains stops nothing."""
    end = len(generation) - len(suffix)
    if len(prompt) > end or not (generation.startswith(prompt) and generation.endswith(suffix)):
        return cut(generation, stop_words)
    return prompt + cut(generation[len(prompt) : end], stop_words) + suffix
