//! What a page says of a loop that has not ended: what waits for a person, and who works where.

use chrono::{DateTime, FixedOffset};

use super::{Fact, PageInputs};
use crate::engine::boundary::limits;
use crate::engine::record::{Dialog, Driver, Status};
use crate::engine::text::{clip, clock_time};

/// The rows.
pub fn facts(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let record = inputs.view.record;
    if !record.is_live() {
        return Vec::new();
    }
    let is_driven = !inputs.view.owner_is_gone;
    let dialog = inputs.view.dialog.filter(|_| is_driven).map(|it| at_dialog(it, inputs.view.now));
    let is_pausing = inputs.view.is_pausing && is_driven;
    let pending =
        is_pausing.then(|| format!("a pause, when iteration {} ends", record.iteration()));
    let run = record.contract.run.as_ref().filter(|_| record.driver() == Driver::Process);
    let agent = run.map(|run| {
        let pid = record.state.owner.process.pid;
        let process = match record.state.status {
            Status::Paused => String::new(),
            _ => format!(" · process {pid}"),
        };
        let asked = Some(run.permissions.label()).filter(|_| !run.agent.permissions.is_empty());
        let stand_in = record.stand_in_at(inputs.view.now);
        let agent = [Some(stand_in.as_ref().unwrap_or(&run.agent.name).as_str()), asked];
        format!("{}{process}", agent.into_iter().flatten().collect::<Vec<_>>().join(", "))
    });
    let doing = inputs.view.doing.as_ref().map(|doing| {
        format!("{}, since {}", doing.words(), clock_time(doing.since, inputs.view.now))
    });
    let facts = [
        ("doing", doing),
        ("dialog", dialog),
        ("pending", pending),
        ("agent", agent),
        ("limits", Some(limits::named(&record.contract.limits))),
        ("folder", Some(record.place.folder.display().to_string())),
    ];
    facts.into_iter().filter_map(|(name, text)| Fact::of(name, text)).collect()
}

/// "waits at a permission dialog since 02:10: Bash", seen at `at`.
pub fn at_dialog(dialog: &Dialog, at: DateTime<FixedOffset>) -> String {
    let since = clock_time(dialog.since, at);
    match &dialog.tool {
        _ if dialog.is_question => format!("waits since {since} for your answer to a question"),
        Some(tool) => format!("waits at a permission dialog since {since}: {}", clip(tool, 60)),
        None => format!("waits at a permission dialog since {since}"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::at;

    #[test]
    fn a_dialog_is_told_with_its_time_and_its_tool() {
        let told = |tool: Option<&str>, is_question| {
            let tool = tool.map(str::to_owned);
            let it = Dialog {
                since: at(0).wall,
                tool,
                call: None,
                is_question,
                transcript: "/t".into(),
                transcript_bytes: 0,
            };
            at_dialog(&it, at(0).wall.fixed_offset())
        };
        assert_snapshot!(told(Some("Bash"), false), @"waits at a permission dialog since 11:06: Bash");
        assert_snapshot!(told(None, false), @"waits at a permission dialog since 11:06");
        assert_snapshot!(told(None, true), @"waits since 11:06 for your answer to a question");
    }
}
