#!/bin/bash
# test_other.sh - a plugin that was built for another Slurm, as after an update of Slurm alone: a word of
# Slurm's own, and no job is lost.
# It is that of $TOPT_OTHER_PLUGIN, or this Slurm's own with the version in it altered.
. "$(dirname "$0")/lib.sh"
need_slurm
start_all
PATH=$PATH:/usr/sbin
other=$work/other.so
if [ -n "${TOPT_OTHER_PLUGIN:-}" ]; then
    cp "$TOPT_OTHER_PLUGIN" "$other"
else
    # SPANK compares major and minor numbers, each a byte of plugin_version.
    python3 - "$TOPT_PLUGIN" "$other" "$(slurmctld -V)" <<'PY' || skip_all "the version isn't found in the plugin"
import re, struct, sys
major, minor, micro = (int(n) for n in re.search(r"(\d+)\.(\d+)\.(\d+)", sys.argv[3]).groups())
data, is_, was = open(sys.argv[1], "rb").read(), struct.pack("<I", major << 16 | minor << 8 | micro), struct.pack("<I", 20 << 16)
if data.count(is_) != 1:
    sys.exit(1)
open(sys.argv[2], "wb").write(data.replace(is_, was))
PY
fi
plan 2 4
printf '#!/bin/bash\nenv\nsrun -l /bin/echo step\n' >job.sh

sbatch --parsable -n2 -o own.out job.sh >job 2>err
is "$?/$(cat err)" "0/" "with this Slurm's own plugin a plain job is taken without a word"
wait_job "$(cat job)"
install -m 755 "$other" c/spank_topt.so
sbatch --parsable -n2 -o out job.sh >job 2>err
is "$?" 0 "with another Slurm's plugin a plain job is taken"
ok "with two lines at most: $(cat err)" [ "$(wc -l <err)" -le 2 ]
is "$(grep -vcE 'Incompatible (Slurm )?plugin' err)" 0 "which are Slurm's own"
wait_job "$(cat job)"
is "$(field "$(cat job)" JobState)/$(grep -c ': step$' out)" COMPLETED/2 "it runs, and its step"
is "$(field "$(cat job)" NumNodes)/$(field "$(cat job)" NumTasks)" 1/2 "as it was asked"
srun -n2 /bin/echo step >out 2>err
is "$?/$(sort out | uniq -c | tr -s ' ')" "0/ 2 step" "srun"
salloc -n2 srun /bin/echo step >out 2>err
is "$?/$(grep -c step out)" "0/2" "salloc"
sbatch --parsable --topt-mode=mini-parallelism --topt-model=config.json job.sh >job 2>err
ok "a job with topt's options is refused" [ $? != 0 ]
is "$(cat job)" "" "and not submitted"
like "$(cat err)" "unrecognized option '--topt-mode=mini-parallelism'" "which sbatch says"
is "$(settled_nodes)" idle "no node was drained"
finish
