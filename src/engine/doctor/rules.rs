//! Turns facts into findings, the worst first: one function for each thing looked at. A finding
//! names the problem and its remedy; it changes nothing. A missing fact produces no finding here;
//! the reason that it is missing already did.

use std::path::Path;

use super::Severity::{self, Broken, Note, Warning};
use super::{
    ClientCheck, DoctorFacts, Finding, NAME, PLUGIN, PluginCheck, Product, Program, ScratchCheck,
    shell_word,
};
use crate::engine::text::named;

/// The most ignored paths that are named.
const LACKS_MAX: usize = 5;

/// All findings for these facts.
pub fn findings(facts: &DoctorFacts) -> Vec<Finding> {
    let mut all = Vec::new();
    client(facts, &mut all);
    plugin(facts, &mut all);
    folder(facts, &mut all);
    settings(facts, &mut all);
    own_settings(facts, &mut all);
    scratch(facts, &mut all);
    home(facts, &mut all);
    machine(facts, &mut all);
    loops(facts, &mut all);
    unjudged(facts, &mut all);
    all.sort_by_key(|finding| finding.severity);
    all
}

pub(super) fn add(
    all: &mut Vec<Finding>,
    code: &'static str,
    severity: Severity,
    what: String,
    fix: String,
) {
    all.push(Finding { code, severity, what, fix });
}

fn client(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let Product { name, program, oldest, newest_tried, older_lacks, .. } = facts.product;
    let (code, severity, what, fix) = match &facts.client {
        ClientCheck::Absent if facts.own.agent.is_some() => (
            "client-missing",
            Note,
            format!(
                "`{program}` is not on PATH, so no session can run loops; crew run works with {}",
                facts.own.agent.as_deref().unwrap_or_default()
            ),
            format!("none is needed, unless you want loops in {name}'s sessions"),
        ),
        ClientCheck::Absent => (
            "client-missing",
            Broken,
            format!("`{program}` is not on PATH, so no session can run loops"),
            format!(
                "install {name}, or name its program: crew doctor --client PATH; for crew run alone name \
                 another agent under [loop] in your settings file (crew config names it)"
            ),
        ),
        ClientCheck::Silent(why) => (
            "client-silent",
            Broken,
            format!("the client does not answer: {why}"),
            format!("install {name} again, or name its program: crew doctor --client PATH"),
        ),
        ClientCheck::Present { version, .. } if version < oldest => (
            "client-too-old",
            Broken,
            format!("{name} {version} is older than {oldest}: its hooks cannot continue a loop"),
            format!("{program} update"),
        ),
        ClientCheck::Present { version, .. } if version < newest_tried => (
            "client-older",
            Note,
            format!("{name} {version} may lack what {newest_tried} has: {older_lacks}"),
            format!(
                "{program} update; until then Esc, or crew pause and crew cancel in another terminal"
            ),
        ),
        ClientCheck::Present { .. } => return,
    };
    add(all, code, severity, what, fix);
}

fn is_crew(plugin: &PluginCheck) -> bool {
    plugin.id.split('@').next() == Some(NAME)
}

/// Whether a loop was started with a plugin that the client was given for a session, not installed.
fn was_given(facts: &DoctorFacts) -> bool {
    let of = |file: &Path| file.parent().is_some_and(|data| data.ends_with(facts.product.given));
    facts.home.settled.iter().any(|(file, _)| of(file))
}

fn plugin(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let Some(plugins) = &facts.plugins else { return };
    let (ours, others): (Vec<_>, Vec<_>) =
        plugins.iter().filter(|plugin| is_crew(plugin)).partition(|plugin| plugin.id == PLUGIN);
    for other in others.iter().filter(|other| other.enabled) {
        let PluginCheck { id, scope, .. } = other;
        let what = format!("another plugin is also named {NAME}: {id}; either of them may answer");
        let fix = format!("{} plugin disable {id} --scope {scope}", facts.product.program);
        add(all, "plugin-shadowed", Broken, what, fix);
    }
    for error in ours.iter().flat_map(|plugin| &plugin.errors) {
        let what = format!("the client cannot load {PLUGIN}: {error}");
        add(all, "plugin-not-loaded", Broken, what, "crew install".to_owned());
    }
    if ours.iter().any(|plugin| plugin.enabled) {
        return;
    }
    let file = facts.settings.iter().rfind(|file| file.enables == Some(false));
    let (code, severity, what, fix) = match (file, ours.first()) {
        (Some(file), _) => (
            "plugin-disabled",
            Broken,
            format!("{PLUGIN} is disabled by \"enabledPlugins\" in {}", file.path.display()),
            format!("take \"{PLUGIN}\": false out of {}", file.path.display()),
        ),
        (None, Some(_)) => (
            "plugin-elsewhere",
            Broken,
            format!("{PLUGIN} is installed, but not for this folder"),
            "crew install (for all your folders)".to_owned(),
        ),
        (None, None) if was_given(facts) => (
            "plugin-given",
            Note,
            format!("the client has no plugin {PLUGIN}, but a session had it by --plugin-dir"),
            "give --plugin-dir to every session, or: crew install".to_owned(),
        ),
        (None, None) => (
            "plugin-missing",
            Broken,
            format!("the client has no plugin {PLUGIN}"),
            "crew install; a session started with --plugin-dir needs none".to_owned(),
        ),
    };
    add(all, code, severity, what, fix);
}

fn folder(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let Some(folder) = &facts.folder else { return };
    let (path, program) = (folder.path.display(), folder.program.display());
    let again = || "crew install, then /reload-plugins in running sessions".to_owned();
    match &folder.version {
        None => {
            let what = format!("{path} does not hold crew's plugin");
            add(all, "folder-broken", Broken, what, again());
            return;
        }
        Some(_) if !folder.hooks => {
            let what = format!("{path} holds no readable hooks, so no hook runs");
            add(all, "folder-broken", Broken, what, again());
        }
        Some(version) if *version != facts.version => {
            let what =
                format!("the plugin in {path} is of crew {version}, this is {}", facts.version);
            add(all, "version-skew", Broken, what, again());
        }
        Some(_) => {}
    }
    let what = match &folder.runs {
        Program::Absent => format!("{program} does not exist, so no hook runs"),
        Program::NotExecutable => format!("{program} is not executable, so no hook runs"),
        Program::Silent => format!("{program} is not a working crew"),
        Program::Version(version) if *version != facts.version => {
            let what =
                format!("the hooks run crew {version} ({program}), this is {}", facts.version);
            add(all, "program-skew", Broken, what, again());
            return;
        }
        Program::Version(_) => return,
    };
    add(all, "program-broken", Broken, what, again());
}

fn settings(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    for file in &facts.settings {
        let path = file.path.display();
        if let Some(why) = &file.broken {
            let what = format!("{path} cannot be read as settings: {why}");
            add(all, "settings-broken", Broken, what, format!("fix or remove {path}"));
        }
        if file.disables_hooks {
            let what = format!("{path} sets \"disableAllHooks\": no hook of crew's runs");
            let fix = format!("take \"disableAllHooks\" out of {path}");
            add(all, "hooks-disabled", Broken, what, fix);
        }
        if file.managed_hooks_only {
            let what = format!("{path} allows managed hooks only: no hook of crew's runs");
            let fix = "ask this machine's administrator to allow crew's plugin";
            add(all, "hooks-managed", Broken, what, fix.to_owned());
        }
    }
}

fn home(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let home = &facts.home;
    let root = home.root.display();
    if let Some(why) = &home.unusable {
        let what = format!("loops cannot be kept in {root}: {why}");
        let fix = format!("make {root} a folder you can write, or set CREW_HOME to one");
        add(all, "home-unusable", Broken, what, fix);
    }
    if let Some(mode) = home.mode.filter(|mode| mode & 0o077 != 0) {
        let what = format!("other users can read {root} (mode {mode:04o}); logs may hold secrets");
        let fix = format!("chmod 700 {}", shell_word(&root.to_string()));
        add(all, "home-open", Warning, what, fix);
    }
    for (file, theirs) in &home.settled {
        if *theirs != home.root {
            let (file, theirs) = (file.display(), theirs.display());
            let word = shell_word(&theirs.to_string());
            let what = format!(
                "hooks keep loops in {theirs} (named in {file}), but this terminal looks in {root}"
            );
            let fix = format!("export CREW_HOME={word}, or remove {file} while no loop runs");
            add(all, "home-differs", Broken, what, fix);
        }
    }
}

fn machine(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    if !facts.git {
        let what = "`git` does not answer: changes and commits are not seen, and no loop can stall"
            .to_owned();
        add(all, "git-missing", Warning, what, "install git".to_owned());
    }
    if let [first, others @ ..] = facts.crews.as_slice()
        && !others.is_empty()
    {
        let others: Vec<String> = others.iter().map(|other| other.display().to_string()).collect();
        let (runs, not) = (first.display(), others.join(", "));
        let what = format!("more than one crew is on PATH: {runs} runs, not {not}");
        add(all, "crew-twice", Warning, what, format!("remove {}", others.join(" and ")));
    }
}

fn loops(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    for subject in &facts.loops {
        let (id, checkout) = (&subject.id, subject.checkout.display());
        let what = format!("the owner of loop {id} ({checkout}) is gone");
        let fix = format!("{} resumes it; crew cancel {id} ends it", subject.going_on);
        add(all, "loop-ownerless", Warning, what, fix);
    }
    for (id, why) in &facts.unreadable {
        let what = format!("the record of loop {id} cannot be read: {why}");
        let fix = format!(
            "its journal says what happened; a newer crew may read it: {}",
            facts.home.root.join("loops").join(id.as_str()).display()
        );
        add(all, "record-unreadable", Warning, what, fix);
    }
}

/// The loops of live sessions whose client has lost crew's plugin. One that is enabled elsewhere
/// may be theirs, and so may one that their session was given.
fn unjudged(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let Some(plugins) = &facts.plugins else { return };
    if plugins.iter().any(is_crew) || was_given(facts) {
        return;
    }
    for (id, checkout) in &facts.in_sessions {
        let checkout = checkout.display();
        let what = format!("nobody judges loop {id} ({checkout}): its client has no crew plugin");
        let fix = format!("crew cancel {id}, or crew install and /reload-plugins in its session");
        add(all, "loop-unjudged", Broken, what, fix);
    }
}

fn scratch(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let Some(ScratchCheck { why, lacks }) = &facts.scratch else { return };
    let mut lacks = named(lacks, LACKS_MAX);
    if !lacks.is_empty() {
        lacks.insert_str(0, "; git ignores, and the folder lacks: ");
    }
    let what = format!(
        "{why} in crew's scratch folder, though the checks passed here: what crew tries there shows nothing{lacks}"
    );
    let fix = "name in .worktreeinclude the ignored files that it needs, or under [loop] the \
               command that prepares a new checkout: setup = \"npm ci\"";
    add(all, "scratch-folder", Warning, what, fix.to_owned());
}

/// The rules for crew's own settings files.
fn own_settings(facts: &DoctorFacts, all: &mut Vec<Finding>) {
    let own = &facts.own;
    for (faults, way_out) in
        [(&own.faults, "correct that line"), (&own.variables, "correct or unset the variable")]
    {
        for fault in faults {
            let fix = format!("{way_out}: until then no loop starts here");
            add(all, "settings-unreadable", Broken, fault.clone(), fix);
        }
    }
    if !own.untrusted.is_empty() {
        let what = format!(
            "the project's settings need trust, and nobody on this machine has given it, so no loop starts here: {}",
            own.untrusted.join("; ")
        );
        let fix = "read it, then run `crew trust` in a terminal here; or start with --no-project";
        add(all, "settings-untrusted", Broken, what, fix.to_owned());
    }
    for what in &own.agents_missing {
        let fix = "install it, or name another under [loop]: until then crew run starts nothing";
        add(all, "agent-missing", Broken, what.clone(), fix.to_owned());
    }
    if let Some(what) = &own.check_missing {
        let fix = "install it, or name another command: until then no loop starts here";
        add(all, "check-missing", Broken, what.clone(), fix.to_owned());
    }
    for key in &own.unknown {
        let fix = "correct or remove the key; `crew config` shows what is in force".to_owned();
        add(all, "settings-unknown-key", Warning, key.clone(), fix);
    }
}
