//! Whether the client still waits at the dialog that was recorded last. No event says that a dialog
//! was answered, but the transcript then has the result of its call.

use crate::clients;
use crate::engine::record::{Dialog, Loop, Status};
use crate::world::files::disk;

/// How much of a transcript's end is searched for that result, in bytes.
const SINCE_BYTES: u64 = 1 << 20;

/// The dialog at which a loop's client still waits.
pub fn waiting_dialog(record: &Loop) -> Option<&Dialog> {
    record
        .state
        .session
        .dialog
        .as_ref()
        .filter(|dialog| is_at_work(record) && still_waits(record, dialog))
}

/// Whether the call has no result yet. Others of the same message may get theirs before it.
pub fn still_waits(record: &Loop, dialog: &Dialog) -> bool {
    let (file, known) = (&dialog.transcript, dialog.transcript_bytes);
    if disk::size(file) == known {
        return true;
    }
    let reader = clients::of(&record.state.owner).abilities().transcript.as_ref();
    let Some((reader, call)) = reader.zip(dialog.call.as_deref()) else { return false };
    let since = disk::read_end(file, known, SINCE_BYTES);
    since.is_ok_and(|(since, is_cut)| !is_cut && !(reader.has_result)(&since, call))
}

/// Whether the agent, or a job that it left behind, may be at work.
pub fn is_at_work(record: &Loop) -> bool {
    matches!(record.state.status, Status::Running | Status::Waiting)
}
