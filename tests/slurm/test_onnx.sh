#!/bin/bash
# test_onnx.sh - a job whose model is an ONNX file: planned by toptd itself, sized, and run.
. "$(dirname "$0")/planner.sh"

start_all
"$MAKE_ONNX" digits >digits.onnx || skip_all "this topt reads no ONNX"
printf '#!/bin/bash\nenv\n' >env.sh
topt="--topt-model=digits.onnx --topt-batch=8"
job=$(sbatch --parsable --topt-mode=mini-time --topt-gpus=2 $topt -o out env.sh 2>err)
is "$?" 0 "sbatch with an ONNX file: $(cat err)"
wait_job "$job"
is "$(field "$job" NumTasks)" 1 "the controller sees a task for the node"
like "$(cat out)" "TOPT_GPUS=2" "the job knows its GPUs"
plan=$(sed -n 's/^TOPT_PLAN=//p' out)
like "$(curl -s --unix-socket toptd.sock "http://localhost/v1/plans/$plan")" '"name":"digits"' "and its plan, which holds the model"
head -c 900 digits.onnx >cut.onnx
sbatch --topt-mode=mini-parallelism --topt-model=cut.onnx --topt-on-error=abort -o out env.sh >out2 2>err
is "$?" 1 "a file that is cut short is refused"
like "$(cat err)" "ONNX" "with the reason: $(cat err)"
finish
