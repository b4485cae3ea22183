# Short names for the commands of CONTRIBUTING.md and BENCHMARKS.md; `just` is from https://just.systems. Nothing needs it:
# `.ci/run` is the whole of CI without it, and tests/tidy holds all of them to the same commands.

_list:
    @{{ just_executable() }} --list --unsorted

# format, lints and the rules of the tree: before every commit
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    env RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items
    cargo test --test it tidy

# a minute after compiling: the unit tests without those of git, and the rules of the tree
quick:
    cargo test --lib --bins -- --skip git::tests --skip fleet::landing --skip mutations
    cargo test --test it tidy

# every test but the long ones; one whose client or terminal is missing says so
test:
    cargo test

# every test, the long ones in the suites of .ci/long, each with its time
all: test
    .ci/long

# the suites of processes, kills, clients, agents, shells, Slurm and memory, with the binary that is shipped
shipped:
    cargo build --locked --release
    CREW_TEST_BIN=$PWD/target/release/crew RUST_TEST_THREADS=4 cargo test --test it -- --include-ignored on_2_1_ the_reset_in_the_words client:: completions:: nights:: roster:: slurm:: children:: crashes:: cut_off:: kills:: signals::

# what only runs when asked for: waits of eleven and of seven minutes, ten thousand boundaries with faults
slow:
    CREW_LONG_WAIT=1 CREW_REQUIRE_CLIENT=1 cargo test --test it eleven_minutes_are_waited_for
    CREW_LONG_WAIT=1 cargo test --test it -- --ignored twenty_loops_wait_for_a_usage_limit
    CREW_SOAK=10000 cargo test --test it -- --ignored loops_with_a_fault_at_every_boundary

# three hundred kills, in thirty fleets of twelve tasks with conflicts and red landings, one after the other
soak:
    CREW_KILLS=300 cargo test --test it -- --ignored twelve_tasks_are_each_done_once

# installs the pinned clients and runs the tests with them; needs npm, and tmux for those in a terminal
client:
    tests/client/install
    CREW_REQUIRE_CLIENT=1 cargo test --test it -- --include-ignored on_2_1_ the_reset_in_the_words

# the pictures in docs/pictures, from real runs; needs tmux, and chromium for that of a page
pictures:
    CREW_PICTURES=1 cargo test --test it -- --include-ignored picture_shows_real_output

# the lists and the schemas in docs/reference, from the code
reference:
    CREW_REFERENCE=write cargo test --bin crew -- the_reference_matches the_schemas_match

# a copy of the checkout with an addition to each of those lists: its test has to fail
reference-in-a-copy:
    CREW_SCRATCH_COPY=1 cargo test --test it reference::

# the book of docs/, in target/book; `.ci/book look` also opens every page in Chromium
book:
    .ci/book

# every pinned agent in every scenario, and the table of what came; CREW_RECORD=1 keeps what they printed
agents:
    tests/client/install
    CREW_REQUIRE_CLIENT=1 cargo test --test it roster::

# fleets on a private Slurm; needs root, slurm-wlm, munge and sshd
slurm:
    CREW_REQUIRE_SLURM=1 cargo test --test it -- slurm::

# measures the hooks and writes BENCHMARKS.md
bench:
    cargo build --release --target-dir target/shipped
    CREW_TEST_BIN=$PWD/target/shipped/release/crew cargo bench --bench hook

# licenses, sources and advisories of the crates; needs cargo-deny
deny:
    cargo deny --locked check

_tag:
    @.ci/release tag

# every check, the archives of this machine, and the tag that would release them
release: _tag check all deny
    cargo package --workspace --locked
    cargo build --locked --release --target-dir target/shipped
    .ci/release plugin
    .ci/release try "$(.ci/release binary "$(rustc -vV | sed -n 's/^host: //p')" target/shipped/release/crew)"
    .ci/release npm
    .ci/try-install
    @echo "next: git tag -a $(.ci/release tag) -m $(.ci/release tag) && git push origin $(.ci/release tag)"
