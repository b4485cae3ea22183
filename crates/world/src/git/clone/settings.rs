//! The settings that a clone takes over from a person's repository: who commits and signs, how
//! files are written, the settings of filters and of the remote. A setting that names a program is
//! taken only in the form the user agreed to, or from the user's own files: an agent may have
//! planted it.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ALL_HEADS, CloneSource, NO_PUSH};
use crate::files::disk;
use crate::git::Git;
use crate::git::command::format_setting;
use crate::git::remotes;
use crate::git::steps::without_value;
use engine::git::{GitBaseline, GitSetting};
use engine::text::words_of;

/// Settings of the repository that only change how commits and files look; a dot ends the name of a
/// section.
const PLAIN: &str = "\
    user. author. committer. commit.gpgsign tag.gpgsign i18n.commitencoding merge. diff. \
    core.attributesfile core.autocrlf core.bigfilethreshold core.eol core.excludesfile \
    core.filemode core.ignorecase core.longpaths core.precomposeunicode core.safecrlf \
    core.sparsecheckout core.sparsecheckoutcone core.symlinks index.sparse";
/// Settings of the repository that are taken over in the form the user agreed to.
const AGREED: &str =
    "core.sshcommand credential. filter. gpg. http. lfs. merge. protocol. ssh. url.";
/// Endings of settings that run a program no baseline knows, or that lead out of a clone.
const NEVER: &str = ".command .textconv .external .tool .storage .hookspath";
/// Endings of settings with many values, whose list an empty value resets.
const LISTS: &str = ".helper .extraheader";

/// One value of a setting, and where it was found.
struct Seen {
    is_persons: bool,
    is_local: bool,
    name: String,
    value: String,
}

/// The text for a new clone's configuration, including `origin`.
pub(super) fn taken_over(source: &CloneSource<'_>, clone: &Path) -> String {
    let seen = list_settings(source.checkout, source.checkout);
    let known = list_settings(clone, source.checkout);
    let (held, mut text) = (of_persons(&known), String::new());
    // Settings from the user's files that apply in the repository but not in the clone: the
    // condition of an include can name a folder.
    for (name, values) in of_persons(&seen) {
        if held.get(name) != Some(&values) {
            text += &in_place_of_all(name, &values);
        }
    }
    for setting in seen.iter().filter(|setting| setting.is_local) {
        if comes_along(setting, source.trusted) {
            text += &format_setting(&setting.name, &setting.value);
        }
    }
    text + &origin_settings(source, &seen)
}

/// The settings that a submodule's clone takes from the original's configuration, which no person
/// has agreed to.
pub(super) fn of_submodule(folder: &Path, config: &Path) -> String {
    let file = config.display().to_string();
    let listed = Git::climbing(folder).run(&["config", "--file", &file, "--list", "-z"]);
    let mut text = String::new();
    for record in listed.unwrap_or_default().split_terminator('\0') {
        let (name, value) = record.split_once('\n').unwrap_or((record, "true"));
        let (name, value) = (name.to_owned(), value.to_owned());
        let setting = Seen { is_persons: false, is_local: true, name, value };
        let is_origin = ["remote.origin.url", "remote.origin.fetch"].contains(&&*setting.name);
        if is_origin || comes_along(&setting, None) {
            text += &format_setting(&setting.name, &setting.value);
        }
    }
    text + &format_setting("remote.origin.pushurl", NO_PUSH)
}

/// Whether a clone inherits a setting, if the user has agreed to those in `agreed`.
fn comes_along(setting: &Seen, agreed: Option<&GitBaseline>) -> bool {
    if words_of(NEVER).any(|end| setting.name.ends_with(end)) {
        return false;
    }
    let named = GitSetting { name: setting.name.clone(), value: setting.value.clone() };
    if is_of(PLAIN, &setting.name) && !named.names_a_program() {
        return true;
    }
    let is_agreed = agreed.is_some_and(|agreed| agreed.0.contains(&without_value(named)));
    is_agreed && is_of(AGREED, &setting.name)
}

/// Whether a list contains a setting or its section.
fn is_of(list: &str, name: &str) -> bool {
    words_of(list)
        .any(|word| if word.ends_with('.') { name.starts_with(word) } else { name == word })
}

/// The settings of the remote, to which nothing is pushed. In a partial clone it also provides
/// missing objects.
fn origin_settings(source: &CloneSource<'_>, seen: &[Seen]) -> String {
    let is_partial = of_a_remote(seen, ".promisor").is_some();
    let url = match source.url {
        Some(url) => Some(url.to_owned()),
        None if is_partial => remotes::remote_of(source.checkout).map(|(_, url)| url),
        None => None,
    };
    let mut settings = vec![("gc.auto", "0".to_owned()), ("maintenance.auto", "false".to_owned())];
    if let Some(url) = url {
        settings.push(("remote.origin.url", url));
        settings.push(("remote.origin.fetch", ALL_HEADS.to_owned()));
        settings.push(("remote.origin.pushurl", NO_PUSH.to_owned()));
        if is_partial {
            settings.push(("core.repositoryformatversion", "1".to_owned()));
            settings.push(("extensions.partialclone", "origin".to_owned()));
            settings.push(("remote.origin.promisor", "true".to_owned()));
            if let Some(filter) = of_a_remote(seen, ".partialclonefilter") {
                settings.push(("remote.origin.partialclonefilter", filter));
            }
        }
    }
    settings.iter().map(|(name, value)| format_setting(name, value)).collect()
}

/// The value of any remote's setting with this ending.
fn of_a_remote(seen: &[Seen], end: &str) -> Option<String> {
    let found = seen
        .iter()
        .find(|setting| setting.name.starts_with("remote.") && setting.name.ends_with(end));
    found.map(|setting| setting.value.clone())
}

/// All settings in a folder. Files inside `checkout` do not count as the user's own.
fn list_settings(folder: &Path, checkout: &Path) -> Vec<Seen> {
    let form = ["config", "--list", "--includes", "--show-scope", "--show-origin", "-z"];
    let listed = Git::here(folder).run(&form).unwrap_or_default();
    let parts: Vec<&str> = listed.split('\0').collect();
    let mut found = Vec::new();
    for part in parts.chunks_exact(3) {
        let file = part[1].strip_prefix("file:").unwrap_or(part[1]);
        let is_outside =
            disk::real_path(Path::new(file)).is_ok_and(|file| !file.starts_with(checkout));
        let (name, value) = part[2].split_once('\n').unwrap_or((part[2], "true"));
        // Hooks and includes are not taken over as such.
        let is_left_out = ["include.", "includeif.", "hook.", "core.hookspath", "core.worktree"]
            .iter()
            .any(|start| name.starts_with(start));
        found.push(Seen {
            is_persons: ["global", "system"].contains(&part[0]) && is_outside && !is_left_out,
            is_local: ["local", "worktree"].contains(&part[0]),
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }
    found
}

/// The settings in a person's own files, each with its values.
fn of_persons(settings: &[Seen]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for setting in settings.iter().filter(|setting| setting.is_persons) {
        found.entry(&setting.name).or_default().push(&setting.value);
    }
    found
}

/// A setting with these values, which replace any earlier ones.
fn in_place_of_all(name: &str, values: &[&str]) -> String {
    let is_list = words_of(LISTS).any(|end| name.ends_with(end));
    let reset = if is_list { format_setting(name, "") } else { String::new() };
    reset + &values.iter().map(|value| format_setting(name, value)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_setting_has_the_same_effect_whatever_the_file_contains() {
        let folder = testkit::folder();
        let file = folder.path().join("config");
        let read = |name: &str, kind: &str| {
            let file = file.display().to_string();
            let listed = Git::climbing(folder.path()).run(&["config", "--file", &file, kind, name]);
            listed.unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        for held in [&[][..], &["work"], &["a", "work"], &["work", "a"]] {
            for name in ["user.email", "http.x.extraheader"] {
                let before: String = held.iter().map(|value| format_setting(name, value)).collect();
                let text = before + &in_place_of_all(name, &["a", "work"]);
                disk::write(&file, text.as_bytes(), disk::Durability::Process).unwrap();
                assert_eq!(read(name, "--get"), ["work"], "{held:?}");
                let all = read(name, "--get-all");
                let begins = all.iter().rposition(String::is_empty).map_or(0, |at| at + 1);
                if name.ends_with("extraheader") {
                    // git starts again at an empty value.
                    assert_eq!(all[begins..], ["a", "work"], "{held:?}");
                }
            }
        }
    }

    #[test]
    fn only_settings_that_change_commits_and_files_are_copied_without_consent() {
        let table = [
            ("user.email", true, true),
            ("core.eol", true, true),
            ("merge.conflictstyle", true, true),
            ("merge.x.driver", false, true),
            ("filter.x.smudge", false, true),
            ("url.x.insteadof", false, true),
            ("gpg.program", false, true),
            ("core.sshcommand", false, true),
            ("core.fsmonitor", false, false),
            ("core.hookspath", false, false),
            ("diff.x.textconv", false, false),
            ("diff.external", false, false),
            ("alias.x", false, false),
            ("include.path", false, false),
            ("remote.origin.uploadpack", false, false),
            ("core.worktree", false, false),
        ];
        for (name, alone, agreed) in table {
            let (is_persons, is_local) = (false, true);
            let setting =
                Seen { is_persons, is_local, name: name.to_owned(), value: "x".to_owned() };
            let value = setting.value.clone();
            let same = without_value(GitSetting { name: name.to_owned(), value });
            assert_eq!(comes_along(&setting, None), alone, "{name}");
            assert_eq!(comes_along(&setting, Some(&GitBaseline(vec![same]))), agreed, "{name}");
        }
    }

    #[test]
    fn a_setting_is_written_so_that_git_reads_the_same() {
        let header = format_setting("http.https://example.org/.extraheader", "a \"b\\c;# d");
        let expected = "[http \"https://example.org/\"]\n\textraheader = \"a \\\"b\\\\c;# d\"\n";
        assert_eq!(header, expected);
        assert_eq!(format_setting("user.name", "A"), "[user]\n\tname = \"A\"\n");
    }
}
