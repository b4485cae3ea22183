#!/bin/sh
# Exits at once and leaves processes in sessions of their own that hold its pipes; one ignores TERM.
echo $$ >> "$CHILDREN"
setsid sh -c 'echo $$ >> "$CHILDREN"; sleep 50' &
setsid sh -c 'trap "" TERM; echo $$ >> "$CHILDREN"; setsid sleep 50 & echo $! >> "$CHILDREN"; wait' &
while [ "$(wc -l < "$CHILDREN")" -lt 4 ]; do sleep 0.01; done
echo "I go"
