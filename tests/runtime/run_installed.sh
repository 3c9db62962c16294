#!/bin/sh
# run_installed.sh - a program that is built against what is installed, and trains.
# usage: run_installed.sh CMAKE BUILD_DIR CC MPIEXEC
cmake=$1 build=$2 cc=$3 mpiexec=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

"$cmake" --install "$build" --prefix "$dir/usr" --component development >out 2>err
check "the library is installed"
pc=$(find usr -name topt-runtime.pc)
sed -i "s,^prefix=.*,prefix=$dir/usr," "$pc"
PKG_CONFIG_PATH=$(dirname "$dir/$pc")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror -O1 usr/share/doc/topt/examples/train.c $(pkg-config --cflags --libs topt-runtime) -o train >out 2>err
check "its example is built by what pkg-config says"
yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
./train text >one 2>err && grep -q '^loss [0-9.]* to [0-9.]*$' one
check "... trains alone: $(cat one)"
"$mpiexec" -n 4 ./train text >out 2>err && cmp -s one out
check "... and on four ranks, with the same losses"
finish
