//! Expressions of the operator's own rules, in the Common Expression Language.

mod cost;

use std::thread;

use cel::{
    IdedExpr, Program,
    common::ast::{ComprehensionExpr, EntryExpr, Expr},
};

pub(crate) use cost::Estimate;

use crate::{document::CelRule, violation::Fault};

/// Maximum length of an expression.
const MAX_LENGTH: usize = 4096;
/// Maximum number of rules.
const MAX_RULES: usize = 50;
/// Maximum number of loops (`all`, `exists`, `map` …) within each other.
const MAX_NESTING: usize = 3;
/// Maximum depth of an expression: evaluation is recursive.
const MAX_DEPTH: usize = 100;

/// Maximum number of brackets within each other.
const MAX_BRACKETS: usize = 32;
/// The stack of the parser, in bytes.
const PARSER_STACK: usize = 128 << 20;

/// The variables that an expression may use.
const VARIABLES: [&str; 5] = ["executor", "executorTemplate", "objects", "pod", "properties"];
/// The types that an expression may compare with (`type(x) == string`).
const TYPES: [&str; 9] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

#[derive(Debug, Default)]
pub(crate) struct CelRules(pub(crate) Vec<CompiledRule>);

#[derive(Debug)]
pub(crate) struct CompiledRule {
    /// The name in violations: `cel:<name>`.
    pub(crate) rule: String,
    pub(crate) program: Program,
    pub(crate) message: String,
}

impl CelRules {
    pub(crate) fn compile(rules: &[CelRule], faults: &mut Vec<Fault>) -> Self {
        if rules.len() > MAX_RULES {
            faults.push(Fault::new("cel", format!("{} rules are too many: the maximum is {MAX_RULES}", rules.len())));
            return Self::default();
        }
        let mut compiled = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if rule.name.is_empty() || !rule.name.chars().all(is_word) {
                let message = "a name consists of letters, digits, `-` and `_`";
                faults.push(Fault::new(&format!("cel[{index}].name"), message));
            }
            match program(&rule.expression) {
                Ok(program) => compiled.push(CompiledRule {
                    rule: format!("cel:{}", rule.name),
                    program,
                    message: rule.message.clone(),
                }),
                Err(reason) => faults.push(Fault::new(&format!("cel[{index}].expression"), reason)),
            }
        }
        Self(compiled)
    }
}

/// Compiles an expression. The parser is recursive and not ours, so it runs on a thread of its own: a panic ends only that, and
/// its stack is large enough for the longest expression.
fn program(text: &str) -> Result<Program, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("an expression has at most {MAX_LENGTH} characters"));
    }
    if nesting(text) > MAX_BRACKETS {
        return Err(format!("at most {MAX_BRACKETS} brackets may be within each other"));
    }
    let text = text.to_owned();
    let parser = thread::Builder::new().stack_size(PARSER_STACK).spawn(move || {
        let program = Program::compile(&text).map_err(|errors| format!("it can't be compiled: {errors}"))?;
        Check { bound: Vec::new() }.expression(program.expression(), 0)?;
        Ok(program)
    });
    let parser = parser.map_err(|error| format!("no thread could be started to compile it: {error}"))?;
    parser.join().unwrap_or_else(|_| Err("the parser failed on it".to_owned()))
}

/// Returns how many brackets are within each other at most.
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// A walk over an expression that checks its names, how deep it is, and how many loops are within each other.
struct Check<'a> {
    /// The variables of the loops around the current place.
    bound: Vec<&'a str>,
}

impl<'a> Check<'a> {
    fn expression(&mut self, expression: &'a IdedExpr, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("it is too deep".to_owned());
        }
        let depth = depth + 1;
        match &expression.expr {
            Expr::Call(call) => {
                let mut parts = call.target.as_deref().into_iter().chain(&call.args);
                parts.try_for_each(|part| self.expression(part, depth))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, depth),
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.expression(element, depth)),
            Expr::Select(select) => self.expression(&select.operand, depth),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr, depth)),
            Expr::Struct(_) => Err("it creates a message, and there are none here".to_owned()),
            Expr::Ident(name) if !self.knows(name) => {
                Err(format!("`{name}` is unknown; the variables are {}", VARIABLES.join(", ")))
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr, depth: usize) -> Result<(), String> {
        self.expression(&comprehension.iter_range, depth)?;
        let outer = self.bound.len();
        self.bound.push(&comprehension.iter_var);
        self.bound.push(comprehension.iter_var2.as_deref().unwrap_or_default());
        if self.bound.len() > 2 * MAX_NESTING {
            return Err(format!("at most {MAX_NESTING} loops (all, exists, map, filter) may be within each other"));
        }
        let inner =
            [&comprehension.accu_init, &comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
        let checked = inner.into_iter().try_for_each(|inner| self.expression(inner, depth));
        self.bound.truncate(outer);
        checked
    }

    fn entry(&mut self, entry: &'a EntryExpr, depth: usize) -> Result<(), String> {
        match entry {
            EntryExpr::StructField(field) => self.expression(&field.value, depth),
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key, depth)?;
                self.expression(&entry.value, depth)
            }
        }
    }

    /// Returns whether a name is one of our variables, a loop's, a type's, or one that a macro has generated (`@result`).
    fn knows(&self, name: &str) -> bool {
        VARIABLES.contains(&name) || TYPES.contains(&name) || self.bound.contains(&name) || name.starts_with('@')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(expression: &str) -> Option<String> {
        program(expression).err()
    }

    #[test]
    fn an_expression_is_checked_when_the_policy_is_compiled() {
        assert_eq!(fault("pod.spec.containers.all(c, c.image.startsWith('a'))"), None);
        assert!(fault("pod.spec.").unwrap().contains("compiled"));
        assert!(fault("driver.spec == 1").unwrap().contains("`driver` is unknown"));
        assert!(fault(&format!("true{}", " || true".repeat(1000))).unwrap().contains("4096"));
        let loops = "objects.all(a, objects.all(b, objects.all(c, objects.all(d, a == d))))";
        assert!(fault(loops).unwrap().contains("loops"));
    }

    #[test]
    fn hostile_text_is_a_fault_and_no_panic() {
        for text in ["", "(", &"(".repeat(4000), &"!".repeat(4000), &"[".repeat(3000), "\u{0}", "'", "\"\\u", "a.b(c"] {
            assert!(fault(text).is_some(), "{}", crate::node::shortened(text));
        }
        let deep = format!("{}true{}", "(".repeat(1500), ")".repeat(1500));
        let _ = fault(&deep);
        let _ = fault(&format!("{}1", "-".repeat(3000)));
        let _ = fault(&format!("pod{}", ".a".repeat(2000)));
        let _ = fault(&format!("pod{}", "[0]".repeat(1000)));
    }
}
