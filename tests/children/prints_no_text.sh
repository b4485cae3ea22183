#!/bin/sh
# Prints bytes that are no UTF-8 among some that are, on both streams.
echo $$ >> "$CHILDREN"
printf 'caf\303\251 \377\376 caf\351\n'
printf '\200\n' >&2
printf 'no line break \303'
