#!/usr/bin/env bash
# A loop's Stop hook as shell scripts usually do it, for comparison only: the state in the front matter of a
# file, the agent's last words from the transcript.
set -euo pipefail
payload=$(cat)
state=.claude/loop.local.md
[[ -f $state ]] || exit 0
front=$(sed -n '/^---$/,/^---$/{ /^---$/d; p; }' "$state")
iteration=$(echo "$front" | grep '^iteration:' | sed 's/iteration: *//')
max=$(echo "$front" | grep '^max_iterations:' | sed 's/max_iterations: *//')
promise=$(echo "$front" | grep '^completion_promise:' | sed 's/completion_promise: *//')
if [[ $max -gt 0 && $iteration -ge $max ]]; then rm "$state"; exit 0; fi
transcript=$(echo "$payload" | jq -r '.transcript_path')
last=$(grep '"role":"assistant"' "$transcript" | tail -1)
words=$(echo "$last" | jq -r '.message.content | map(select(.type == "text")) | map(.text) | join("\n")')
said=$(echo "$words" | perl -0777 -pe 's/.*?<promise>(.*?)<\/promise>.*/$1/s' 2>/dev/null || echo "")
if [[ $said = "$promise" ]]; then rm "$state"; exit 0; fi
prompt=$(awk '/^---$/{i++; next} i>=2' "$state")
next=$((iteration + 1))
sed "s/^iteration: .*/iteration: $next/" "$state" > "$state.tmp.$$"
mv "$state.tmp.$$" "$state"
jq -n --arg prompt "$prompt" --arg line "iteration $next" \
  '{decision: "block", reason: $prompt, systemMessage: $line}'
