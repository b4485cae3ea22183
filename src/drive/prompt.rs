//! The prompt of one iteration: reads only what its fragments and variables need, and has it
//! assembled. Files are read each time, so that the user can change them while the loop runs.

use std::path::{Path, PathBuf};

use engine::doctor::shell_word;
use engine::evidence::said::PromptSize;
use engine::record::Loop;
use readers::prompts;
use readers::prompts::fragments::Parts;
use readers::prompts::variables::PromptInputs;
use world::files::{disk, tree};
use world::store::{Home, journal};
use world::{env, git};

/// The largest fragment that is read, in bytes.
const FRAGMENT_BYTES: u64 = 16 << 20;

/// A prompt that is ready to be sent.
#[derive(Debug)]
pub struct Prompt {
    pub text: String,
    pub size: PromptSize,
}

/// Assembles the prompt of the loop's next iteration. The error names the file and the cause.
pub fn assemble_prompt(
    home: &Home,
    subject: &Loop,
    handoff: Option<&(PathBuf, String)>,
) -> Result<Prompt, String> {
    let recipe = subject.contract.run.as_ref().map(|run| run.recipe.clone());
    let checkout = &subject.place.checkout;
    let parts = Parts::read_recipe(&recipe.unwrap_or_default(), &|path, named_by| {
        read_fragment(checkout, path, named_by)
    })?;
    let wanted = &parts.wanted;
    let status = if wanted.contains("git_status") { git::status_text(checkout) } else { None };
    let diff = if wanted.contains("git_diff") { git::diff_text(checkout) } else { None };
    let log = if wanted.contains("git_log") { git::log_text(checkout) } else { None };
    let journal = home.loop_file(&subject.id, "journal.jsonl");
    // Without its story a prompt still has its task and the latest evidence.
    let accounts = journal::last_summaries(&journal).unwrap_or_default();
    let crew = env::program_path().ok().map(|program| shell_word(&program.display().to_string()));
    let known = PromptInputs {
        accounts: &accounts,
        handoff,
        crew: crew.as_deref(),
        git_status: status.as_deref(),
        git_diff: diff.as_deref(),
        git_log: log.as_deref(),
    };
    let text = prompts::build_prompt(subject, &parts, &known)?;
    let budget = subject.contract.run.as_ref().map_or(0, |run| run.token_budget);
    let size = PromptSize::of_prompt(&text, budget);
    Ok(Prompt { text, size })
}

/// The text of a fragment or an include of a working tree's prompt.
fn read_fragment(checkout: &Path, path: &Path, named_by: &Path) -> Result<String, String> {
    if let Some(real) = tree::leads_out(checkout, path, named_by) {
        return Err(format!(
            "{} leads out of the checkout, to {}: put the text there, or name the file in your own \
             settings",
            path.display(),
            real.display()
        ));
    }
    match disk::read_text(path, FRAGMENT_BYTES) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(format!("{}: no such file", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
