#!/bin/sh
# sockets.sh - ranks without MPI: start N processes that meet at a free port of this machine.
# usage: sockets.sh CUDA_AGREE RANKS ARGUMENTS...
program=$1 ranks=$2
shift 2
export TOPT_RANKS="$ranks"
# no two runs at once get the same one
port=$((20000 + $$ % 20000))
export TOPT_RENDEZVOUS="127.0.0.1:$port"
rank=1 others=
while [ $rank -lt "$ranks" ]; do
    TOPT_RANK=$rank "$program" "$@" >/dev/null 2>&1 &
    others="$others $!"
    rank=$((rank + 1))
done
TOPT_RANK=0 "$program" "$@"
status=$?
for pid in $others; do
    wait "$pid" || [ $status -ne 0 ] || status=$?
done
exit $status
