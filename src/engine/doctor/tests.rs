//! Each fault planted alone in a healthy machine is the only one found, with its remedy.

use super::{
    ClientCheck, ClientSettings, DoctorFacts, Folder, HomeCheck, LoopFact, Own, PLUGIN,
    PluginCheck, Product, Program, ScratchCheck, Severity, Version, findings, shell_word,
};
use crate::engine::record::LoopId;

const PRODUCT: Product = Product {
    name: "Claude Code",
    program: "claude",
    oldest: Version(2, 1, 163),
    newest_tried: Version(2, 1, 330),
    older_lacks: "it lacks something",
    given: "crew-inline",
};

fn healthy() -> DoctorFacts {
    DoctorFacts {
        product: &PRODUCT,
        version: "0.1.0".to_owned(),
        client: ClientCheck::Present { program: "/bin/claude".into(), version: Version(2, 1, 330) },
        plugins: Some(vec![plugin(PLUGIN)]),
        folder: Some(Folder {
            path: "/data/crew/plugin".into(),
            version: Some("0.1.0".to_owned()),
            hooks: true,
            program: "/data/crew/plugin/bin/crew".into(),
            runs: Program::Version("0.1.0".to_owned()),
        }),
        settings: vec![ClientSettings {
            path: "/home/settings.json".into(),
            ..ClientSettings::default()
        }],
        own: Own::default(),
        scratch: None,
        home: HomeCheck {
            root: "/state/crew".into(),
            unusable: None,
            mode: Some(0o700),
            settled: vec![("/home/data/home".into(), "/state/crew".into())],
        },
        git: true,
        crews: vec!["/bin/crew".into()],
        loops: Vec::new(),
        in_sessions: vec![(LoopId::from_random(7), "/repo".into())],
        unreadable: Vec::new(),
    }
}

fn plugin(id: &str) -> PluginCheck {
    PluginCheck {
        id: id.to_owned(),
        scope: "user".to_owned(),
        enabled: true,
        project: None,
        copy: None,
        errors: Vec::new(),
    }
}

fn disabled() -> PluginCheck {
    PluginCheck { enabled: false, ..plugin(PLUGIN) }
}

fn ownerless() -> LoopFact {
    let going_on = "crew resume haaaaaaa".to_owned();
    LoopFact { id: LoopId::from_random(7), checkout: "/repo".into(), going_on }
}

fn folder(facts: &mut DoctorFacts) -> &mut Folder {
    facts.folder.as_mut().unwrap()
}

type Fault = (&'static str, &'static str, fn(&mut DoctorFacts));

/// The finding, a part of its fix, and the fault.
const FAULTS: [Fault; 27] = [
    ("client-missing", "install Claude Code", |facts| facts.client = ClientCheck::Absent),
    ("client-silent", "crew doctor --client PATH", |facts| {
        facts.client = ClientCheck::Silent("exit 127".to_owned());
    }),
    ("client-too-old", "claude update", |facts| {
        facts.client = ClientCheck::Present { program: "/c".into(), version: Version(2, 1, 162) };
    }),
    ("client-older", "Esc", |facts| {
        facts.client = ClientCheck::Present { program: "/c".into(), version: Version(2, 1, 197) };
    }),
    ("plugin-missing", "crew install", |facts| {
        facts.plugins = Some(vec![plugin("other@market")]);
        facts.in_sessions.clear();
    }),
    ("plugin-given", "--plugin-dir", |facts| {
        facts.plugins = Some(vec![plugin("other@market")]);
        facts.home.settled = vec![("/data/crew-inline/home".into(), "/state/crew".into())];
    }),
    ("plugin-elsewhere", "crew install", |facts| facts.plugins = Some(vec![disabled()])),
    ("plugin-disabled", "out of /home/settings.json", |facts| {
        facts.plugins = Some(vec![disabled()]);
        facts.settings[0].enables = Some(false);
    }),
    ("plugin-shadowed", "claude plugin disable crew@zed --scope user", |facts| {
        facts.plugins.as_mut().unwrap().push(plugin("crew@zed"));
    }),
    ("plugin-not-loaded", "crew install", |facts| {
        facts.plugins.as_mut().unwrap()[0].errors.push("cache-miss".to_owned());
    }),
    ("folder-broken", "crew install", |facts| folder(facts).version = None),
    ("folder-broken", "crew install", |facts| folder(facts).hooks = false),
    ("version-skew", "/reload-plugins", |facts| folder(facts).version = Some("0.0.9".to_owned())),
    ("program-broken", "crew install", |facts| folder(facts).runs = Program::Absent),
    ("program-broken", "crew install", |facts| folder(facts).runs = Program::NotExecutable),
    ("program-broken", "crew install", |facts| folder(facts).runs = Program::Silent),
    ("program-skew", "crew install", |facts| {
        folder(facts).runs = Program::Version("0.2.0".to_owned());
    }),
    ("settings-broken", "fix", |facts| facts.settings[0].broken = Some("line 1".to_owned())),
    ("hooks-disabled", "\"disableAllHooks\" out of /home", |facts| {
        facts.settings[0].disables_hooks = true;
    }),
    ("hooks-managed", "administrator", |facts| facts.settings[0].managed_hooks_only = true),
    ("home-unusable", "CREW_HOME", |facts| facts.home.unusable = Some("read-only".to_owned())),
    ("home-open", "chmod 700 /state/crew", |facts| facts.home.mode = Some(0o755)),
    ("home-differs", "export CREW_HOME=/elsewhere", |facts| {
        facts.home.settled[0].1 = "/elsewhere".into();
    }),
    ("scratch-folder", ".worktreeinclude", |facts| {
        let why = "`make test` failed (exit 2)".to_owned();
        facts.scratch = Some(ScratchCheck { why, lacks: vec![".env".to_owned()] });
    }),
    ("git-missing", "install git", |facts| facts.git = false),
    ("crew-twice", "remove /usr/bin/crew", |facts| facts.crews.push("/usr/bin/crew".into())),
    ("loop-ownerless", "crew resume haaaaaaa resumes it", |facts| {
        facts.loops.push(ownerless());
    }),
];

#[test]
fn a_healthy_machine_has_no_finding() {
    assert_eq!(findings(&healthy()), []);
    // A home that has never run a loop has no finding either.
    let mut fresh = healthy();
    fresh.home = HomeCheck { mode: None, settled: Vec::new(), ..fresh.home };
    assert_eq!(findings(&fresh), []);
}

#[test]
fn each_planted_fault_is_found_alone_and_names_its_fix() {
    for (code, fix, plant) in FAULTS {
        let mut facts = healthy();
        plant(&mut facts);
        let found = findings(&facts);
        assert_eq!(found.iter().map(|it| it.code).collect::<Vec<_>>(), [code]);
        assert!(found[0].fix.contains(fix), "{found:#?}");
        assert!(!found[0].what.is_empty());
    }
}

#[test]
fn a_loop_of_a_live_session_is_judged_by_nobody_once_its_client_has_no_plugin() {
    let mut facts = healthy();
    facts.plugins = Some(Vec::new());
    facts.folder = None;
    let found = findings(&facts);
    let told: Vec<String> =
        found.iter().map(|it| format!("{}: {}\n  {}", it.code, it.what, it.fix)).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    plugin-missing: the client has no plugin crew@crew
      crew install; a session started with --plugin-dir needs none
    loop-unjudged: nobody judges loop haaaaaaa (/repo): its client has no crew plugin
      crew cancel haaaaaaa, or crew install and /reload-plugins in its session
    ");
    // What is not known, or may be another session's own, is not reported.
    facts.plugins = None;
    assert_eq!(findings(&facts), []);
    facts.plugins = Some(vec![disabled()]);
    assert_eq!(findings(&facts).len(), 1);
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let mut facts = healthy();
    facts.unreadable.push((LoopId::from_random(7), "newer".to_owned()));
    assert_eq!(findings(&facts)[0].code, "record-unreadable");
}

#[test]
fn the_worst_comes_first_and_a_client_that_told_nothing_is_one_finding() {
    let mut facts = healthy();
    facts.home.mode = Some(0o755);
    facts.client = ClientCheck::Absent;
    facts.plugins = Some(vec![plugin("other@market")]);
    facts.home.settled = vec![("/data/crew-inline/home".into(), "/state/crew".into())];
    facts.folder = None;
    let found = findings(&facts);
    let severities: Vec<Severity> = found.iter().map(|it| it.severity).collect();
    assert_eq!(severities, [Severity::Broken, Severity::Warning, Severity::Note]);
}

#[test]
fn a_command_to_type_survives_blanks_and_quotes() {
    assert_eq!(shell_word("/home/me/.local"), "/home/me/.local");
    assert_eq!(shell_word("/a home/it's"), r"'/a home/it'\''s'");
    let mut facts = healthy();
    facts.home = HomeCheck { root: "/a home".into(), mode: Some(0o755), ..facts.home };
    facts.home.settled.clear();
    assert_eq!(findings(&facts)[0].fix, "chmod 700 '/a home'");
}
