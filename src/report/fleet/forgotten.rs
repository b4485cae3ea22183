//! What stays of a fleet that was forgotten, with the commands that list and remove it.

use std::path::Path;

use super::shown;
use crate::engine::fleet::Remote;

/// What stays in a person's repository, if anything `stays_here`, and on the remote; of what there
/// is not, nothing is said.
pub fn page(
    fleet: &str,
    repository: Option<&Path>,
    stays_here: bool,
    remote: Option<&Remote>,
) -> String {
    let mut lines = vec![format!("fleet {fleet} is forgotten on this machine")];
    if let Some(repository) = repository.filter(|_| stays_here) {
        let place = shown(&repository.to_string_lossy());
        lines.extend([
            format!("its branches and working trees stay, with their work, in {place}:"),
            "  git worktree list; git worktree remove PATH removes one".to_owned(),
            format!("  git branch --list 'fleet/{fleet}/*'; git branch -D BRANCH removes one"),
        ]);
    }
    if let Some(remote) = remote {
        // The name means this remote in the person's repository alone.
        let name = shown(if repository.is_some() { &remote.name } else { &remote.url });
        lines.push(format!(
            "its leases and branches stay on {name}, and a new run continues from them, unless you remove them:"
        ));
        for refs in [remote.lease(fleet, "*"), format!("refs/heads/fleet/{fleet}/*")] {
            lines.push(format!(
                "  git ls-remote {name} '{refs}' | cut -f2 | xargs git push {name} --delete"
            ));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn what_stays_is_named_with_the_commands_that_remove_it() {
        let remote = |only_branches| Remote {
            name: "origin".to_owned(),
            url: "https://example.org/shop".to_owned(),
            only_branches,
        };
        let here = Some(Path::new("/home/me/shop"));
        assert_snapshot!(page("shop", here, true, Some(&remote(false))), @"
        fleet shop is forgotten on this machine
        its branches and working trees stay, with their work, in /home/me/shop:
          git worktree list; git worktree remove PATH removes one
          git branch --list 'fleet/shop/*'; git branch -D BRANCH removes one
        its leases and branches stay on origin, and a new run continues from them, unless you remove them:
          git ls-remote origin 'refs/crew/shop/*' | cut -f2 | xargs git push origin --delete
          git ls-remote origin 'refs/heads/fleet/shop/*' | cut -f2 | xargs git push origin --delete
        ");
        let branches = page("shop", None, false, Some(&remote(true)));
        assert!(branches.contains("'refs/heads/crew/shop/*'"), "{branches}");
        for here in [None, here] {
            let nothing = page("shop", here, false, None);
            assert_eq!(nothing, "fleet shop is forgotten on this machine");
        }
    }
}
