#!/bin/sh
# Lets crew fix what the tests find: sh ci/fix.sh [OPTIONS OF crew run]
set -u
output=ci-output
mkdir -p "$output"

say() { tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"; }

if python3 -m unittest -q; then
    echo "The tests pass: there is nothing to do." | say
    exit 0
fi

# The settings of this repository, which you have reviewed: nobody can be asked here.
crew trust --yes || exit

# In US dollars. No option and no setting can raise this limit.
export CREW_MAX_COST=5
crew run "make the tests pass" --json "$@" >"$output/events.jsonl"
code=$?

case $code in
0) result="Fixed: apply fix.patch with git apply." ;;
10 | 11 | 12) result="Not fixed within its limits." ;;
13) result="Blocked: it needs you." ;;
14 | 130 | 143) result="Cancelled or interrupted." ;;
*) result="crew run failed with exit code $code." ;;
esac
if [ "$code" = 0 ]; then
    crew diff >"$output/fix.patch" || exit
fi
{
    echo "$result"
    python3 ci/finish.py "$output/events.jsonl"
} | say
exit "$code"
