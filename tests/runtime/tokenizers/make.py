#!/usr/bin/env python3
"""make.py FOLDER [LICENSES] - small tokenizers, texts, and what tokenizers makes of these.

FOLDER/NAME.json are tokenizer.json files in the ways of well-known families, FOLDER/expected.json has
for each the tokens of every text and the text that they are turned back into.  LICENSES, a folder of texts:
FOLDER/licenses.json as well, a vocabulary of 512 for English licences.  Written by tokenizers 0.23.1 of Debian.
"""

import glob
import json
import os
import struct
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

TRAINING = [
    "The quick planner counts what a device holds, and says which of its plans fit; it doesn't guess.",
    "Parameters, gradients and states are split over ranks, then gathered again before they're used.",
    "In 1998 there were 12 nodes; by 2024 there were 4096, and we've measured all of them.",
    "for (int i = 0; i < n; i++) {\n    sum += x[i] * y[i];\n}\n",
    "Grüße aus Köln: naïve façade, ça va? – “quoted” … 東京 и Москва.",
] * 4

TEXTS = [
    "", " ", "a", "The planner counts.", "it doesn't, we've, they're, I'd, I'M, YOU'LL",
    "two  spaces   three    four", " leading and trailing  ", "tabs\tand\nlines\r\n\r\n  indented\n",
    "x1y22z333 4444 55555 1,234,567.89", "snake_case CamelCase kebab-case a.b.c", "!!! ??? ... ({[<>]})",
    "Grüße aus Köln, naïve façade", "東京 Москва Ελλάδα", "emoji 🙂🙃 and 👩‍💻", "a\u0000b\u0001c\u007f",
    "the end<|endoftext|>and a beginning", "<|endoftext|><|endoftext|>", "almost <|endof text|>",
    "nonbreaking\u00a0space and\u2003em space", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "▁under▁lined ▁ marks", "for (int k = 0; k < m; k++) {\n        total -= z[k];\n}\n\n\n", "ſ 'ſ ½ ² Ⅷ ٣",
    "some <mask> here", "some  <mask>  there",
    "Ünïcödé e\u0301te\u0301 o\u0302\u0323 \u1ed9 Å \u212b", "İstanbul ISPARTA ΣΊΣΥΦΟΣ straße ǅ", "ﬁne ﬂow ＡＢＣ １２３ ① ½ ㎏ …", "神は one日two 한국어 \u1112\u1161\u11ab",
    "a\u200bb\u200cc\u00add\ufeffe\u0085f\u2028g\u3000h\ufffdi", "क\u094dषि น\u0e49ำ \u0651\u0650", "e\u0301\u0301\u0301\u0301 👨‍👩‍👧 🇩🇪🇫🇷 ❤️",
    "Don't stop: we're here, aren't we? No!", "x" * 101 + " " + "planner" * 15, "\u2126 \u00c5\u0327\u0301 \ufb01nal",
]

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
END = "<|endoftext|>"


def bpe(pre, normalizer=None, size=420, alphabet=None, special=(END,), **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet))
    return t


def again(t, **model):
    """With other settings of the model than training takes."""
    doc = json.loads(t.to_str())
    doc["model"].update(model)
    return Tokenizer.from_str(json.dumps(doc))


def llama2():
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    t = bpe(pre_tokenizers.Split("▁", "merged_with_next"), normalizer, 256 + 140, [], special, unk_token="<unk>",
            fuse_unk=True, byte_fallback=True)
    t.pre_tokenizer = None  # the real one has none, and joins across blanks nowhere
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    doc = json.loads(t.to_str())
    doc["pre_tokenizer"] = None
    doc["added_tokens"] = doc["added_tokens"][:3]  # bytes are plain pieces
    doc["model"].update(byte_fallback=True, fuse_unk=True)
    return Tokenizer.from_str(json.dumps(doc))


def unigram(scheme, special):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.train_from_iterator(TRAINING, trainers.UnigramTrainer(
        vocab_size=220, unk_token="<unk>", special_tokens=["<unk>"] + special, show_progress=False))
    return t


def words():
    t = bpe(pre_tokenizers.Whitespace(), None, 200, [], [END, "<unk>"], unk_token="<unk>")
    t.decoder = decoders.Fuse()
    return again(t, unk_token="<unk>", fuse_unk=True)


def wordpiece(**options):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(**options)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(TRAINING, trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    return t


def charsmap(table):
    """A table as SentencePiece compiles it: a double array (Darts-clone), then the texts."""
    texts, at, root = b"", {}, {}
    for key, value in sorted(table.items()):
        at[value] = at.get(value, len(texts))
        if at[value] == len(texts):
            texts += value.encode() + b"\0"
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = at[value]
    units, bases = {0: 0}, set()

    def place(node, pos):
        base = next(b for b in range(1, 1 << 16) if b not in bases and all(b ^ c not in units for c in node))
        bases.add(base)
        units[pos] |= (pos ^ base) << 10 | (256 if 0 in node else 0)
        for byte, below in node.items():
            units[base ^ byte] = (1 << 31 | below) if byte == 0 else byte
        for byte, below in node.items():
            if byte:
                place(below, base ^ byte)

    place(root, 0)
    size = (max(units) | 255) + 1
    array = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return struct.pack("<I", len(array)) + array + texts


MAPPED = {"ﬁ": "fi", "ﬂ": "fl", "…": "...", "\u3000": " ", "\u200b": " ", "\u00ad": "", "①": "1", "½": "1⁄2", "e\u0301": "é", "\u0301": "",
          "Å": "Å", "\u212b": "Å", "\t": " ", "\n": " ", "神": "神", "👩": "woman", "क": "ka", "🇩": "D", "\ufeff": "", "㎏": "kg"}
MAPPED.update((chr(0xff21 + i), chr(65 + i)) for i in range(26))


def precompiled():
    t = unigram("always", ["</s>"])
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(MAPPED)), normalizers.Replace(Regex(" {2,}"), " ")])
    return t


def formed(*forms):
    """Unigram pieces for texts in these forms."""
    t = unigram("always", ["</s>"])
    t.normalizer = normalizers.Sequence(list(forms))
    return t


def tokenizers():
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation(),
                                      pre_tokenizers.ByteLevel(add_prefix_space=True)])
    gpt4 = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    masked = unigram("first", ["</s>"])
    masked.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    bert = unigram("always", ["</s>"])
    bert.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return {
        "gpt2": bpe(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "gpt4": again(bpe(gpt4), ignore_merges=True),
        "nfc": bpe(gpt4, normalizers.NFC(), 330),
        "digits": bpe(digits, None, 330),
        "words": words(),
        "llama2": llama2(),
        "unigram": unigram("always", ["</s>"]),
        "masked": masked,
        "split": bert,
        "wordpiece": wordpiece(),
        "cased": wordpiece(lowercase=False, clean_text=False, handle_chinese_chars=False, strip_accents=True),
        "precompiled": precompiled(),
        "albert": formed(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
        "nfkc": formed(normalizers.NFKC()),
        "nfd": formed(normalizers.NFD(), normalizers.Lowercase()),
    }


def licenses(folder, texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel()
    t.train(sorted(p for p in glob.glob(os.path.join(texts, "*")) if not os.path.islink(p)), trainers.BpeTrainer(
        vocab_size=512, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(os.path.join(folder, "licenses.json"), pretty=False)


def main():
    folder = sys.argv[1]
    expected = {"texts": TEXTS}
    for name, t in tokenizers().items():
        t.save(os.path.join(folder, name + ".json"), pretty=False)
        tokens = [t.encode(text, add_special_tokens=False).ids for text in TEXTS]
        expected[name] = {"ids": tokens, "texts": [t.decode(ids, skip_special_tokens=False) for ids in tokens]}
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as out:
        json.dump(expected, out, ensure_ascii=True)
        out.write("\n")
    if len(sys.argv) > 2:
        licenses(folder, sys.argv[2])


if __name__ == "__main__":
    main()
