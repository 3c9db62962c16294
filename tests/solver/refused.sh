#!/bin/sh
# refused.sh ROOT TOPT - what is asked wrongly: one line that names it, and exit status 2; what
# can't be read is 1.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/mlp.json

no() # no WORDS ARGUMENTS...: refused as wrong usage
{
    words=$1
    shift
    refused 2 "$words" "$topt" "$@"
    check "topt $*: $(cat err)"
}

plan() # plan WORDS OPTIONS...: a whole question with what is wrong in it
{
    words=$1
    shift
    no "$words" plan "$model" --hw lab-cpu --mode mini-parallelism "$@"
}

# Zeros, negative numbers, sizes.
for option in batch seq threads max-gpus micro-batches max-work max-entries; do
    plan "--$option: 0 is too small; give at least 1" --$option 0
done
plan "--batch: -8 is too small" --batch -8
plan "--seconds: 0 is too small; give more than 0" --seconds 0
plan "--seconds: -1 is too small" --seconds=-1
plan "--memory: 80 is 80 bytes; did you mean 80GiB?" --memory 80
plan "--memory: '80GX' has an unknown unit" --memory 80GX
plan "--memory: '0' is no positive size" --memory 0
"$topt" plan "$model" --hw lab-cpu --mode mini-time --gpus " 2 " --memory " 512MiB " >out 2>err
check "blanks around a value are passed over"
no "--batch: 0 is too small" inspect "$model" --batch 0
no "--seq: 0 is too small" import "$model" --seq 0
no "--count: 0 is too small" sample "$model" --hw lab-cpu --gpus 2 --count 0
no "--threads: 0 is too small" solve costs.json --threads 0
no "--threads: 0 is too small" explain plan.json --threads 0

# A whole training.
plan "--tokens: '5X' is not an amount" --tokens 5X
plan "--price gives the cost of a whole training; say how long it is, with --tokens 1T" --price 2
plan "give one of them" --tokens 1B --samples 1M
no "this model's samples are no sequences of tokens; give --samples" plan paper:vgg16 --hw a100-80-dgx --tokens 1B
no "--price lists 3 prices and --hw 2 profiles" plan "$model" --hw a100-80-dgx,h100-80-dgx --samples 1B --price 1,2,3
no "--hw takes one profile here; topt plan takes several" frontier "$model" --hw a100-80-dgx,h100-80-dgx --gpus 8
no "several --hw take one --batch" plan "$model" --hw a100-80-dgx,h100-80-dgx --batch 8,16

# Lists.
for list in "1,2,2" "1, ,2" "1,,2" "1," "0,1" "2x"; do
    no "--gpus: " plan "$model" --hw lab-cpu --mode profiling --gpus "$list"
done
grep -q "'2x' is not a whole number" err
check "which says what it is"
plan "factors: zero is given twice" --factors zero,micro,zero
plan "'zero,,micro' has an empty place" --factors zero,,micro
plan "eager: loss is given twice" --eager loss,loss
"$topt" plan "$model" --hw lab-cpu --mode mini-time --gpus 2 --factors "zero, micro" >out 2>err
check "blanks around an item are passed over"

# Names, and what may be meant.
"$topt" pln "$model" >out 2>err
[ $? -eq 2 ] && grep -q "unknown command 'pln'; did you mean plan?" err
check "topt pln: $(cat err)"
no "unknown option '--bacth'; did you mean --batch?" plan "$model" --bacth=8
no "unknown option '--zzz'; try --help" plan "$model" --zzz 8
no "unknown hardware 'a100-80-dxg'; did you mean a100-80-dgx? (\`topt hw list\` lists all)" \
    plan "$model" --hw a100-80-dxg --mode mini-parallelism
no "did you mean lab-cpu?" hw show lab-cpo
no "did you mean list?" hw lst
plan "unknown mode 'mini-tim'; did you mean mini-time?" --mode mini-tim
plan "unknown space 'unifrom'; did you mean uniform?" --space unifrom
plan "unknown choice of blocks 'alik'; did you mean alike?" --blocks alik
plan "unknown factor 'recompte'; did you mean recompute?" --factors zero,recompte
plan "unknown algorithm 'optcn'; did you mean optcnn?" --algorithm optcn
plan "unknown precision 'fp32'; did you mean f32?" --precision fp32
plan "unknown framework 'pytroch'; did you mean pytorch?" --framework pytroch
plan "unknown optimizer 'AdamW'; did you mean adamw?" --optimizer AdamW
plan "unknown overlap 'fsdp2'; did you mean fsdp?" --overlap fsdp2
plan "unknown accounting 'papr'; did you mean paper?" --accounting papr
plan "a node of 'lab-cpu' has 4 GPUs, more than --max-gpus 2" --counts nodes --max-gpus 2
plan "unknown choice of counts 'odd' (one of any, pow2, whole, nodes)" --counts odd
no "did you mean paper:vgg16?" inspect paper:vgg61
no "unknown loss 'mes'; did you mean mse?" inspect "$model" --loss mes
printf '{"model_type":"mistrall"}' >slip.json
no "did you mean mistral?" inspect slip.json

# What is missing.
no "which model?" plan
found=$PATH PATH=/nowhere # so that neither nvidia-smi nor sinfo is there (solver_hw_here)
refused_hw=0
"$topt" plan "$model" >"$dir/out" 2>"$dir/err" || refused_hw=$?
PATH=$found
[ $refused_hw = 2 ] && grep -q -- "--hw is needed" err
check "topt plan $model: $(cat err)"
no "--plan is needed" evaluate "$model" --hw lab-cpu
no "which plan?" explain
no "which model?" inspect
no "list, show or check is needed" hw
no "show needs the name" hw show
no "which cost file?" solve

# What is named rightly and can't be read.
for ask in "plan nosuch.json --hw lab-cpu --mode mini-parallelism" "inspect nosuch.json" \
    "explain nosuch.json" "solve nosuch.json" "hw show ./nosuch.json"; do
    # shellcheck disable=SC2086 # words on purpose
    refused 1 "nosuch.json" "$topt" $ask
    check "topt $ask: $(cat err)"
done
printf '{"model_type":"llama",' >cut.json
refused 1 "cut.json" "$topt" inspect cut.json
check "a file that is cut: $(cat err)"

# On every rank, where it was built.
if "$topt" run --help >out 2>err; then
    no "--steps: 0 is too small" run plan.json --steps 0
    no "--memory: 80 is 80 bytes" run plan.json --memory 80
    no "unknown dtype 'bf15'; did you mean bf16?" run plan.json --dtype bf15
    no "unknown optimizer 'adamm'; did you mean adam?" run plan.json --optimizer adamm
    no "which plan?" run
    no "--nodes: 0 is too small" profile -o hw.json --nodes 0
    no "-o is missing" profile
fi
finish
