#!/bin/sh
# Stops crew and itself for $SECONDS_STOPPED seconds, as a machine that sleeps does.
echo $$ >> "$CHILDREN"
(sleep "$SECONDS_STOPPED"; kill -CONT "$PPID" $$) &
kill -STOP "$PPID"
kill -STOP $$
echo "good morning"
