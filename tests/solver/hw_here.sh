#!/bin/sh
# hw_here.sh ROOT TOPT - without --hw topt plan takes the profile of the GPUs that nvidia-smi or sinfo shows, and says so;
# of others it says which is near; where neither is, or neither answers, all is as if they were not asked.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
mkdir bin
for tool in sh cat sleep; do ln -s "$(command -v $tool)" bin/$tool; done # no others: this machine may have GPUs or Slurm
alone=$dir/bin
echo '{"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 1, "n_positions": 32, "vocab_size": 96}' >gpt.json

tools() # SMI SINFO: what they print; - for none
{
    rm -f bin/nvidia-smi bin/sinfo
    [ "$1" = - ] || printf '#!/bin/sh\necho "nvidia-smi $*" >>%s/asked\ncat <<END\n%s\nEND\n' "$dir" "$1" >bin/nvidia-smi
    [ "$2" = - ] || printf '#!/bin/sh\necho "sinfo $*" >>%s/asked\ncat <<END\n%s\nEND\n' "$dir" "$2" >bin/sinfo
    chmod +x bin/*
}
ask() # OPTIONS...
{
    PATH=$alone "$topt" plan gpt.json --batch 8 --seq 32 "$@" >out 2>err
}
takes() # PROFILE WORDS: the note, and the answer's first line
{
    ask && [ "$(cat err)" = "note: --hw $1, as $2" ] && grep -q " on $1\$" out
}
needs() # PATTERN: refused so
{
    ! ask && [ "$(wc -l <err)" = 1 ] && grep -q -e "^topt plan: --hw is needed$1" err
}

tools - -
needs '; `topt hw list` shows profiles$'
check "without either --hw is needed"
tools 'NVIDIA A100-SXM4-80GB, 81920
NVIDIA A100-SXM4-80GB, 81920' 'gpu:h100:8'
takes a100-80-dgx 'nvidia-smi shows 2 NVIDIA A100-SXM4-80GB (81920 MiB) here'
check "the GPUs of this machine come first: $(cat err)"
: >asked
ask --hw lab-cpu && [ ! -s asked ] && [ ! -s err ]
check "with --hw neither is run"
ask --quiet && [ ! -s err ]
check "--quiet says nothing of it"
ask --json && grep -q '"a100-80-dgx"' out && [ "$(wc -l <err)" = 1 ]
check "an answer as JSON stays one"
while IFS=';' read -r line profile; do
    tools "$line" -
    takes "$profile" "nvidia-smi shows 1 ${line%,*} (${line##*, } MiB) here"
    check "$line is $profile"
done <<'END'
NVIDIA A100-SXM4-40GB, 40960;a100-40-dgx
NVIDIA H100 80GB HBM3, 81559;h100-80-dgx
NVIDIA H200, 143771;h200-dgx
NVIDIA A100 80GB PCIe, 81920;a100-80-pcie
NVIDIA A100-PCIE-40GB, 40960;a100-40-pcie
Tesla V100-PCIE-32GB, 32510;v100-32-pcie
NVIDIA H100 PCIe, 81559;h100-80-pcie
NVIDIA H100 NVL, 95830;h100-94-nvl
NVIDIA B200, 183359;b200-hgx
NVIDIA GB200, 189471;gb200-nvl72
NVIDIA L40S, 46068;l40s-1x8
NVIDIA L4, 23034;l4-1x8
NVIDIA A10G, 23028;a10g-g5
NVIDIA RTX A6000, 49140;a6000-1x8
Tesla T4, 15360;t4-g4dn
Tesla V100-SXM2-16GB, 16160;v100-dgx1-2x8
Tesla V100-SXM2-32GB, 32510;v100-32-dgx1
Tesla V100-SXM3-32GB, 32510;v100-32-dgx2
Tesla P100-SXM2-16GB, 16280;p100-4x4
NVIDIA GeForce RTX 4090, 24564;rtx4090-1x8
NVIDIA TITAN Xp, 12196;titanxp-8x6
END
while IFS=';' read -r line near; do
    tools "$line" -
    needs ": nvidia-smi shows 1 .* here; the nearest that is shipped is --hw $near\$"
    check "$line is near to $near, and not taken"
done <<'END'
NVIDIA A100-SXM-64GB, 65536;a100-80-dgx or a100-40-dgx or a100-80-pcie or a100-40-pcie
NVIDIA H200 NVL, 143771;h200-dgx
END
tools 'NVIDIA L40, 46068' -
needs ': nvidia-smi shows 1 NVIDIA L40 (46068 MiB) here, of which no profile is shipped'
check "one that no profile is like: $(cat err)"
tools 'NVIDIA A100-SXM4-80GB, 81920
NVIDIA L40, 46068' -
needs ': nvidia-smi shows 1 .* and GPUs of other kinds; give --hw a100-80-dgx'
check "GPUs of two kinds: $(cat err)"

tools - '(null)
gpu:h100:8(S:0-1),nvme:1
gpu:h100:8(S:0-1)'
takes h100-80-dgx 'sinfo shows nodes with 8 GPUs of type h100'
check "a type of Slurm"
tools 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.' 'gpu:a100_40gb:4'
takes a100-40-dgx 'sinfo shows nodes with 4 GPUs of type a100_40gb'
check "a type that says its memory, where nvidia-smi has no driver"
tools - 'gpu:a100:4'
needs ': sinfo shows nodes with 4 GPUs of type a100; give --hw a100-80-dgx or a100-40-dgx$'
check "a type that may be two"
tools - 'gpu:a100_pcie:4'
needs ': sinfo shows nodes with 4 GPUs of type a100_pcie; give --hw a100-80-pcie or a100-40-pcie$'
check "cards for a slot are their own profiles"
tools - 'gpu:h200_nvl:4'
needs '.*; the nearest that is shipped is --hw h200-dgx'
check "cards of which none is shipped are near"
tools - 'gpu:a100_80gb:4
gpu:h100:8'
needs '.* and GPUs of other kinds; give --hw a100-80-dgx'
check "a cluster of two kinds"
tools - 'gpu:8
(null)'
needs '; `topt hw list` shows profiles$'
check "GPUs without a type say nothing"

printf '#!/bin/sh\nexit 1\n' >bin/sinfo
needs '; `topt hw list` shows profiles$'
check "a tool that fails says nothing"
printf '#!/bin/sh\nexec sleep 60\n' >bin/sinfo
before=$(date +%s)
needs '; `topt hw list` shows profiles$' && [ $(($(date +%s) - before)) -lt 30 ]
check "a tool that hangs is not waited for"
finish
