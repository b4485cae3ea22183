//! Reads what the GitHub CLI prints: what has become of a request, and whether its host was not
//! reached. It takes nothing from a page, and no word of a title.

use super::git_push::{UNREACHED, contains_any};

/// What has become of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// As this commit of its base.
    Merged(String),
    Closed,
}

/// A request of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRequest {
    pub address: String,
    /// The newest commit of the branch that it has or had.
    pub head: String,
    pub state: RequestState,
}

/// `OPEN`, `CLOSED`, or `MERGED` and the commit.
fn request_state(text: &str) -> Option<RequestState> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("OPEN", _) => Some(RequestState::Open),
        ("MERGED", commit) => Some(RequestState::Merged(commit.to_owned())),
        ("CLOSED", _) => Some(RequestState::Closed),
        _ => None,
    }
}

/// A request on each line: its address, its head and its state. Any other line is left out.
pub fn parse_requests(text: &str) -> Vec<ListedRequest> {
    let listed = |line: &str| {
        let (address, rest) = line.split_once(' ').filter(|(it, _)| it.starts_with("http"))?;
        let (head, state) = rest.split_once(' ')?;
        let state = request_state(state)?;
        Some(ListedRequest { address: address.to_owned(), head: head.to_owned(), state })
    };
    text.lines().filter_map(listed).collect()
}

/// The line of a failed command that says that its host was not reached, or is too busy.
pub fn find_unreached(text: &str) -> Option<&str> {
    text.lines().find(|line| contains_any(line, UNREACHED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_with_their_state_and_a_line_that_is_none_is_left_out() {
        let text = "https://h/1 aaa CLOSED \nhttps://h/2 bbb MERGED 0123abc\nhttps://h/3 ccc OPEN\n\
                    https://h/4 ddd DRAFT\nno request\n\n";
        let found = parse_requests(text).into_iter().map(|it| (it.address, it.head, it.state));
        let listed =
            |number: u8, head: &str, state| (format!("https://h/{number}"), head.to_owned(), state);
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                listed(1, "aaa", RequestState::Closed),
                listed(2, "bbb", RequestState::Merged("0123abc".to_owned())),
                listed(3, "ccc", RequestState::Open),
            ]
        );
    }

    #[test]
    fn a_host_that_is_away_is_told_from_one_that_refuses() {
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
            assert_eq!(find_unreached(text), text.lines().next().filter(|_| expected), "{text}");
        }
    }
}
