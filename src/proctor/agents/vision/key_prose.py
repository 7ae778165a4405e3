"""Sentences that say which keys to press, told from those that only mention keys."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from proctor.agents.vision.key_names import ARROWS
from proctor.agents.vision.key_tokens import AmbiguousError, Stroke, Token, strokes_of, tokens_of, words

Mood = Literal["", "not", "if", "past", "why", "perhaps"]
NO_COMMAND = ("not", "if", "past", "why")
Tier = Literal["command", "named", "perhaps"]

_PRESS = words(
    """press pressing hit hitting tap tapping push pushing hold holding keep use using type typing
    choose pick choosing input inputting send sending try trying click keypress"""
)
_MOVE = words(
    """go going move moving steer steering turn turning rotate rotating dodge dodging head heading
    fire firing shoot shooting attack attacking confirm confirming start starting begin restart restarting
    open drop dropping swing strafe step slide run walk jump swerve drift veer shift"""
)
_BETWEEN = words(
    """the your my to on both key keys arrow arrows button again further slightly a bit little now
    quickly briefly hard and then down keyboard more once just with at for short same time
    toward towards direction side immediately next step simultaneously together is be answer it
    way back i will another"""
)
_NOT = words(
    """not never avoid avoiding without except stop stopping release releasing don't dont won't
    can't cannot shouldn't mustn't doesn't isn't wouldn't needn't away"""
)
_AVOIDING = words("avoid avoiding without stop stopping release releasing")
_IF = words(
    "if when whenever whether unless until alternatively otherwise"
)  # what follows depends on what nobody here knows
_PAST = words(
    """after before had was were pressed moved went tapped held previously earlier although though
    once"""
)
_WHY = words("because since as due which where given while")
_PERHAPS = words("could might may would can maybe perhaps possibly")
_BREAKS = words("but so then therefore thus hence instead however")
_CONCLUDES = words("""so therefore thus hence answer final best choose action move finally decision""")
_CHOICES = words("direction move action key choice answer option way")
_PLACE = words("the on from at of in near by that this")
_JOINING = words("and or while together simultaneously hotkey then")
_AFTER_ALONE = frozenset(("", ",", ".", "!", ":", "-", "–", "—", "(", "to", "for"))
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\d\.)\s+(?=\S)|\n+")
_DECORATED = re.compile(r"(\*\*|`|\"|“|(?<!\w)')([^*`\"“”'\n]{1,40})(\*\*|`|\"|”|'(?!\w))")


class _Mention(Struct):
    """A sentence, and the keys that it names in each way."""

    text: str
    commands: list[Token] = []
    named: list[Token] = []
    perhaps: list[Token] = []

    def keys(self, tier: Tier) -> list[int]:
        return [token.key for token in self._of(tier) if token.kind == "key"]

    def _of(self, tier: Tier) -> list[Token]:
        return {"command": self.commands, "named": self.named, "perhaps": self.perhaps}[tier]

    def says(self, tier: Tier) -> bool:
        return any(token.kind in ("key", "nothing", "wait") for token in self._of(tier))

    def strokes(self, tier: Tier) -> list[Stroke]:
        return strokes_of(self._of(tier))

    @property
    def concludes(self) -> bool:
        tokens = tokens_of(self.text)
        return any(token.word in _CONCLUDES for token in tokens) or all(token.kind != "word" for token in tokens)

    @property
    def goes_on(self) -> bool:
        """Whether it continues what the sentence before has begun."""
        first = next(iter(tokens_of(self.text)), None)
        return first is not None and (first.word in ("then", "after", "finally", "next", "and") or first.word in _PRESS)


def _is_bare(tokens: list[Token]) -> bool:
    """Nothing but keys; a single letter or digit might be the number of a line."""
    kinds = {token.kind for token in tokens}
    return (
        not kinds & {"word", "number"}
        and tokens[-1].text != "?"
        and any(token.kind == "key" and not token.is_letter for token in tokens)
    )


_ANNOUNCED = re.compile(r"(?<=[a-z*`\"”)]):\s(.*)$")


def _announced(sentence: str) -> str:
    """What stands behind a colon, if it is nothing but keys; else all of it."""
    match = _ANNOUNCED.search(sentence)
    kinds = [token.kind for token in tokens_of(match[1])] if match else []
    is_answer = "word" not in kinds and kinds[:1] in (["key"], ["nothing"], ["wait"])
    return match[1] if match and is_answer else sentence


def read_prose(text: str, commands_only: bool = False) -> list[Stroke] | None:
    """None if nobody could tell; with commands only, also if keys are named without a verb."""
    sentences = [_announced(sentence) for sentence in _SENTENCE.split(text) if sentence.strip()]
    for sentence in reversed(sentences):
        if _is_bare(tokens := tokens_of(sentence)):
            return strokes_of(tokens)
    mentions = [_Reader(sentence).read() for sentence in sentences]
    if any(sentence.says("command") for sentence in mentions):
        return _commanded([sentence for sentence in mentions if sentence.says("command")], mentions)
    tiers: tuple[Tier, ...] = () if commands_only else ("named", "perhaps")
    for tier in tiers:
        found = [sentence for sentence in mentions if sentence.says(tier)]
        if not found:
            continue
        if len({tuple(sentence.keys(tier)) for sentence in found}) > 1 and not found[-1].concludes:
            raise AmbiguousError("several sentences name keys")
        return found[-1].strokes(tier)
    return None


def _commanded(found: list[_Mention], mentions: list[_Mention]) -> list[Stroke]:
    """The last sentence that tells what to do, with those before it that it continues."""
    chosen = [found[-1]]
    for sentence in reversed(found[:-1]):
        follows = mentions.index(chosen[0]) == mentions.index(sentence) + 1
        if not (follows and chosen[0].goes_on):
            break
        chosen.insert(0, sentence)
    return strokes_of([token for sentence in chosen for token in sentence.commands])


class _Reader:
    """One sentence."""

    def __init__(self, text: str) -> None:
        self._mentions = _Mention(text, [], [], [])
        self._decorated = [match.span(2) for match in _DECORATED.finditer(text)]
        self._tokens = tokens_of(_DECORATED.sub(lambda match: f" {match[2]} ".center(len(match[0])), text))
        self._mood: Mood = ""
        self._verb: Literal["", "press", "move"] = ""
        self._passed = False  # a key was named that is not to be pressed
        self._avoiding = False  # what is not to be is named: what somebody does about it is another clause
        self._is_question = text.rstrip(" *_\"'`").endswith("?")

    def read(self) -> _Mention:
        if self._is_question:
            return self._mentions
        for index, token in enumerate(self._tokens):
            match token.kind:
                case "word":
                    self._take_word(token, index)
                case "sign":
                    self._take_sign(token)
                case "key":
                    self._take_key(token, index)
                case "nothing" | "wait":
                    self._take_nothing(token, index)
                case _:
                    self._append(token)
        return self._mentions

    def _take_word(self, token: Token, index: int) -> None:
        word, following = token.word, self._word(index + 1)
        if token.is_during:
            self._verb = "press"
            if not self._mentions.commands:
                self._mentions.commands.append(token)
        elif word in ("instead", "rather") and following in ("of", "than"):
            self._mood, self._verb, self._avoiding, self._passed = "not", "", True, False
        elif word in _BREAKS or (word == "by" and following in _PRESS):
            self._mood, self._verb = "", ("" if word == "but" else self._verb)
        elif word in ("i", "we", "you"):
            self._begin_clause()
        elif word in _NOT or word.endswith("n't") or (word == "let" and following == "go"):
            self._mood, self._avoiding, self._passed = "not", word in _AVOIDING, False
        elif word == "once" and self._verb:
            pass
        elif word in _IF or word in _PAST:
            self._mood, self._verb = ("if" if word in _IF else "past"), ""
        elif word in _WHY and not (word == "while" and self._verb):
            self._mood, self._verb = "why", ""
        elif word in _PERHAPS:
            self._mood = self._mood or "perhaps"
            if self._tokens[0].word.endswith("ing") and not self._mentions.perhaps:  # pressing LEFT would hit the wall
                self._mentions.perhaps, self._mentions.commands = self._mentions.commands, []
        elif word in _PRESS or word in _MOVE:
            if self._passed and not word.endswith("ing"):
                self._begin_clause()  # release LEFT and press RIGHT
            self._verb = "press" if word in _PRESS else "move"
        elif word not in _BETWEEN:
            self._verb = ""
        self._append(token)

    def _take_sign(self, token: Token) -> None:
        if token.text in ",;—–(" or (token.text in "-:" and not self._joins(token)):
            if self._mood not in ("perhaps", "if"):
                self._mood = ""
            if token.text not in ",(:":
                self._verb = ""
        self._append(token)

    def _joins(self, token: Token) -> bool:
        """Whether the sign stands between a key and what belongs to it."""
        index = self._tokens.index(token)
        return index > 0 and self._tokens[index - 1].kind == "key"

    def _begin_clause(self) -> None:
        """Somebody does something: what is to be avoided was named before."""
        if self._mood == "not" and self._avoiding:
            self._mood = ""

    def _take_key(self, token: Token, index: int) -> None:
        if token.text == "I":
            self._begin_clause()
        if self._mood in NO_COMMAND or self._is_a_word(token, index):
            self._passed = self._mood == "not"
            if self._is_a_word(token, index) and token.word not in _BETWEEN:
                self._verb = ""
            return
        if self._is_commanded(token, index):
            (self._mentions.perhaps if self._mood == "perhaps" else self._mentions.commands).append(token)
        elif self._is_named(token, index):
            (self._mentions.perhaps if self._mood == "perhaps" else self._mentions.named).append(token)
        else:
            self._verb = ""

    def _is_commanded(self, token: Token, index: int) -> bool:
        if self._verb == "press" or self._is_held_for(index):
            return True
        if self._word(index - 1) == "with" and self._is_marked(token):  # drop it with DOWN
            return True
        return self._verb == "move" and (token.key in ARROWS or self._is_marked(token))

    def _is_held_for(self, index: int) -> bool:
        """`UP:0.5`, as it was asked for."""
        rest = self._tokens[index : index + 3]
        return [token.kind for token in rest] == ["key", "sign", "time"] and rest[1].text == ":"

    def _is_named(self, token: Token, index: int) -> bool:
        before, after = self._word(index - 1), self._word(index + 1)
        if self._is_decorated(token):
            return True
        if after in ("key", "arrow", "button"):
            return (before not in ("this", "that") and not token.is_letter) or before == "the"
        if token.is_letter:
            return False
        if token.is_capital:
            return before not in _PLACE
        if self._is_chosen(index):
            return True
        # "left, because …": the sentence begins with it, and goes on to something else.
        return index == 0 and (after in _AFTER_ALONE or after in _WHY)

    def _is_chosen(self, index: int) -> bool:
        """`the safest direction is left`"""
        return self._word(index - 1) == "is" and any(token.word in _CHOICES for token in self._tokens[:index])

    def _is_a_word(self, token: Token, index: int) -> bool:
        """An article, a pronoun, or a direction that is none: `a key`, `I`, `hold down the …`, `right now`."""
        before, after = self._word(index - 1), self._word(index + 1)
        if token.is_letter and not self._is_decorated(token):
            if token.text in "aI" and not (after in ("key", "") or (after in ",.;+" and self._verb == "press")):
                return True
            if token.text.isdigit() and self._verb != "press":
                return True
        if token.text.islower():
            if token.word == "right" and after in ("now", "away", "before", "after", "here", "in", "at"):
                return True
            if token.word == "shift" and self._verb != "press" and after in ("left", "right", "to"):
                self._verb = "move"
                return True
            if token.word == "left" and before in ("is", "are", "was", "time", "seconds", "nothing"):
                return not self._is_chosen(index)
        return False

    def _is_marked(self, token: Token) -> bool:
        return self._is_decorated(token) or (token.is_capital and not token.is_letter)

    def _is_decorated(self, token: Token) -> bool:
        return any(begin - 2 <= token.start < end + 2 for begin, end in self._decorated)

    def _take_nothing(self, token: Token, index: int) -> None:
        if self._mood in NO_COMMAND:
            return
        alone = len(token.text.split()) == 1 and token.kind == "nothing" and not token.text.isupper()
        if alone and not (
            self._verb or self._word(index - 1) in ("", "is", ":", "answer", "be", "choose", "so", "therefore")
        ):
            return
        if token.kind == "wait" and self._word(index + 1) in ("for", "until") and self._next_kind(index + 2) != "time":
            return
        (self._mentions.perhaps if self._mood == "perhaps" else self._mentions.commands).append(token)

    def _next_kind(self, index: int) -> str:
        return self._tokens[index].kind if index < len(self._tokens) else ""

    def _word(self, index: int) -> str:
        return self._tokens[index].word if 0 <= index < len(self._tokens) else ""

    def _append(self, token: Token) -> None:
        """What stands between keys, to whichever it belongs."""
        if self._mood in NO_COMMAND:
            return
        for mentions in (self._mentions.commands, self._mentions.named, self._mentions.perhaps):
            if mentions and (token.kind in ("time", "times", "sign", "number") or token.word in _JOINING):
                mentions.append(token)
