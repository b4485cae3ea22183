//! `crew handoff`: a page for the next worker, in the middle of a loop.

use anyhow::Result;

use super::{actor, control_replies, print, requested};
use crate::drive::end::handoff;
use crate::engine::record::Status;
use crate::exit::Exit;
use crate::parse::handoff_words::of_shell;

/// Writes a page for the requested loop.
pub fn handoff(words: &[String], kind: Option<&str>, name: Option<&str>) -> Result<Exit> {
    let (home, record) = requested(name)?;
    let (kind, told) = of_shell(kind, words);
    let page = handoff::write(&home, &record, &kind, &told, actor())?;
    print::out(&control_replies::handed_off(&page));
    if record.state.status == Status::Running {
        print::aside("it is read when somebody resumes the loop; crew tell reaches its agent now");
    }
    Ok(Exit::SUCCESS)
}
