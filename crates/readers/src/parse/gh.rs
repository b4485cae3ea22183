//! Reads what the GitHub CLI prints: the state of a pull request, and whether its host was not
//! reached. It takes nothing from a page, and no word of a title.

use super::git_push::{UNREACHED, contains_any};

/// The state of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// As this commit of its base.
    Merged(String),
    Closed,
}

/// A pull request of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRequest {
    pub address: String,
    /// The newest commit of the branch that it has or had.
    pub head: String,
    pub state: RequestState,
}

/// Reads `OPEN`, `CLOSED`, or `MERGED` and the commit.
fn parse_state(text: &str) -> Option<RequestState> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("OPEN", _) => Some(RequestState::Open),
        ("MERGED", commit) => Some(RequestState::Merged(commit.to_owned())),
        ("CLOSED", _) => Some(RequestState::Closed),
        _ => None,
    }
}

/// Reads a pull request on each line: its address, its head and its state. Any other line is left
/// out.
pub fn parse_requests(text: &str) -> Vec<ListedRequest> {
    text.lines().filter(|line| line.starts_with("http")).filter_map(parse_listed).collect()
}

fn parse_listed(line: &str) -> Option<ListedRequest> {
    let (address, rest) = line.split_once(' ')?;
    let (head, state) = rest.split_once(' ')?;
    let state = parse_state(state)?;
    Some(ListedRequest { address: address.to_owned(), head: head.to_owned(), state })
}

/// The line of a failed command that says that its host was not reached, or is too busy.
pub fn find_unreached(text: &str) -> Option<&str> {
    text.lines().find(|line| contains_any(line, UNREACHED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_are_read_with_their_state_and_other_lines_are_left_out() {
        let text = "https://h/1 aaa CLOSED \nhttps://h/2 bbb MERGED 0123abc\nhttps://h/3 ccc OPEN\n\
                    https://h/4 ddd DRAFT\nno request\n\n";
        let expected = [
            ("https://h/1", "aaa", RequestState::Closed),
            ("https://h/2", "bbb", RequestState::Merged("0123abc".to_owned())),
            ("https://h/3", "ccc", RequestState::Open),
        ];
        let expected = expected.map(|(address, head, state)| ListedRequest {
            address: address.to_owned(),
            head: head.to_owned(),
            state,
        });
        assert_eq!(parse_requests(text), expected);
    }

    #[test]
    fn an_unreachable_host_differs_from_one_that_refuses() {
        let table = [
            ("error connecting to api.github.com\ncheck your internet connection", true),
            (
                "Post \"https://api.github.com/graphql\": dial tcp: lookup api.github.com: no such host",
                true,
            ),
            ("Post \"https://api.github.com/graphql\": net/http: TLS handshake timeout", true),
            ("HTTP 502: Bad Gateway (https://api.github.com/graphql)", true),
            ("non-200 OK status code: 503 Service Unavailable", true),
            ("HTTP 401: Bad credentials (https://api.github.com/graphql)", false),
            (
                "pull request create failed: GraphQL: No commits between main and fleet/repo/a",
                false,
            ),
            ("HTTP 404: Not Found", false),
            ("", false),
        ];
        for (text, expected) in table {
            let line = if expected { text.lines().next() } else { None };
            assert_eq!(find_unreached(text), line, "{text}");
        }
    }
}
