#!/bin/bash
# test_valgrind.sh - memcheck over the plugin in sbatch, salloc, srun and slurmstepd, on every path: planned, refused, dry runs,
# toptd away, hung, lying, slow or of another version, MUNGE down.
#
# Slurm's commands leave much unfreed and are not judged: a record counts where the plugin is in its stack.  What Slurm keeps of
# an option that the plugin registered or set is "possibly lost" in its own lists, and doesn't count; it must be seen, since that
# shows that records of the plugin are found at all.
. "$(dirname "$0")/lib.sh"
need_slurm
command -v valgrind >/dev/null || skip_all "valgrind is not installed"
real=$cluster
cluster=under_valgrind
memcheck="valgrind --quiet --leak-check=full --show-leak-kinds=definite,possible --keep-debuginfo=yes --xml=yes"
under_valgrind()
{
    [ "$1" = start ] || { "$real" "$@"; return; }
    local stepd=$work/stepd
    # Where Debian has it; the records of what it forks count, too.
    printf '#!/bin/sh\nexec %s --xml-file=%s/step.%%p.xml %s "$@"\n' "$memcheck" "$work" \
        "$(realpath "$(ls /usr/sbin/slurmstepd-wlm /usr/sbin/slurmstepd 2>/dev/null | head -1)")" >"$stepd"
    chmod 755 "$stepd"
    "$real" "$@" --stepd "$stepd"
}
start_all
chmod 777 "$work" # steps of any user write their records
topt="--topt-mode=mini-parallelism --topt-model=config.json --topt-framework=topt"
asked="-n2 --gpus-per-node=2"

# "records of the plugin's own, what Slurm keeps" in files of records, and the former on standard error
records() # FILE...
{
    python3 - "$@" <<'PY'
import re, sys
own = known = 0
for path in sys.argv[1:]:
    for record in re.findall(r"<error>.*?</error>", open(path, errors="replace").read(), re.S):
        if "spank_topt.so</obj>" not in record:
            continue
        kind = re.search(r"<kind>(\w+)", record).group(1)
        if kind == "Leak_PossiblyLost" and "<fn>slurm_xcalloc</fn>" in record:
            known += 1
            continue
        own += 1
        frames = re.findall(r"<fn>(\w+)</fn>", record)
        print(f"#   {kind}: {' < '.join(frames[:8])}", file=sys.stderr)
print(own, known)
PY
}

seen=0
clean() # TEXT STATUS COMMAND...: the command under memcheck
{
    local text=$1 status=$2 rc
    shift 2
    rm -f vg.*.xml
    $memcheck --xml-file="$work/vg.%p.xml" "$@" >out 2>err
    rc=$?
    ok "$text: $(tail -1 err)" [ "$rc" = "$status" ]
    # shellcheck disable=SC2046
    set -- $(records vg.*.xml)
    is "$1" 0 "$text: memcheck finds nothing"
    seen=$((seen + $2))
}

plugstack() # ARGS
{
    echo "optional $work/c/spank_topt.so $*" >"$work/c/plugstack.conf"
}

job() { sbatch --parsable "$@" --wrap 'srun true'; }
plan 2 2
clean "sbatch, planned" 0 sbatch --parsable $topt -o out.job --wrap 'srun -n4 /bin/true'
wait_job "$(cat out)"
clean "with the user's own options as bounds" 0 sbatch --parsable --hold $asked -N2 --gres=gpu:2,license:0 -c1 --mem=100 -t 10 $topt --wrap true
clean "refused by them" 1 sbatch -N1 $topt --wrap true
clean "a plan for a task a node" 0 sbatch --parsable --hold --topt-tasks=node --gpus=a100:4 $topt --topt-explain --wrap true
clean "a job that takes several numbers of GPUs" 0 sbatch --parsable --hold --topt-elastic=auto -t 60 --comment=mine $topt --wrap true
clean "a dry run" 0 sbatch --topt-dry-run $topt --wrap true
clean "srun" 0 srun $topt /bin/true
clean "salloc" 0 salloc $topt /bin/true
clean "without topt's options" 0 sbatch --parsable --hold -n1 --wrap true
clean "options that are wrong" 1 sbatch $topt --topt-batch=x --wrap true
clean "a model that isn't there" 1 sbatch --topt-mode=mini-time --topt-gpus=2 --topt-model=nowhere --wrap true
printf '200\nTOPT_SHOWN=  1  2\nTOPT_SHOWN=  2  4\n' >"$answer"
clean "a curve" 0 sbatch --topt-mode=profiling --topt-model=config.json --wrap true
error 422 infeasible "needs 40 GiB a GPU" "8 GPUs with 21 GiB"
clean "nothing fits" 1 sbatch $topt -n4 --wrap true
plan 1 4
sed -i '1s/.*/later 2/' "$answer"
clean "a slow toptd" 0 sbatch --parsable --hold $topt --wrap true
plan 2 2
printf 'TOPT_NEWS=of a later version\nTOPT_GPUS=4 and more\n' >>"$answer"
clean "a toptd of another version" 0 sbatch --parsable --hold $asked $topt --wrap true
echo hang >"$answer"
plugstack "url=$url timeout_ms=1500"
clean "a toptd that hangs" 0 sbatch --parsable --hold $asked $topt --wrap true
plugstack "url=$url $patience"
echo garbage >"$answer"
clean "a toptd that lies" 0 sbatch --parsable --hold $asked $topt --wrap true
printf '200\nTOPT_PLAN_ID=p-1\nTOPT_GPUS=8\nTOPT_NODES=3\nTOPT_GPUS_PER_NODE=3\n' >"$answer"
clean "a plan that doesn't add up" 0 sbatch --parsable --hold $asked $topt --wrap true
error 500 internal "the store is full"
clean "a toptd that fails" 0 sbatch --parsable --hold $asked $topt --wrap true
plugstack "url=unix:$work/nobody"
clean "a toptd that is away" 0 sbatch --parsable --hold $asked $topt --wrap true
clean "and no GPUs" 1 sbatch --parsable $topt --wrap true
plugstack "url=$url speed=9"
clean "a mistake in plugstack.conf" 0 sbatch --parsable --hold $asked $topt --wrap true
# Over TCP question and answer are signed.
plugstack "url=http://127.0.0.1:1 munge_socket=$work/nowhere"
clean "MUNGE down" 0 sbatch --parsable --hold $asked $topt --wrap true
plugstack "url=http://127.0.0.1:1 munge_socket=$work/c/munge/socket"
clean "MUNGE there, and nobody at the port" 0 sbatch --parsable --hold $asked $topt --wrap true
plugstack "url=$url $patience report=1"
plan 1 2
: >requests
resized=$(sbatch --parsable --hold $topt -o out.resized --wrap 'srun -n1 /bin/true' 2>err)
scontrol update "JobId=$resized" NumTasks=1 && scontrol release "$resized"
wait_job "$resized"
ok "slurmstepd was run under memcheck for $(ls step.*.xml | wc -l) processes" [ "$(ls step.*.xml | wc -l)" -ge 6 ]
# shellcheck disable=SC2046
set -- $(records step.*.xml)
is "$1" 0 "in slurmstepd memcheck finds nothing"
ok "records with the plugin in their stack are seen: $seen of what Slurm keeps" [ "$seen" -ge 10 ]
squeue -h -o %i | xargs -r scancel
finish
