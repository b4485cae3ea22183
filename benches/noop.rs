//! The floor of every hook: reads its standard input and exits. It is compiled by the benchmark.

use std::io::Read;

fn main() {
    let mut bytes = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut bytes);
}
