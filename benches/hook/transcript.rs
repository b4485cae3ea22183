//! Transcripts of a given size, in the client's form. A large one is a hole except for its last
//! megabytes, which are real: that is the part a hook may read.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Value, json};

/// How much of a transcript is real, in bytes.
const REAL: u64 = 4 << 20;

/// Writes a transcript of about `size` bytes: an agent that uses tools, and its last message.
pub fn write(path: &Path, size: u64) {
    let mut file = File::create(path).unwrap();
    let hole = size.saturating_sub(REAL);
    file.set_len(hole).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let mut file = BufWriter::new(file);
    let mut left = size - hole;
    for number in 0.. {
        let line = line(number).to_string();
        if left <= line.len() as u64 + 1 {
            break;
        }
        left -= line.len() as u64 + 1;
        writeln!(file, "{line}").unwrap();
    }
    let words = json!([{ "type": "text", "text": "The next part is done." }]);
    writeln!(file, "{}", assistant(&words)).unwrap();
    file.flush().unwrap();
}

/// The worst transcript for a reader that builds what it reads: one line of many small values.
pub fn write_crowded(path: &Path, size: usize) {
    let blocks = vec![json!(0); size / 2];
    std::fs::write(path, format!("{}\n", assistant(&Value::Array(blocks)))).unwrap();
}

fn line(number: usize) -> Value {
    let text = "a line of a file the agent has read, as long as such lines are\n".repeat(20);
    match number % 3 {
        0 => assistant(&json!([{
            "type": "tool_use", "id": format!("tool-{number}"), "name": "Read",
            "input": { "file_path": format!("src/part_{number}.txt") },
        }])),
        1 => json!({
            "type": "user", "isSidechain": false,
            "message": { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": format!("tool-{number}"), "content": text },
            ]},
        }),
        _ => assistant(&json!([{ "type": "text", "text": text }])),
    }
}

fn assistant(content: &Value) -> Value {
    json!({
        "type": "assistant", "isSidechain": false,
        "message": { "role": "assistant", "content": content },
    })
}
