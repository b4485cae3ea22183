//! The status page of a fleet: a summary, then its tasks, and the next command.

use minijinja::context;
use unicode_width::UnicodeWidthStr;

use super::{FleetStatus, StatusGroup, TaskStatus, missing_step, render_template};
use crate::fleet::record::{FleetRecord, Landed};
use crate::fleet::step::lines::{COMMIT_CHARS, show_text};
use crate::report::colour::{STRONG, mark_quiet, mark_text, mark_words};
use crate::report::layout::{self, fit_line};
use crate::report::layout::{Reading, wrap_text};
use engine::record::Proof;
use engine::text::{clock_time, format_age, format_briefly, join_first_names, text_start};
use engine::usage::Money;
use engine::view::columns::{ALWAYS, CellColour, Column};

/// The maximum numbers of rows in a group, of lines in a reason, and of finished tasks named.
const ROWS_MAX: usize = 20;
const WHY_LINES: usize = 4;
const NAMED: usize = 8;
/// The maximum width of the task column, and the width of all columns except task and news.
const TASK_COLUMNS: usize = 24;
const BESIDE: usize = 26;
/// Below this width the columns of time, cost and place stay empty.
const NARROW: usize = 60;

impl FleetStatus<'_> {
    /// The page, in at most `rows` lines if the screen has only that many; `remark` is the last
    /// line.
    pub fn render_page(
        &self,
        at: Reading,
        rows: Option<usize>,
        remark: Option<&str>,
    ) -> Vec<String> {
        let most = rows.unwrap_or(usize::MAX);
        let next = self.next.iter().map(|next| ("next", &**next));
        let end = next.chain(remark.map(|remark| ("note", remark)));
        let end = end.map(|(name, value)| {
            format!("  {} {}", mark_quiet(&format!("{name:<9}")), show_text(value))
        });
        let end: Vec<String> = end.collect();
        let mut lines = self.render_head(at.width);
        for tasks in self.tasks.chunk_by(|one, other| one.group == other.group) {
            let room = most.saturating_sub(lines.len() + end.len() + 2);
            let block = match tasks[0].group {
                StatusGroup::Done => self.render_done(tasks),
                _ => render_table(tasks, at, room.min(ROWS_MAX)),
            };
            if room > 0 {
                lines.push(String::new());
                lines.extend(block.into_iter().take(room));
            }
        }
        if !end.is_empty() {
            lines.push(String::new());
            lines.extend(end);
        }
        lines.iter().take(most).map(|line| fit_line(line, at.width)).collect()
    }

    /// Renders the head: "fleet shop: 12 of 20 landed · 4 run · 1 needs you", with money and time
    /// below.
    fn render_head(&self, width: usize) -> Vec<String> {
        let FleetRecord { terms, request, .. } = self.record;
        let (counts, name) = (&self.counts, show_text(&terms.name));
        let asked = request
            .as_ref()
            .map_or("", |request| if request.is_cancel() { ", cancelled" } else { ", paused" });
        let first =
            render_template(context! { counts, landing => terms.landing }).replace('\n', " · ");
        let first =
            wrap_text(&format!("fleet {name}{asked}: {first}"), width, usize::MAX).join("\n");
        let first = mark_words(&first).replacen(&name, &mark_text(STRONG, &name), 1);
        let (spent, most) = (self.record.spent(), terms.limits.max_cost_micros);
        let used = render_template(context! {
            elapsed => format_briefly(self.elapsed_ms),
            cost => spent.cost_text(most > 0),
            is_unknown => spent.is_lower_bound(),
            most => Some(most).filter(|micros| *micros > 0).map(|micros| Money::from_micros(micros).to_string()),
            is_over => counts["running"] + counts["waiting"] == 0,
            left => self.left_ms.map(|ms| format_briefly(ms.next_multiple_of(60_000))),
        });
        let used = format!("  {}", used.replace('\n', " · "));
        first.lines().map(str::to_owned).chain([used]).collect()
    }

    /// Renders the finished tasks of one kind, and where the newest is: "landed    main 4f2c9d1:
    /// user-model, addresses and 8 more".
    fn render_done(&self, tasks: &[TaskStatus<'_>]) -> Vec<String> {
        let mut tasks: Vec<&TaskStatus<'_>> = tasks.iter().collect();
        tasks.sort_by_key(|row| row.what);
        let lines = tasks.chunk_by(|one, other| one.what == other.what).map(|rows| {
            let terms = &self.record.terms;
            let place = match rows[0].end.landed {
                Some(Landed::Main(commit)) => {
                    let commit = commit.as_deref().unwrap_or_default();
                    format!("{} {}", show_text(&terms.base), text_start(commit, COMMIT_CHARS))
                }
                _ => format!("crew/{}/*", terms.name),
            };
            let names = rows.iter().map(|row| match (row.end.proof, row.work.is_behind) {
                (_, true) => format!("{} (not {})", row.task, missing_step(self.record)),
                (Some(Proof::Claimed), _) => format!("{} (claimed)", row.task),
                _ => row.task.to_string(),
            });
            let what = mark_words(&format!("{:<9}", rows[0].what.column_label()));
            let names = join_first_names(&names.collect::<Vec<_>>(), NAMED);
            format!("  {what} {}: {names}", place.trim_end())
        });
        lines.collect()
    }
}

/// Renders rows in columns. A reason without room there follows in full below its row.
fn render_table(tasks: &[TaskStatus<'_>], at: Reading, most: usize) -> Vec<String> {
    let width = at.width.saturating_sub(2);
    let widest = tasks.iter().map(|row| row.task.as_str().width()).max().unwrap_or_default();
    let task = widest.min(TASK_COLUMNS).min(width / 3);
    let room = width.saturating_sub(task + BESIDE);
    let is_below =
        |row: &TaskStatus<'_>| row.end.outcome.is_some() && show_text(&row.news).width() > room;
    let columns = [
        Column::text(ALWAYS, task),
        Column::text(ALWAYS, 12).with_colour(CellColour::Words),
        Column::number(ALWAYS, 8),
        Column::number(ALWAYS, 8),
        Column::number(ALWAYS, 8),
        Column::rest(ALWAYS, 8),
        Column::text(0, 20),
    ];
    let rows = tasks.iter().take(most);
    let lines =
        layout::align_rows(columns, rows.map(|row| row_cells(row, at, is_below(row))), width);
    let (mut page, mut kept) = (Vec::new(), 0);
    for (row, line) in tasks.iter().zip(lines) {
        let mut block = vec![format!("  {line}")];
        if is_below(row) {
            let why = wrap_text(&show_text(&row.news), width.saturating_sub(4), WHY_LINES);
            block.extend(why.iter().map(|line| format!("      {line}")));
        }
        // The last line says how many rows are left out.
        if page.len() + block.len() + usize::from(kept + 1 < tasks.len()) > most {
            break;
        }
        page.extend(block);
        kept += 1;
    }
    if kept < tasks.len() {
        page.push(format!("  … {} more", tasks.len() - kept));
    }
    page
}

fn row_cells(row: &TaskStatus<'_>, at: Reading, has_news_below: bool) -> [String; 7] {
    let until = row.until.map(|until| format!("until {}: ", clock_time(until, at.clock())));
    let news = if has_news_below { String::new() } else { show_text(&row.news) };
    let news = until.unwrap_or_default() + &news;
    let [mut count, mut when, mut cost, mut place] = [const { String::new() }; 4];
    let since = (at.now - row.since).num_milliseconds();
    match row.group {
        StatusGroup::Waiting | StatusGroup::Done => {}
        _ if at.width < NARROW => {}
        StatusGroup::Running => {
            count = match row.progress.max_iterations {
                0 => row.progress.iteration.to_string(),
                of => format!("{}/{of}", row.progress.iteration),
            };
            when = format_briefly(u64::try_from(since).unwrap_or_default());
            cost = row.progress.usage.cost_text(false).unwrap_or_default();
            let host = row.place.host.as_deref().map(show_text).unwrap_or_default();
            place = row.place.slot.map_or(host, |slot| format!("slot {slot}"));
        }
        StatusGroup::NeedsYou | StatusGroup::Cancelled => when = format_age(since),
    }
    [row.task.to_string(), row.what.column_label().to_owned(), count, when, cost, news, place]
}
