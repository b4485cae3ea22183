//! What a line says about the agent's questions, and about a dialog that waits. The
//! questions are the agent's words and stand in quotation marks.

use chrono::{DateTime, FixedOffset};

use crate::engine::record::{Dialog, Loop, Question};
use crate::engine::text::clip;

/// The most of a question on a line, in characters.
const LINE_CHARS: usize = 80;

/// The part of a boundary's line about the questions of the iteration that has just ended.
pub fn at_boundary(subject: &Loop) -> Option<String> {
    let of_it = |it: &&Question| it.iteration == subject.state.completed;
    let asked: Vec<&Question> = subject.state.asked.iter().filter(of_it).collect();
    let last = asked.last()?;
    let question = clip(&last.text, LINE_CHARS);
    let more = match asked.len() {
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    let answer = last.answer();
    Some(format!("asked \"{question}\"{more}, told to decide · answer: crew tell \"{answer}\""))
}

/// "waits at a permission dialog since 02:10: Bash", in the time zone of `at`.
pub fn dialog(dialog: &Dialog, at: DateTime<FixedOffset>) -> String {
    let since = dialog.since.with_timezone(at.offset()).format("%H:%M");
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
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::fixture::{a_loop, at, facts};

    fn asking(questions: &[&str]) -> Loop {
        let mut subject = a_loop();
        let options = ["SMTP".to_owned(), "SES".to_owned()];
        let new = questions.iter().map(|it| Question::new(subject.iteration(), it, &options));
        subject.state.asked = new.collect();
        subject
    }

    #[test]
    fn the_line_after_the_iteration_tells_what_it_asked_and_how_to_answer() {
        let mut subject = judge(&asking(&["SES or SMTP?"]), &facts(Claim::None)).after;
        assert_snapshot!(at_boundary(&subject).unwrap(), @r#"asked "SES or SMTP?", told to decide · answer: crew tell "SMTP""#);
        subject = judge(&subject, &facts(Claim::None)).after;
        assert_eq!(at_boundary(&subject), None, "told once");
        let two = judge(&asking(&["SES or SMTP?", "30 or 90 days?"]), &facts(Claim::None)).after;
        assert_snapshot!(at_boundary(&two).unwrap(), @r#"asked "30 or 90 days?" and 1 more, told to decide · answer: crew tell "SMTP""#);
    }

    #[test]
    fn a_dialog_is_told_with_its_time_and_its_tool() {
        let told = |tool: Option<&str>, is_question| {
            let tool = tool.map(str::to_owned);
            let it = Dialog {
                since: at(0).wall,
                tool,
                is_question,
                transcript: "/t".into(),
                transcript_bytes: 0,
            };
            dialog(&it, at(0).wall.fixed_offset())
        };
        assert_snapshot!(told(Some("Bash"), false), @"waits at a permission dialog since 11:06: Bash");
        assert_snapshot!(told(None, false), @"waits at a permission dialog since 11:06");
        assert_snapshot!(told(None, true), @"waits since 11:06 for your answer to a question");
    }
}
