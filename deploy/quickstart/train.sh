#!/bin/bash
# train.sh - a training job that does not say how many GPUs it wants: topt does, when it is
# submitted with sbatch's --topt-mode and --topt-model.
#SBATCH --job-name=train
#SBATCH --time=10

# The plan that the job was given is in $TOPT_PLAN; it knows how many ranks it is for.
exec srun --mpi=pmix topt run "$TOPT_PLAN" \
    --data "${DATA:-/usr/share/common-licenses}" --steps "${STEPS:-60}" \
    --report "report-$SLURM_JOB_ID.json"
