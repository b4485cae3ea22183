#!/bin/sh
# Prints a gigabyte in lines of a thousand bytes, then its last words.
echo $$ >> "$CHILDREN"
line=$(head -c 999 /dev/zero | tr '\0' x)
yes "$line" | head -c 1000000000
echo "that was all"
