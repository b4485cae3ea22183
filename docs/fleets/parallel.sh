#!/bin/sh
# Works on the open tasks of a fleet on other machines, with GNU parallel over ssh. `ssh HOST` must find crew, git with an
# identity and access to the remote, and the agent with its login, each without a question. In the repository:
#
#   crew fleet run tasks/ --land --on manual                    in a terminal: shows what it trusts, and asks
#   docs/fleets/parallel.sh 4/build1,4/build2 tasks/ --land     four jobs at once on each of two machines
#
# Start it again at any time: what ended is left alone, and so is a job that is still alive on its machine, for instance
# because only ssh was ended. The exit status is the number of jobs whose task was not completed.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 HOSTS FOLDER [OPTIONS]" >&2; exit 2; }
hosts=$1
shift
# The whole answer first: a pipe would run what is printed before a refusal.
jobs=$(crew fleet run "$@" --on manual)
# In single quotes is GNU parallel's own Perl.
# shellcheck disable=SC2016
printf '%s\n' "$jobs" | grep '^crew fleet job ' |
    parallel --sshlogin "$hosts" --line-buffer --tagstring '{=$_=(split)[4]=}'
