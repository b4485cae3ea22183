//! Sees, when a session starts, that the plugin's folder and the binary behind its hooks are of different
//! versions: an update of the one leaves the other as it was.

use crate::clients::{Hook, HookEvent};
use crate::world::files::disk;

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
pub fn look(hook: &Hook<'_>) -> Option<Skew> {
    if hook.event != (HookEvent::SessionBegan { compacted: false }) {
        return None;
    }
    let plugin = hook.abilities().plugin.as_ref()?;
    let root = hook.folder_of(plugin.root)?;
    let manifest = disk::read_text(&root.join(plugin.manifest), MANIFEST_BYTES).ok()??;
    let plugin = (plugin.version)(&manifest)?;
    let launched = disk::exists(&root.join("bin/launch"));
    (plugin != env!("CARGO_PKG_VERSION")).then_some(Skew { plugin, launched })
}
