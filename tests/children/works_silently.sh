#!/bin/sh
# Opens a tool call, prints nothing for three seconds, and goes on.
echo $$ >> "$CHILDREN"
echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]}}'
sleep 3
echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"made"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"It is made."}'
