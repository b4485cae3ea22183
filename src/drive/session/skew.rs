//! Sees, when a session starts, that the plugin's folder and the binary behind its hooks are of different
//! versions: an update of the one leaves the other as it was.

use crate::parse::payload::Payload;
use crate::parse::plugin::manifest_version;
use crate::world::env;
use crate::world::files::disk;

use crate::drive::install::MANIFEST;

/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 64 << 10;

/// A plugin of another version than this binary.
#[derive(Debug)]
pub struct Skew {
    /// The plugin's version.
    pub plugin: String,
    /// Whether the plugin finds its binary by the launcher: a checkout, or a copy of one.
    pub launched: bool,
}

/// Looks at the plugin this hook belongs to, once in a session: a compaction starts no new one.
pub fn look(payload: &Payload) -> Option<Skew> {
    if payload.event != "SessionStart" || payload.source.as_deref() == Some("compact") {
        return None;
    }
    let root = env::path("CLAUDE_PLUGIN_ROOT")?;
    let manifest = disk::read_text(&root.join(MANIFEST), MANIFEST_BYTES).ok()??;
    let plugin = manifest_version(&manifest)?;
    let launched = disk::exists(&root.join("bin/launch"));
    (plugin != env!("CARGO_PKG_VERSION")).then_some(Skew { plugin, launched })
}
