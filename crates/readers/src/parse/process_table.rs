//! Reads what the system reports about a process: its parent, its session, and when it started. It
//! does not interpret a start time.

/// One process in the system's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessRow {
    pub parent: i32,
    pub session: i32,
    /// Whether it has ended and only waits to be reaped. Only Linux reports this.
    pub has_ended: bool,
    /// Whether it has a controlling terminal. Only Linux reports this.
    pub has_terminal: bool,
    /// When it started: clock ticks since boot on Linux, otherwise a date. It is compared, not
    /// interpreted.
    pub started: String,
}

/// Reads, on Linux, the contents of `/proc/<pid>/stat`. The name in the second field may contain
/// anything, including blanks and parentheses, so the fields are counted from the last closing
/// parenthesis.
#[cfg(any(test, target_os = "linux"))]
pub fn proc_stat(text: &str) -> Option<ProcessRow> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(ProcessRow {
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        has_terminal: *fields.get(4)? != "0",
        started: (*fields.get(19)?).to_owned(),
    })
}

/// Reads, on other systems, the output of `ps -o ppid=,sess=,lstart= -p PID`.
#[cfg(any(test, not(target_os = "linux")))]
pub fn parse_ps(text: &str) -> Option<ProcessRow> {
    let mut words = text.split_whitespace();
    let parent = words.next()?.parse().ok()?;
    let session = words.next()?.parse().unwrap_or(0);
    let started: Vec<&str> = words.collect();
    if started.is_empty() {
        return None;
    }
    Some(ProcessRow { parent, session, started: started.join(" "), ..ProcessRow::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linux_row_is_parsed_whatever_the_name_of_the_program() {
        let text = "4242 (a) b (c)) S 17 4242 9 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2";
        let started = "987654".to_owned();
        let row =
            ProcessRow { parent: 17, session: 9, has_ended: false, has_terminal: false, started };
        assert_eq!(proc_stat(text), Some(row.clone()));
        let seated = ProcessRow { has_terminal: true, ..row.clone() };
        assert_eq!(proc_stat(&text.replace(" 9 0 ", " 9 34816 ")), Some(seated));
        let ended = text.replace(") S", ") Z");
        assert_eq!(proc_stat(&ended), Some(ProcessRow { has_ended: true, ..row }));
        assert_eq!(proc_stat("4242 (crew"), None);
    }

    #[test]
    fn a_row_of_ps_is_parsed() {
        let started = "Sat Nov 21 22:15:00 2026".to_owned();
        let expected =
            ProcessRow { parent: 17, session: 9, has_ended: false, has_terminal: false, started };
        assert_eq!(parse_ps("   17      9 Sat Nov 21 22:15:00 2026\n"), Some(expected));
        assert_eq!(parse_ps(""), None);
    }
}
