//! How a run reports: lines on a pipe, a live line on a terminal, events for programs, next to
//! nothing with `-q`. All get the same events; the text comes from `report`.

mod screen;

use std::io::{IsTerminal, stderr, stdout};

use self::screen::Screen;
use super::{print, reading};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::record::{Loop, Outcome, Proof};
use crate::parse::arguments::OutputArgs;
use crate::report::attention::{notice, of_event};
use crate::report::colour;
use crate::report::events::Events;
use crate::report::page;
use crate::report::progress::{ProgressLine, Tone, lines};
use crate::report::screen::ScreenLines;
use crate::world::{clock, env};

/// Prints a run's events.
#[derive(Debug)]
pub struct Reporter {
    output: OutputArgs,
    events: Option<Events>,
    screen: Option<Screen>,
    told: ScreenLines,
    /// Whether this terminal takes notices, and whether the loop's user wants them.
    takes_notices: bool,
    wants_notices: bool,
}

impl Reporter {
    /// The reporter that fits this process's output and the environment.
    pub fn new(output: OutputArgs) -> Self {
        let is_live = !output.json && !output.quiet && has_a_screen();
        Self {
            output,
            events: output.json.then(Events::default),
            screen: is_live.then(Screen::new),
            told: ScreenLines::default(),
            takes_notices: is_live && notice("", &env::text).is_some(),
            wants_notices: false,
        }
    }

    fn say(&self, line: &ProgressLine) {
        match (self.output, line.tone) {
            (OutputArgs { quiet: true, .. }, Tone::Plain) => {}
            (OutputArgs { quiet: true, .. } | OutputArgs { json: true, .. }, _) => {
                self.err(&print::fold(&line.text));
            }
            _ => self.show(print::page, &colour::heads(&line.text, print::fold)),
        }
    }

    fn out(&self, text: &str) {
        self.show(print::out, text);
    }

    fn err(&self, text: &str) {
        self.show(print::err, text);
    }

    fn show(&self, print: fn(&str), text: &str) {
        match &self.screen {
            Some(screen) => screen.above(|| print(text)),
            None => print(text),
        }
    }

    fn ending(&mut self, event: &RunEvent<'_>) {
        let RunEvent::Finished { record, page, .. } = *event else { return };
        self.screen = None;
        if !self.output.quiet {
            let page = page::text(page, reading());
            if self.output.json {
                self.err(&page);
            } else {
                self.show(print::page, &format!("\n{page}"));
            }
        }
        if is_claimed(record) {
            let whose = match record.contract.promise {
                Some(_) => "on the agent's word alone",
                None => "at its limit",
            };
            self.err(&format!("crew: completed {whose}: nothing was checked"));
        }
    }
}

impl EventSink for Reporter {
    fn on_event(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::Said(_) = event
            && !self.output.verbose
        {
            self.screen.iter_mut().for_each(|screen| screen.on_event(event));
            return;
        }
        // Nothing is shown before the loop's own settings are known.
        if let RunEvent::Started(record) | RunEvent::Resumed(record) = event {
            self.wants_notices = self.takes_notices && !record.contract.silent;
        }
        let told = of_event(event, clock::local()).filter(|_| self.wants_notices);
        if let Some(told) = told.and_then(|text| notice(&text, &env::text)) {
            print::codes(&told);
        }
        if let Some(events) = &mut self.events {
            print::json(&events.event(event, clock::now().wall));
        }
        if let (Some(screen), false) = (&mut self.screen, matches!(event, RunEvent::Said(_))) {
            screen.on_event(event);
        }
        match event {
            RunEvent::Said(_) if self.output.json => {}
            RunEvent::Said(text) => self.out(text),
            RunEvent::Noted(text) if !self.output.quiet => self.err(&format!("crew: {text}")),
            RunEvent::Noted(_) => {}
            RunEvent::Finished { record, .. }
                if self.output.quiet && record.outcome() != Some(Outcome::Completed) =>
            {
                for line in lines(event, clock::local()) {
                    self.err(&line.text);
                }
            }
            _ if self.screen.is_some() => {
                let told = self.told.lines(event, clock::local());
                for line in &told {
                    self.say(line);
                }
            }
            _ => lines(event, clock::local()).iter().for_each(|line| self.say(line)),
        }
        self.ending(event);
    }

    fn tick(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.tick();
        }
    }
}

/// Whether a line can be redrawn: both streams are a terminal that can move its cursor, and nobody
/// keeps its output as a log.
pub fn has_a_screen() -> bool {
    let is_smart = env::text("TERM").is_some_and(|term| term != "dumb");
    stdout().is_terminal() && stderr().is_terminal() && is_smart && env::text("CI").is_none()
}

fn is_claimed(record: &Loop) -> bool {
    let ending = record.state.ending.as_ref();
    ending.and_then(|ending| ending.proof) == Some(Proof::Claimed)
}
