//! The client's transcript, one JSON object a line. The format is the client's own and changes: a
//! line that cannot be read is skipped, and a missing field counts as absent.

use std::borrow::Cow;
use std::path::Path;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clients::{DatedMessage, FieldsByPointer, PendingCall};
use crate::parse::amounts::all_digits;
use engine::text::text_start;
use engine::usage::{Message, Money, Price, Rates, Tokens, new_rates};

/// Whether the agent used a tool in the turn that ends now. The turn begins with the last line that
/// contains `marker`, the beginning of crew's first line of the prompt up to its number, or with
/// the user's last prompt. If neither is in `tail`, every line counts if `cut` is set, that is, if
/// the tail begins in the middle of this iteration; otherwise none does, because a tool call that
/// cannot be placed must not hide a reply without one from the client's cap. `None` if that depends
/// on earlier lines.
pub fn used_a_tool(tail: &str, marker: &str, cut: bool) -> Option<bool> {
    let lines: Vec<&str> = tail.lines().collect();
    // The standard library searches for a short text many bytes at a time, for a long one byte by
    // byte.
    let short = marker.get(..SHORT).unwrap_or(marker);
    let begin = lines.iter().rposition(|line| {
        line.contains(short) && contains_number(line, marker) || is_a_prompt(line)
    });
    let turn = match begin {
        Some(begin) => &lines[begin + 1..],
        None if cut => &lines[..],
        None => return Some(false),
    };
    let mut blocks = turn.iter().filter_map(|line| of_assistant(line)).flatten();
    let used = blocks.any(|block| block.kind == "tool_use");
    if used || begin.is_some() { Some(used) } else { None }
}

/// Whether the line contains the number that `marker` ends with, and not only as the start of a
/// longer number.
fn contains_number(line: &str, marker: &str) -> bool {
    let mut rest = line.split(marker).skip(1);
    rest.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// How much of a marker is searched for first, in bytes.
const SHORT: usize = 16;

/// Whether a line is the user's and does not answer a tool.
fn is_a_prompt(line: &str) -> bool {
    // Inside a string the quotes would be escaped. Tool output is most of a transcript and not
    // worth parsing for this.
    if !line.contains("\"user\"") || line.contains("\"tool_result\"") {
        return false;
    }
    let blocks = own_blocks("user", line);
    blocks.is_some_and(|blocks| blocks.iter().all(|block| block.kind != "tool_result"))
}

/// The agent's final text: the last text block after the last line from the user's side. `None`
/// while that text has not been written.
pub fn final_text(tail: &str) -> Option<String> {
    let mut text = None;
    for line in tail.lines() {
        if let Some(blocks) = of_assistant(line) {
            let written = blocks.into_iter().filter(|block| block.kind != PLAIN);
            text = written.filter_map(|block| block.text).next_back().or(text);
        } else if line.contains("\"type\":\"user\"") {
            text = None;
        }
    }
    text
}

/// Whether a file beside a session's transcript is the transcript of one of its subagents.
pub fn is_an_agents(name: &str) -> bool {
    name.starts_with("agent-") && Path::new(name).extension().is_some_and(|end| end == "jsonl")
}

/// Whether the user interrupted the agent (Esc), and it has not worked since: the client's own
/// mark, as a user's line without anything else. The same words in a file or a tool's output do not
/// count, nor does an answer that the client makes up.
pub fn was_interrupted(tail: &str) -> bool {
    tail.lines().fold(false, |is_marked, line| {
        is_mark(line) || is_marked && (line.contains(MADE_UP) || of_assistant(line).is_none())
    })
}

fn is_mark(line: &str) -> bool {
    if !line.contains(INTERRUPTED) {
        return false;
    }
    let blocks = line_of("user", line).as_ref().and_then(blocks_of).unwrap_or_default();
    let [Block { text: Some(text), .. }] = blocks.as_slice() else { return false };
    text.trim().starts_with(INTERRUPTED)
}

/// The tool calls that have no result yet, the oldest first.
pub fn pending_calls(tail: &str) -> Vec<PendingCall> {
    let mut pending: Vec<PendingCall> = Vec::new();
    for line in tail.lines() {
        // Inside a text the quotes would be escaped.
        if !line.contains("\"tool_use") && !line.contains("\"tool_result") {
            continue;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line.as_bytes()) else { continue };
        for block in line.list("/message/content") {
            match (block.word("/type"), block.owned("/name")) {
                ("tool_use", Some(tool)) => {
                    pending.push(PendingCall { id: block.word("/id").to_owned(), tool });
                }
                ("tool_result", _) => pending.retain(|call| !block.is("/tool_use_id", &call.id)),
                _ => {}
            }
        }
    }
    pending
}

/// Whether `text` contains the result of the call with that id.
pub fn has_result(text: &str, call: &str) -> bool {
    text.contains(&format!("\"tool_use_id\":\"{call}\""))
}

/// How the client's mark of an interruption begins; "]" or " for tool use]" follows.
const INTERRUPTED: &str = "[Request interrupted by user";
/// How the client names the model of an answer that it made up.
const MADE_UP: &str = r#""model":"<synthetic>""#;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(rename = "isSidechain")]
    is_sidechain: Option<bool>,
    #[serde(default)]
    timestamp: Value,
    #[serde(borrow)]
    message: LineMessage<'a>,
}

#[derive(Deserialize)]
struct LineMessage<'a> {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    model: Value,
    #[serde(default)]
    usage: Value,
    /// The string or the blocks of the message, of which only a part is kept: a line may hold very
    /// many values, and in memory each is many times as large as its text.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
}

fn line_of<'line>(kind: &str, line: &'line str) -> Option<Line<'line>> {
    serde_json::from_slice(line.as_bytes()).ok().filter(|line: &Line<'_>| line.kind == kind)
}

/// The kind of content that is one string, which the client writes only for the user.
const PLAIN: &str = "plain";

/// The blocks of a line; a plain string is one block.
fn blocks_of<'line>(line: &Line<'line>) -> Option<Vec<Block<'line>>> {
    let content = line.message.content?.get().as_bytes();
    if let Ok(blocks) = serde_json::from_slice(content) {
        return Some(blocks);
    }
    Some(vec![Block { kind: PLAIN.into(), text: serde_json::from_slice(content).ok()? }])
}

/// The blocks of a line of this kind; `None` for every other line, and for a subagent's.
fn own_blocks<'line>(kind: &str, line: &'line str) -> Option<Vec<Block<'line>>> {
    line_of(kind, line).filter(|line| line.is_sidechain != Some(true)).as_ref().and_then(blocks_of)
}

fn of_assistant(line: &str) -> Option<Vec<Block<'_>>> {
    if may_be_a_models(line) { own_blocks("assistant", line) } else { None }
}

/// A cheap test whether a line, or the beginning of one, can be the model's.
pub fn may_be_a_models(line: &str) -> bool {
    line.contains("\"assistant\"")
}

/// The longest id or model kept, in characters.
const NAME_CHARS: usize = 80;

/// The model's message a line reports, with what it used, and when it was written; `None` for every
/// other line. The client writes one line for each block of a message, each with the message's id
/// and its usage.
pub fn parse_message(line: &str) -> Option<DatedMessage> {
    if !may_be_a_models(line) {
        return None;
    }
    let Line { timestamp, message, .. } = line_of("assistant", line)?;
    let LineMessage { id: Value::String(id), model: Value::String(model), usage, .. } = message
    else {
        return None;
    };
    // The one-hour part never exceeds what was written in all.
    let written = usage.count("/cache_creation_input_tokens");
    let hour = usage.count("/cache_creation/ephemeral_1h_input_tokens").min(written);
    let tokens = Tokens {
        input: usage.count("/input_tokens"),
        cache_write: written - hour,
        cache_write_hour: hour,
        cache_read: usage.count("/cache_read_input_tokens"),
        output: usage.count("/output_tokens"),
    };
    let mut message = Message {
        id: text_start(&id, NAME_CHARS).to_owned(),
        model: text_start(&model, NAME_CHARS).to_owned(),
        tokens,
        web_searches: usage.count("/server_tool_use/web_search_requests"),
        is_fast: usage.is("/speed", "fast"),
        in_the_us: usage.is("/inference_geo", "us"),
        cost: None,
    };
    message.cost = message_cost(&message);
    if message.tokens.total() == 0 && message.web_searches == 0 {
        return None;
    }
    let at = timestamp.as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
    Some((message, at.map(|at| at.to_utc())))
}

/// The table of prices; the file explains its columns.
const PRICES: &str = include_str!("prices.txt");

/// What a message cost; `None` where its model has no known price.
pub(super) fn message_cost(message: &Message) -> Option<Money> {
    Some(find_price(&message.model)?.cost_of(message))
}

/// Whether a model has a known price.
pub fn is_priced(model: &str) -> bool {
    find_price(model).is_some()
}

fn find_price(model: &str) -> Option<Price> {
    let model = bare_model(model);
    let mut rows = PRICES.lines().filter_map(|row| row.split_once(' '));
    let (_, columns) = rows.find(|(name, _)| *name == model)?;
    let columns: Vec<u64> =
        columns.split_whitespace().map_while(|column| column.parse().ok()).collect();
    let columns: [u64; 10] = columns.try_into().ok()?;
    Some(Price {
        rates: rates_at(0, &columns),
        fast: if columns[3] > 0 { Some(rates_at(3, &columns)) } else { None },
        long: if columns[6] > 0 { Some((columns[6], rates_at(7, &columns))) } else { None },
    })
}

/// The rates in three columns, beginning with this one.
fn rates_at(first: usize, columns: &[u64; 10]) -> Rates {
    new_rates(columns[first], columns[first + 1], columns[first + 2])
}

/// A model's name without its date, its place and its version there.
/// `us.anthropic.claude-opus-4-8-v1:0`, `claude-haiku-4-5@20251001` and `claude-opus-4-8[1m]` get
/// the same name as elsewhere.
fn bare_model(model: &str) -> &str {
    let from = model.find("claude-").unwrap_or(0);
    let name = &model[from..];
    let name = name.split(['@', '[', ':']).next().unwrap_or(name);
    let name = drop_last_part(name, |end| {
        end.strip_prefix('v').is_some_and(|number| all_digits(number).is_some())
    });
    let name = drop_last_part(name, |end| end.len() == 8 && all_digits(end).is_some());
    if name.ends_with("-4-0") { &name[..name.len() - 2] } else { name }
}

/// The name without its last part, if `is_so` accepts that part.
fn drop_last_part(name: &str, is_so: impl Fn(&str) -> bool) -> &str {
    match name.rsplit_once('-') {
        Some((rest, end)) if is_so(end) => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"type":"attachment","content":"crew loop k3v9abcd: iteration 2 of 5.\nGo"}"#;
    const LATER: &str =
        r#"{"type":"attachment","content":"crew loop k3v9abcd: iteration 20 of 50.\nGo"}"#;
    const TOOL: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}"#;
    const TEXT: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hm"}]}}"#;
    const ASKED: &str = r#"{"type":"user","message":{"content":"how far are you?"}}"#;
    const QUOTING: &str = r#"{"type":"user","message":{"content":"what is a \"tool_result\"?"}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#;
    const SIDE: &str =
        r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"tool_use"}]}}"#;
    const ODD: &str = r#"{"type":"assistant","timestamp":1,"message":{"id":2,"model":[],"content":[{"type":"tool_use"}]}}"#;

    #[test]
    fn only_a_tool_used_after_this_iterations_prompt_counts() {
        let marker = "crew loop k3v9abcd: iteration 2";
        let table = [
            (vec![PROMPT, TOOL, RESULT, TEXT], false, Some(true)),
            (vec![TOOL, RESULT, PROMPT, TEXT], false, Some(false)),
            (vec![LATER, TOOL, RESULT, TEXT], false, Some(false)),
            (vec![PROMPT, SIDE, TEXT], false, Some(false)),
            (vec![TOOL, RESULT, TEXT], false, Some(false)),
            (vec![TOOL, RESULT, TEXT], true, Some(true)),
            (vec![TOOL, RESULT, ASKED, TEXT], true, Some(false)),
            (vec![TOOL, RESULT, QUOTING, TEXT], true, Some(false)),
            (vec![PROMPT, TEXT, ASKED, TOOL, RESULT, TEXT], false, Some(true)),
            (vec![PROMPT, ODD, TEXT], false, Some(true)),
            (vec!["junk", "{\"type\":\"assistant\"}"], true, None),
        ];
        for (lines, cut, expected) in table {
            assert_eq!(used_a_tool(&lines.join("\n"), marker, cut), expected, "{lines:?}");
        }
    }

    #[test]
    fn only_the_clients_own_marker_is_an_interruption() {
        let mark = r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let in_tool =
            r#"{"type":"user","message":{"content":"[Request interrupted by user for tool use]"}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"[Request interrupted by user]"}]}}"#;
        let said = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let made_up = TEXT.replace("\"content\"", "\"model\":\"<synthetic>\",\"content\"");
        let aside = mark.replace("\"message\"", "\"isSidechain\":true,\"message\"");
        assert!(was_interrupted(mark) && was_interrupted(in_tool) && was_interrupted(&aside));
        assert!(was_interrupted(&format!("{TEXT}\n{mark}\n{ASKED}\n{made_up}\n{SIDE}")));
        assert!(!was_interrupted(&format!("{mark}\n{ASKED}\n{TEXT}")));
        assert!(!was_interrupted(result) && !was_interrupted(said) && !was_interrupted(TEXT));
    }

    #[test]
    fn the_waiting_call_is_the_newest_one_without_a_result() {
        let call = |id: &str, name: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{name}"}}]}}}}"#
            )
        };
        let result = |id: &str| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}}}"#
            )
        };
        let text = TEXT.to_owned();
        let table = [
            (vec![call("1", "Read"), result("1"), call("2", "Bash"), text.clone()], vec!["Bash"]),
            (vec![call("1", "Read"), call("2", "Bash"), result("2")], vec!["Read"]),
            (vec![call("1", "Edit"), call("2", "Bash")], vec!["Edit", "Bash"]),
            (vec![call("1", "Read"), result("1"), text], vec![]),
            (vec!["{\"tool_use".to_owned()], vec![]),
        ];
        for (lines, expected) in table {
            let pending = pending_calls(&lines.join("\n"));
            let tools: Vec<&str> = pending.iter().map(|call| call.tool.as_str()).collect();
            assert_eq!(tools, expected, "{lines:?}");
        }
        assert!(has_result(&result("toolu_1"), "toolu_1"));
        assert!(!has_result(&result("toolu_11"), "toolu_1") && !has_result(TEXT, ""));
    }

    #[test]
    fn the_final_message_is_never_from_an_older_turn() {
        let table = [
            (vec![PROMPT, TOOL, RESULT, TEXT], Some("hm")),
            (vec![TEXT, RESULT], None),
            (vec![TEXT, RESULT, TOOL], None),
            (vec!["{", TEXT, "{\"type\":\"system\"}"], Some("hm")),
            (vec![TEXT, r#"{"type":"assistant","message":{"content":"plain"}}"#], Some("hm")),
        ];
        for (lines, expected) in table {
            assert_eq!(final_text(&lines.join("\n")).as_deref(), expected, "{lines:?}");
        }
    }
}

#[cfg(test)]
mod usage_tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(usage: &Value) -> String {
        json!({
            "type": "assistant", "timestamp": "2026-11-22T00:05:17.250Z", "isSidechain": false,
            "message": {"id": "msg_1", "model": "claude-opus-5-5", "role": "assistant",
                "content": [{"type": "text", "text": "a \"quoted\" word"}], "usage": usage},
        })
        .to_string()
    }

    #[test]
    fn only_a_models_line_reports_what_its_message_used() {
        let (read, at) = parse_message(&line(&json!({
            "input_tokens": 1, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
            "output_tokens": 4000, "cache_creation": {"ephemeral_1h_input_tokens": 5,
            "ephemeral_5m_input_tokens": 15}, "server_tool_use": {"web_search_requests": 2},
            "inference_geo": "us", "speed": "fast", "iterations": [], "service_tier": null,
        })))
        .unwrap();
        let tokens = Tokens {
            input: 1,
            cache_write: 15,
            cache_write_hour: 5,
            cache_read: 300,
            output: 4000,
        };
        let expected = Message {
            id: "msg_1".to_owned(),
            model: "claude-opus-5-5".to_owned(),
            tokens,
            web_searches: 2,
            is_fast: true,
            in_the_us: true,
            cost: read.cost,
        };
        assert_eq!(read, expected);
        assert_eq!(at.unwrap().timestamp_millis(), 1_795_305_917_250);
        let others = [
            String::new(),
            "{".to_owned(),
            r#"{"type":"user","message":{"content":"\"assistant\""}}"#.to_owned(),
            r#"{"type":"assistant","message":{"content":[]}}"#.to_owned(),
            line(&json!({"input_tokens": 0, "output_tokens": 0})),
            line(&json!({"input_tokens": -5, "output_tokens": null})),
            line(&json!({"input_tokens": "many"})),
            line(&json!([])),
        ];
        for other in others {
            assert_eq!(parse_message(&other), None, "{other}");
        }
    }

    #[test]
    fn tokens_cached_for_an_hour_are_part_of_all_tokens_cached() {
        let table = [
            (json!({"cache_creation_input_tokens": 10}), (10, 0)),
            (json!({"cache_creation_input_tokens": 10, "cache_creation": null}), (10, 0)),
            (
                json!({"cache_creation_input_tokens": 10,
                    "cache_creation": {"ephemeral_1h_input_tokens": 30}}),
                (0, 10),
            ),
            (json!({"input_tokens": 1e30, "cache_creation": {}}), (0, 0)),
        ];
        for (usage, expected) in table {
            let tokens = parse_message(&line(&usage)).unwrap().0.tokens;
            assert_eq!((tokens.cache_write, tokens.cache_write_hour), expected, "{usage}");
        }
    }
}

#[cfg(test)]
mod prices_tests {
    use super::*;
    use engine::usage::{HIGHEST, Tokens};

    fn of(model: &str) -> Option<Rates> {
        find_price(model).map(|price| price.rates)
    }

    #[test]
    fn an_unknown_model_is_priced_at_the_highest_rate() {
        let rows: Vec<&str> = PRICES.lines().filter(|row| !row.starts_with('#')).collect();
        assert_eq!(rows.len(), 24);
        for model in rows.into_iter().map(|row| row.split(' ').next().unwrap()) {
            let price = find_price(model).expect(model);
            let long = price.long.map(|(_, rates)| rates);
            for Rates(rates) in [Some(price.rates), price.fast, long].into_iter().flatten() {
                assert!(rates.input <= HIGHEST.0.input && rates.output <= HIGHEST.0.output);
                assert!(rates.cache_write <= HIGHEST.0.cache_write, "{model}");
                assert!(rates.cache_write_hour <= HIGHEST.0.cache_write_hour);
                assert!(rates.cache_read <= HIGHEST.0.cache_read, "{model}");
            }
        }
    }

    #[test]
    fn a_model_is_recognized_by_all_its_names() {
        for name in [
            "claude-haiku-4-5",
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "anthropic/claude-haiku-4-5",
            "claude-haiku-4-5[1m]",
        ] {
            assert_eq!(of(name), Some(new_rates(1_000, 5_000, 100)), "{name}");
        }
        assert_eq!(of("claude-opus-4-20250514"), of("claude-opus-4-0"));
        for name in ["", "claude", "gpt-9", "claude-haiku-9", "claude-haiku-4-5-new", "@", "-"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn prices_depend_on_the_kind_of_token_and_on_speed_context_length_and_region() {
        let message =
            |model: &str, tokens| Message { model: model.to_owned(), tokens, ..Message::default() };
        let tokens = Tokens {
            input: 1_000_000,
            cache_write: 100_000,
            cache_write_hour: 10_000,
            cache_read: 2_000_000,
            output: 3_000,
        };
        let opus = message("claude-opus-4-8", tokens);
        assert_eq!(
            message_cost(&opus),
            Some(Money(
                5_000_000_000_000
                    + 625_000_000_000
                    + 100_000_000_000
                    + 1_000_000_000_000
                    + 75_000_000_000
            ))
        );
        let fast = Message { is_fast: true, ..opus.clone() };
        assert_eq!(message_cost(&fast).unwrap().0, message_cost(&opus).unwrap().0 * 2);
        let here = Message { in_the_us: true, web_searches: 3, ..opus.clone() };
        assert_eq!(
            message_cost(&here).unwrap().0,
            message_cost(&opus).unwrap().0 / 10 * 11 + 30_000_000_000
        );
        let haiku = |input| message("claude-haiku-5-5", Tokens { input, ..Tokens::default() });
        assert_eq!(message_cost(&haiku(100_000)), Some(Money::from_micros(10_000)));
        assert_eq!(message_cost(&haiku(100_002)), Some(Money::from_micros(50_001)));
        assert_eq!(message_cost(&message("claude-strange-9", tokens)), None);
        let all = Tokens { input: u64::MAX, ..tokens };
        assert_eq!(message_cost(&message("claude-opus-4-8", all)), Some(Money(u64::MAX)));
        assert!(HIGHEST.cost_of(&tokens) >= message_cost(&fast).unwrap());
    }
}
