//! Detects, when a session starts, that the plugin's folder and the binary behind its hooks have
//! different versions: updating one does not update the other. It changes neither.

use crate::clients::{Hook, HookEvent};
use crate::world::files::disk;

/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 64 << 10;

/// A plugin whose version differs from this binary's.
#[derive(Debug)]
pub struct Skew {
    /// The plugin's version.
    pub plugin: String,
    /// Whether the plugin finds its binary through the launcher: a checkout, or a copy of one.
    pub launched: bool,
}

/// Checks the plugin this hook belongs to, once per session: a compaction does not start a new one.
pub fn look(hook: &Hook<'_>) -> Option<Skew> {
    if hook.event != (HookEvent::SessionBegan { compacted: false }) {
        return None;
    }
    let plugin = hook.client.plugin.as_ref()?;
    let root = hook.folder_of(plugin.root)?;
    let manifest = disk::read_text(&root.join(plugin.manifest), MANIFEST_BYTES).ok()??;
    let plugin = (plugin.version)(&manifest)?;
    let launched = disk::exists(&root.join("bin/launch"));
    (plugin != env!("CARGO_PKG_VERSION")).then_some(Skew { plugin, launched })
}
