"""Prints how a loop ended: the last event of `crew run --json` says it."""

import json
import sys

with open(sys.argv[1]) as file:
    events = [json.loads(line) for line in file]
for event in events[-1:]:
    if event["event"] == "finish":
        print("- outcome:", event["outcome"])
        print("- proof:", event["proof"] or "none")
        print("- why:", event["why"])
        print("- iterations:", event["completed_iterations"])
        print("- cost:", event["page"]["cost"] or "unknown")
