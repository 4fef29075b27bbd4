//! The filters of the list: tabs of states with their counts, the fields, and those that are set. All of them are in the address.

use maud::{Markup, html};

use super::{form, layout::word, names::Names, text::cut};
use sparkgate_service::{Session, StateCounts};
use sparkgate_submission::{FailureClass, FailureCode, State};

/// Links to states that belong together.
const GROUPS: [(&str, &[State]); 6] = [
    ("All", &[]),
    ("Waiting", &[State::Queued, State::Launching, State::Pending]),
    ("Running", &[State::Running, State::Killing]),
    ("Failed", &State::FAILED),
    ("Killed", &[State::Killed]),
    ("Finished", &[State::Finished]),
];
/// The largest count that is shown as it is.
const MOST: u64 = 999;
/// The longest value that a chip shows, in bytes.
const LONGEST: usize = 80;
/// The parameters that narrow the list, with their names for people.
const FILTERS: [(&str, &str); 14] = [
    ("state", "State"),
    ("nameContains", "Name contains"),
    ("name", "Name begins with"),
    ("id", "Id begins with"),
    ("failureCode", "Reason"),
    ("principal", "By"),
    ("owner", "Owner"),
    ("tenant", "Tenant"),
    ("namespace", "Namespace"),
    ("queue", "Queue"),
    ("label", "Label"),
    ("clientId", "Client's id"),
    ("sparkVersion", "Spark"),
    ("createdAfter", "Since"),
];
const BEFORE: (&str, &str) = ("createdBefore", "Before");
/// The parameters that have a field of the form.
const FIELDS: [&str; 10] = [
    "nameContains",
    "failureCode",
    "principal",
    "createdAfter",
    "createdBefore",
    "tenant",
    "queue",
    "owner",
    "namespace",
    "label",
];

/// Returns the states that a query names, in upper case.
fn states(query: &str) -> Vec<String> {
    let lists = form::values(query, "state");
    lists.iter().flat_map(|list| list.split(',')).map(|state| state.trim().to_ascii_uppercase()).collect()
}

fn words(states: &[State]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}

/// Returns whether the states of a query are those of a group, and whether the group has all of them.
fn relation(given: &[String], group: &[State]) -> (bool, bool) {
    let words = words(group);
    let are_in = given.iter().all(|state| words.contains(&state.as_str()));
    let has_all = words.iter().all(|word| given.iter().any(|state| state == word));
    (are_in && has_all, are_in && !given.is_empty() || given.is_empty() && group.is_empty())
}

/// The tabs. The one that the states of the query are in is the current one; a narrower choice has a chip, too.
pub(super) fn tabs(query: &str, counts: Option<&StateCounts>) -> Markup {
    let given = states(query);
    html! {
        nav.groups #groups data-live aria-label="States" {
            @for (name, group) in GROUPS {
                @let (_, is_current) = relation(&given, group);
                a href={ "submissions?" (form::with(query, &[("state", &words(group).join(","))])) } aria-current=[is_current.then_some("true")] {
                    (name) @if let Some(count) = counts.map(|counts| counts.of(group)) { " " span.count { (bounded(count)) } }
                }
            }
        }
    }
}

/// Returns a count that may be larger.
fn bounded((count, may_be_more): (u64, bool)) -> String {
    match (count, may_be_more) {
        (MOST.., true) => format!("{MOST}+"),
        (count, _) if count > MOST => format!("{MOST}+"),
        (count, true) => format!("{count}+"),
        (count, false) => count.to_string(),
    }
}

/// What is set, each with a link that removes it.
pub(super) fn chips(query: &str, names: &Names) -> Markup {
    let given = states(query);
    let is_group = GROUPS.iter().any(|(_, group)| relation(&given, group).0);
    let set = FILTERS.iter().chain([&BEFORE]).filter(|(name, _)| *name != "state" || !is_group);
    let set: Vec<(&str, &str, String)> = set
        .flat_map(|(name, title)| form::values(query, name).into_iter().map(move |value| (*name, *title, value)))
        .collect();
    html! {
        @if !set.is_empty() {
            nav.chips aria-label="Filters that are set" {
                @for (name, title, value) in &set {
                    @let shown = if *name == "principal" { names.of(value) } else { value };
                    a.chip href={ "submissions?" (form::without(query, name, value)) } title="Remove this filter" {
                        (title) ": " (word(&cut(shown, LONGEST))) span aria-hidden="true" { " ×" } span.hidden { ", remove" }
                    }
                }
                @if set.len() > 1 { a href={ "submissions?" (cleared(query)) } { "Remove all" } }
            }
        }
    }
}

/// Returns a query without any filter. What doesn't narrow the list stays.
fn cleared(query: &str) -> String {
    let all: Vec<(&str, &str)> = FILTERS.iter().chain([&BEFORE]).map(|(name, _)| (*name, "")).collect();
    form::with(query, &all)
}

/// The fields. What the address has besides them stays in it.
pub(super) fn fields(query: &str, caller: &Session) -> Markup {
    let tenants = caller.tenants();
    let tenants = if tenants.len() > 1 { tenants } else { Vec::new() };
    let queues = caller.queues();
    let value = |name: &str| form::values(query, name).into_iter().next().unwrap_or_default();
    let others = form_urlencoded::parse(query.as_bytes());
    // A field holds one label; the others are chips.
    let others = others.filter(|(name, _)| name != "cursor" && !FIELDS.contains(&&**name));
    let labels = form::values(query, "label");
    let more = ["owner", "namespace", "label"].iter().any(|name| !value(name).is_empty());
    let text = |name: &str, title: &str| {
        html! { input name=(name) value=(value(name)) placeholder=(title) aria-label=(title) autocapitalize="off"; }
    };
    html! {
        form method="get" action="submissions" {
            @for (name, value) in others { input type="hidden" name=(name) value=(value); }
            @for label in labels.iter().skip(1) { input type="hidden" name="label" value=(label); }
            input type="search" name="nameContains" value=(value("nameContains")) placeholder="Part of the name" aria-label="Part of the name" maxlength="253" data-filter;
            select name="failureCode" aria-label="Reason" { (codes(&value("failureCode"))) }
            (text("principal", "By, as corp:alice"))
            (date("createdAfter", "Since", &value("createdAfter")))
            (date("createdBefore", "Before", &value("createdBefore")))
            @if !tenants.is_empty() {
                select name="tenant" aria-label="Tenant" {
                    option value="" { "All tenants" }
                    @for tenant in &tenants { option value=(tenant) selected[**tenant == value("tenant")] { (tenant) } }
                }
            }
            @if !queues.is_empty() {
                select name="queue" aria-label="Queue" {
                    option value="" { "All queues" }
                    @for queue in &queues { option value=(queue.name) selected[queue.name == value("queue")] { (queue.name) } }
                }
            }
            details.more open[more] {
                summary { "More" }
                (text("owner", "Owner"))
                (text("namespace", "Namespace"))
                (text("label", "label=value"))
            }
            button { "Filter" }
        }
    }
}

/// The failure codes by class. One that the address combines with others stays as it is written there.
fn codes(given: &str) -> Markup {
    let is_known = |code: &&FailureCode| code.as_str().eq_ignore_ascii_case(given);
    html! {
        option value="" { "All reasons" }
        @if !given.is_empty() && !FailureCode::ALL.iter().any(|code| is_known(&code)) {
            option value=(given) selected { (given) }
        }
        @for class in FailureClass::ALL {
            optgroup label=(class.as_str()) {
                @for code in FailureCode::ALL.iter().filter(|code| code.class() == class) {
                    option value=(code.as_str()) selected[is_known(&code)] { (code.as_str()) }
                }
            }
        }
    }
}

/// A field for a day. A time, which an address may have, stays a text.
fn date(name: &str, title: &str, value: &str) -> Markup {
    let is_day = value.is_empty() || value.parse::<chrono::NaiveDate>().is_ok();
    html! {
        label.day { (title) input type=(if is_day { "date" } else { "text" }) name=(name) value=(value) title={ (title) ", from midnight UTC" }; }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tab_of_the_states_is_current_however_they_are_written() {
        let current = |query: &str| {
            let text = tabs(query, None).into_string();
            let at = text
                .find("aria-current")
                .map(|at| text[at..].split('>').nth(1).unwrap().split('<').next().unwrap().to_owned());
            at.unwrap_or_default()
        };
        for (query, tab) in [
            ("", "All"),
            ("name=x", "All"),
            ("state=FAILED", "Failed"),
            ("state=lost,failed", "Failed"),
            ("state=FAILED&state=ERROR&state=LOST", "Failed"),
            ("state=RUNNING", "Running"),
            ("state=FAILED,KILLED", ""),
        ] {
            assert_eq!(current(query), tab, "{query}");
        }
    }

    #[test]
    fn each_filter_that_is_set_has_a_link_without_it() {
        let links = |query: &str| {
            let text = chips(query, &Names::default()).into_string();
            text.split("href=\"submissions?")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"))
                .collect::<Vec<_>>()
        };
        assert_eq!(links("state=FAILED,ERROR,LOST&limit=10"), [""; 0], "a tab says so");
        assert_eq!(links("state=FAILED&limit=10"), ["limit=10"]);
        assert_eq!(
            links("label=a%3Db&label=c%3Dd&owner=x"),
            ["label=a%3Db&label=c%3Dd", "label=c%3Dd&owner=x", "label=a%3Db&owner=x", ""]
        );
    }

    #[test]
    fn counts_are_bounded() {
        assert_eq!(
            [(7, false), (7, true), (999, false), (1000, false), (5000, true)].map(bounded),
            ["7", "7+", "999", "999+", "999+"]
        );
    }
}
