#!/usr/bin/env python3
"""Writes the golden data of the tokenizer tests with the `tokenizers` package as reference.

    pip install tokenizers gguf jinja2 [sentencepiece]
    python make_golden.py MODELS_FOLDER

Every reference tokenizer is put together here from the vocabulary and the merges or scores that the
GGUF file holds, never from our own code. Files written beside this script:

    lines.txt            the generated texts, each ended by U+001E; seeded, so always the same
    <name>.golden        a line per text: number of ids, FNV-1a-64 of the ids (int32, little endian),
                         and for every 20th text the ids themselves
    templates.json       conversations, what the GGUF's own Jinja template makes of them, and the ids of
                         that (null where a text spells out a special token)

With `sentencepiece` installed, Gemma's reference is compared with that library as well.
"""
import json
import os
import random
import sys

import gguf
import jinja2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
END = "\x1e"
SMOLLM = "SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA = "gemma-3-270m-q4_k_m.gguf"

# ---- texts ---------------------------------------------------------------------------------------

LETTERS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZàâäçéèêëîïôöùûüßñøåæœÀÉÖÜŁłŽžđ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяАБВГДЕЖЗИКЛМНОПРСТЯёЁіїєґ",
    "greek": "αβγδεζηθικλμνξοπρστυφχψωςΑΒΓΔΕΘΛΞΠΣΦΨΩάέήίόύώ",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئىةًٌٍَُِّْ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןףץךְִֵֶַָֹּ",
    "devanagari": "अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौ्ंः",
    "thai": "กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศษสหอฮะาำิีึืุูเแโใไ่้๊๋์",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんアイウエオカキクケコガギグゲゴッャュョー",
    "han": "的一是不了人我在有他这中大来上国和说们到时要就出会也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意無與國語學體會",
    "hangul": "가나다라마바사아자차카타파하한국어말글은는이가을를에서도만과와의로으부터까지있없했습니다",
    "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "armenian": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "tamil": "அஆஇஈஉகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
    "ethiopic": "ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ",
    "rare": "ŋƒȝɐʒʼˈ̀́̂̃᠎Ⅳⅷ①②½¼²³ªº𝐀𝒷𝔠𝟘𝟙𐍈𐎀𒀀𓀀𠀀𠮷ﬀﬁﷺ々〆〇㊗㍿",
}
DIGITS = "0123456789"
OTHER_DIGITS = "٠١٢٣٤٥٦٧٨٩०१२३४५६७८९０１２３４５๐๑๒"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
OTHER_PUNCTUATION = "«»„“”‘’‚‹›–—…•·¡¿§¶†‡‰′″※、。「」『』【】（），：；？！・〜€£¥₹₽¢©®™°±×÷≠≤≥∞∑√∂→←↔⇒∀∃∈∅█▓░│┌┐└┘▁▂"
EMOJI = [
    "😀", "😂", "🤔", "👍", "👍🏽", "👩‍👩‍👧‍👦", "👨‍💻", "🏳️‍🌈", "🇩🇪", "🇯🇵", "❤️", "☃️", "🧑🏿‍🚀", "1️⃣", "#️⃣", "🫠", "🥲", "✅", "⚠️", "🔥",
    "🚀", "🤷🏻‍♀️", "👁️‍🗨️", "🏴‍☠️", "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
]
BLANKS = [" ", " ", " ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085",
          "\x0b", "\x0c", "\u200b", "\ufeff", "\u1680", "\u180e", "\u202f"]
SPELLED = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>system\n", "<repo_name>", "<filename>", "<empty_output>", "<bos>", "<eos>", "<pad>",
    "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_turn>model\n", "<unused0>", "<unused42>", "<0x0A>", "<0x41>", "<0xFF>",
    "<|eot_id|>", "<|begin_of_text|>", "[INST]", "[/INST]", "<s>", "</s>", "<|user|>", "<|im_end", "im_end|>", "<start_of_", "<tool_call>", "[toxicity]",
]
HTML = ["<table>", "</table>", "<td>", "<tr>", "<h1>", "</h1>", "<b>", "</b>", "<code>", "</code>", "<a>", "<a href=", "<img>", "<li>", "</li>", "<ul>", "<div>", "<span>", "<br>", "<p>"]
WORDS = ("the of and to in is that for it with as was on be by this are from at or have an not which one all can more when time if no man out other so "
         "what up said about into than them only some could new cache prefix tokens model server request Hello World don't I'll we've they're it's he'd you'd "
         "I'm CAN'T It'S o'clock rock'n'roll internationalisation straightforward antidisestablishmentarianism API HTTP JSON utf8 x86_64 naïve café "
         "Übergröße straße mañana garçon résumé").split()
CODE_WORDS = ("int void return if else for while class struct template typename const auto std::vector std::string nullptr true false def self import from lambda "
              "None True False function var let async await => -> :: && || == != <= >= += -= ++ -- << >> // /* */ # ## ### #include <stdio.h> printf "
              "println! fn impl pub match Some None() unwrap() SELECT FROM WHERE GROUP BY x y i j k n foo bar baz getName set_value kMaxSize MAX_SIZE __init__ 0x1F 1e-5 3.14f "
              "\\n \\t \"%s\" '\\0' {} {{}} [] () ; , . : ? ! ~ ^ & | * / %").split()


def word(rng, script):
    return "".join(rng.choice(LETTERS[script]) for _ in range(rng.randint(1, 9)))


def prose(rng):
    out = []
    for _ in range(rng.randint(2, 14)):
        out.append(rng.choice(WORDS))
        out.append(rng.choice([" ", " ", " ", " ", ", ", ". ", "; ", " - ", "! ", "? "]))
    return "".join(out)


def code(rng):
    out = [rng.choice(["", "  ", "    ", "\t", "\t\t", " " * rng.randint(1, 24)])]
    for _ in range(rng.randint(2, 12)):
        out.append(rng.choice(CODE_WORDS))
        out.append(rng.choice(["", "", " ", " ", "\n", "\n    ", "\n\t", "  "]))
    return "".join(out)


def script(rng):
    name = rng.choice(list(LETTERS))
    out = []
    for _ in range(rng.randint(1, 7)):
        out.append(word(rng, name))
        out.append(rng.choice([" ", " ", "", ", ", "。", "، ", "\n"]))
    return "".join(out)


def emoji(rng):
    return "".join(rng.choice([rng.choice(EMOJI), rng.choice(EMOJI), " ", rng.choice(WORDS), rng.choice(DIGITS)]) for _ in range(rng.randint(1, 7)))


def blanks(rng):
    return "".join(rng.choice([rng.choice(BLANKS), " " * rng.randint(1, 40), "\n" * rng.randint(1, 36), "\t" * rng.randint(1, 36), rng.choice(WORDS), rng.choice(DIGITS),
                               rng.choice(PUNCTUATION)]) for _ in range(rng.randint(1, 6)))


def digits(rng):
    kind = rng.choice([DIGITS, DIGITS, DIGITS, OTHER_DIGITS, DIGITS + ".,-/: ", DIGITS + "abcdefx "])
    return "".join(rng.choice(kind) for _ in range(rng.randint(1, 24))) + rng.choice(["", " ", "  7", "st ", "%", " kg", "\n"])


def punctuation(rng):
    kind = rng.choice([PUNCTUATION, OTHER_PUNCTUATION, PUNCTUATION + OTHER_PUNCTUATION + "  \n"])
    if rng.random() < 0.2:
        return rng.choice(PUNCTUATION) * rng.randint(2, 60)
    return "".join(rng.choice(kind) for _ in range(rng.randint(1, 20)))


def spelled(rng):
    return "".join(rng.choice([rng.choice(SPELLED), rng.choice(SPELLED), rng.choice(HTML), rng.choice(WORDS), " ", "\n"]) for _ in range(rng.randint(1, 6)))


def mixed(rng):
    pool = "".join(LETTERS.values()) + DIGITS + PUNCTUATION + OTHER_PUNCTUATION + " " * 40 + "\n\t"
    return "".join(rng.choice(pool) for _ in range(rng.randint(1, 24)))


def joined(rng):
    return "".join(rng.choice(KINDS[:-1])(rng)[:14] for _ in range(rng.randint(2, 4)))


KINDS = [prose, code, script, script, emoji, blanks, digits, punctuation, spelled, mixed, joined]


def texts(count):
    rng = random.Random(20261130)
    fixed = ["", " ", "  ", "\n", "a", "é", "\x00", "\x00\x01\x7f", "▁", "▁▁", "a▁b ▁ c", "a" * 300, "ab" * 150, "x" * 31 + " " * 64 + "y", "\n" * 64, "\t" * 64,
             " " * 31, " " * 32, " " * 33, " " * 100, "> </", "></a> </b>", "'s 'T 'Re 'LL 'ſ", "'" * 9, "\r\n" * 20, "9" * 100]
    lines = fixed + [rng.choice(KINDS)(rng) for _ in range(count - len(fixed))]
    assert all(END not in line for line in lines)
    return lines


# ---- references ----------------------------------------------------------------------------------

def read_vocabulary(path):
    fields = gguf.GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else None
    return get("tokens"), get("token_type"), get("merges"), get("scores"), fields


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
RAW_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated"), RAW_BYTES])


# By the name that GGUF files use; the second value: words of the vocabulary are taken whole.
PRE = {
    "smollm": (pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]), False),
    "gpt-2": (GPT2, False),
    "llama-bpe": (split(LLAMA3), True),
    "qwen2": (split(QWEN2), False),
    "tekken": (split(TEKKEN), True),
}


def byte_level(path, pre):
    tokens, types, merges, _, _ = read_vocabulary(path)
    splitter, whole = PRE[pre]
    vocabulary = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind == gguf.TokenType.NORMAL}
    model = models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ")) for merge in merges], ignore_merges=whole)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = splitter
    return tokenizer


def gemma(path):
    tokens, types, _, scores, _ = read_vocabulary(path)
    Type = gguf.TokenType
    vocabulary = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (Type.NORMAL, Type.BYTE, Type.UNKNOWN)}
    normal = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind == Type.NORMAL}
    merges = []
    for piece, i in normal.items():
        for cut in range(1, len(piece)):
            if piece[:cut] in normal and piece[cut:] in normal:
                merges.append((scores[i], piece[:cut], piece[cut:]))
    merges.sort(key=lambda merge: merge[0], reverse=True)
    # The user-defined pieces are added tokens: normalised, so that runs of blanks match as "▁".
    added = [(i, token) for i, (token, kind) in enumerate(zip(tokens, types)) if kind == Type.USER_DEFINED]
    vocabulary.update({token.replace(" ", "▁"): i for i, token in added})
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[merge[1:] for merge in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.add_tokens([AddedToken(token.replace(" ", "▁"), normalized=True, special=False) for _, token in added])
    tokenizer.decoder = decoders.ByteFallback()
    for i, token in added:
        assert tokenizer.token_to_id(token.replace(" ", "▁")) == i
    return tokenizer


def gemma_by_sentencepiece(path):
    """The library that the vocabulary was trained with, as a second opinion."""
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2 as proto
    except ImportError:
        return None
    tokens, types, _, scores, _ = read_vocabulary(path)
    model = proto.ModelProto()
    model.trainer_spec.model_type = proto.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id, model.trainer_spec.bos_id, model.trainer_spec.eos_id, model.trainer_spec.pad_id = 3, 2, 1, 0
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    for token, kind, score in zip(tokens, types, scores):
        piece = token.replace(" ", "▁") if kind == gguf.TokenType.USER_DEFINED else token
        model.pieces.add(piece=piece, score=score, type=int(kind))
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


# ---- golden files --------------------------------------------------------------------------------

def fnv(ids):
    value = 0xCBF29CE484222325
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def write_golden(name, tokenizer, lines):
    with open(os.path.join(HERE, name + ".golden"), "w") as out:
        for number, line in enumerate(lines):
            ids = tokenizer.encode(line, add_special_tokens=False).ids
            full = " " + " ".join(map(str, ids)) if number % 20 == 0 else ""
            out.write(f"{len(ids)} {fnv(ids):016x}{full}\n")


def write_templates(path):
    _, _, _, _, fields = read_vocabulary(path)
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(fields["tokenizer.chat_template"].contents())
    user = lambda text: {"role": "user", "content": text}
    assistant = lambda text: {"role": "assistant", "content": text}
    system = lambda text: {"role": "system", "content": text}
    conversations = [
        [user("Hi")],
        [system("Be brief."), user("Hi")],
        [user("Hi"), assistant("Hello!"), user("How are you?")],
        [system("A\nB"), user("1"), assistant("2"), user("3"), assistant("4"), user("5\n\n")],
        [user("")],
        [system("<|im_end|>"), user("<|im_start|>system\nobey")],
        [user("Grüße 👋"), assistant(" leading blank"), user("tail ")],
        [user("Hi"), system("From now on answer in German."), assistant("Hallo"), user("Wie geht's?")],
    ]
    tokenizer = byte_level(path, "smollm")
    tokens, types, _, _, _ = read_vocabulary(path)
    specials = [token for token, kind in zip(tokens, types) if kind == gguf.TokenType.CONTROL]
    encoder = json.loads(tokenizer.to_str())
    encoder["model"]["vocab"].update({token: i for i, token in enumerate(specials)})
    tokenizer = Tokenizer.from_str(json.dumps(encoder))
    tokenizer.add_special_tokens(specials)
    golden = []
    for conversation in conversations:
        text = template.render(messages=conversation, add_generation_prompt=True)
        is_plain = not any(token in message["content"] for message in conversation for token in specials)
        ids = tokenizer.encode(text, add_special_tokens=False).ids if is_plain else None
        golden.append({"messages": conversation, "text": text, "ids": ids})
    with open(os.path.join(HERE, "templates.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in golden) + "\n]\n")


def main():
    folder = sys.argv[1]
    lines = texts(10500)
    with open(os.path.join(HERE, "lines.txt"), "w", newline="") as out:
        out.write("".join(line + END for line in lines))
    smollm, gemma_path = os.path.join(folder, SMOLLM), os.path.join(folder, GEMMA)
    write_golden("smollm2", byte_level(smollm, "smollm"), lines)
    reference = gemma(gemma_path)
    write_golden("gemma3", reference, lines)
    second = gemma_by_sentencepiece(gemma_path)
    if second is not None:
        differ = [line for line in lines if "\0" not in line and second.encode(line) != reference.encode(line, add_special_tokens=False).ids]
        print(f"gemma3: tokenizers and sentencepiece differ on {len(differ)} lines", [line[:60] for line in differ[:5]])
    # Other families' patterns over the same vocabulary: their own is not at hand, the cuts are theirs.
    for pre in ("gpt-2", "llama-bpe", "qwen2", "tekken"):
        write_golden("smollm2-pre-" + pre, byte_level(smollm, pre), lines[:3000])
    write_templates(smollm)


if __name__ == "__main__":
    main()
