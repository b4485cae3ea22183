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

    fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn a_port_connects_while_somebody_listens_there() {
        let (_listener, port) = listen();
        connects("127.0.0.1", port, Duration::from_secs(30)).unwrap();
    }

    #[test]
    fn a_port_where_nobody_listens_refuses() {
        // A child that another test starts holds a copy of the listener until it runs its program,
        // and another test may get the port that was let go: one of a few ports must refuse.
        let refused = (0..20).any(|_| {
            let (listener, port) = listen();
            drop(listener);
            let answer = connects("127.0.0.1", port, Duration::from_secs(30));
            answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        });
        assert!(refused, "twenty ports that nobody listens at took a connection");
    }
}
