//! What a line says about the agent's questions, which are its own words and stand in quotation
//! marks.

use crate::engine::record::{Loop, Question};
use crate::engine::text::{clip, quoted};

/// The most of a question on a line, in characters.
const LINE_CHARS: usize = 80;

/// The part of a boundary's line about the questions of the iteration that has just ended.
pub fn at_boundary(subject: &Loop) -> Option<String> {
    let of_it = |it: &&Question| it.iteration == subject.state.completed;
    let asked: Vec<&Question> = subject.state.asked.iter().filter(of_it).collect();
    let last = asked.last()?;
    let question = quoted(&clip(&last.text, LINE_CHARS));
    let more = match asked.len() {
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    let answer = last.answer();
    Some(format!("asked {question}{more}, told to decide · answer: crew tell \"{answer}\""))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::fixture::{a_loop, facts};

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
}
