//! `crew diff` on a terminal: with colours, and by the pager of the user's own git.

use crate::run::World;
use crate::sandbox::{DEADLINE, Sandbox, crew};
use crate::spawned::Running;

/// The output of `crew diff` on the terminal of a user with these git settings.
fn diff(settings: &str, variables: &[(&str, &str)], words: &str) -> String {
    let settings_file = Sandbox::new();
    let file = settings_file.write("gitconfig", settings).display().to_string();
    let sandbox = Sandbox::new().env("GIT_CONFIG_GLOBAL", &file);
    let write = r"printf '\033]52;c;cHduZWQ=\007\033[8mclip\n' > clip; seq 1 5000 > many; echo All is done.";
    let world = World::of(sandbox, &[write]);
    let ran = world.crew(&["run", "Write files", "-n", "1", "-q"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let planted = world.sandbox.root().join("planted");
    world.sandbox.git(&["config", "core.pager", &format!("touch '{}'", planted.display())]);
    let run = format!("'{}' diff {words}", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", "xterm");
    terminal.envs(variables.iter().copied());
    let reported = Running::start(terminal, None).wait(DEADLINE).success();
    assert!(!planted.exists(), "the pager that the repository names was started");
    assert!(!reported.contains("\u{1b}]52") && !reported.contains("\u{1b}[8m"), "{reported:?}");
    reported
}

#[test]
fn a_difference_is_coloured_and_paged_as_the_users_git_would_do_it() {
    let green = "\u{1b}[32m+clip\u{1b}[0m";
    let paged = diff("[core]\npager = sed 's/^/paged /'\n", &[], "");
    assert!(paged.contains("paged \u{1b}[1mdiff --git") && paged.contains(green), "{paged}");
    let first = diff("[core]\npager = false\n", &[("GIT_PAGER", "head -n 1")], "");
    assert_eq!(first.lines().count(), 1, "{first}");
    let third = diff("", &[("PAGER", "sed 's/^/third /'")], "--stat");
    assert!(third.contains("third  many | 5000 \u{1b}[32m+++"), "{third}");

    for pager in ["", "cat", "no-such-pager"] {
        let shown = diff("[core]\npager = false\n", &[("GIT_PAGER", pager)], "");
        assert!(shown.contains(green), "{pager}: {shown}");
    }
    let cat = [("GIT_PAGER", "cat")];
    let plain = diff("[color]\nui = false\n", &cat, "");
    assert!(plain.contains("+clip") && !plain.contains('\u{1b}'), "{plain}");
    let plain = diff("", &[("GIT_PAGER", "cat"), ("NO_COLOR", "1")], "");
    assert!(plain.contains("+clip") && !plain.contains('\u{1b}'), "{plain}");
}
