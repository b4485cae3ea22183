//! A scripted server of models on the loopback interface, one for each test: the model answers what
//! the test wrote, in whichever API is used, and every request is kept for the test to read. It
//! contacts nothing and judges nothing. A client that continues to send requests after the end of
//! the script is told so, and refused if it does not stop.

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::http;
use super::refusal::Fault;
use super::reply::{Reply, Says, Tokens};
use super::request::{Kind, Request};
use super::shapes::{self, Shape};

/// The answer to a main-loop request beyond the script.
pub(crate) const OVERRUN: &str = "The script of this test is over.";
/// The number of such answers after which the client is refused.
const MOST_OVERRUNS: usize = 20;
/// The maximum number of main-loop requests, because scripts may be closures without an end.
const MOST_REQUESTS: usize = 500;

type Script = Box<dyn FnMut(&Request) -> Option<Reply> + Send>;

pub(crate) struct Api {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

/// The usage that the server has reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportedUse {
    pub(crate) main: Tokens,
    /// Tokens of titles and other side requests.
    pub(crate) side: Tokens,
}

struct Shared {
    script: Script,
    /// The reply to the result of a tool call, by the call's id.
    follow_ups: HashMap<String, Reply>,
    log: Vec<Request>,
    shown: ReportedUse,
    overruns: usize,
    messages: usize,
    connections: Vec<TcpStream>,
    over: bool,
}

impl Api {
    /// Gives one reply after the other.
    pub(crate) fn scripted(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::answering(move |_| replies.pop_front())
    }

    /// Calls `script` at every main-loop request that no `then` answers; `None` means that the
    /// script has ended. The log is locked meanwhile: read the given request, not `requests()`.
    pub(crate) fn answering(
        script: impl FnMut(&Request) -> Option<Reply> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            script: Box::new(script),
            follow_ups: HashMap::new(),
            log: Vec::new(),
            shown: ReportedUse::default(),
            overruns: 0,
            messages: 0,
            connections: Vec::new(),
            over: false,
        }));
        let address = listener.local_addr().unwrap();
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, side requests and probes included.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.lock().unwrap().log.clone()
    }

    /// The requests of the main loop so far.
    pub(crate) fn main_requests(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.kind == Kind::Main).collect()
    }

    /// The cost of all replies that are not dropped.
    pub(crate) fn reported(&self) -> ReportedUse {
        self.shared.lock().unwrap().shown
    }

    /// How many main-loop requests came after the script had ended.
    pub(crate) fn overruns(&self) -> usize {
        self.shared.lock().unwrap().overruns
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let Ok(mut shared) = self.shared.lock() else { return };
        shared.over = true;
        for connection in shared.connections.drain(..) {
            connection.shutdown(Shutdown::Both).ok();
        }
        drop(shared);
        // Wakes the accepting thread, which then sees that it is over.
        TcpStream::connect(self.address).ok();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Mutex<Shared>>) {
    for connection in listener.incoming().flatten() {
        let mut state = shared.lock().unwrap();
        if state.over {
            return;
        }
        state.connections.extend(connection.try_clone());
        drop(state);
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client may hang up at any time; its request is still in the log.
            serve(&connection, &shared).ok();
            // Closing it would not do: the list of connections holds a copy.
            connection.shutdown(Shutdown::Both).ok();
        });
    }
}

fn serve(connection: &TcpStream, shared: &Mutex<Shared>) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut source = BufReader::new(connection);
    let mut sink = connection;
    while let Some(request) = http::read_request(&mut source)? {
        let is_head = request.method == "HEAD";
        let request = Request::new(request);
        let (reply, id) = shared.lock().unwrap().reply(&request);
        match (reply, request.kind) {
            (Some(reply), _) => {
                std::thread::sleep(reply.wait);
                // Before it is said: a client that has heard it may be gone at once.
                if let Says::Message(message) = &reply.says
                    && !reply.dropped
                {
                    let shown = &mut shared.lock().unwrap().shown;
                    let is_main = request.kind == Kind::Main;
                    *if is_main { &mut shown.main } else { &mut shown.side } += message.tokens();
                }
                play(&mut sink, &request, &reply, &id)?;
            }
            (None, _) if is_head => http::write_empty(&mut sink)?,
            (None, Kind::CountTokens) => {
                http::write_json(&mut sink, 200, &[], &json!({"input_tokens": 100}))?;
            }
            (None, Kind::Upgrade) => http::write_json(&mut sink, 404, &[], &json!({}))?,
            (None, _) => http::write_json(&mut sink, 200, &[], &json!({}))?,
        }
    }
    Ok(())
}

impl Shared {
    /// Logs the request and finds the reply to it, with the id of the message.
    fn reply(&mut self, request: &Request) -> (Option<Reply>, String) {
        self.log.push(request.clone());
        self.messages += 1;
        let id = format!("msg_{:04}", self.messages);
        let reply = match request.kind {
            Kind::Main => Some(self.next(request)),
            Kind::Side => Some(Reply::text("A scripted title")),
            Kind::CountTokens | Kind::Upgrade | Kind::Probe => None,
        };
        if let Some(Reply { says: Says::Message(message), then: Some(then), .. }) = &reply {
            let calls = shapes::messages::tool_calls(message, &id);
            self.follow_ups.extend(calls.into_iter().map(|call| (call, (**then).clone())));
        }
        (reply, id)
    }

    fn next(&mut self, request: &Request) -> Reply {
        if self.messages > MOST_REQUESTS || self.overruns > MOST_OVERRUNS {
            return Reply::error(400, "invalid_request_error", OVERRUN).no_retry();
        }
        for call in request.answered_calls() {
            if let Some(reply) = self.follow_ups.remove(call) {
                return reply;
            }
        }
        (self.script)(request).unwrap_or_else(|| {
            self.overruns += 1;
            Reply::text(OVERRUN)
        })
    }
}

fn play(sink: &mut impl Write, request: &Request, reply: &Reply, id: &str) -> Result<()> {
    let shape = request.shape.unwrap_or(Shape::Messages);
    match &reply.says {
        Says::Fault(fault) => refuse(sink, fault),
        Says::Refusal(refusal) => refuse(sink, &shape.refuse(*refusal)),
        Says::Message(message) if request.is_streamed => {
            stream(sink, reply, &shape.events(message, &request.body, id))
        }
        Says::Message(_) if reply.dropped => Err(std::io::Error::other("dropped by the script")),
        Says::Message(message) => {
            http::write_json(sink, 200, &[], &shape.whole(message, &request.body, id))
        }
    }
}

fn refuse(sink: &mut impl Write, fault: &Fault) -> Result<()> {
    http::write_json(sink, fault.status, &fault.headers, &fault.body)
}

fn stream(sink: &mut impl Write, reply: &Reply, events: &[String]) -> Result<()> {
    http::begin_events(sink)?;
    for (index, event) in events.iter().enumerate() {
        if index == events.len() / 2 {
            std::thread::sleep(reply.pause);
            if reply.dropped {
                return Err(std::io::Error::other("dropped by the script"));
            }
        }
        http::write_event(sink, event)?;
    }
    http::end_events(sink)
}
