#!/bin/sh
# Ignores TERM, and so do the processes it starts.
trap '' TERM
echo $$ >> "$CHILDREN"
echo "I stay"
sleep 50 &
echo $! >> "$CHILDREN"
wait
