//! What a client hands to the command that prints its status line. The fields have the names that
//! those of its hooks have.

use std::path::PathBuf;

use super::fields::{Fields, is_session_id};

/// The session whose line is printed; what was not handed over is absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LineFor {
    /// Safe in a file name.
    pub session_id: Option<String>,
    /// An absolute path.
    pub folder: Option<PathBuf>,
}

impl LineFor {
    /// Reads what was handed over; text of another shape is as good as none.
    pub fn read(bytes: &[u8]) -> Self {
        let Ok(mut payload) = Fields::parse(bytes) else { return Self::default() };
        let folder = payload.take("cwd").map(PathBuf::from);
        Self {
            session_id: payload.take("session_id").filter(|id| is_session_id(id)),
            folder: folder.filter(|folder| folder.is_absolute()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_and_its_folder_are_taken_and_junk_is_neither() {
        let seen = LineFor::read(br#"{"session_id":"a-1","cwd":"/repo","model":{"id":"m"}}"#);
        let expected = LineFor { session_id: Some("a-1".to_owned()), folder: Some("/repo".into()) };
        assert_eq!(seen, expected);
        for junk in [&b""[..], b"[]", b"{", br#"{"session_id":"../x","cwd":"repo"}"#] {
            assert_eq!(LineFor::read(junk), LineFor::default());
        }
    }
}
