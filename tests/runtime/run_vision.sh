#!/bin/sh
# run_vision.sh - models that tell classes of pictures: folders of pictures, idx files and csv, ViT and ResNet, their weights, and
# running statistics.
# usage: run_vision.sh TOPT MPIEXEC PYTHON
topt=$1 mpiexec=$2 python=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

# Stripes down, across, both, and none, in noise: in sizes and formats of all kinds; the same in grey as idx and csv files.
"$python" - <<'END'
import os, random, struct, zlib
random.seed(5)
names = ["across", "down", "flat", "squares"]
def value(kind, i, j):
    on = {"across": i // 2 % 2, "down": j // 2 % 2, "flat": 1, "squares": (i // 2 + j // 2) % 2}[kind]
    return min(255, max(0, 60 + 120 * on + random.randrange(-40, 41)))
def picture(kind, n):
    return [[value(kind, i * 8 // n, j * 8 // n) for j in range(n)] for i in range(n)]
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(rows, colour):
    n, above, raw = len(rows), None, b""
    for r, row in enumerate(rows):
        line = bytes(b for v in row for b in ([v] if colour == 0 else [v, v, v, 9] if colour == 6 else [v // 16]))
        step = {0: 1, 6: 4, 3: 1}[colour]
        filter = r % 5 if above else r % 2
        left = lambda i: line[i - step] if i >= step else 0
        up = lambda i: above[i] if above else 0
        corner = lambda i: above[i - step] if above and i >= step else 0
        def paeth(i):
            a, b, c = left(i), up(i), corner(i)
            p = a + b - c
            return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        guess = [lambda i: 0, left, up, lambda i: (left(i) + up(i)) // 2, paeth][filter]
        raw += bytes([filter]) + bytes((v - guess(i)) % 256 for i, v in enumerate(line))
        above = line
    head = struct.pack(">IIBBBBB", n, n, 8, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(v for k in range(16) for v in (16 * k, 16 * k, 16 * k))) if colour == 3 else b""
    packed = zlib.compress(raw)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", packed[:7]) + chunk(b"IDAT", packed[7:]) + chunk(b"IEND", b""))
for folder, count in ("train", 24), ("test", 8):
    images, labels, lines = b"", b"", ""
    for c, kind in enumerate(names):
        os.makedirs(f"{folder}/{kind}", exist_ok=True)
        for k in range(count):
            n, form = (8, 16)[k % 2], k % 5
            rows = picture(kind, n)
            flat = bytes(v for row in rows for v in row)
            data = (b"P5\n# grey\n%d %d\n255\n" % (n, n) + flat if form == 0 else
                    b"P6 %d %d 255\n" % (n, n) + bytes(v for v in flat for _ in range(3)) if form == 1 else png(rows, (0, 6, 3)[form - 2]))
            with open(f"{folder}/{kind}/{k}.{'pgm' if form < 2 else 'png'}", "wb") as file:
                file.write(data)
            small = picture(kind, 8)
            images += bytes(v for row in small for v in row)
            labels += bytes([c])
            lines += ",".join(str(v) for row in small for v in row) + f",{c}\n"
    with open(f"{folder}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, 4 * count, 8, 8) + images)
    with open(f"{folder}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, 4 * count) + labels)
    with open(f"{folder}.csv", "w") as file:
        file.write(lines)
END
check "there are pictures"
labels='"id2label": {"0": "across", "1": "down", "2": "flat", "3": "squares"}'
echo "{\"architectures\": [\"ViTForImageClassification\"], \"model_type\": \"vit\", \"hidden_size\": 32, \"intermediate_size\": 64, \"image_size\": 8,
    \"patch_size\": 4, \"num_channels\": 1, \"num_attention_heads\": 4, \"num_hidden_layers\": 1, $labels}" >vit.json
echo "{\"architectures\": [\"ResNetForImageClassification\"], \"model_type\": \"resnet\", \"embedding_size\": 8, \"hidden_sizes\": [8, 16],
    \"depths\": [1, 1], \"layer_type\": \"basic\", \"num_channels\": 3, \"image_size\": 16, $labels}" >resnet.json

losses() { sed 's/.*"loss": \([^,]*\), "lr.*/\1/' "$1"; }
right() { sed -n 's/.*"eval_accuracy": \([^,}]*\).*/\1/p' "$1" | tail -1; }
# learns MODEL DATA TEST STEPS [OPTION...]: on 1, 2 and 4 ranks the same losses; nine of ten of the test are met
learns() {
    model=$1 data=$2 test=$3 steps=$4
    shift 4
    for gpus in 1 2 4; do
        "$topt" plan "$model.json" --framework topt --hw lab-cpu --batch 32 --gpus $gpus --optimizer adam -o $model$gpus.json >out 2>err &&
            "$mpiexec" -n $gpus "$topt" run $model$gpus.json --data "$data" --eval-data "$test" --eval-batches 1 --eval-every 1000 \
                --steps "$steps" --lr 0.01 --dtype f64 --metrics metrics$gpus "$@" >out 2>err || return 1
        losses metrics$gpus >losses$gpus
    done
    paste losses1 losses2 losses4 | awk '{ for (i = 2; i <= 3; i++) { d = $i / $1 - 1; if (d * d > 1e-12) bad = 1 } } END { exit bad || NR < 5 }' &&
        right metrics4 | awk '{ exit $1 < 0.9 }'
}
learns vit train test 60
check "ViT learns pictures of folders, on 1, 2 and 4 ranks alike: $(right metrics4) of new ones"
learns vit train-images-idx3-ubyte test-images-idx3-ubyte 60 --dropout 0.1 --attention-dropout 0.1
check "... of idx files, with dropout: $(right metrics4)"
"$topt" run vit1.json --data train.csv --eval-data test.csv --steps 3 --metrics csv >out 2>err && [ "$(right csv)" ]
check "... and reads csv"
learns resnet train test 40
check "ResNet, whose evaluation norms by running statistics: $(right metrics4)"

# an evaluation does not depend on what else is in the batch: as many right of one half as of it twice
"$mpiexec" -n 2 "$topt" run resnet2.json --data train --eval-data test --eval-batches 1 --steps 40 --lr 0.01 --dtype f64 --checkpoint saved --every 20 \
    --metrics whole --config resnet.json --save-weights weights >out 2>err && rm -r saved/*40 &&
    "$mpiexec" -n 4 "$topt" run resnet4.json --data train --eval-data test --eval-batches 1 --steps 40 --lr 0.01 --dtype f64 --checkpoint saved --resume \
        --metrics rest >out 2>err && tail -1 whole | sed 's/.*eval_loss/eval_loss/' >want && tail -1 rest | sed 's/.*eval_loss/eval_loss/' >got &&
    paste want got | tr -d '":,}' | awk '{ d = $2 - $6; e = $4 - $8; exit d * d > 1e-12 || e * e > 0 }'
check "... are in checkpoints, under another plan"
tensors() { tail -c +9 "$1" | head -c "$(od -An -tu8 -N8 "$1" | tr -d ' ')" | tr '{}' '\n\n' | grep -o '"[a-z][^"]*":' | tr -d '":' | grep '\.' | sort; }
tensors weights/model.safetensors >names && for name in classifier.1.bias classifier.1.weight \
    resnet.embedder.embedder.convolution.weight resnet.embedder.embedder.normalization.running_mean \
    resnet.encoder.stages.0.layers.0.layer.0.convolution.weight resnet.encoder.stages.0.layers.0.layer.1.normalization.bias \
    resnet.encoder.stages.1.layers.0.shortcut.convolution.weight resnet.encoder.stages.1.layers.0.shortcut.normalization.running_var; do
    grep -qx "$name" names || echo "$name"
done >missing && [ ! -s missing ] && [ "$(wc -l <names)" = 32 ]
check "weights have transformers' names $(cat missing)"
"$topt" run resnet1.json --data train --eval-data test --eval-batches 1 --eval-every 1 --steps 1 --lr 1e-12 --dtype f64 --weights weights \
    --metrics back >out 2>err && [ "$(right back)" = "$(right whole)" ]
check "... and come back, running statistics with them"

mkdir -p other/stripes && cp test/flat/0.pgm other/stripes
refused 1 "there is no class 'stripes'" "$topt" run vit1.json --data train --eval-data other
check "another class in the evaluation"
printf 'no picture at all' >other/stripes/0.pgm
refused 1 'is no PNG and no PNM file' "$topt" run vit1.json --data other
check "what is no picture"
head -c 60 train/across/2.png >other/stripes/0.pgm
refused 1 'damaged or cut short' "$topt" run vit1.json --data other
check "a picture that is cut short"
finish
