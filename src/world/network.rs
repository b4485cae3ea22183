//! Whether a machine can be reached: one connection, which is closed at once. Nothing is sent or
//! read.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// Connects to a port within a time; the error says why not.
pub fn connects(host: &str, port: u16, within: Duration) -> io::Result<()> {
    let place = (host.to_owned(), port);
    let (sender, receiver) = channel();
    // The system looks a name up without a deadline. The thread ends with the process.
    thread::spawn(move || sender.send(connect(&place, within)));
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    receiver.recv_timeout(within).unwrap_or_else(|_| Err(late()))
}

fn connect(place: &(String, u16), within: Duration) -> io::Result<()> {
    let mut last = io::Error::other("the name has no address");
    for address in place.to_socket_addrs()?.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, within) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_connects_while_somebody_listens_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        connects("127.0.0.1", port, Duration::from_secs(30)).unwrap();
        drop(listener);
        let refused = connects("127.0.0.1", port, Duration::from_secs(30)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
