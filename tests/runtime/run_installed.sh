#!/bin/sh
# run_installed.sh - a program that is built against what is installed, and trains.
# usage: run_installed.sh CMAKE BUILD_DIR CC MPIEXEC
cmake=$1 build=$2 cc=$3 mpiexec=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

"$cmake" --install "$build" --prefix "$dir/usr" --component libtopt-runtime-dev >out 2>err
check "the library is installed"
pc=$(find usr -name topt-runtime.pc)
PKG_CONFIG_PATH=$(dirname "$dir/$pc")
export PKG_CONFIG_PATH
lib=$dir/usr/$(cd usr && find . -name libtopt_runtime.so.0)
LD_LIBRARY_PATH=$(dirname "$lib")
export LD_LIBRARY_PATH
[ "$(ls usr/include)" = topt.h ] && [ -h "$lib" ] && ls usr/share/man/man3/topt_training_run.3 >out 2>err
check "one header, a name with a version, a page for each function"
nm -D --defined-only "$lib" | grep ' T ' | awk '{ print $3 }' >out && [ "$(grep -c '^topt_training_.*@@TOPT_0.1$' out)" = 31 ] &&
    ! grep -qv '^topt_training_' out
check "it shows the 31 functions of its version, and nothing else"
page=usr/share/man/man3/libtopt_runtime.3
sed '1,/^.SH DESCRIPTION/d' $page >described
sed -n '/^.SH SYNOPSIS/,/^.fi/p' $page >synopsis
(
    while read -r symbol; do
        function=${symbol%%@*}
        grep -q "$function(" synopsis && grep -q "$function" described && [ -e "usr/share/man/man3/$function.3" ] ||
            echo "$function"
    done <out
) >missing
[ -s out ] && [ ! -s missing ]
check "each has its line and its words in the page of section 3 $(cat missing)"
for example in train fashion keep own; do
    # shellcheck disable=SC2046
    "$cc" -Wall -Wextra -Werror -O1 usr/share/doc/topt/examples/$example.c $(pkg-config --cflags --libs topt-runtime) -lm \
        -o $example >out 2>err && [ "$(wc -l <usr/share/doc/topt/examples/$example.c)" -lt 100 ]
    check "$example.c is built by what pkg-config says, and has less than 100 lines"
done
cat >wrong.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <topt.h>
int main(int argc, char **argv)
{
    int wrong = atoi(argv[1]);
    struct topt_training *t = topt_training_open(&argc, &argv, "wrong", 8, 8);
    topt_training_variable(t, "table", 128, 16);
    topt_training_operator(t, "embedding", "tokens", "table", NULL);
    topt_training_operator(t, "linear", "logits", "tokens", wrong == 1 ? "{\"features\": 128" : "{\"features\": 128}");
    topt_training_loss(t, "cross_entropy", "logits");
    topt_training_optimizer(t, "adam", wrong == 2 ? -1 : 0.01);
    if (wrong == 3 && !topt_training_find_strategy(t, "lab-cpu", 0)) {
        FILE *f = fopen("adam.json", "w");
        fputs(topt_training_plan(t), f);
        fclose(f);
        topt_training_optimizer(t, "sgd", 0.1);
    }
    if (wrong == 4)
        topt_training_find_strategy(t, "lab-cpu", 0), topt_training_operator(t, "unary", "late", "logits", NULL);
    if (wrong == 5)
        topt_training_optimizer(t, "sgd", 0.1), topt_training_load_strategy(t, "adam.json");
    if (wrong == 6)
        topt_training_find_strategy(t, "lab-cpu", 100);
    puts(topt_training_error(t));
    topt_training_close(t);
    return 0;
}
END
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror wrong.c $(pkg-config --cflags --libs topt-runtime) -o wrong >out 2>err
check "a program that does it wrong is built"
told() { # told NUMBER PATTERN: what the library says of it
    ./wrong "$1" >out 2>err && grep -q "$2" out
    check "... and is told: $(cat out)"
}
told 1 "^what describes 'logits' is not valid JSON"
told 2 '^a learning rate of -1; give more than 0'
told 3 "^'sgd' must come before the strategy"
told 4 "^'late' must come before the strategy"
told 5 "^'adam.json' is a plan for adam, not for sgd"
told 6 "on 1 device: nothing fits in 100 B"
yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
./train text >one 2>err && grep -q '^loss [0-9.]* to [0-9.]*$' one
check "... trains alone: $(cat one)"
"$mpiexec" -n 4 ./train text >out 2>err && cmp -s one out
check "... and on four ranks, with the same losses"
./train nothing >out 2>err || [ "$(wc -l <err)" = 1 ] && grep -q "^train: .*nothing" err
check "a text that is not there is one line"
./keep kept >one 2>err && sed -n 2p one | sed 's/^trained: //' >trained && sed -n 3p one | sed 's/^loaded: //' >loaded && cmp -s trained loaded &&
    [ "$(wc -l <one)" = 4 ] && grep -q '^trained: .*1.00 of the labels met, 32 of 32 points' one
check "keep.c keeps what it trained, and goes on from it in the same process"
rm -r kept
"$mpiexec" -n 4 ./keep kept >out 2>err && cmp -s one out
check "... on four ranks the same"
rm -r kept
if command -v valgrind >/dev/null; then
    valgrind -q --error-exitcode=9 --leak-check=full ./keep kept >out 2>err && cmp -s one out
    check "... and valgrind finds nothing"
fi
# built NAME: an example under the address sanitizer
built() {
    # shellcheck disable=SC2046
    "$cc" -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all "usr/share/doc/topt/examples/$1.c" \
        $(pkg-config --cflags --libs topt-runtime) -lm -o "$1-asan" >out 2>err
}
rm -rf kept
built keep && ASAN_OPTIONS=detect_leaks=0 ./keep-asan kept >out 2>err && cmp -s one out
check "... under the address sanitizer"
./own rings >one 2>err && [ "$(wc -l <one)" = 2 ] && tail -1 one | grep -q ' 1.00 of the labels met'
check "own.c trains with an operator of its own, and goes on from its checkpoint: $(tail -1 one)"
rm -r rings
"$mpiexec" -n 4 ./own rings >out 2>err && cmp -s one out
check "... on four ranks the same"
rm -r rings
built own && ASAN_OPTIONS=detect_leaks=0 ./own-asan rings >out 2>err && cmp -s one out
check "... under the address sanitizer"
rm -r rings
if command -v valgrind >/dev/null; then
    valgrind -q --error-exitcode=9 --leak-check=full ./own rings >out 2>err && cmp -s one out
    check "... and valgrind finds nothing"
fi
if command -v valgrind >/dev/null; then
    # the program starts anew for BLAS, which valgrind would not follow: under it, it does not
    echo '{"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": 256}' >tiny.json
    "$build/bin/topt" plan tiny.json --framework topt --hw lab-cpu --batch 2 --gpus 1 -o tiny-plan >out 2>err &&
        valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$build/libexec/topt/topt-runtime" run tiny-plan \
            --data synthetic --steps 2 >out 2>err && grep -q 'ERROR SUMMARY: 0 errors' err
    check "the program itself under valgrind"
fi
cat >ours.c <<'END'
#include <mpi.h>
#include <topt.h>
int main(int argc, char **argv)
{
    int n = 0;
    MPI_Init(&argc, &argv);
    topt_training_close(topt_training_open(&argc, &argv, "ours", 8, 1));
    return MPI_Comm_size(MPI_COMM_WORLD, &n) || n != 2 || MPI_Finalize();
}
END
# shellcheck disable=SC2046
if command -v mpicc >/dev/null; then
    OMPI_CC=$cc mpicc ours.c $(pkg-config --cflags --libs topt-runtime) -o ours >out 2>err && "$mpiexec" -n 2 ./ours >out 2>err
    check "MPI that the program started is left to it"
fi
# images of a class are bright in its row: the files have the form of Fashion-MNIST's
data=/usr/share/datasets/fashion-mnist
if [ ! -d $data ]; then
    data=images
    mkdir images
    python3 - <<'END'
N = 512
with open("images/train-images-idx3-ubyte", "wb") as out:
    out.write(bytes([0, 0, 8, 3, 0, 0, N >> 8, 0, 0, 0, 0, 28, 0, 0, 0, 28]))
    for i in range(N):
        out.write(bytes((200 if y // 2 == i % 10 else 20) + (i * 7 + x * 3 + y * 5) % 40 for y in range(28) for x in range(28)))
with open("images/train-labels-idx1-ubyte", "wb") as out:
    out.write(bytes([0, 0, 8, 1, 0, 0, N >> 8, 0]) + bytes(i % 10 for i in range(N)))
END
fi
./fashion $data 12 >one 2>err && awk '{ exit !($4 + 0 > $6 + 0) }' one
check "fashion.c learns from $data: $(cat one)"
"$mpiexec" -n 2 ./fashion $data 12 >two 2>err && [ "$(cut -d: -f2 one)" = "$(cut -d: -f2 two)" ]
check "... on two ranks the same"
if [ -x "$build/bin/toptd" ]; then
    url=unix:$dir/toptd.sock
    "$build/bin/toptd" --socket "$dir/toptd.sock" --state "$dir/state" >log 2>&1 &
    job=$!
    for _ in $(seq 100); do
        [ -S toptd.sock ] && break
        sleep 0.1
    done
    PATH=$build/bin:$PATH "$mpiexec" -n 2 ./fashion $data 12 "$url" >out 2>err && cmp -s two out
    check "... by the strategy that a toptd gives: the same"
    kill $job
    wait $job
    PATH=$build/bin:$PATH "$mpiexec" -n 2 ./fashion $data 12 "$url" >out 2>err
    [ $? -ne 0 ] && [ "$(grep -c '^fashion: ' err)" = 1 ] && grep -q 'a strategy from toptd' err
    check "... and without it, one line says so: $(grep '^fashion: ' err)"
fi
finish
