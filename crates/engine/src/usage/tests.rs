use super::*;

fn message(id: &str, model: &str, input: u64, output: u64) -> Message {
    let tokens = Tokens { input, output, ..Tokens::default() };
    let (id, model) = (id.to_owned(), model.to_owned());
    let cost = (model == HAIKU).then(|| new_rates(1_000, 5_000, 100).cost_of(&tokens));
    Message { id, model, tokens, cost, ..Message::default() }
}

fn counted(messages: &[Message]) -> (Usage, Vec<CountedMessage>) {
    let (mut usage, mut recent) = (Usage::default(), Vec::new());
    for message in messages {
        usage.count_message(message, &mut recent, 3);
    }
    (usage, recent)
}

const HAIKU: &str = "haiku";

#[test]
fn a_message_reported_in_many_lines_is_counted_once_by_its_fullest_line() {
    let lines = [(100, 1), (100, 40), (100, 40), (100, 7)];
    let lines = lines.map(|(input, output)| message("msg_1", HAIKU, input, output));
    let (usage, recent) = counted(&lines);
    assert_eq!((usage.tokens.input, usage.tokens.output), (100, 40));
    assert_eq!(usage.cost, Money::from_micros(100 + 5 * 40));
    assert_eq!(recent.len(), 1);
}

#[test]
fn a_message_whose_lines_are_split_between_two_reads_is_counted_once() {
    let (mut usage, mut recent) = counted(&[message("msg_1", HAIKU, 100, 2)]);
    let mut next = Usage::default();
    next.count_message(&message("msg_1", HAIKU, 100, 50), &mut recent, 3);
    next.count_message(&message("msg_2", HAIKU, 10, 1), &mut recent, 3);
    assert_eq!((next.tokens.input, next.tokens.output), (10, 49));
    usage.add_usage(&next);
    assert_eq!((usage.tokens.input, usage.tokens.output), (110, 51));
    assert_eq!(usage.cost, Money::from_micros(110 + 5 * 51));
}

#[test]
fn only_the_last_few_messages_are_remembered() {
    let messages: Vec<_> = (0..9).map(|n| message(&format!("msg_{n}"), HAIKU, 1, 1)).collect();
    let (usage, recent) = counted(&messages);
    assert_eq!(usage.tokens.total(), 18);
    let ids: Vec<&str> = recent.iter().map(|counted| counted.id.as_str()).collect();
    assert_eq!(ids, ["msg_6", "msg_7", "msg_8"]);
}

#[test]
fn a_model_without_a_price_is_named_and_counts_at_the_highest_price() {
    let (usage, _) =
        counted(&[message("1", HAIKU, 1_000_000, 0), message("2", "strange-1", 1_000_000, 0)]);
    assert_eq!(usage.cost, Money::from_micros(1_000_000));
    assert_eq!(usage.cost_at_most(), Money::from_micros(31_000_000));
    let table = [
        (false, "$1.00 and 1M tokens of strange-1, of unknown price · 2M tokens"),
        (true, "$31.00 (no known price for strange-1: counted at the highest) · 2M tokens"),
    ];
    for (limited, expected) in table {
        assert_eq!(usage.usage_text(limited).as_deref(), Some(expected));
    }
}

#[test]
fn tokens_without_any_price_are_shown_without_a_sum_of_money() {
    let (mut usage, _) = counted(&[message("1", "strange-1", 2_000, 0)]);
    let highest = "$0.06 (no known price for strange-1: counted at the highest) · 2k tokens";
    assert_eq!(usage.usage_text(true).as_deref(), Some(highest));
    let alone = "2k tokens of strange-1, of unknown price";
    assert_eq!(usage.usage_text(false).as_deref(), Some(alone));
    usage.lost = true;
    assert_eq!(usage.usage_text(false).unwrap(), format!("at least {alone}"));
}

#[test]
fn sums_saturate_and_unread_usage_is_reported() {
    let (mut usage, _) = counted(&[message("1", HAIKU, u64::MAX, u64::MAX)]);
    usage.add_usage(&usage.clone());
    assert_eq!((usage.tokens.total(), usage.cost), (u64::MAX, Money(u64::MAX)));
    let (mut usage, _) = counted(&[message("1", HAIKU, 1_840_000, 0)]);
    usage.add_usage(&Usage { behind: true, ..Usage::default() });
    assert_eq!(usage.cost_text(false).as_deref(), Some("at least $1.84"));
    usage.add_usage(&Usage::default());
    assert_eq!(usage.usage_text(false).as_deref(), Some("$1.84 · 1.8M tokens"));
    usage.add_usage(&Usage { lost: true, ..Usage::default() });
    usage.add_usage(&Usage::default());
    assert!(usage.is_lower_bound());
    assert_eq!(Usage::default().usage_text(false), None);
}

#[test]
fn token_counts_are_formatted_as_people_write_them() {
    let tokens = [0, 950, 1_000, 123_456, 2_000_000, 2_150_000].map(tokens_text);
    assert_eq!(tokens, ["0", "950", "1k", "123k", "2M", "2.1M"]);
    let money = [0, 1_200, 10_000, 1_839_999, 1_000_000_000].map(Money::from_micros);
    let money = money.map(|money| money.to_string());
    assert_eq!(money, ["$0.00", "$0.0012", "$0.01", "$1.84", "$1000.00"]);
}

#[test]
fn the_cost_of_an_agent_that_reports_no_tokens_is_shown_alone() {
    let usage = Usage { cost: Money::from_micros(2_500_000), ..Usage::default() };
    let shown = [usage.cost_text(true), usage.usage_text(true), usage.usage_text(false)];
    assert_eq!(shown, ["$2.50"; 3].map(|cost| Some(cost.to_owned())));
    assert_eq!(Usage::default().usage_text(false), None);
}
