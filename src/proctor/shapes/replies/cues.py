"""The words by which a person finds the answer in a reply."""

from __future__ import annotations

import re

# Words that may come before an answer without changing it.
FILLER_WORDS = (
    "the|a|an|it|is|it's|its|that|that's|this|there|there's|are|to|on|in|at|of|be|just|only|"
    "exactly|simply|indeed|clearly|"
    "definitely|certainly|most|then|now|so|therefore|thus|hence|we|have|has|get|i|i'd|i'll|i'm|"
    "say|go|with|count|see|found|find|"
    "think|believe|they|shape|located|positioned|situated|lies|sits|would|must|should|still|"
    "directly|probably|likely|ok|okay|well|"
    "sure|both|towards?|final|one|my|answer|in\\s+fact|diagonally|slightly|further|farther|"
    "somewhere|side|total|net|overall|"
    "movement|displacement|offset|direction|position|relation|result|end|small|large"
)
FILLER = re.compile(rf"(?:\W|\b(?:{FILLER_WORDS})\b)*", re.I)
NOUN = re.compile(rf"(?:\W|\b(?:{FILLER_WORDS}|squares?|circles?|triangles?|shapes)\b)*", re.I)
# Between two answers of which neither is preferred.
JOINT = re.compile(
    r"(?:\W*\b(?:and/or|and|or|nor|vs|maybe|possibly|perhaps|alternatively)\b|"
    r"\s*[,/&+(](?:\s*(?:and|or)\b)?|-|"
    r"\s*$)(?:\s*(?:maybe|possibly|perhaps|even|else)\b)?",
    re.I,
)
# Where an answer ends and what explains it begins.
BOUNDARY = re.compile(
    r"[(;:,.!?]|\s-+>?\s|\b(?:because|since|as|given|while|whereas|which|where|who|followed|due|"
    r"but|not|rather|"
    r"based|meaning|when|after|even|although|though|so|unless)\b",
    re.I,
)
# Before an answer that is denied, or only possible.
NEGATION = re.compile(
    r"(?:\b(?:(?:wrong|incorrect|false|a mistake|misleading)|(?:mistake|error) (?:is|was|would be)) to "
    r"(?:say|answer|conclude|claim|choose|pick)(?: that)?\s*$|"
    r"\b(?:rejected|excluded|ruled out|(?:wrong|incorrect)(?: answers?| options?)?)\s*:\s*$|"
    r"(?:\bnot|n't|\bcannot|\bnever|\bno longer|\bneither|\bnor|\brather than|\binstead of|"
    r"\bother than|\bunlike|"
    r"\bbut(?<=anything but)|\bexcept|"
    r"\b(?P<modal>could|might|may)(?: also| well| just as well)*)\s+(?:(?:to|the|a|an|on|in|at|"
    r"be|it|is|its|it's|"
    r"of|really|directly|either|exactly|been|still|also|any|answer|say|tell|conclude|see|have|"
    r"find|turn|"
    r"become)\s+)*\W*$)",
    re.I,
)
# After an answer that is denied.
DENIED_AFTER = re.compile(
    r"\s+(?:is|was)(?: not|n't) (?:the|it|\w+most|nearest|farthest|closest|correct|right)\b|"
    r"\s+(?:is|was|would be) (?:the )?(?:wrong|incorrect|false|ruled out|excluded|a mistake|an error)\b|"
    r"\s+(?:can|could|must) be (?:ruled out|excluded)\b|"
    r"\s+would (?:only |then )?(?:be|have been) (?:right|correct|true|the answer)(?: only)? if\b|"
    r"\s+would (?:need|require)\b",
    re.I,
)
# Between two answers that are denied together.
OR = re.compile(r"\W*\b(?:or|nor)\s+(?:(?:to|the|a|an|on|in|at|of)\s+)*", re.I)
AND = re.compile(r"\s*,?\s*and\s+(?:the\s+)?", re.I)
# Before several answers that are left aside together.
UNLIKE = re.compile(
    r"\b(?:unlike|except|besides|apart from|other than|rather than|"
    r"instead of)\s+(?:the\s+)?$",
    re.I,
)
# Before the answer that the reply calls its answer.
ANNOUNCEMENT = re.compile(
    r"(?:\b(?:answer|ans|verdict|conclusion|result|solution|outcome|antwort|respuesta|réponse|"
    r"risposta|resposta|ответ|"
    r"答案|答え)\b(?:\s+(?:to|of|for|here|"
    r"in)\b[^:.=]{0,200}?)?\s*(?:(?:is|was|est|es|ist|è|é|是|为|は|remains|becomes|(?:would|will|"
    r"should|"
    r"must)\s+be)\b[\s:]*(?:therefore|"
    r"thus|then|now|clearly|simply)?|=|:|->|\s-\s)|"
    r"^\s*(?:(?:the|my|final|correct|short|direct)\s+)*(?:answer|ans|verdict|conclusion|result|"
    r"solution)\s*\.?$|"
    r"^\s*a\s*:(?!.*\bb\s*:)|\bhere(?:'s| is) my response\s*:|\b(?:i'd|i would|i|i'll|"
    r"i will)\s+(?:go with|"
    r"choose|pick|say|settle on|answer|conclude)\b|"
    r"(?<!\bin )(?<!\bme )(?<!\blet's )(?<!\bto )(?<!\bwe )(?<!\bi )(?<!\bll )"
    r"\b(?:grand |final |overall )?(?:total|count|tally)\s*(?:is|=|:|comes to)|"
    r"\bis\s+(?:the|my)\s+(?:final\s+|correct\s+|right\s+)?answer\b(?=\W*$))[\s:,]*",
    re.I,
)
# What follows holds in one case only.
CONDITION = re.compile(r"\b(?:if|unless|suppose|assuming|otherwise|had (?:it|the|there|this|that|they|we|i))\b", re.I)
# At the beginning of a sentence that concludes.
CONCLUSION = re.compile(
    r"\W*(?:final(?! (?:order|line|list|row|positions?|arrangement|sequence|"
    r"ranking)\b)(?: \w+){0,2}\s*[:=]|(?:therefore|thus|hence|consequently|accordingly|"
    r"overall|in conclusion|in summary|"
    r"in short|to sum up|"
    r"to conclude|to summari[sz]e|summary|in the end|finally|as a result|this means|that means|"
    r"it follows)\b)",
    re.I,
)
# The same, but also used for steps on the way.
SO = re.compile(
    r"\W*(?:so|that makes|that gives|this gives|this makes|that is|that leaves|"
    r"this leaves)\b",
    re.I,
)
# Within a sentence, before what follows from the rest of it.
HENCE = re.compile(
    r"\b(?:therefore|thus|hence|consequently|so|meaning|which means|which makes|which gives|"
    r"making|giving|ie|"
    r"in other words|gives|yields|leaves|leaving|evaluates to|net)\b(?! far| that)|[-=]+>|"
    r"(?<![<>=])=(?![<>=])",
    re.I,
)
# At the beginning of a sentence whose main clause comes after it.
GROUND = re.compile(r"^\W*(?:since|because|as|given|although|though|even though|while|whereas)\b[^,]*,", re.I)
# At the beginning of what explains the answer before it.
EXPLANATION = re.compile(
    r"^\W*(?:(?:brief |short |here's the |here is the |the |my )?(?:explanation|reason(?:ing)?|"
    r"justification|rationale|"
    r"details?|why)\s*[:.]|(?:explanation|reasoning|justification|rationale)\W*$)",
    re.I,
)
# What comes before it may be wrong.
CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|on second thoughts?|on reflection|scratch that|"
    r"hold on|hang on|oops|"
    r"sorry|or rather|i (?:meant|made an?|was (?:wrong(?: to \w+ \w+)?|mistaken|looking)|mis\w+|"
    r"(?:overlooked|missed|forgot)(?: one\b)?|mixed)|my mistake|apologies|i mean|"
    r"let me (?:re|double|look again|check again)[\w-]*|h+m+|upon re\w+|looking again|"
    r"checking again|rechecking|"
    r"recounting)\b",
    re.I,
)
# The same, where No is not one of the answers.
RETRACTION = re.compile(r"^\W*no\b\s*[,:.;-]|\bno\s*[,:]\s", re.I)
# What only says that an answer will follow.
INTRODUCTION = re.compile(r"^\W*(?:(?:okay|ok|so|first|now),? )?let(?:'s| me| us)\b[^:]*$", re.I)
BUT = re.compile(r"\W*(?:but|however|yet)\b", re.I)
# What the model thought before it knew better.
SEEMING = re.compile(
    r"\b(?:seems?|appears?|at first|first|initial|initially|originally|earlier|before|almost|"
    r"used to|one might|"
    r"might think|thought|would think|said|counted|guessed|expected|tempted|going to say|"
    r"looks? like|for sure|"
    r"for certain)\b",
    re.I,
)
# What it believed is no answer, and "but" ends it.
BELIEF = re.compile(
    r"\b(?:thought|guessed|assumed|considered|expected|tempted|going to say|suspected|might (?:think|say|guess|expect)|"
    r"would (?:think|guess|expect))\b",
    re.I,
)
# What is asked, supposed or only possible.
HEDGE = re.compile(
    r"\b(?:if|whether|would|could|might|may|should|suppose|unless|let me|let's|need to|to check|asks?|question)\b", re.I
)
# A first impression.
PRELIMINARY = re.compile(
    r"\b(?:first (?:guess|thought|idea|impression|glance|answer)|(?:i|we) first|"
    r"initial(?:ly)?|quick|considered|tempt\w+|might (?:think|say)|previously|earlier|someone|"
    r"some)\b",
    re.I,
)
# Before what it knows better, without a word about before.
EVEN = re.compile(
    r"\beven \w+|\b(?:strictly|technically)\b|\bis (?:\w+ )?(?:lower|higher|closer|nearer|"
    r"farther|further)\b\W*$",
    re.I,
)
# And where it knows better.
CONTRAST = re.compile(r"\b(?:but|however|yet|though|then (?:i )?(?:reali[sz]ed|noticed|saw|found))\b|;", re.I)
# Before an answer that was given up.
CHANGED_FROM = re.compile(r"\b(?:chang|switch|correct|revis|went|goes)\w*\s+(?:\w+\s+){0,3}from\s+$", re.I)
# Before an answer that is left open.
WHETHER = re.compile(r"\bwhether\b[^.;:,]*$", re.I)
# At the beginning of a sentence that says what would be.
SUPPOSITION = re.compile(r"^\W*(?:if(?! (?:we|you|i|one)\b)|unless|suppose|supposing|assuming|provided|had)\b", re.I)
# At the beginning of a sentence about what the one before says.
REMARK = re.compile(
    r"^\W*(?:it|it's|its|this|that|that's|the (?:chain|line|shape|description)|see|specifically|"
    r"namely)\b",
    re.I,
)
# A base model goes on with questions of its own.
NEXT_QUESTION = re.compile(
    r"^\W*(?:question|q|human|user|instruction|input)\s*\d*\s*:|^\W*(?:a canvas shows these shapes|"
    r"on a canvas of shapes|this is all that is known of|shapes stand (?:in a line|on squared))\b",
    re.I,
)
INSTRUCTION = re.compile(r"^\W*(?:answer (?:with|yes|left)|looking only|distances are|x grows|there are four)\b", re.I)
# A part of the question that tells how to read it.
GUIDANCE = re.compile(
    r"^\W*(?:to add a shape that is already there|x grows to the right|distances are straight|"
    r"there are four directions)\b[^:]*$",
    re.I,
)
# At the end: no answer after all.
UNDECIDED = re.compile(
    r"(?:\bnot|n't)\s+(?:be\s+)?(?:sure|certain|know|tell|decide)\s+(?:which|whether)|"
    r"\bunsure which|"
    r"\bcan(?:not|'t) decide",
    re.I,
)
# At the end of a sentence that was cut off.
UNFINISHED = re.compile(
    r"\b(?:but|however|is|are|the|a|an|at|(?<!left )(?<!right )of|and|or|so|to|with|because|since|than|its|"
    r"then|that|which|be|"
    r"by|in|as|the small|the large|it's|turns|turned|becomes|became|into|from|(?:and|so|that) it|"
    r"(?:need|have|"
    r"want) to \w+)$|\b(?:let me|let's|here)\b[^:]*:\s*1\.?$|(?:->|,)\s*\.*$",
    re.I,
)
PLACE = re.compile(r"\bat\s*\(\)\W*$", re.I)
IN_BRACKETS = re.compile(r"\([^()]*\)\W*$")
# What a sentence has that goes on with the matter.
SUBJECT = re.compile(
    r"\d|\b(?:small|large|colou?r|shape|square|circle|triangle|event|step|swap|move|line|left|right|above|below|it|they|them|"
    r"both|none|neither|all|one|two|three|x|y|first|second|third|next|then|but|however|answer|unknown|unclear|cannot|can't|"
    r"not|no|n't|wait|actually|hmm|sorry|image|picture)s?\b|:\s*$|n't\b",
    re.I,
)
# In brackets, unless it is an alternative.
ASIDE = re.compile(r"\((?!\s*(?:or|and|maybe|possibly|perhaps)\b)[^()]*\)")
