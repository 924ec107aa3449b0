"""Turns of phrase, Italian and English, rewritten into what the word lists know.

Applied in their order to a request whose names of things are marks already (`lexicon`). Written
from general knowledge of both languages. All lengths are bounded, so that no text makes them slow.
"""

from __future__ import annotations

import re

# What no list of words can hold: whom a message is for, and what is worked out for each kind.
TURNS_OF_PHRASE: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"\b([Tt]ext|[Mm]essage|[Ee]?-?[Mm]ail|[Pp]ing)\s{1,9}"
            r"(?=[A-Z][a-z]|(?:h(?:er|im)|them|it|this|that|everyone|xaddress)\b)"
        ),
        r"\1 to ",
    ),
    (
        re.compile(
            r"(?i)((?:^|[,.;:]|\b(?:and|then|please))\s{0,9}(?:text|message|e?-?mail|ping))\s{1,9}"
            r"(?=(?:the|my|our)\s)"
        ),
        r"\1 to ",
    ),
    (
        re.compile(
            r"(?i)\b(?:drop|shoot|give|send)\s{1,9}((?:[\w'’.-]{1,30}\s{1,9}){1,3}?)"
            r"an?\s{1,9}(?:quick\s{1,9})?(?:line|note|text|message|e-?mail|shout|heads[ -]up)\b"
        ),
        r"send to \1 ",
    ),
    (re.compile(r"(?i)\bscriv(?:i|ere)(?:gli|le)\b|\bd(?:ille|igli)(?:elo)?\b"), "fai sapere "),
    (
        re.compile(
            r"(?i)\b(?:get|pull|take|grab|lift|copy|dig|fish)\s{1,9}([^.?!,]{1,80}?)\bout of\b"
        ),
        r"xoutof \1 from",
    ),
    (
        re.compile(
            r"(?i)\b(into|tra|fra)\s{1,9}([a-zà-ù]{3,20}),\s{0,9}([a-zà-ù]{3,20}),?\s{1,9}(and|e)\s"
        ),
        r"xkinds \2 \3 \4 ",
    ),
    # `the files by size`: what they are put in order by, said last.
    (
        re.compile(
            r"\bby\s{1,9}(?!(?:e?-?mail|text|phone|post|hand|now|then|noon|midnight|tomorrow|tonight"
            r"|[a-z]{1,8}day|me|us|you)\b)"
            r"(?=[a-z]{2,20}(?:\s{1,9}[a-z]{2,20})?\s{0,9}(?:[,.;!?]|$))"
        ),
        r"xby by ",
    ),
    # `put them in`, `list them in a spreadsheet`: where things go to.
    (
        re.compile(
            r"(?i)\b(?:dump|put|stick|throw|chuck|pop|drop|tuck|place|stash|sling|bung)\s{1,9}"
            r"(?:them|it|those|these|that|this|all)\s{1,9}(?:all\s{1,9})?(?:in|into|under|inside|there)\b"
        ),
        r"\g<0> xinto ",
    ),
    (
        re.compile(
            r"(?i)\b(?:in|into|to|as|su)\s{1,9}(?:an?|un[ao]?)\s{1,9}(?:new\s{1,9}|nuov[oa]\s{1,9}"
            r"|file\s{1,9})?(spreadsheet|excel|sheet|table|csv|xlsx|foglio|tabella)\b"
        ),
        r"xsheet \1",
    ),
    (re.compile(r"\b(?:into|as|come)\s{1,9}(?=xfile (?:xlsx?|ods|csv)\b)"), r"xsheet "),
    # `in three lines`: as short as that.
    (
        re.compile(
            r"(?i)\bin\s{1,9}(?:\d{1,3}|one|a couple of|a few|two|three|four|five|six|una?|due|tre"
            r"|quattro|cinque|sei|poche|pochi)\s{1,9}"
            r"(?:lines?|words?|sentences?|bullets?|points?|rig[ah]e?|parol[ae]|fras[ei]|punti)\b"
        ),
        r"xbrief",
    ),
    # `what is Ada's email`, `have I got Ada saved`: what an address book holds.
    (
        re.compile(
            r"(?i)\b(?:what(?:['’]?s| is)|need|got|have|know|give me|find)\b[^.?!]{0,40}"
            r"['’]s (?:e-?mail|details)(?= address|\s*(?:[?.!]|$))"
        ),
        r"\g<0> xcard ",
    ),
    (re.compile(r"(?i)\bhave (?:i|we) (?:got )?[^.?!]{2,40} saved\b"), r"\g<0> xcard "),
    # `il 22 alle 5`, `on the 22nd at 5`: a day or an hour named.
    (
        re.compile(
            r"(?i)\b(?:at|alle|ore|dalle|from)\s{1,9}\d{1,2}(?:[:.]\d\d)?\s?"
            r"(?:[ap]m\b|o['’]?clock|(?![\w%]))"
            r"|\bon the \d{1,2}(?:st|nd|rd|th)\b"
            r"|\b\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:gen|feb|mar|apr|mag|may|giu|jun|lug|jul|ago"
            r"|aug|set|sep|ott|oct|nov|dic|dec)[a-z]{0,6}\b(?! \d{4})"
        ),
        r"\g<0> xwhen ",
    ),
    # `work, family or spam`: kinds to choose from.
    (
        re.compile(r"(?i)\b([a-zà-ù]{3,20}),\s{0,9}([a-zà-ù]{3,20}),?\s{1,9}(or|o|oppure)\s"),
        r"\1 \2 xkinds \3 ",
    ),
    (
        re.compile(r"(?i)\blet\s{1,9}(?!me\b|us\b)((?:[\w'’.-]{1,30}\s{1,9}){1,3}?)know\b"),
        r"let know \1",
    ),
    (re.compile(r"\b[Tt]ell\s{1,9}(?=[A-Z][a-z])"), "let know "),
    (re.compile(r"\b[Dd](?:i['’`]|ì)\s{1,9}(?=a(?:l|lla|i|gli)?\s)"), "fai sapere "),
    (
        re.compile(
            r"(?i)\b((?:totale?|average|mean|how m(?:any|uch)|count|tally|sum|somma|media"
            r"|quant[aeio]|conta|spen[dt]\w*|costs?|spes[aeo]|costi)\b[^.?!]{0,60}?)"
            r"\bper (?!favore\b|piacere\b|cortesia\b)(?=\w{4})"
        ),
        r"\1 xper ",
    ),
)
