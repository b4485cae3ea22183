"""Fails if a function of FILE is longer than MOST lines: python3 lengths.py FILE MOST"""

import ast
import sys

path, most = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    tree = ast.parse(file.read())
found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
long = [node for node in found if node.end_lineno - node.lineno + 1 > most]
for node in long:
    length = node.end_lineno - node.lineno + 1
    print(f"{path}:{node.lineno}: {node.name} has {length} lines, at most {most} are allowed")
sys.exit(1 if long or not found else 0)
