#!/bin/sh
# Never reads its standard input, however much there is.
echo $$ >> "$CHILDREN"
sleep 0.3
echo "what prompt?"
