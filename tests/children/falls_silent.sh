#!/bin/sh
# Says something and then nothing more.
echo $$ >> "$CHILDREN"
echo "let me think"
sleep 50
