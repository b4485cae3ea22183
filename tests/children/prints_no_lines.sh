#!/bin/sh
# Prints a gigabyte without a line break, none of it UTF-8.
echo $$ >> "$CHILDREN"
head -c 1000000000 /dev/zero | tr '\0' '\377'
