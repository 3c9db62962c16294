#!/usr/bin/env python3
"""Which of the model types of Hugging Face transformers topt takes, and whether it counts them right.

    python3 survey.py make FILE         where transformers are: writes each type's default config, and the number
                                        of parameters of the model that people train from it
    python3 survey.py check FILE TOPT   what TOPT says of each: taken, refused or wrong
    python3 survey.py table FILE TOPT   the same as docs/formats/model-types.md has it

The model is the one with a head for a language, or else for another task, or else the bare one.  It is made on the
meta device, without weights.  A type that transformers itself can't make of its defaults is told of and left out."""
import json
import os
import re
import subprocess
import sys
import tempfile

TASKS = ["SPEECH_SEQ_2_SEQ", "IMAGE_TEXT_TO_TEXT", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM", "CTC",
         "IMAGE_CLASSIFICATION", "AUDIO_CLASSIFICATION", "SEMANTIC_SEGMENTATION", "OBJECT_DETECTION",
         "DEPTH_ESTIMATION", "VIDEO_CLASSIFICATION", "TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM",
         "TIME_SERIES_PREDICTION", "FOR_PRETRAINING", ""]


def class_of(transformers, kind):
    auto = transformers.models.auto.modeling_auto
    for task in TASKS:
        names = {"": "MODEL_MAPPING_NAMES", "FOR_PRETRAINING": "MODEL_FOR_PRETRAINING_MAPPING_NAMES"}.get(
            task, f"MODEL_FOR_{task}_MAPPING_NAMES")
        name = getattr(auto, names, {}).get(kind)
        if name:
            return name[0] if isinstance(name, (tuple, list)) else name
    return None


def make(path):
    import torch
    import transformers
    from make_counts import parameters_of
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    rows = []
    for kind in sorted(CONFIG_MAPPING_NAMES):
        row = {"type": kind}
        rows.append(row)
        try:
            name = class_of(transformers, kind)
            if not name:
                row["left"] = "no model of its own"
                continue
            config = transformers.AutoConfig.for_model(kind)
            row["class"] = name
            row["config"] = json.loads(config.to_json_string(use_diff=False))
            row["config"]["architectures"] = [name]
            with torch.device("meta"):
                model = getattr(transformers, name)(config)
            row["parameters"] = parameters_of(model)
        except Exception as error:
            row["left"] = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
        print(kind, row.get("class"), row.get("parameters", row.get("left")), flush=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"from": f"transformers {transformers.__version__}", "rows": rows}, out)


def asked(topt, config):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        run = subprocess.run([topt, "inspect", file.name, "--json"], capture_output=True, text=True, check=False)
        why = run.stderr.strip().replace(file.name, "config.json")
    if run.returncode:
        return None, re.sub(r"^topt[^:]*: (config.json: )?", "", why)
    said = json.loads(run.stdout)
    return said["parameters"], said.get("note") or ""


# Types whose class in transformers has other parameters than the weights that are published.
PUBLISHED = {"longcat_flash": 560_664_980_480}  # no weights of the experts that give back what they read


def sorted_out(rows, topt):
    """Lists of (type, words) by what became of a type."""
    sums = {"taken": [], "text alone": [], "wrong": [], "refused": [], "not made": []}
    for row in rows:
        if "parameters" not in row:
            sums["not made"].append((row["type"], row["left"]))
            continue
        n, words = asked(topt, row["config"])
        if n is None:
            sums["refused"].append((row["type"], words))
        elif n == PUBLISHED.get(row["type"], row["parameters"]):
            sums["taken"].append((row["type"], ""))
        elif "the text model alone" in words or "the thinker alone" in words:
            sums["text alone"].append((row["type"], words))
        else:
            sums["wrong"].append((row["type"], f"{n:,}, not {row['parameters']:,}"))
    return sums


def table(source, sums):
    """The survey as a document."""
    why = {}
    for kind, words in sums["refused"]:
        words = re.sub(r"^'config.json': |(text_config: )?model_type \"[^\"]*\" is not read: ", "", words)
        why.setdefault(words, []).append(kind)
    made = sum(len(found) for name, found in sums.items() if name != "not made")
    names = lambda found: ", ".join(f"`{kind}`" for kind, _ in found)
    print(f"""# Model types of transformers

Written by `tests/model/oracle/survey.py`: the default config of each model type of {source}, the number of parameters of
the model that people train from it, and what `topt inspect` says. {made} types make a model of their defaults.

| | types |
|---|---:|
| taken, each with the exact number of parameters | {len(sums["taken"])} |
| taken with a wrong number | {len(sums["wrong"])} |
| the text model, or all but what speaks, alone, which the note says | {len(sums["text alone"])} |
| refused | {len(sums["refused"])} |
| no model by itself (a part of one), or none from the defaults | {len(sums["not made"])} |

Taken: {names(sums["taken"])}.

The text alone, whose towers are named and left out, or without what speaks: {names(sums["text alone"])}.

| refused because | types |
|---|---|""")
    for words, kinds in sorted(why.items(), key=lambda pair: -len(pair[1])):
        print(f"| {words} | {', '.join(f'`{kind}`' for kind in kinds)} |")


def check(path, topt, how):
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    sums = sorted_out(doc["rows"], topt)
    if how == "table":
        table(doc["from"], sums)
        return 0
    for name, found in sums.items():
        print(f"## {name}: {len(found)}")
        for kind, words in found:
            print(f"{kind}: {words}" if words else kind)
    return 1 if sums["wrong"] else 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(make(sys.argv[2]) if sys.argv[1] == "make" else check(sys.argv[2], sys.argv[3], sys.argv[1]))
