/* cmd_plan.h - subcommands about plans.  argv[0] is the subcommand; the exit status returns. */
#ifndef TOPT_CMD_PLAN_H
#define TOPT_CMD_PLAN_H

int topt_cmd_plan(int argc, char **argv);
int topt_cmd_frontier(int argc, char **argv);
int topt_cmd_compare(int argc, char **argv);
int topt_cmd_explain(int argc, char **argv);
int topt_cmd_launch(int argc, char **argv);
int topt_cmd_evaluate(int argc, char **argv);
int topt_cmd_simulate(int argc, char **argv);
int topt_cmd_sample(int argc, char **argv);
int topt_cmd_costgraph(int argc, char **argv);

#endif
