//! The repositories by which a fleet reaches its remote: its own one on this machine, bare, below
//! `$CREW_HOME`, with the objects of a checkout; a clone where the fleet was not started; and the
//! remotes of a checkout, by their addresses. What talks to the remote starts in the bare one,
//! because the configuration of a checkout can be an agent's work. Only a person's start copies
//! settings into it.

use std::path::Path;
use std::time::Duration;

use super::push::{setting, ssh};
use super::steps::without_value;
use super::{Git, git, head};
use crate::engine::git::{GitBaseline, GitFault, GitSetting, GitStep, GitTrouble};
use crate::engine::text::words_of;
use crate::parse::git_push::is_disturbed;
use crate::world::clock::{self, RetryPolicy};
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
use crate::world::process::Stop;

/// How long they are brought again while another process of this machine is in the way, and the
/// time between two tries.
const DISTURBED: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// The file of the hub's copied settings.
const SETTINGS: &str = "settings";
/// Settings of a checkout's own configuration that a remote may need. A baseline has them all.
const NEEDED: &str = r"^(credential|http|url|ssh|protocol)\.|^core\.sshcommand$";

/// Makes the repository if it is not there. `checkout` lends its objects and, where a person starts
/// the fleet, the settings that its remote needs, if they are as the person has `agreed` to them:
/// an agent may work while that is asked.
pub fn make(hub: &Path, checkout: &Path, agreed: Option<&GitBaseline>) -> Result<(), GitFault> {
    if !disk::is_file(&hub.join("HEAD")) {
        let parent = hub.parent().unwrap_or(hub);
        disk::make_private_folder(parent).map_err(|error| refused(&error))?;
        let there = hub.display().to_string();
        let init = ["init", "--quiet", "--bare", &there];
        Git::climbing(parent).well(GitStep::Lease, &init)?;
        // A checkout asks for commits that no ref of the hub names.
        git(hub, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    }
    let lent = git(checkout, &["rev-parse", "--path-format=absolute", "--git-path", "objects"]);
    let lent = lent.ok_or_else(|| refused(&format!("{} is no repository", checkout.display())))?;
    disk::write(&hub.join("objects/info/alternates"), lent.as_bytes(), Durability::Process)
        .map_err(|error| refused(&error))?;
    if let Some(GitBaseline(agreed)) = agreed {
        let of_person = of_person(hub, checkout);
        let of_person = of_person.iter().filter_map(|setting| setting.split_once('\n'));
        let listed = git(checkout, &["config", "--local", "-z", "--get-regexp", NEEDED]);
        let settings = listed.unwrap_or_default();
        let settings = settings.split('\0').filter_map(|setting| setting.split_once('\n'));
        let settings = settings.filter(|(name, value)| {
            let (name, value) = ((*name).to_owned(), (*value).to_owned());
            agreed.contains(&without_value(GitSetting { name, value }))
        });
        let settings = of_person.chain(settings);
        let text: String = settings.map(|(name, value)| written(name, value)).collect();
        disk::write(&hub.join(SETTINGS), text.as_bytes(), Durability::Process)
            .map_err(|error| refused(&error))?;
        git(hub, &["config", "include.path", SETTINGS]);
    }
    Ok(())
}

/// What a person's own configuration says in the checkout and not in the hub, where the condition
/// of an include does not hold. They need no agreement, as little as what holds in both; but no
/// file of the checkout is a person's own.
fn of_person(hub: &Path, checkout: &Path) -> Vec<String> {
    let form = ["config", "--includes", "--show-scope", "--show-origin", "-z"];
    let listed = |folder: &Path| {
        let listed = git(folder, &[&form[..], &["--get-regexp", NEEDED]].concat());
        let listed = listed.unwrap_or_default();
        let parts: Vec<&str> = listed.split('\0').collect();
        let is_own = |part: &&[&str]| {
            let file = part[1].strip_prefix("file:").unwrap_or(part[1]);
            ["global", "system"].contains(&part[0])
                && disk::real_path(Path::new(file)).is_ok_and(|file| !file.starts_with(checkout))
        };
        let own = parts.chunks_exact(3).filter(is_own).map(|part| part[2].to_owned());
        own.collect::<Vec<String>>()
    };
    let known = listed(hub);
    let mut found = listed(checkout);
    found.retain(|setting| !known.contains(setting));
    found
}

/// Names the address of the remote in the hub, for programs that look for it there.
pub fn name_remote(hub: &Path, url: &str) -> Result<(), GitFault> {
    Git::here(hub).well(GitStep::Lease, &["config", "remote.origin.url", url]).map(drop)
}

/// A setting as a configuration file has it: its value may be a secret, so it is no word of a
/// command.
pub(super) fn written(name: &str, value: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    let (subsection, key) = match rest.rsplit_once('.') {
        Some((subsection, key)) => (format!(" \"{}\"", quoted(subsection)), key),
        None => (String::new(), rest),
    };
    format!("[{section}{subsection}]\n\t{key} = \"{}\"\n", quoted(value))
}

/// How crew fetches: no more than the objects and refs that are named.
pub(super) const FETCH: &str =
    "fetch --quiet --no-write-fetch-head --no-tags --no-recurse-submodules";

/// Brings a commit of the hub into a checkout, as the ref `name`. Nothing that the checkout's
/// configuration names is run.
pub fn give(hub: &Path, checkout: &Path, commit: &str, name: &str) -> Result<(), GitFault> {
    if super::commit(checkout, name).as_deref() == Some(commit) {
        return Ok(());
    }
    let (from, refspec) = (hub.display().to_string(), format!("+{commit}:{name}"));
    let arguments: Vec<&str> = words_of(FETCH).chain(["--", &*from, &*refspec]).collect();
    let variables = [("GIT_ALLOW_PROTOCOL", "file".to_owned())];
    let git = Git { variables: &variables, ..Git::lazily(checkout) };
    let fetched = clock::retry(
        RetryPolicy::every(PAUSE, DISTURBED),
        || false,
        || {
            let fetched = git.said(&arguments);
            let is_disturbed = !fetched.is_good() && is_disturbed(&fetched.text);
            if is_disturbed { Err(fetched) } else { Ok(fetched) }
        },
    );
    fetched.unwrap_or_else(|disturbed| disturbed).check(GitStep::Lease)
}

/// The longest that it may take.
const CLONE_WITHIN: Duration = Duration::from_secs(30 * 60);

/// Clones the remote into a folder that does not exist, or does nothing. `stop` ends git at once.
pub fn clone(url: &str, folder: &Path, stop: Stop<'_>) -> Result<(), GitFault> {
    if disk::exists(folder) {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(folder);
    let part = folder.with_extension("part");
    tree::remove(&part).map_err(|error| refused(&error))?;
    let there = part.display().to_string();
    let arguments = ["clone", "--quiet", "--no-checkout", "--", url, &there];
    let variables = ssh(parent);
    let (within, stop) = (Some(CLONE_WITHIN), Some(stop));
    let git = Git { variables: &variables, climbs: true, within, stop, ..Git::lazily(parent) };
    git.well(GitStep::Lease, &arguments)?;
    disk::rename(&part, folder).map_err(|error| refused(&error))
}

fn refused(why: &impl ToString) -> GitFault {
    GitFault::new(GitStep::Lease, GitTrouble::Other, why.to_string(), "try again")
}

/// The name and the address of the remote that a working tree pushes to: that of its branch, else
/// `origin`, else the only one. A path becomes absolute.
pub fn remote_of(top: &Path) -> Option<(String, String)> {
    let names = remote_names(top);
    let is_known = |name: &String| names.contains(name);
    let of_branch = head(top).0.and_then(|branch| setting(top, &format!("branch.{branch}.remote")));
    let of_branch = of_branch.filter(is_known);
    let origin = Some("origin".to_owned()).filter(is_known);
    let only = names.first().filter(|_| names.len() == 1).cloned();
    let name = of_branch.or(origin).or(only)?;
    let address = address(top, &name)?;
    Some((name, address))
}

/// The name of the remote that pushes to an address, which was called `before`.
pub fn remote_at(top: &Path, url: &str, before: &str) -> Option<String> {
    let mut names = remote_names(top);
    names.sort_by_key(|name| name != before);
    names.into_iter().find(|name| address(top, name).as_deref() == Some(url))
}

fn remote_names(top: &Path) -> Vec<String> {
    git(top, &["remote"]).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn address(top: &Path, name: &str) -> Option<String> {
    let url = Git::here(top).line(&["remote", "get-url", "--push", name])?;
    let path = disk::real_path(&top.join(&url));
    let is_path = !url.contains("://") && (!url.contains(':') || url.starts_with(['/', '.']));
    Some(path.ok().filter(|_| is_path).map_or(url, |path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::git::steps::trusted;

    #[test]
    fn every_setting_that_a_remote_needs_and_a_person_knows_reaches_the_hub_as_it_is_and_in_no_command()
     {
        let yard = tempfile::tempdir().unwrap();
        let (checkout, hub) = (yard.path().join("repo"), yard.path().join("hub.git"));
        let run = |folder: &Path, arguments: &[&str]| git(folder, arguments).unwrap();
        run(yard.path(), &["init", "--quiet", "repo"]);
        let header = "AUTHORIZATION: basic a\"b\\c;# d";
        for (name, value) in [
            ("http.https://example.org/.extraheader", header),
            ("http.https://example.org/.extraheader", "X: second"),
            ("credential.helper", "!f() { echo \"password=x\"; }; f"),
            ("core.sshcommand", "ssh -i 'a key'"),
            ("core.fsmonitor", "evil"),
        ] {
            run(&checkout, &["config", "--add", name, value]);
        }
        let agreed = trusted(&checkout);
        make(&hub, &checkout, agreed.as_ref()).unwrap();
        run(&checkout, &["config", "url./evil.insteadOf", "/hub"]);
        run(&checkout, &["config", "http.proxy", "evil"]);
        make(&hub, &checkout, agreed.as_ref()).unwrap();
        let all = |name: &str| run(&hub, &["config", "--includes", "--get-all", name]);
        assert_eq!(all("http.https://example.org/.extraheader"), format!("{header}\nX: second\n"));
        assert_eq!(all("credential.helper"), "!f() { echo \"password=x\"; }; f\n");
        assert_eq!(all("core.sshcommand"), "ssh -i 'a key'\n");
        for planted in ["core.fsmonitor", "url./evil.insteadof", "http.proxy"] {
            assert_eq!(git(&hub, &["config", "--local", "--includes", planted]), None, "{planted}");
        }
    }
}
