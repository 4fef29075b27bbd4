use std::fmt::Write;

use serde_json::json;

use super::*;

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn plain_scalars_follow_the_json_schema() {
    let text = "[yes, ~, 0x1F, 010, .5, True, 1_000, null, true, 5, -1, 1.50, 1e3, '5', !!str 5]";
    assert_eq!(
        parse(text).unwrap(),
        json!(["yes", "~", "0x1F", "010", ".5", "True", "1_000", null, true, 5, -1, 1.5, 1000.0, "5", "5"])
    );
    assert_eq!(parse("{\"a\": 1}").unwrap(), json!({"a": 1}));
    assert_eq!(parse("1: a\ntrue: b\n1.0: c").unwrap(), json!({"1": "a", "true": "b", "1.0": "c"}));
    assert_eq!(parse("# nothing").unwrap(), Value::Null);
    assert_eq!(parse("a:\n'b': ~\nc: !!str\nd: '~'").unwrap(), json!({"a": null, "b": "~", "c": "", "d": "~"}));
    assert_eq!(
        parse("- \n- a: [b: , c]\n- {d: , e}\n-").unwrap(),
        json!([null, {"a": [{"b": null}, "c"]}, {"d": null, "e": null}, null])
    );
}

#[test]
fn aliases_are_expanded_and_merge_keys_are_not() {
    let read = parse("a: &x {k: 1}\nb: *x\nc: {<<: *x}").unwrap();
    assert_eq!(read, json!({"a": {"k": 1}, "b": {"k": 1}, "c": {"<<": {"k": 1}}}));
    assert!(error("a: &x [*x]").contains("inside the value"));
}

#[test]
fn one_document_is_read_and_a_second_is_refused() {
    assert_eq!(parse("---\na: 1\n---\n").unwrap(), json!({"a": 1}));
    assert_eq!(error("a: 1\n---\nb: 2"), "line 3: a second document begins; give one only");
}

#[test]
fn errors_name_the_line() {
    assert!(error("a: 1\nb: [").contains("line 2"));
    assert_eq!(error("a: 1\nb: 2\na: 3"), "line 3: the key `a` is repeated");
    assert_eq!(error("a: !own x"), "line 1: the tag `!own` is not allowed here");
    assert!(error("{a: 1}").contains("JSON"));
}

#[test]
fn text_that_would_exhaust_memory_or_the_stack_is_refused() {
    let mut laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{},", level - 1).repeat(10);
        let _ = writeln!(laughs, "a{level}: &a{level} [{alias}]");
    }
    assert!(error(&laughs).contains("too many"));
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 19), "*a,".repeat(1000));
    assert!(error(&long).contains("too many"));
    let mut chain = format!("a0: &a0 {}{}\n", "[".repeat(60), "]".repeat(60));
    let _ = writeln!(chain, "b: {}*a0{}", "[".repeat(60), "]".repeat(60));
    assert!(error(&chain).contains("deep"));
    for open in ["[", "{\"a\":", "- ", "{a: ", "? ", "&a [", "a: [{b: "] {
        assert!(parse(&open.repeat(MAX_BYTES / open.len())).is_err(), "{open}");
    }
    assert!(error(&"#".repeat(MAX_BYTES + 1)).contains("1048577 bytes"));
    assert!(error(&format!("[{}]", "x,".repeat(MAX_BYTES / 3))).contains("too many"));
}
