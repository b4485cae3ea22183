//! As much of HTTP/1.1 as the client speaks: requests with a length or in chunks, answers as JSON
//! or as a stream of events, on connections that stay open. Anything else is an error.

use std::io::{BufRead, Error, Read, Result, Write};

use serde_json::Value;

const LONGEST_BODY: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Reads one request; `None` is the end of the connection.
pub(super) fn read_request(source: &mut impl BufRead) -> Result<Option<HttpRequest>> {
    let start = read_line(source)?;
    if start.is_empty() {
        return Ok(None);
    }
    let mut words = start.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(Error::other(format!("not a request line: {start}")));
    };
    let mut headers = Vec::new();
    loop {
        let line = read_line(source)?;
        if line.is_empty() {
            break;
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| Error::other(format!("not a header: {line}")))?;
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted);
    let body = if header("transfer-encoding").is_some_and(|(_, value)| value.contains("chunked")) {
        read_chunks(source)?
    } else if let Some((_, length)) = header("content-length") {
        read_exactly(source, length.parse().map_err(Error::other)?)?
    } else {
        Vec::new()
    };
    Ok(Some(HttpRequest { method: method.to_owned(), path: path.to_owned(), headers, body }))
}

fn read_chunks(source: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(source)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).map_err(Error::other)?;
        body.extend(read_exactly(source, length)?);
        if body.len() > LONGEST_BODY {
            return Err(Error::other("body too long"));
        }
        read_line(source)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(source: &mut impl BufRead, length: usize) -> Result<Vec<u8>> {
    if length > LONGEST_BODY {
        return Err(Error::other("body too long"));
    }
    let mut bytes = vec![0; length];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_line(source: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    source.take(64 * 1024).read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Answers with a JSON body, after which the connection may be used again.
pub(super) fn write_json(
    sink: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    body: &Value,
) -> Result<()> {
    let body = body.to_string();
    write!(sink, "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\n")?;
    for (name, value) in headers {
        write!(sink, "{name}: {value}\r\n")?;
    }
    write!(sink, "content-length: {}\r\n\r\n{body}", body.len())?;
    sink.flush()
}

/// Answers a `HEAD`: without a body, whatever the length would have been.
pub(super) fn write_empty(sink: &mut impl Write) -> Result<()> {
    sink.write_all(b"HTTP/1.1 200 Scripted\r\ncontent-length: 0\r\n\r\n")?;
    sink.flush()
}

/// Begins a stream of events.
pub(super) fn begin_events(sink: &mut impl Write) -> Result<()> {
    sink.write_all(
        b"HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\n\
          cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    sink.flush()
}

/// Sends one event.
pub(super) fn write_event(sink: &mut impl Write, event: &str) -> Result<()> {
    write!(sink, "{:x}\r\n{event}\r\n", event.len())?;
    sink.flush()
}

/// Ends a stream of events, after which the connection may be used again.
pub(super) fn end_events(sink: &mut impl Write) -> Result<()> {
    sink.write_all(b"0\r\n\r\n")?;
    sink.flush()
}
