//! Small replacements of programs that a test machine may lack, with the options and output of the
//! real ones.

use crate::sandbox::Sandbox;

/// Runs `test_*` of `tests/test_*.py` with the fixtures of `conftest.py`, and prints like `pytest
/// -v`.
const PYTEST: &str = r#"
import glob, importlib.util, inspect, os, sys
sys.path.insert(0, os.getcwd())
def load(path):
    spec = importlib.util.spec_from_file_location(path[:-3].replace("/", "."), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)
fixtures, tests = {}, []
for path in ["conftest.py", "tests/conftest.py"]:
    if os.path.exists(path):
        fixtures.update(load(path))
for path in sorted(glob.glob("tests/test_*.py")):
    found = load(path)
    tests += [(path + "::" + name, found[name]) for name in found if name.startswith("test_")]
counts = {"PASSED": 0, "FAILED": 0, "ERROR": 0}
print("collected %d items\n" % len(tests))
problems = []
for name, test in tests:
    wanted = list(inspect.signature(test).parameters)
    if not set(wanted) <= set(fixtures):
        result = "ERROR"
    else:
        try:
            test(*[fixtures[it]() for it in wanted])
            result = "PASSED"
        except Exception:
            result = "FAILED"
    counts[result] += 1
    problems += [result + " " + name] * (result != "PASSED")
    print("%s %s [100%%]" % (name, result))
print("\n".join([""] + problems))
words = [("FAILED", "failed"), ("PASSED", "passed"), ("ERROR", "error")]
said = ", ".join("%d %s" % (counts[key], word) for key, word in words if counts[key])
print("=== %s in 0.01s ===" % said)
sys.exit(1 if problems else 0)
"#;

/// Runs the commands of `Taskfile.yml`.
const TASK: &str = "set -e; sed -n 's/^ *- cmd: //p' Taskfile.yml > \"$TMPDIR/task.$$\"; sh -e \"$TMPDIR/task.$$\"";

pub(super) fn install(sandbox: &Sandbox) {
    let pytest = format!("exec python3 -B - \"$@\" <<'PYTHON'\n{PYTEST}\nPYTHON");
    sandbox.program("pytest", &pytest);
    sandbox.program("task", TASK);
}
