"""Token ids of a text from the vocabulary in a GGUF file: byte-level BPE and SentencePiece BPE.

Small and slow on purpose. It gives the forward test real text to run on and depends on nothing of
the C++ tokenizer, whose own tests compare it with an established implementation.
"""

from __future__ import annotations

import heapq
import re
from gguf import GGUFReader

# GPT-2's split, letters and digits in the spelling of `re`; every digit stands alone (SmolLM2).
WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-in for every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet, extra = [""] * 256, 0
    for byte in range(256):
        if byte in printable:
            alphabet[byte] = chr(byte)
        else:
            alphabet[byte] = chr(256 + extra)
            extra += 1
    return alphabet


def merge(symbols: list[str], priority) -> list[str]:
    """Joins neighbours, lowest `priority(left, right)` first, leftmost first; None = never."""
    following = [*range(1, len(symbols)), -1]
    preceding = [*range(-1, len(symbols) - 1)]
    queue: list[tuple[float, int, str, str]] = []

    def offer(left: int) -> None:
        right = following[left]
        if right < 0:
            return
        rank = priority(symbols[left], symbols[right])
        if rank is not None:
            heapq.heappush(queue, (rank, left, symbols[left], symbols[right]))

    for at in range(len(symbols) - 1):
        offer(at)
    while queue:
        _, left, first, second = heapq.heappop(queue)
        right = following[left]
        if right < 0 or symbols[left] != first or symbols[right] != second:
            continue  # one of the two was merged meanwhile
        symbols[left], symbols[right] = first + second, ""
        following[left] = following[right]
        if following[right] >= 0:
            preceding[following[right]] = left
        following[right] = -1
        if preceding[left] >= 0:
            offer(preceding[left])
        offer(left)
    return [symbol for symbol in symbols if symbol]


def tokenize(reader: GGUFReader, text: str) -> list[int]:
    def meta(key: str):
        field = reader.fields.get("tokenizer.ggml." + key)
        return None if field is None else field.contents()

    pieces = meta("tokens")
    ids = {piece: at for at, piece in enumerate(pieces)}
    start = [meta("bos_token_id")] if meta("add_bos_token") else []

    if meta("model") == "gpt2":
        ranks = {tuple(rule.split(" ")): at for at, rule in enumerate(meta("merges"))}
        alphabet = byte_alphabet()
        for word in WORDS.findall(text):
            symbols = [alphabet[byte] for byte in word.encode()]
            start += [ids[s] for s in merge(symbols, lambda a, b: ranks.get((a, b)))]
        return start

    scores = meta("scores")
    user_defined = {piece for piece, kind in zip(pieces, meta("token_type")) if kind == 4}

    def by_score(left: str, right: str):
        at = ids.get(left + right)
        return None if at is None else -scores[at]

    # User-defined pieces (runs of blanks, spelled with blanks) are cut out first, the longest that
    # fits; the rest is merged.
    longest_first = sorted(user_defined, key=len, reverse=True)
    cuts = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
    for part in cuts.split(text):
        if part in user_defined:
            start.append(ids[part])
            continue
        for symbol in merge(list(part.replace(" ", "▁")), by_score):
            byte_pieces = [f"<0x{byte:02X}>" for byte in symbol.encode()]
            start += [ids[piece] for piece in ([symbol] if symbol in ids else byte_pieces)]
    return start
