//! The minimum of every hook: it reads its standard input and exits. The benchmark compiles it.

use std::io::Read;

fn main() {
    let mut bytes = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut bytes);
}
