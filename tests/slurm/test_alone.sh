#!/bin/bash
# test_alone.sh - COUNT jobs that were submitted while toptd was there start under their plan when it is gone, each step in a
# network and a mount namespace of its own, where nobody could be reached.
. "$(dirname "$0")/planner.sh"
unshare -nm true 2>/dev/null || skip_all "no namespaces here"
count=${1:-100}

start_all
cp "$source_dir/deploy/quickstart/gpt-small.json" model.json
cat >step.sh <<STEP
#!/bin/bash
"$TOPT" run "\$TOPT_PLAN" --data synthetic --steps 1 >/dev/null && echo "ran \$TOPT_PLAN"
STEP
printf '#!/bin/bash\nsrun /bin/bash -c "exec unshare -nm ./step.sh"\n' >job.sh
chmod 755 step.sh
chmod 755 job.sh
mkdir outs
jobs=()
for ((i = 0; i < count; i++)); do
    # Two plans in turn.
    jobs+=("$(sbatch --parsable --hold --topt-mode=mini-time --topt-gpus=1 --topt-model=model.json --topt-batch=$((4 + i % 2 * 4)) \
        --topt-seq=64 --topt-framework=topt --export=$([ $((i % 3)) = 0 ] && echo NONE || echo ALL) -o "outs/$i" job.sh 2>"outs/$i.err")")
done
kill -KILL "$planner"
wait "$planner" 2>/dev/null
planner=
rm -f toptd.sock
scontrol release "$(IFS=,; echo "${jobs[*]}")"
for job in "${jobs[@]}"; do
    wait_job "$job" || break
done
ran=0
for ((i = 0; i < count; i++)); do
    id=$(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' "outs/$i.err")
    grep -q "^ran ${id:-none}$" "outs/$i" 2>/dev/null && ran=$((ran + 1)) || tail -qn 2 "outs/$i" "outs/$i.err" | sed 's/^/# /'
done
is "$ran" "$count" "$ran of $count steps start under their plan"
finish
