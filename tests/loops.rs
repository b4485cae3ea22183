//! Whole loops in the real client: what the agent is asked, how often, and how it ends.

use serde_json::Value;

use crate::client::{Api, Client, Installed, Reply, on_both_clients};
use crate::sandbox::{Sandbox, checkout};

on_both_clients!(twelve_tool_less_iterations_all_run_and_the_cap_is_never_met);

fn status(sandbox: &Sandbox) -> Value {
    let told = sandbox.crew(&["status", "--json"]).success();
    serde_json::from_str::<Value>(&told).unwrap()["loops"][0].clone()
}

fn twelve_tool_less_iterations_all_run_and_the_cap_is_never_met(client: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted((1..=20).map(|n| Reply::text(&format!("thinking {n}"))));
    let session = Client::new(client, &sandbox, &api)
        .plugin(checkout())
        .prompt("/crew:loop \"Build the todo API\" --max-iterations 12 --stall 0")
        .run();
    let told = status(&sandbox);
    assert_eq!(told["outcome"], "exhausted", "{told:#}\n{:#?}", session.informational());
    assert_eq!(told["completed_iterations"], 12);
    assert_eq!(api.main_requests().len(), 12);
}
