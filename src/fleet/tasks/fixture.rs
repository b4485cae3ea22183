//! A repository with tasks, for tests: everything that a start reads, with real git.

use std::path::PathBuf;

use tempfile::TempDir;

use super::{DescribedFleet, describe_fleet};
use engine::fleet::LandingMode;
use readers::parse::arguments::FleetRunArgs;
use world::files::disk::{self, Durability};
use world::process::{Call, ExitCause};
use world::store::Home;

/// A task whose agent exists on every machine.
pub const A_TASK: &str = "---\nagent-cmd: sh -c true\nverify: test -f done\n---\nDo it.\n";

/// A folder with the repository `shop` on the branch `main`, and the bare remote `origin.git`.
pub struct Yard {
    root: TempDir,
    pub home: Home,
}

impl Yard {
    /// A repository with the tasks `a` and `b`, committed and pushed.
    pub fn new() -> Self {
        let root = testkit::folder();
        let home = Home::at(&root.path().join("home"));
        let yard = Self { root, home };
        yard.git(".", &["init", "-q", "--bare", "-b", "main", "origin.git"]);
        yard.git(".", &["init", "-q", "-b", "main", "shop"]);
        yard.git("shop", &["config", "user.name", "Somebody"]);
        yard.git("shop", &["config", "user.email", "somebody@example.com"]);
        yard.git(
            "shop",
            &["remote", "add", "origin", &yard.path("origin.git").display().to_string()],
        );
        for name in ["a", "b"] {
            yard.write(&format!("shop/tasks/{name}.md"), A_TASK);
        }
        yard.commit("first");
        yard.git("shop", &["push", "-q", "-u", "origin", "main"]);
        yard
    }

    pub fn commit(&self, message: &str) {
        self.git("shop", &["add", "-A"]);
        self.git("shop", &["commit", "-q", "--allow-empty", "-m", message]);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        disk::real_path(self.root.path()).unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        disk::make_folder(path.parent().unwrap()).unwrap();
        disk::write(&path, text.as_bytes(), Durability::Process).unwrap();
    }

    /// The output of git in a folder, where it must succeed.
    pub fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let call = Call::of("git", &self.path(folder)).args(arguments);
        let ended = call.run(|| false).unwrap();
        assert_eq!(ended.cause(), ExitCause::Exit(0), "git {arguments:?}: {}", ended.text());
        ended.text().trim_end().to_owned()
    }

    /// The fleet of the folder `tasks`, landing on main.
    pub fn landing(&self) -> DescribedFleet {
        self.describe(&FleetRunArgs { land: Some(LandingMode::Main), ..Self::arguments() }).unwrap()
    }

    pub fn arguments() -> FleetRunArgs {
        FleetRunArgs { folder: PathBuf::from("tasks"), ..FleetRunArgs::default() }
    }

    pub fn describe(&self, arguments: &FleetRunArgs) -> anyhow::Result<DescribedFleet> {
        describe_fleet(&self.home, arguments, &self.path("shop"))
    }
}
