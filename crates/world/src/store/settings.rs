//! The settings files of this machine, the user's and a project's, and what the user has trusted in
//! each checkout. Trust is one file per real path under `$CREW_HOME/trust/`, with one line per
//! text: its hash and, for human readers, its beginning. Texts that nothing needs any longer stay
//! trusted, so crew does not ask again after a switch of branches. `parse/settings/merge.rs`
//! decides which settings apply.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::env;
use crate::files::disk::{self, Durability};
use crate::home::{Home, hash};
use engine::text::clip_line;
use readers::parse::settings::merge::{Layer, parse_variables};
use readers::parse::settings::trust::TrustRequest;
use readers::parse::settings::{ParsedSettings, SettingsOwner, parse_settings};

/// The largest settings file that is read.
pub const FILE_BYTES: u64 = 256 << 10;

/// The user's own file; `None` if this user has no home folder. On Claude Code 2.1.330 a project's
/// settings cannot change the two variables that locate it.
pub fn user_file() -> Option<PathBuf> {
    Some(env::find_folder("XDG_CONFIG_HOME", ".config")?.join("crew").join("config.toml"))
}

/// The project's file.
pub fn project_file(checkout: &Path) -> PathBuf {
    checkout.join(".claude").join("crew.toml")
}

/// Reads a settings file; `outputs` are the supported formats of an agent's output. `None` when it
/// does not exist; an error lists every fault.
pub fn read_settings_file(
    path: &Path,
    whose: SettingsOwner,
    outputs: &[&'static str],
) -> Result<Option<ParsedSettings>, String> {
    let bytes = disk::read(path, FILE_BYTES).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    let text = String::from_utf8(bytes);
    let text =
        text.map_err(|_| format!("{} is not UTF-8 text: save it as such", path.display()))?;
    parse_settings(&text, path, whose, outputs, &disk::is_file).map(Some)
}

/// The settings from the environment. The error has one line for each variable that cannot be used.
pub fn read_environment() -> Result<Layer, String> {
    parse_variables(&env::text)
}

/// The largest trust file that is read: it has a line for every trusted text, even of a fleet's
/// tasks.
const TRUST_BYTES: u64 = 64 << 20;
/// The maximum number of characters kept of a text; comparisons use its hash.
const TEXT_CHARS: usize = 200;

/// The requests that are not trusted yet.
pub fn find_untrusted(
    home: &Home,
    checkout: &Path,
    needs: Vec<TrustRequest>,
) -> io::Result<Vec<TrustRequest>> {
    if needs.is_empty() {
        return Ok(needs);
    }
    let known = read_trust(home, checkout)?;
    Ok(needs.into_iter().filter(|need| !known.contains_key(&digest_request(need))).collect())
}

/// Trusts all of these requests.
pub fn trust_requests(home: &Home, checkout: &Path, needs: &[TrustRequest]) -> io::Result<()> {
    let mut known = read_trust(home, checkout)?;
    known.extend(
        needs.iter().map(|need| (digest_request(need), clip_line(&need.to_string(), TEXT_CHARS))),
    );
    let file = home.trust_file(checkout);
    disk::make_private_folder(file.parent().unwrap_or(home.root()))?;
    let lines = known.iter().map(|(digest, text)| format!("{digest} {text}\n"));
    let text: String = lines.collect();
    disk::write(&file, text.as_bytes(), Durability::Machine)
}

/// Removes all trust from a checkout, and returns the items that were trusted there, or why they
/// cannot be listed.
pub fn forget_trust(home: &Home, checkout: &Path) -> io::Result<io::Result<Vec<String>>> {
    let known = read_trust(home, checkout);
    disk::remove(&home.trust_file(checkout))?;
    Ok(known.map(|texts| texts.into_values().collect()))
}

fn digest_request(need: &TrustRequest) -> String {
    hash(need.text.as_bytes())
}

fn read_trust(home: &Home, checkout: &Path) -> io::Result<BTreeMap<String, String>> {
    let text = disk::read_text(&home.trust_file(checkout), TRUST_BYTES)?.unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(digest, text)| (digest.to_owned(), text.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use readers::parse::settings::merge::ValueOrigin;
    use readers::parse::settings::trust::TrustSubject;

    #[test]
    fn a_long_text_is_stored_as_its_hash_and_its_beginning() {
        let folder = testkit::folder();
        let (home, checkout) = (Home::at(folder.path()), folder.path());
        let need = |end: &str| TrustRequest {
            subject: TrustSubject::Project,
            text: format!("{}{end}", "x".repeat(1 << 20)),
            origin: ValueOrigin::Typed,
        };
        trust_requests(&home, checkout, &[need("a")]).unwrap();
        let both = vec![need("a"), need("b")];
        assert_eq!(find_untrusted(&home, checkout, both).unwrap(), [need("b")]);
        let forgotten = forget_trust(&home, checkout).unwrap().unwrap();
        assert_eq!(forgotten, [format!("{}…", "x".repeat(TEXT_CHARS))]);
        assert_eq!(find_untrusted(&home, checkout, vec![need("a")]).unwrap(), [need("a")]);
    }
}
