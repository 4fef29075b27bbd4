//! The committed values, and the tolerance of the comparison.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use allocation_counter::AllocationInfo;

/// The variable that makes the measured values the expected ones.
const ACCEPT: &str = "SPARKGATE_WRITE_ALLOCATIONS";
/// The tolerance for allocations and bytes: other releases of the compiler and the standard library allocate
/// differently.
const TOLERANCE: f64 = 0.05;

/// The costs of each path, by name. Costs not named `allocations` or `bytes` are the same on every machine.
pub(crate) type Costs = BTreeMap<String, u64>;
type Paths = BTreeMap<String, Costs>;

/// Makes one test at a time write the file.
static FILE: Mutex<()> = Mutex::new(());

/// Fails if `measured` differs from the expected costs of `path`; `details` become part of the message.
///
/// # Panics
/// The costs are higher or lower than expected.
pub(crate) fn compare(path: &str, measured: Costs, details: &str) {
    let _one = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/allocations/expected.json"));
    let mut all: Paths = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let expected = all.get(path).cloned().unwrap_or_default();
    if std::env::var_os(ACCEPT).is_some() {
        // A cost that hardly changed keeps its value, so that the diff shows only real changes.
        if differences(&expected, &measured).is_some() {
            all.insert(path.to_owned(), measured);
            fs::write(&file, serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
        }
        return;
    }
    if let Some(differences) = differences(&expected, &measured) {
        panic!(
            "the cost of one {path} changed:\n{differences}{details}\
             If this is meant, `make allocations` writes it to tests/allocations/expected.json."
        );
    }
}

fn differences(expected: &Costs, measured: &Costs) -> Option<String> {
    let mut text = String::new();
    let names = expected.keys().chain(measured.keys().filter(|name| !expected.contains_key(*name)));
    for name in names {
        let cost = |costs: &Costs| costs.get(name).copied().unwrap_or_default();
        let (was, is) = (cost(expected), cost(measured));
        let tolerance = if matches!(name.as_str(), "allocations" | "bytes") { TOLERANCE } else { 0.0 };
        if is.abs_diff(was) as f64 > was as f64 * tolerance {
            let percent = (is as f64 / was as f64 - 1.0) * 100.0;
            let percent = if was == 0 { String::new() } else { format!(" ({percent:+.1} %)") };
            writeln!(text, "  {name}: {is} instead of {was}{percent}").unwrap();
        }
    }
    (!text.is_empty()).then_some(text)
}

/// Returns the median of several measurements: the load of the machine decides how a socket's bytes are split into
/// reads.
pub(crate) fn median(mut measured: Vec<AllocationInfo>) -> Costs {
    let mut of = |cost: fn(&AllocationInfo) -> u64| {
        measured.sort_by_key(cost);
        cost(&measured[measured.len() / 2])
    };
    let (allocations, bytes) = (of(|info| info.count_total), of(|info| info.bytes_total));
    Costs::from([("allocations".to_owned(), allocations), ("bytes".to_owned(), bytes)])
}

#[test]
fn a_difference_names_both_values_and_the_percentage() {
    let costs = |allocations: u64, statements: u64| {
        Costs::from([("allocations".to_owned(), allocations), ("statements".to_owned(), statements)])
    };
    assert_eq!(differences(&costs(1000, 4), &costs(1050, 4)), None);
    let report = differences(&costs(1000, 4), &costs(1051, 3)).unwrap();
    assert_eq!(report, "  allocations: 1051 instead of 1000 (+5.1 %)\n  statements: 3 instead of 4 (-25.0 %)\n");
    let report = differences(&costs(1000, 4), &costs(900, 4)).unwrap();
    assert_eq!(report, "  allocations: 900 instead of 1000 (-10.0 %)\n");
    assert_eq!(differences(&Costs::new(), &costs(7, 0)).unwrap(), "  allocations: 7 instead of 0\n");
}
