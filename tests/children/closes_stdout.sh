#!/bin/sh
# Closes its standard output, works on, and exits with 7.
echo $$ >> "$CHILDREN"
echo "last words"
exec >&-
sleep 1
exit 7
