#!/bin/sh
# Stops itself; woken by a TERM it ends in order.
trap 'echo "in order"; exit 0' TERM
echo $$ >> "$CHILDREN"
kill -STOP $$
sleep 50 & wait
