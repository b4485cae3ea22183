#!/bin/sh
# Reads one byte of its standard input and closes it.
echo $$ >> "$CHILDREN"
first=$(head -c 1)
exec <&-
echo "enough: $first"
sleep 0.3
