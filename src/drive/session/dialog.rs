//! Whether the client still waits at the dialog that was recorded last. No event says that a dialog
//! was answered, but the transcript grows then.

use crate::engine::record::{Dialog, Loop, Status};
use crate::world::files::disk;

/// The dialog at which a loop's client still waits.
pub fn waiting_dialog(record: &Loop) -> Option<&Dialog> {
    record.state.session.dialog.as_ref().filter(|dialog| is_at_work(record) && still_waits(dialog))
}

/// Whether nothing was written since, as the answer would be.
pub fn still_waits(dialog: &Dialog) -> bool {
    dialog.transcript_bytes == disk::size(&dialog.transcript)
}

/// Whether the agent, or a job that it left behind, may be at work.
pub fn is_at_work(record: &Loop) -> bool {
    matches!(record.state.status, Status::Running | Status::Waiting)
}
